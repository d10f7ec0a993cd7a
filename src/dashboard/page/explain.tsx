// Explain: what usher does with an object, step by step, and where it may run.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Tone } from "../../core/module/shown.ts";
import type { Explanations, LensInfo, ObjectExplanation, Overview, TraceStep, Where } from "../model.ts";
import {
  Badge,
  Busy,
  By,
  Changes,
  Code,
  CopyButton,
  counted,
  Diff,
  Empty,
  Failure,
  Finder,
  Icon,
  PolicyName,
  Segments,
} from "./parts.tsx";
import {
  address,
  explainHref,
  go,
  href,
  packed,
  parameter,
  policiesChanged,
  unpacked,
  useCall,
  useData,
} from "./state.ts";

const VERDICTS: Readonly<
  Record<ObjectExplanation["verdict"], { readonly tone: Tone; readonly title: string }>
> = {
  allow: { tone: "good", title: "Allowed" },
  patch: { tone: "plain", title: "Changed" },
  deny: { tone: "bad", title: "Refused" },
};

export function ExplainView({ overview }: { readonly overview: Overview }) {
  const pasting = parameter("paste") !== "" || address.value.hash.startsWith("#m=");
  return (
    <div class="view">
      <div class="view-main narrow">
        <header class="view-header">
          <div>
            <h1>Explain</h1>
            <p class="muted">What usher does with an object, why, and on which nodes it may run.</p>
          </div>
          <div class="controls">
            <Segments
              label="Object or manifest"
              hideLabel
              value={pasting ? "paste" : "name"}
              choices={[
                { value: "name", title: "By name" },
                { value: "paste", title: "Paste a manifest" },
              ]}
              onChange={(value) => go(value === "paste" ? href("/explain", { paste: "1" }) : "/explain")}
            />
          </div>
        </header>
        {pasting ? <Pasted lenses={overview.lenses} /> : <ByName lenses={overview.lenses} />}
      </div>
    </div>
  );
}

function ByName({ lenses }: { readonly lenses: readonly LensInfo[] }) {
  const [kind, namespace, name] = [parameter("kind"), parameter("namespace"), parameter("name")];
  const path = name === "" ? undefined : href("/api/explain", { kind, namespace, name });
  const { data, error, slow } = useData<Explanations>(path, policiesChanged);
  return (
    <>
      <Finder
        label="Object"
        placeholder="Name of a pod, workload, node or namespace"
        only={["pod", "workload", "node", "namespace"]}
        autoFocus={name === ""}
        onChoose={({ object }) => go(explainHref(object))}
      />
      {error !== undefined && <Failure error={error} />}
      {path !== undefined && data === undefined && error === undefined && (
        <Busy slow={slow} what="Evaluating" />
      )}
      {path === undefined && (
        <Empty title="Choose an object">
          Type a part of its name, or paste the manifest of one that does not exist yet.
        </Empty>
      )}
      {data?.explanations.map((explanation) => (
        <ExplanationOf explanation={explanation} lenses={lenses} />
      ))}
    </>
  );
}

const SAMPLE = `apiVersion: v1
kind: Pod
metadata:
  name: sample
  namespace: default
spec:
  containers:
    - name: app
      image: example.com/app:1
`;

function Pasted({ lenses }: { readonly lenses: readonly LensInfo[] }) {
  const text = useSignal("");
  const call = useCall<Explanations>();
  const hash = address.value.hash;
  useEffect(() => {
    if (!hash.startsWith("#m=")) return;
    void unpacked(hash.slice(3)).then((manifest) => {
      text.value = manifest;
      if (manifest !== "") call.run("/api/explain", { manifest });
    });
  }, [hash]);
  const run = async (): Promise<void> => {
    const target = `${href("/explain", { paste: "1" })}#m=${await packed(text.value)}`;
    if (new URL(target, location.href).href === address.value.href)
      call.run("/api/explain", { manifest: text.value });
    else go(target);
  };
  return (
    <>
      <form
        class="paste"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <Editor
          label="Manifest"
          value={text.value}
          rows={12}
          placeholder={SAMPLE}
          onInput={(value) => (text.value = value)}
          onRun={() => void run()}
        />
        <p class="actions">
          <button type="submit" class="button primary" disabled={text.value.trim() === ""}>
            Explain
          </button>
          <span class="muted">Ctrl Enter. The manifest stays on this machine.</span>
        </p>
      </form>
      {call.slow && <Busy slow what="Evaluating" />}
      {call.error !== undefined && <Failure error={call.error} />}
      {call.data?.explanations.map((explanation) => (
        <ExplanationOf explanation={explanation} lenses={lenses} />
      ))}
    </>
  );
}

