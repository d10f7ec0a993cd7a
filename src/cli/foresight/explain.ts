import type { Origin } from "../../core/decision/draft.ts";
import { type AdmissionRequest, resourceName, supposedRequest } from "../../core/decision/request.ts";
import { shortName } from "../../core/drift/commands/policy-argument.ts";
import { parseWorkload } from "../../core/drift/commands/workload-argument.ts";
import { EVENT_ANNOTATIONS } from "../../core/evaluate/effects.ts";
import { Placements } from "../../core/foresight/node-reach.ts";
import { requestFor } from "../../core/foresight/stored-workloads.ts";
import type { World } from "../../core/foresight/world.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { annotationsOf, groupVersionOf, nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { codesOf } from "../../core/module/codes.ts";
import { loadModules } from "../../core/module/declaration.ts";
import { fieldPath, steps } from "../../core/path.ts";
import { PROVENANCE, provenanceOf } from "../../core/provenance/annotation.ts";
import { beforeUsher } from "../../core/provenance/before.ts";
import type { ReviewResult } from "../../core/review/result.ts";
import { reviewWithPods, userInfoFor } from "../../core/review/review.ts";
import type { Feasibility } from "../../core/scheduling/scheduling.ts";
import { didYouMean } from "../../core/suggest.ts";
import { CallError, EXIT } from "../exit.ts";
import { explain as explainCode } from "../help.ts";
import { type InputOptions, InputReader } from "../input/input.ts";
import { describeProblems } from "../input/problems.ts";
import { Shape } from "../input/shape.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { printTrace } from "../review/print.ts";
import { hung } from "../wrap.ts";
import { auditEvents, type RecordedRefusal, refusalsIn } from "./audit-log.ts";
import { type OpenedWorld, openWorld, PRIORITY_CLASSES, readAll, type WorldOptions } from "./open-world.ts";

export interface ExplainOptions extends WorldOptions, InputOptions {
  readonly filename?: readonly string[];
  readonly auditLog?: string;
  readonly output: "table" | "json" | "yaml";
}

/** One value that usher has set, and its current value if created today. */
interface SetValue {
  readonly field: string;
  readonly value: Json;
  readonly module: string;
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  /** Of the policy when it set the value, and now. */
  readonly generation?: number;
  readonly generationNow?: number;
  /** RFC 3339: for a pod its creation, for a node usher's last write. Absent if unknown. */
  readonly when?: string;
  /** `the same`, another value, or why there is none. */
  readonly today: string;
}

/** All information about one object; the JSON output is exactly this. */
export interface Explanation {
  readonly object: ReviewResult["object"];
  readonly set: readonly SetValue[];
  /** The decision if it were created now, with the trace of every policy. */
  readonly today: ReviewResult;
  readonly nodes?: Feasibility;
  readonly refusals: readonly RecordedRefusal[];
  /** The object without usher's changes. */
  readonly before: JsonObject;
  /** With it. */
  readonly now: JsonObject;
}

/** Explains an object, or the text of a refusal; returns the exit code. */
export async function explain(what: readonly string[], options: ExplainOptions, io: Io): Promise<number> {
  const { filename: files = [], kustomize = [] } = options;
  const written = files.length + kustomize.length > 0;
  if (what.length === 0 && !written)
    throw new CallError("specify KIND/NAME, -f FILE, -k DIRECTORY, or the text of a refusal");
  if (what.length > 0 && written) throw new CallError("KIND/NAME and -f or -k are mutually exclusive");
  const screen = terminal(io, options);
  const named = /^[^/\s]+\/[^/\s]+$/.test(what[0] ?? "") && what.length === 1;
  if (what.length > 0 && !named) return explainText(what.join(" "), io, screen);
  const opened = await openWorld(options, io, screen, { scheduling: true });
  try {
    const objects = named
      ? [findObject(what[0] ?? "", options.namespace ?? "default", opened)]
      : await readObjects(files, opened, options, io, screen);
    if (objects === undefined) return EXIT.wrong;
    for (const reason of opened.partial) screen.complain(printable(`partial, not read: ${reason}`));
    const explained: Explanation[] = [];
    for (const object of objects) {
      const { auditLog } = options;
      const recorded =
        auditLog === undefined ? [] : await auditRefusals(auditLog, object, opened, io, screen);
      explained.push(await explanationOf(object, opened, { written, recorded }));
    }
    print(explained, opened, options.output, screen, io);
    if (opened.faulty) return EXIT.wrong;
    return opened.partial.length > 0 ? EXIT.failed : EXIT.fine;
  } finally {
    screen.endProgress();
    await opened.stop();
  }
}

