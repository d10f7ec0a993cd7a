// Nodes: which pods run where, and whether they may.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type {
  Category,
  Cells,
  GroupingInfo,
  LensInfo,
  LensValue,
  MapNode,
  NodeDetail,
  NodeMap,
  NodeValue,
  Overview,
  PodLine,
} from "../model.ts";
import {
  Cell,
  type CellPlace,
  categoryClass,
  describeCells,
  Legend,
  lettersOf,
  NodesMap,
  ranksOf,
} from "./map.tsx";
import {
  Badge,
  Busy,
  By,
  count,
  Empty,
  editHref,
  Failure,
  Icon,
  Panel,
  PolicyName,
  Select,
  TextField,
} from "./parts.tsx";
import { address, api, change, explainHref, href, mapChanged, parameter, useData, useMap } from "./state.ts";

/** The choice of lens and grouping, which the maps of several views have. */
export function MapControls({ overview }: { readonly overview: Overview }) {
  return (
    <>
      <Select
        label="Colour by"
        value={chosenLens(overview)}
        choices={overview.lenses.map(({ name, title }) => ({ value: name, title }))}
        onChange={(lens) => change({ lens, only: undefined }, true)}
      />
      <Select
        label="Group by"
        value={chosenGrouping(overview)}
        choices={overview.groupings.map(({ name, title }) => ({ value: name, title }))}
        onChange={(group) => change({ group }, true)}
      />
    </>
  );
}

export function chosenLens({ lenses }: Overview): string {
  return lenses.find(({ name }) => name === parameter("lens"))?.name ?? lenses[0]?.name ?? "";
}

export function chosenGrouping({ groupings }: Overview): string {
  return groupings.find(({ name }) => name === parameter("group"))?.name ?? groupings[0]?.name ?? "";
}

export function NodesView({ overview }: { readonly overview: Overview }) {
  const lens = chosenLens(overview);
  const { data, error, slow } = useMap(chosenGrouping(overview), lens);
  const node = parameter("node");
  const search = parameter("q");
  const only = parameter("only");
  const hover = useHover(overview, lens);
  const detail = useData<NodeDetail>(
    node === "" ? undefined : `/api/nodes/${encodeURIComponent(node)}`,
    mapChanged,
  );
  const info = overview.lenses.find(({ name }) => name === lens);
  const matches = data === undefined ? undefined : filtered(data, search);

  const choose = async (chosen: MapNode, cell: CellPlace | undefined): Promise<void> => {
    const isClose = chosen.name === node && cell === undefined;
    change({ node: isClose ? undefined : chosen.name, pod: undefined });
    const pod = cell === undefined ? undefined : await hover.podAt(chosen.name, cell);
    if (pod !== undefined) change({ node: chosen.name, pod: `${pod.namespace}/${pod.name}` }, true);
  };

  return (
    <div class={node === "" ? "view" : "view with-panel"}>
      <div class="view-main">
        <header class="view-header">
          <div>
            <h1>Nodes</h1>
            <p class="muted">{info?.summary}</p>
          </div>
          <div class="controls">
            <MapControls overview={overview} />
            <TextField
              label="Filter"
              value={search}
              placeholder="Name of a node"
              onInput={(q) => change({ q }, true)}
            />
          </div>
        </header>
        {error !== undefined && <Failure error={error} />}
        {data === undefined && error === undefined && <Busy slow={slow} what="Reading the map" />}
        {data !== undefined && (
          <Legend categories={data.categories} only={only} onOnly={(key) => change({ only: key }, true)} />
        )}
        {data !== undefined && data.nodes.length === 0 && (
          <Empty title="No nodes">
            {overview.source.partial.some((line) => /\bnodes\b/.test(line))
              ? "You may not list nodes on this cluster. Ask for the right, or use another kubeconfig."
              : "Nodes appear here as soon as the source has some."}
          </Empty>
        )}
        {matches !== undefined &&
          data !== undefined &&
          matches.nodes.length === 0 &&
          data.nodes.length > 0 && (
            <Empty title={`No node has “${search}” in its name`}>
              <a href={href("/nodes", { ...Object.fromEntries(address.value.searchParams), q: undefined })}>
                Show all nodes
              </a>
            </Empty>
          )}
        {matches !== undefined && matches.nodes.length > 0 && (
          <NodesMap
            map={matches}
            label={`Nodes by ${chosenGrouping(overview)}`}
            chosen={node}
            only={only}
            onChoose={(chosen, cell) => void choose(chosen, cell)}
            onHover={hover.onHover}
          />
        )}
        {data !== undefined && data.pending.length > 0 && <Pending map={data} />}
        {data !== undefined && <hover.Tip categories={data.categories} />}
      </div>
      {node !== "" && (
        <Panel
          title={node}
          kind="Node"
          closeHref={href("/nodes", {
            ...Object.fromEntries(address.value.searchParams),
            node: undefined,
            pod: undefined,
          })}
        >
          {detail.error !== undefined && <Failure error={detail.error} />}
          {detail.data === undefined && detail.error === undefined && (
            <Busy slow={detail.slow} what="Reading the node" />
          )}
          {detail.data !== undefined && data !== undefined && (
            <NodePanel
              detail={detail.data}
              map={data}
              lenses={overview.lenses}
              lens={lens}
              groupings={overview.groupings}
            />
          )}
        </Panel>
      )}
    </div>
  );
}

