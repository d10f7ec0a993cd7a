// What if: an edit beside the map, and what it would do.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Tone } from "../../core/module/shown.ts";
import type { EditableManifest, Overview, WhatIf, WhatIfRequest, WorkloadEffect } from "../model.ts";
import { Editor } from "./explain.tsx";
import { Legend, NodesMap } from "./map.tsx";
import { chosenGrouping, chosenLens, MapControls } from "./nodes.tsx";
import {
  Badge,
  Busy,
  Changes,
  Code,
  CopyButton,
  counted,
  Empty,
  Failure,
  Finder,
  Icon,
  ObjectLink,
  Segments,
  useShown,
} from "./parts.tsx";
import { address, api, change, go, href, packed, parameter, unpacked, useCall } from "./state.ts";

interface Edit {
  readonly manifests: string;
  readonly remove: readonly string[];
  readonly cordon: readonly string[];
}

const NOTHING: Edit = { manifests: "", remove: [], cordon: [] };

function isNothing({ manifests, remove, cordon }: Edit): boolean {
  return manifests.trim() === "" && remove.length === 0 && cordon.length === 0;
}

export function WhatIfView({ overview }: { readonly overview: Overview }) {
  const edit = useSignal<Edit>(NOTHING);
  const dryRun = useSignal(false);
  const call = useCall<WhatIf>();
  const failed = useSignal("");
  const { hash } = address.value;
  const [group, lens] = [chosenGrouping(overview), chosenLens(overview)];
  const wanted = parameter("edit");

  const add = (manifest: string): void => {
    const present = edit.value.manifests.trimEnd();
    edit.value = { ...edit.value, manifests: present === "" ? manifest : `${present}\n---\n${manifest}` };
  };
  const load = async (kind: string, namespace: string, name: string): Promise<void> => {
    try {
      const { yaml } = await api<EditableManifest>(href("/api/manifest", { kind, namespace, name }));
      failed.value = "";
      add(yaml);
    } catch (error) {
      failed.value = error instanceof Error ? error.message : String(error);
    }
  };
  // A link from a policy or a node starts with its manifest.
  useEffect(() => {
    if (wanted === "" || hash !== "") return;
    const [kind = "", namespace = "", ...name] = wanted.split("/");
    edit.value = NOTHING;
    call.clear();
    void load(kind, namespace, name.join("/"));
  }, [wanted]);
  // The edit is in the address, so that its effects can be linked to.
  useEffect(() => {
    if (!hash.startsWith("#e=")) return;
    void unpacked(hash.slice(3)).then((text) => {
      if (text === "") return;
      const linked = { ...NOTHING, ...(JSON.parse(text) as Partial<Edit>) };
      edit.value = linked;
      ask(linked);
    });
  }, [hash, group, lens]);
  const ask = (what: Edit): void => {
    const request: WhatIfRequest = { ...what, group, lens, ...(dryRun.value ? { serverDryRun: true } : {}) };
    call.run("/api/what-if", request);
  };
  const run = async (): Promise<void> => {
    if (isNothing(edit.value)) return;
    const text = await packed(JSON.stringify(edit.value));
    const { pathname, search } = address.value;
    const target = `${pathname}${search}#e=${text}`;
    if (new URL(target, location.href).href === address.value.href) ask(edit.value);
    else go(target);
  };
  const without = (list: "remove" | "cordon", name: string): void => {
    edit.value = { ...edit.value, [list]: edit.value[list].filter((one) => one !== name) };
  };

  return (
    <div class="view what-if">
      <section class="editor-column" aria-label="The edit">
        <header class="view-header">
          <div>
            <h1>What if</h1>
            <p class="muted">
              Edit a policy, a node or a workload, and see what would change. Nothing is written to the
              cluster.
            </p>
          </div>
        </header>
        <Finder
          label="Start from"
          placeholder="Name of a policy, node or workload"
          only={["policy", "node", "workload", "namespace"]}
          onChoose={({ object }) => void load(object.kind, object.namespace, object.name)}
        />
        {failed.value !== "" && (
          <p class="field-error" role="alert">
            {failed.value}
          </p>
        )}
        <Editor
          label="Manifests after the edit"
          value={edit.value.manifests}
          rows={16}
          placeholder={
            "# Choose an object above, then edit it here.\n# Or paste manifests, with --- between them."
          }
          onInput={(manifests) => (edit.value = { ...edit.value, manifests })}
          onRun={() => void run()}
        />
        <Finder
          label="Remove or cordon"
          placeholder="Name of an object to remove, or a node to cordon"
          only={["policy", "node", "workload"]}
          onChoose={({ what, object }) => {
            if (what === "node" && !edit.value.cordon.includes(object.name))
              edit.value = { ...edit.value, cordon: [...edit.value.cordon, object.name] };
            else if (what !== "node") {
              const name = [object.kind.toLowerCase(), object.namespace, object.name]
                .filter((part) => part !== "")
                .join("/");
              edit.value = { ...edit.value, remove: [...new Set([...edit.value.remove, name])] };
            }
          }}
        />
        {edit.value.remove.length + edit.value.cordon.length > 0 && (
          <ul class="chips" aria-label="Removed and cordoned">
            {edit.value.remove.map((name) => (
              <Chip label={`remove ${name}`} onRemove={() => without("remove", name)} />
            ))}
            {edit.value.cordon.map((name) => (
              <>
                <Chip label={`cordon ${name}`} onRemove={() => without("cordon", name)} />
                <li>
                  <button
                    type="button"
                    class="link"
                    onClick={() => {
                      without("cordon", name);
                      edit.value = { ...edit.value, remove: [...edit.value.remove, `node/${name}`] };
                    }}
                  >
                    remove {name} instead
                  </button>
                </li>
              </>
            ))}
          </ul>
        )}
        {overview.source.live && (
          <label class="check">
            <input
              type="checkbox"
              checked={dryRun.value}
              onChange={({ currentTarget }) => (dryRun.value = currentTarget.checked)}
            />
            Ask the API server too, as a dry run
          </label>
        )}
        <p class="actions">
          <button
            type="button"
            class="button primary"
            disabled={isNothing(edit.value)}
            onClick={() => void run()}
          >
            Show what changes
          </button>
          {!isNothing(edit.value) && (
            <button
              type="button"
              class="button"
              onClick={() => {
                edit.value = NOTHING;
                call.clear();
                go("/what-if");
              }}
            >
              Start again
            </button>
          )}
          <span class="muted">Ctrl Enter</span>
        </p>
      </section>
      <section class="result-column" aria-label="Effects">
        {call.error !== undefined && <Failure error={call.error} />}
        {call.data === undefined && call.error === undefined && !call.slow && (
          <Empty title="The effects appear here">
            Choose an object on the left, change its manifest, and press Show what changes.
          </Empty>
        )}
        {call.data === undefined && call.slow && <Busy slow what="Evaluating every workload" />}
        {call.data !== undefined && <Effects result={call.data} overview={overview} slow={call.slow} />}
      </section>
    </div>
  );
}