/** Words without a code: most likely the kind and the name of an object, as `kubectl get` reads them. */
function notARefusal(text: string): string {
  const [kind = "", name = "NAME", ...more] = text.split(" ");
  if (/^[A-Za-z.]+$/.test(kind) && more.length === 0)
    return `specify the object as ${kind}/${name}, or the text of a refusal with its code, such as USHER-P01`;
  return "the text has no code of usher, such as USHER-P01: it is not a refusal by usher; to explain an object, specify KIND/NAME";
}

/** The codes in the text of a refusal, and the object that it names. */
async function explainText(text: string, io: Io, screen: Terminal): Promise<number> {
  const modules = await loadModules(io.modules);
  const codes = [...new Set(text.match(/USHER-[A-Z]\d{2,}/g) ?? [])];
  const known = new Set(codesOf(modules).map(({ code }) => code));
  const wrong = codes.find((code) => !known.has(code));
  if (codes.length === 0 || wrong !== undefined)
    throw new CallError(
      wrong === undefined
        ? notARefusal(text)
        : `${wrong} is not a code of this version of usher; usher help codes lists them`,
    );
  screen.out(codes.map((code) => explainCode(code, [], modules)).join("\n\n"));
  const [, kind = "", namespace = "", name = ""] =
    /\b([A-Za-z]+) ([a-z0-9][a-z0-9.-]*)\/([a-z0-9][a-z0-9.-]*[a-z0-9])/.exec(text) ?? [];
  if (name !== "")
    screen.note(
      `Run "${io.name} explain ${kind.toLowerCase()}/${name} -n ${namespace}" to see which policies apply to it.`,
    );
  return EXIT.fine;
}

async function readObjects(
  files: readonly string[],
  { world, resources }: OpenedWorld,
  options: ExplainOptions,
  io: Io,
  screen: Terminal,
): Promise<JsonObject[] | undefined> {
  const reader = new InputReader(io.stdin, new Shape(resources, world.assembly), screen.note, options);
  const { manifests, problems } = await reader.read(files, true);
  for (const text of describeProblems(problems)) screen.complain(text);
  if (problems.length > 0) return undefined;
  return manifests.map(({ object }) => {
    const { scope } = resources.of(stringAt(object, "apiVersion") ?? "", stringAt(object, "kind") ?? "");
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    if (scope === "Cluster" || (metadata["namespace"] ?? "") !== "") return object;
    return { ...object, metadata: { ...metadata, namespace: options.namespace ?? "default" } };
  });
}