function filtered(map: NodeMap, search: string): NodeMap {
  const text = search.trim().toLowerCase();
  if (text === "") return map;
  return { ...map, nodes: map.nodes.filter(({ name }) => name.toLowerCase().includes(text)) };
}

function CountList({
  cells,
  categories,
}: {
  readonly cells: Cells;
  readonly categories: readonly Category[];
}) {
  const letters = lettersOf(categories);
  const pairs = [];
  for (let index = 0; index < cells.length; index += 2) {
    const category = categories[cells[index] ?? 0];
    if (category === undefined) continue;
    pairs.push(
      <li>
        <Cell category={category} letter={letters[cells[index] ?? 0] ?? ""} />
        <span class="number">{count(cells[index + 1] ?? 0)}</span> {category.title}
      </li>,
    );
  }
  return pairs.length === 0 ? <p class="muted">No pods</p> : <ul>{pairs}</ul>;
}

function Pending({ map }: { readonly map: NodeMap }) {
  return (
    <section class="pending" aria-label="Pods without a node">
      <h2>
        Not on a node <span class="muted">{describeCells(map.pending, []).split(":")[0]} waiting</span>
      </h2>
      <CountList cells={map.pending} categories={map.categories} />
    </section>
  );
}

// ------------------------------------------------------------------------------------------------------------------- hover

interface Hovered {
  readonly node: MapNode;
  readonly cell: CellPlace | undefined;
  readonly where: DOMRect;
}

/** What is under the mouse: the node at once, the name of the pod as soon as it is read. */
function useHover(overview: Overview, lens: string) {
  const hovered = useSignal<Hovered | undefined>(undefined);
  const details = useRef(new Map<string, Promise<NodeDetail>>());
  const pod = useSignal<{ readonly key: string; readonly line: PodLine } | undefined>(undefined);
  const lensIndex = overview.lenses.findIndex(({ name }) => name === lens);
  const changes = mapChanged.value;
  useEffect(() => details.current.clear(), [changes]);

  const podAt = async (node: string, cell: CellPlace): Promise<PodLine | undefined> => {
    const known = details.current.get(node) ?? api<NodeDetail>(`/api/nodes/${encodeURIComponent(node)}`);
    details.current.set(node, known);
    const detail = await known.catch(() => undefined);
    return detail?.pods.filter(({ values }) => values[lensIndex]?.category === cell.category)[cell.place];
  };
  const key = (one: Hovered | undefined) =>
    one?.cell === undefined ? "" : `${one.node.name} ${one.cell.category} ${one.cell.place}`;
  const onHover = (
    node: MapNode | undefined,
    cell: CellPlace | undefined,
    where: DOMRect | undefined,
  ): void => {
    const next = node === undefined || where === undefined ? undefined : { node, cell, where };
    const present = hovered.value;
    if (present?.node === next?.node && key(present) === key(next)) return;
    hovered.value = next;
    if (next?.cell === undefined) return;
    const wanted = key(next);
    const { cell: at } = next;
    setTimeout(async () => {
      if (key(hovered.value) !== wanted) return;
      const line = await podAt(next.node.name, at);
      if (line !== undefined && key(hovered.value) === wanted) pod.value = { key: wanted, line };
    }, 60);
  };

  const Tip = ({ categories }: { readonly categories: readonly Category[] }) => {
    const one = hovered.value;
    if (one === undefined) return null;
    const line = pod.value?.key === key(one) ? pod.value.line : undefined;
    const value = line?.values[lensIndex];
    const left = Math.max(8, Math.min(one.where.left, innerWidth - 340));
    const under = one.where.bottom + 160 < innerHeight;
    const place = under
      ? { top: `${one.where.bottom + 6}px` }
      : { bottom: `${innerHeight - one.where.top + 6}px` };
    return (
      <div class="tip" aria-hidden="true" style={{ left: `${left}px`, ...place }}>
        <div class="tip-title">
          <bdi>{line === undefined ? one.node.name : `${line.namespace}/${line.name}`}</bdi>
        </div>
        {line === undefined ? (
          <CountList cells={one.node.cells} categories={categories} />
        ) : (
          <>
            <div>
              <strong>{value?.title}</strong>
            </div>
            <div class="muted">{value?.why}</div>
          </>
        )}
      </div>
    );
  };
  return { onHover, podAt, Tip };
}

// ------------------------------------------------------------------------------------------------------------------- panel