/** A text of several lines with their numbers. */
export function Editor(props: {
  readonly label: string;
  readonly value: string;
  readonly rows: number;
  readonly placeholder?: string;
  readonly onInput: (value: string) => void;
  readonly onRun: () => void;
}) {
  const lines = Math.max(
    props.rows,
    (props.value === "" ? (props.placeholder ?? "") : props.value).split("\n").length,
  );
  return (
    <div class="editor">
      <pre class="gutter" aria-hidden="true">
        {Array.from({ length: lines }, (_, index) => index + 1).join("\n")}
      </pre>
      <textarea
        aria-label={props.label}
        value={props.value}
        rows={lines}
        wrap="off"
        spellcheck={false}
        autocomplete="off"
        placeholder={props.placeholder}
        onInput={({ currentTarget }) => props.onInput(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            props.onRun();
          }
        }}
      />
    </div>
  );
}

// ------------------------------------------------------------------------------------------------------------- explanation

function ExplanationOf(props: {
  readonly explanation: ObjectExplanation;
  readonly lenses: readonly LensInfo[];
}) {
  const { explanation, lenses } = props;
  const { object, verdict, summary, pod } = explanation;
  const warned = verdict === "allow" && explanation.warnings.length > 0;
  const { tone, title } = warned
    ? { tone: "warning" as const, title: "Allowed with a warning" }
    : VERDICTS[verdict];
  const applied = explanation.steps.filter(({ result }) => result !== "not");
  const others = explanation.steps.filter(({ result }) => result === "not");
  return (
    <article class="explanation" aria-label={`${object.kind} ${object.name}`}>
      <header>
        <div class="overline">{object.kind}</div>
        <h2>
          <bdi>{object.namespace === "" ? object.name : `${object.namespace}/${object.name}`}</bdi>
          {explanation.untouched === undefined && <Badge tone={tone}>{title}</Badge>}
        </h2>
        <p>{summary}</p>
        {explanation.untouched !== undefined && <p class="muted">{explanation.untouched}</p>}
        {pod !== undefined && pod.node !== "" && (
          <p class="actions">
            <a class="button" href={href("/nodes", { node: pod.node, pod: `${pod.namespace}/${pod.name}` })}>
              <Icon name="map" />
              <span>Show on {pod.node}</span>
            </a>
          </p>
        )}
      </header>
      {pod !== undefined && (
        <section>
          <h3>Where it runs now</h3>
          <dl class="facts-list">
            <div>
              <dt>Node</dt>
              <dd>
                {pod.node === "" ? (
                  "none yet"
                ) : (
                  <a href={href("/nodes", { node: pod.node, pod: `${pod.namespace}/${pod.name}` })}>
                    {pod.node}
                  </a>
                )}
              </dd>
            </div>
            {pod.values.map((value, index) => (
              <div>
                <dt>{lenses[index]?.title}</dt>
                <dd>
                  <Badge tone={value.tone === "plain" ? "none" : value.tone}>{value.title}</Badge> {value.why}{" "}
                  <By value={value} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {explanation.violations.length > 0 && (
        <section>
          <h3>Why it is refused</h3>
          <ul class="plain violations">
            {explanation.violations.map(({ message, code, by, ofPods }) => (
              <li>
                <p>{message}</p>
                <p class="muted">
                  {code !== "" && <code>{code}</code>} by <PolicyName link={by} />
                  {ofPods && " · concerns the pods that it makes"}
                </p>
              </li>
            ))}
          </ul>
        </section>
      )}
      {explanation.nodes !== undefined && <WhereTable where={explanation.nodes} />}
      {[...explanation.warnings, ...explanation.unknown].length > 0 && (
        <section>
          <h3>Warnings</h3>
          <ul class="plain">
            {explanation.warnings.map((line) => (
              <li>{line}</li>
            ))}
            {explanation.unknown.map((line) => (
              <li>Not known: {line}</li>
            ))}
          </ul>
        </section>
      )}
      {applied.length > 0 && (
        <section>
          <h3>Step by step</h3>
          <ol class="steps">
            {applied.map((step) => (
              <StepOf step={step} />
            ))}
          </ol>
        </section>
      )}
      {others.length > 0 && (
        <details class="others" open={applied.length === 0}>
          <summary>{counted(others.length, "policies")} without effect, and why</summary>
          <ol class="steps">
            {others.map((step) => (
              <StepOf step={step} />
            ))}
          </ol>
        </details>
      )}
      {explanation.set.length > 0 && (
        <section>
          <h3>Set by usher before</h3>
          <div class="table-box" role="region" tabIndex={0} aria-label="Values that usher has set">
            <table>
              <thead>
                <tr>
                  <th scope="col">Field</th>
                  <th scope="col">Value</th>
                  <th scope="col">By</th>
                  <th scope="col">Today</th>
                </tr>
              </thead>
              <tbody>
                {explanation.set.map(({ field, value, by, today }) => (
                  <tr>
                    <th scope="row">
                      <code>{field}</code>
                    </th>
                    <td>
                      <code>{value}</code>
                    </td>
                    <td>
                      <PolicyName link={by} />
                    </td>
                    <td>{today}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {explanation.diffs.length > 0 && (
        <section>
          <h3>Manifest</h3>
          {explanation.diffs.map(({ title: caption, lines }) => (
            <Diff title={caption} lines={lines} />
          ))}
        </section>
      )}
      {explanation.refusals.length > 0 && (
        <section>
          <h3>Refused before</h3>
          <ul class="plain">
            {explanation.refusals.map(({ when, message, count }) => (
              <li>
                <span class="muted number">{when}</span> {message}
                {count !== undefined && count > 1 && <span class="muted"> ({counted(count, "times")})</span>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {explanation.command !== undefined && (
        <section class="command">
          <h3>On the command line</h3>
          <Code text={explanation.command} label="Command" />
          <CopyButton text={explanation.command}>Copy</CopyButton>
        </section>
      )}
    </article>
  );
}

const RESULTS: Readonly<Record<TraceStep["result"], { readonly tone: Tone; readonly title: string }>> = {
  applies: { tone: "good", title: "applies" },
  partly: { tone: "warning", title: "partly" },
  refuses: { tone: "bad", title: "refuses" },
  failed: { tone: "bad", title: "failed" },
  not: { tone: "none", title: "no effect" },
};

function StepOf({ step }: { readonly step: TraceStep }) {
  const { tone, title } = RESULTS[step.result];
  return (
    <li class={`step ${step.result}`}>
      <div class="step-title">
        <Badge tone={tone}>{title}</Badge>
        <strong>
          <PolicyName link={step.policy} />
        </strong>
        {step.rule !== undefined && <span class="muted">{step.rule}</span>}
        <span class="muted module">{step.module}</span>
      </div>
      {step.why !== "" && <p>{step.why}</p>}
      <Changes lines={step.parts} />
    </li>
  );
}

function WhereTable({ where }: { readonly where: Where }) {
  return (
    <section>
      <h3>Where it may run</h3>
      <p class="where-summary">
        <strong class="number">
          {where.fits} of {counted(where.total, "nodes")}
        </strong>
        {where.summary !== "" && <span class="muted"> · {where.summary}</span>}
      </p>
      <div class="table-box" role="region" tabIndex={0} aria-label="Nodes by filter">
        <table class="where">
          <thead>
            <tr>
              <th scope="col">Result</th>
              <th scope="col" class="end">
                Nodes
              </th>
              <th scope="col">Filter</th>
              <th scope="col">Why</th>
              <th scope="col">Names</th>
            </tr>
          </thead>
          <tbody>
            {where.groups.map((group) => (
              <tr>
                <th scope="row">
                  <Badge
                    tone={group.verdict === "fits" ? "good" : group.verdict === "fails" ? "bad" : "warning"}
                  >
                    {group.verdict}
                  </Badge>
                </th>
                <td class="end">{group.count}</td>
                <td>{group.filter === undefined ? "" : <code>{group.filter}</code>}</td>
                <td>{group.reason ?? ""}</td>
                <td class="names">
                  {group.nodes.slice(0, 8).map((name) => (
                    <a href={href("/nodes", { node: name })}>{name}</a>
                  ))}
                  {group.count > 8 && <span class="muted">and {group.count - 8} more</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {where.notes.map((note) => (
        <p class="muted">{note}</p>
      ))}
    </section>
  );
}