/** Explains one object in a world; `written`: it is a manifest, not a stored object. */
export async function explanationOf(
  object: JsonObject,
  opened: Pick<OpenedWorld, "world" | "resources">,
  options: {
    readonly written: boolean;
    readonly recorded?: readonly RecordedRefusal[];
    /** Of this world, where they were computed before. */
    readonly placements?: Placements;
  },
): Promise<Explanation> {
  const { written, recorded = [], placements: known } = options;
  const { world } = opened;
  const request = requestOf(object, opened, written);
  const { result, pod, evaluation } = await reviewWithPods(request, world, { trace: true, now: Date.now() });
  const { object: before, origins } = beforeUsher(object);
  const isNode = stringAt(object, "kind") === "Node";
  const when = whenSet(isNode ? await withManagers(object, world) : object);
  const placements =
    pod === undefined || world.list("nodes").length === 0 ? undefined : (known ?? new Placements(world));
  const own =
    stringAt(object, "kind") === "Pod" ? world.get("pods", namespaceOf(object), nameOf(object)) : undefined;
  return {
    object: result.object,
    set: (isNode
      ? nodeValues(nameOf(object), world)
      : origins.flatMap((origin) => valuesOf(origin, object, evaluation.draft.object, result, world))
    ).map((one) => (when === undefined ? one : { ...one, when })),
    today: result,
    ...(placements === undefined
      ? {}
      : { nodes: placements.of(pod, stringAt(object, "kind") ?? "", own === undefined ? [] : [own]) }),
    refusals: [...(await recordedEvents(object, opened)), ...recorded].map((refusal) => {
      const now = refusal.policy === undefined ? undefined : generationOf(refusal.policy, world);
      return typeof now === "number" ? { ...refusal, generationNow: now } : refusal;
    }),
    before,
    now: object,
  } as Explanation;
}

/** Lists are read without the managers of fields, which are half of the bytes. */
async function withManagers(node: JsonObject, world: World): Promise<JsonObject> {
  const fieldSelector = `metadata.name=${nameOf(node)}`;
  const where = { fieldSelector, managers: true };
  const { objects } = await readAll("nodes", (needs) => world.fetch(needs), where);
  return objects.find((one) => nameOf(one) === nameOf(node)) ?? node;
}

/** When usher set values: a pod is changed only at its creation, and a node by usher's own writes. */
function whenSet(object: JsonObject): string | undefined {
  const kind = stringAt(object, "kind");
  if (kind === "Pod") return stringAt(object, "metadata", "creationTimestamp");
  if (kind !== "Node") return undefined;
  const own = listAt(object, "metadata", "managedFields").filter((one) =>
    /^usher/.test(stringAt(one, "manager") ?? ""),
  );
  return own
    .flatMap((one) => stringAt(one, "time") ?? [])
    .sort()
    .at(-1);
}

/** The request that creates the object as it was before usher. */
function requestOf(
  object: JsonObject,
  { world, resources }: Pick<OpenedWorld, "world" | "resources">,
  written: boolean,
): AdmissionRequest {
  const apiVersion = stringAt(object, "apiVersion") ?? "";
  const kind = stringAt(object, "kind") ?? "";
  const { group, version } = groupVersionOf(apiVersion);
  const workload = world.assembly.installation.workloads.byKind(group, kind);
  if (workload !== undefined)
    return requestFor(object, workload, { priorityClasses: world.list(PRIORITY_CLASSES), written });
  const resource = resources.of(apiVersion, kind);
  const plural = group === "" ? resource.name : resource.name.slice(0, -group.length - 1);
  const namespace = resource.scope === "Cluster" ? "" : namespaceOf(object);
  const created = structuredClone(beforeUsher(object).object) as JsonObject;
  return supposedRequest({ group, version, kind, resource: plural }, created, {
    uid: "explain",
    name: nameOf(object),
    namespace: group === "" && kind === "Namespace" ? nameOf(object) : namespace,
    userInfo: userInfoFor("kubernetes-admin", []),
    unvalidated: true,
  });
}