function Values({ title, values }: { readonly title: string; readonly values: readonly NodeValue[] }) {
  if (values.length === 0) return null;
  return (
    <section>
      <h3>
        {title} <span class="number muted">{values.length}</span>
      </h3>
      <ul class="values">
        {values.map(({ text, by, pending }) => (
          <li>
            <code>
              <bdi>{text}</bdi>
            </code>
            {by !== undefined && (
              <span class="muted">
                by <PolicyName link={by} />
              </span>
            )}
            {pending !== undefined && <Badge tone="warning">{pending}</Badge>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function NodePanel(props: {
  readonly detail: NodeDetail;
  readonly map: NodeMap;
  readonly lenses: readonly LensInfo[];
  readonly lens: string;
  readonly groupings: readonly GroupingInfo[];
}) {
  const { detail, map, lenses, lens, groupings } = props;
  const letters = lettersOf(map.categories);
  const lensIndex = lenses.findIndex(({ name }) => name === lens);
  const ranks = ranksOf(map.categories);
  const rank = ({ values }: PodLine) => ranks[values[lensIndex]?.category ?? 0] ?? 0;
  const pods = [...detail.pods].sort((one, other) => rank(one) - rank(other));
  return (
    <>
      <p class="facts">
        {detail.tags.map((tag) => (
          <span class={`tag tag-${tag.replaceAll(" ", "-")}`}>{tag}</span>
        ))}
      </p>
      <dl class="pairs">
        {detail.groups.map(({ grouping, title }) => (
          <>
            <dt>{groupings.find(({ name }) => name === grouping)?.title ?? grouping}</dt>
            <dd>{title}</dd>
          </>
        ))}
      </dl>
      <p class="actions">
        <a class="button" href={editHref({ kind: "Node", namespace: "", name: detail.name })}>
          <Icon name="pencil" />
          Try an edit
        </a>
        <a class="button" href={explainHref({ kind: "Node", namespace: "", name: detail.name })}>
          <Icon name="explain" />
          Explain
        </a>
      </p>
      <section>
        <h3>
          Pods <span class="number muted">{count(detail.pods.length)}</span>
        </h3>
        {pods.length === 0 && <p class="muted">No pod runs here.</p>}
        <ul class="pods">
          {pods.map((pod) => (
            <Pod
              key={`${pod.namespace}/${pod.name}`}
              pod={pod}
              node={detail.name}
              category={map.categories[pod.values[lensIndex]?.category ?? 0]}
              letter={letters[pod.values[lensIndex]?.category ?? 0] ?? ""}
              lenses={lenses}
              lensIndex={lensIndex}
            />
          ))}
        </ul>
      </section>
      <Values title="Taints" values={detail.taints} />
      <Values title="Labels" values={detail.labels} />
      {Object.keys(detail.allocatable).length > 0 && (
        <section>
          <h3>Allocatable</h3>
          <dl class="pairs">
            {Object.entries(detail.allocatable).map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}

/** The chosen lens comes first. */
function inOrder(values: readonly LensValue[], first: number) {
  const all = values.map((value, index) => ({ value, index }));
  return [...all.filter(({ index }) => index === first), ...all.filter(({ index }) => index !== first)];
}

function Pod(props: {
  readonly pod: PodLine;
  readonly node: string;
  readonly category: Category | undefined;
  readonly letter: string;
  readonly lenses: readonly LensInfo[];
  readonly lensIndex: number;
}) {
  const { pod, category, letter, lenses, lensIndex } = props;
  const name = `${pod.namespace}/${pod.name}`;
  const open = parameter("pod") === name;
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (open) row.current?.firstElementChild?.scrollIntoView({ block: "nearest" });
  }, [open]);
  const value = pod.values[lensIndex];
  return (
    <li class={open ? "pod open" : "pod"} ref={row}>
      <button
        type="button"
        class="pod-row"
        aria-expanded={open}
        onClick={() => change({ pod: open ? undefined : name }, true)}
      >
        {category !== undefined && <Cell category={category} letter={letter} />}
        <span class="pod-name">
          <bdi>{name}</bdi>
          <span class={`muted ${category === undefined ? "" : categoryClass(category)}`}>{value?.title}</span>
        </span>
        <Icon name={open ? "down" : "right"} />
      </button>
      {open && (
        <div class="pod-detail">
          {inOrder(pod.values, lensIndex).map(({ value: one, index }) => (
            <div class="lens">
              <div class="lens-title">
                <span class="muted">{lenses[index]?.title}</span>
                <Badge tone={one.tone === "plain" ? "none" : one.tone}>{one.title}</Badge>
              </div>
              {one.why !== "" && <p>{one.why}</p>}
              <p>
                <By value={one} />
              </p>
            </div>
          ))}
          <p class="muted">{[pod.owner, pod.phase].filter((text) => text !== "").join(" · ")}</p>
          <p class="actions">
            <a class="button" href={explainHref({ kind: "Pod", namespace: pod.namespace, name: pod.name })}>
              <Icon name="explain" />
              Explain this pod
            </a>
          </p>
        </div>
      )}
    </li>
  );
}