function Chip({ label, onRemove }: { readonly label: string; readonly onRemove: () => void }) {
  return (
    <li class="chip">
      <bdi>{label}</bdi>
      <button type="button" aria-label={`Take back: ${label}`} onClick={onRemove}>
        <Icon name="cross" />
      </button>
    </li>
  );
}

const EFFECTS: Readonly<Record<WorkloadEffect["effect"], Tone>> = {
  refused: "bad",
  stranded: "bad",
  "still refused": "bad",
  moves: "warning",
  warned: "warning",
  changed: "plain",
  admitted: "good",
  new: "plain",
  gone: "warning",
  same: "none",
};

function Effects(props: { readonly result: WhatIf; readonly overview: Overview; readonly slow: boolean }) {
  const { result, overview } = props;
  const shown = parameter("show") || "effects";
  const only = parameter("only");
  const map = shown === "before" ? result.before : shown === "after" ? result.after : result.effects;
  const differ = result.workloads.filter(({ effect }) => effect !== "same");
  const { limit, More } = useShown(100, result.command);
  return (
    <>
      <div class="summary" role="status" aria-live="polite">
        {result.edits.map(({ name, what }) => (
          <p class="muted">
            If {name} is {what}:
          </p>
        ))}
        <ul class="plain">
          {result.summary.map((line) => (
            <li>
              <strong>{line}</strong>
            </li>
          ))}
        </ul>
        <p class="muted">
          {counted(result.looked.workloads, "workloads")}, {counted(result.looked.pods, "pods")} and{" "}
          {counted(result.looked.nodes, "nodes")} were evaluated.
        </p>
      </div>
      {differ.length > 0 && (
        <section>
          <h2 class="group-title">
            Workloads that differ <span class="number muted">{differ.length}</span>
          </h2>
          <ul class="effects">
            {differ.slice(0, limit).map((workload) => (
              <Effect workload={workload} />
            ))}
          </ul>
          <More total={differ.length} noun="workloads" />
        </section>
      )}
      {result.others.length > 0 && (
        <section>
          <h2 class="group-title">Nodes and users</h2>
          <ul class="effects">
            {result.others.map(({ object, lines, tone }) => (
              <li class="effect">
                <div class="effect-title">
                  <Badge tone={tone}>changed</Badge>
                  <ObjectLink object={object} />
                </div>
                <Changes lines={lines} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {result.pools.length > 0 && (
        <section>
          <h2 class="group-title">Pools</h2>
          <ul class="plain">
            {result.pools.map(({ pool, effect, nodes, workloads }) => (
              <li>
                <strong>{pool}</strong> {effect}: {nodes.before} to {counted(nodes.after, "nodes")},{" "}
                {workloads.before} to {counted(workloads.after, "workloads")}
              </li>
            ))}
          </ul>
        </section>
      )}
      {[
        ...result.serverDryRun.map(
          ({ name, result: said, lines }) => `The API server says of ${name}: ${[said, ...lines].join("; ")}`,
        ),
        ...result.unknown,
        ...result.partial,
      ].length > 0 && (
        <section>
          <h2 class="group-title">Notes</h2>
          <ul class="plain">
            {result.serverDryRun.map(({ name, result: said, lines }) => (
              <li>
                The API server says of {name}: {[said, ...lines].join("; ")}
              </li>
            ))}
            {result.unknown.map((line) => (
              <li>Not known: {line}</li>
            ))}
            {result.partial.map((line) => (
              <li>{line}</li>
            ))}
          </ul>
        </section>
      )}
      <section>
        <div class="map-header">
          <h2 class="group-title">On the map</h2>
          <div class="controls">
            <Segments
              label="Map"
              hideLabel
              value={shown}
              choices={[
                { value: "before", title: "Before" },
                { value: "after", title: "After" },
                { value: "effects", title: "Differences" },
              ]}
              onChange={(show) => keepEdit(() => change({ show, only: undefined }, true))}
            />
            {shown !== "effects" && <MapControls overview={overview} />}
          </div>
        </div>
        <Legend
          categories={map.categories}
          only={only}
          onOnly={(key) => keepEdit(() => change({ only: key }, true))}
        />
        <NodesMap
          key={shown}
          map={map}
          label={`Nodes: ${shown}`}
          chosen=""
          only={only}
          onChoose={(node) => go(href("/nodes", { node: node.name }))}
        />
      </section>
      <section class="command">
        <h2 class="group-title">The same on the command line</h2>
        <Code text={result.command} label="Command" />
        <CopyButton text={result.command}>Copy the command</CopyButton>
      </section>
    </>
  );
}

/** The edit is in the fragment of the address, which stays. */
function keepEdit(navigate: () => void): void {
  const { hash } = address.value;
  navigate();
  if (hash !== "") go(`${address.value.pathname}${address.value.search}${hash}`, true);
}

function Effect({ workload }: { readonly workload: WorkloadEffect }) {
  const { object, effect, pods, lines, nodes, leaves } = workload;
  return (
    <li class="effect">
      <div class="effect-title">
        <Badge tone={EFFECTS[effect]}>{effect}</Badge>
        <ObjectLink object={object} />
        {pods > 0 && <span class="muted number">{counted(pods, "pods")}</span>}
        {nodes !== undefined && nodes.before !== nodes.after && (
          <span class="number nodes-change">
            {nodes.before} <Icon name="right" />
            <span class="unseen">to</span> {counted(nodes.after, "nodes")}
          </span>
        )}
      </div>
      <Changes lines={lines} />
      {nodes !== undefined && nodes.lost.length > 0 && (
        <p class="muted">
          No longer:{" "}
          {nodes.lost
            .slice(0, 4)
            .map(({ node, reason }) => `${node} (${reason})`)
            .join(", ")}
          {nodes.lost.length > 4 && ` and ${nodes.lost.length - 4} more`}
        </p>
      )}
      {nodes !== undefined && nodes.gained.length > 0 && (
        <p class="muted">
          Newly: {nodes.gained.slice(0, 6).join(", ")}
          {nodes.gained.length > 6 && ` and ${nodes.gained.length - 6} more`}
        </p>
      )}
      {leaves.length > 0 && <p>Would not be placed on {leaves.join(", ")} again.</p>}
    </li>
  );
}