/** The values that one policy set, path by path, compared with the object as it would be created today. */
function valuesOf(
  { module, policy, generation, set, added }: Origin,
  stored: JsonObject,
  today: JsonObject,
  { verdict }: ReviewResult,
  world: World,
): SetValue[] {
  const now = generationOf(policy, world);
  const rest = {
    module,
    policy,
    ...(generation === undefined ? {} : { generation }),
    ...(typeof now === "number" ? { generationNow: now } : {}),
  };
  const gone = now === "gone" ? "nothing: the policy is gone" : "nothing: the policy no longer sets it";
  const compare = (value: Json | undefined, wants: Json | undefined) =>
    verdict === "deny"
      ? "refused"
      : wants === undefined
        ? gone
        : equal(wants, value)
          ? "the same"
          : shown(wants);
  return [
    ...set.flatMap((place) => {
      const value = at(stored, ...steps(place));
      return value === undefined
        ? []
        : [
            {
              ...rest,
              field: fieldPath(steps(place)),
              value,
              today: compare(value, at(today, ...steps(place))),
            },
          ];
    }),
    ...Object.entries(added).flatMap(([list, elements]) =>
      elements.map((value) => {
        // A term of node affinity is joined to others, so the list itself may not have it.
        const recorded = provenanceOf(today).flatMap((origin) => origin.added[list] ?? []);
        const has = [...listAt(today, ...steps(list)), ...recorded].some((one) => equal(one, value));
        return {
          ...rest,
          field: fieldPath(steps(list)),
          value,
          today: compare(value, has ? value : undefined),
        };
      }),
    ),
  ];
}

/** The current generation of a policy; `undefined` for files. */
function generationOf(policy: string, { assembly }: World): number | "gone" | undefined {
  for (const { name } of assembly.modules)
    for (const { ref } of assembly.policies(name)) {
      const key = `${ref.kind}/${ref.namespace === undefined ? "" : `${ref.namespace}/`}${ref.name}`;
      if (key === policy) return ref.generation;
    }
  return "gone";
}

/** Values that rules have set on a node, and pending changes. */
function nodeValues(node: string, { assembly }: World): SetValue[] {
  return assembly.modules.flatMap(({ name: module, standing }) =>
    [...(standing?.(assembly) ?? [])]
      .filter(({ object }) => object.kind === "Node" && object.name === node)
      .flatMap(({ holds, changes }) => [
        ...holds.map(({ path, message, by = "-" }) => {
          const change = changes.find((one) => fieldPath(one.path) === fieldPath(path));
          const today =
            change === undefined ? "the same" : change.change === "remove" ? "removed" : change.message;
          return { field: message, value: message, module, policy: by, today };
        }),
        ...changes
          .filter(({ path }) => !holds.some((one) => fieldPath(one.path) === fieldPath(path)))
          .map(({ message, change, by = "-" }) => ({
            field: message,
            value: message,
            module,
            policy: by,
            today: change === "remove" ? "to be removed" : "to be set",
          })),
      ]),
  );
}

/** Usher's events about an object, or about the namespace if a refused pod has no owner. */
async function recordedEvents(
  object: JsonObject,
  { world }: Pick<OpenedWorld, "world">,
): Promise<RecordedRefusal[]> {
  const namespace = namespaceOf(object) || "default";
  const { objects } = await readAll("events.events.k8s.io", (needs) => world.fetch(needs), { namespace });
  return objects
    .filter(
      (event) =>
        /^usher/.test(stringAt(event, "reportingController") ?? "") &&
        stringAt(event, "regarding", "kind") === stringAt(object, "kind") &&
        stringAt(event, "regarding", "name") === nameOf(object),
    )
    .map((event) => {
      const related = event["related"];
      const name = [stringAt(related, "kind"), stringAt(related, "namespace"), stringAt(related, "name")]
        .filter((part) => part !== undefined)
        .join("/");
      const generation = Number(annotationsOf(event)?.[EVENT_ANNOTATIONS.generation]);
      const rule = annotationsOf(event)?.[EVENT_ANNOTATIONS.rule];
      const count = at(event, "series", "count");
      return {
        when: stringAt(event, "series", "lastObservedTime") ?? stringAt(event, "eventTime") ?? "",
        from: "event" as const,
        ...(name === "" ? {} : { policy: name }),
        ...(Number.isSafeInteger(generation) ? { generation } : {}),
        ...(typeof rule === "string" ? { rule } : {}),
        message: stringAt(event, "note") ?? "",
        ...(typeof count === "number" ? { count } : {}),
      };
    });
}

async function auditRefusals(
  path: string,
  object: JsonObject,
  { resources }: OpenedWorld,
  io: Io,
  screen: Terminal,
): Promise<RecordedRefusal[]> {
  const { name: resource } = resources.of(
    stringAt(object, "apiVersion") ?? "",
    stringAt(object, "kind") ?? "",
  );
  const generated = stringAt(object, "metadata", "generateName") ?? "";
  const found: RecordedRefusal[] = [];
  let skipped = 0;
  for await (const event of auditEvents(path, io.stdin, () => skipped++)) {
    const of = event["objectRef"];
    const group = stringAt(of, "apiGroup") ?? "";
    const name = stringAt(of, "name") ?? "";
    if (`${stringAt(of, "resource")}${group === "" ? "" : `.${group}`}` !== resource) continue;
    if ((stringAt(of, "namespace") ?? "") !== namespaceOf(object)) continue;
    if (name !== nameOf(object) && (generated === "" || !name.startsWith(generated))) continue;
    found.push(...refusalsIn(event));
  }
  if (skipped > 0) screen.note(`${path}: ${skipped} lines are not audit events`);
  return found;
}

function print(
  explained: readonly Explanation[],
  { world }: OpenedWorld,
  output: ExplainOptions["output"],
  screen: Terminal,
  io: Io,
): void {
  if (output !== "table") {
    const [only, ...more] = explained as unknown as JsonObject[];
    const value =
      only === undefined || more.length > 0
        ? versioned("ExplainList", { items: [...(only === undefined ? [] : [only]), ...more] })
        : versioned("Explain", only);
    screen.out(output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
    return;
  }
  for (const [i, one] of explained.entries()) {
    if (i > 0) screen.out("");
    printOne(one, world, screen);
  }
  const codes = explained.flatMap(({ today }) => today.violations.map(({ code }) => code));
  const [code] = codes.filter((one) => one !== "");
  if (code !== undefined) screen.note(`Run "${io.name} help ${code}" for an explanation.`);
}

function printOne(
  { object, set, today, nodes, refusals, before, now }: Explanation,
  world: World,
  screen: Terminal,
) {
  const { out, paint, width } = screen;
  const heading = (text: string) => out(`\n${paint("bold", text)}`);
  const rows = (columns: readonly string[], cells: readonly (readonly string[])[]) => {
    for (const line of table(
      columns,
      cells.map((row) => row.map(printable)),
      width === undefined ? undefined : width - 2,
    ))
      out(`  ${line}`);
  };
  out(printable(`${object.kind} ${object.namespace === "" ? "" : `${object.namespace}/`}${object.name}`));
  const [when] = set.flatMap((one) => one.when ?? []);
  heading(`Set by usher${when === undefined ? "" : ` at ${when}`}`);
  if (set.length === 0) out("  nothing");
  else if (object.kind === "Node")
    rows(
      ["VALUE", "BY", "TODAY"],
      set.map(({ field, policy, today: is }) => [field, policy, is]),
    );
  else
    rows(
      ["FIELD", "VALUE", "POLICY", "GENERATION", "TODAY"],
      set.map(({ field, value, policy, generation, generationNow, today: is }) => [
        field
          .replace(/^(?:spec\.(?:jobTemplate\.spec\.)?template\.)?spec\./, "")
          .replace(/(required|preferred)DuringSchedulingIgnoredDuringExecution/, "$1"),
        shown(value),
        shortName(policy),
        generationText(generation, generationNow),
        is,
      ]),
    );
  heading("If it were created now");
  printTrace([today], {
    ...screen,
    width: screen.width === undefined ? undefined : screen.width - 2,
    out: (text) => out(text === "" ? "" : `  ${text}`),
  });
  if (nodes !== undefined) {
    heading("Where it may run");
    const node = stringAt(now, "spec", "nodeName") ?? "";
    if (object.kind === "Pod" && node !== "")
      out(printable(`  on ${node} now, by spec.nodeName; as a new pod:`));
    for (const { verdict, nodes: names } of nodes.groups) {
      const shownNames =
        names.length > 5
          ? `${names.slice(0, 5).join(", ")} and ${(names.length - 5).toLocaleString("en")} more`
          : names.join(", ");
      const result =
        verdict.kind === "fits"
          ? "fits: "
          : `${verdict.kind}: ${verdict.reason}${verdict.kind === "unknown" ? "" : ` (${verdict.filter})`}: `;
      for (const line of hung("  ", printable(`${result}${shownNames}`), screen.width)) out(line);
    }
    for (const note of nodes.notes) for (const line of hung("  ", printable(note), screen.width)) out(line);
  } else if (today.verdict !== "deny" && object.kind !== "Node" && world.list("nodes").length === 0) {
    heading("Where it may run");
    out("  unknown: there are no nodes here");
  }
  if (refusals.length > 0) {
    heading("Recorded");
    rows(
      ["WHEN", "FROM", "USER", "POLICY", "GENERATION", "RULE", "MESSAGE"],
      refusals.map(({ when, from, user = "-", policy = "-", rule = "-", message, count, ...of }) => [
        when === "" ? "-" : when,
        count === undefined ? from : `${from} (${count} times)`,
        user,
        policy,
        generationText(of.generation, of.generationNow),
        rule,
        message,
      ]),
    );
  }
  const lines = unifiedDiff(manifest(before), manifest(now));
  if (lines.length === 0 || set.length === 0) return;
  heading("Before usher, and now");
  for (const line of lines) out(printable(`  ${line}`));
}

/** `3 (now 5)` */
function generationText(generation: number | undefined, now: number | undefined): string {
  if (generation === undefined) return "-";
  return `${generation}${now === undefined || now === generation ? "" : ` (now ${now})`}`;
}

/** The manifest without the API server's fields and the annotation that records the change. */
export function manifest(object: JsonObject): string {
  const { status: _status, ...rest } = object;
  const metadata = isObject(rest["metadata"]) ? rest["metadata"] : {};
  const { managedFields: _fields, resourceVersion: _version, annotations, ...kept } = metadata;
  const { [PROVENANCE]: _provenance, ...others } = isObject(annotations) ? annotations : {};
  const annotated = Object.keys(others).length === 0 ? {} : { annotations: others };
  return yamlText({ ...rest, metadata: { ...kept, ...annotated } });
}

const LONGEST = 60;

function shown(value: Json): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

/** Resources of the whole cluster that can be named, as kubectl spells them. */
const CLUSTER_KINDS: Readonly<Record<string, string>> = {
  node: "nodes",
  nodes: "nodes",
  no: "nodes",
  namespace: "namespaces",
  namespaces: "namespaces",
  ns: "namespaces",
};

/** The stored object that `KIND/NAME` names. */
export function findObject(text: string, namespace: string, { world }: OpenedWorld): JsonObject {
  const [kind = "", name = ""] = text.split("/");
  const whole = CLUSTER_KINDS[kind.toLowerCase()];
  if (whole !== undefined) {
    const found = world.get(whole, "", name);
    if (found !== undefined) return found;
    throw missing(text, name, world.list(whole).map(nameOf), "in the cluster");
  }
  const named = parseWorkload(text, world.assembly.installation.workloads);
  if ("wrong" in named) throw new CallError(`${named.wrong}, node, namespace`);
  const resource = resourceName(named.workload);
  const found = world.get(resource, namespace, name);
  if (found !== undefined) return found;
  const all = world.list(resource);
  const elsewhere = all.find((one) => nameOf(one) === name);
  if (elsewhere !== undefined)
    throw new CallError(
      `${text}: not in namespace ${namespace}, but in ${namespaceOf(elsewhere)}: add -n ${namespaceOf(elsewhere)}`,
    );
  throw missing(
    text,
    name,
    all.filter((one) => namespaceOf(one) === namespace).map(nameOf),
    `in namespace ${namespace}`,
  );
}

function missing(text: string, name: string, known: readonly string[], where: string): CallError {
  const hint = didYouMean(name, known);
  return new CallError(`${text}: there is no such object ${where}${hint === undefined ? "" : `; ${hint}`}`);
}
