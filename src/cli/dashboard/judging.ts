import { Readable } from "node:stream";
import type { Fact, Need } from "../../core/decision/need.ts";
import type { Source } from "../../core/evaluate/source.ts";
import {
  type Foresight,
  fitsNowhere,
  foresee,
  isEmpty,
  type WorkloadDifference,
} from "../../core/foresight/foresee.ts";
import { Placements, SCHEDULING_LISTS } from "../../core/foresight/node-reach.ts";
import { requestFor, storedWorkloads } from "../../core/foresight/stored-workloads.ts";
import { World } from "../../core/foresight/world.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import {
  groupVersionOf,
  nameOf,
  namespaceOf,
  SERVER_METADATA,
  withoutMetadata,
} from "../../core/kubernetes/object.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { LensAnswer } from "../../core/module/dashboard.ts";
import type { Tone } from "../../core/module/shown.ts";
import { kindResource } from "../../core/policy/kind.ts";
import type { ReviewResult } from "../../core/review/result.ts";
import { reviewWithPods } from "../../core/review/review.ts";
import { objectKey } from "../../core/view/view.ts";
import { isLive as isLivePod, keptResources, reduceNode, shown } from "../../dashboard/kept-objects.ts";
import type * as Model from "../../dashboard/model.ts";
import { tagsOf } from "../../dashboard/nodes.ts";
import type { Judging } from "../../dashboard/server.ts";
import { BadCall, type DashboardState, pick } from "../../dashboard/state.ts";
import { Resources } from "../../files/source/resources.ts";
import { CallError } from "../exit.ts";
import { cordonOf, type EditContext, editsOf, removalOf, type WorldEdit } from "../foresight/edits.ts";
import { type Explanation, explanationOf, manifest } from "../foresight/explain.ts";
import { PRIORITY_CLASSES, readAll } from "../foresight/open-world.ts";
import { entriesOf, summaryLines } from "../foresight/print.ts";
import type { DryRunResult } from "../foresight/server-dry-run.ts";
import { type Input, InputReader } from "../input/input.ts";
import { problemData } from "../input/problems.ts";
import { Shape } from "../input/shape.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { yamlText } from "../output/yaml.ts";
import { reviewDeadline } from "../review/deadline.ts";
import type { ApiServerOptions } from "../source/api-server.ts";

/** Volumes and classes change rarely, and only the scheduler's filters look at them. */
const LISTS_MS = 30_000;

/** A large world takes seconds to be made ready for the scheduler's filters; one question often follows another. */
const WORLD_MS = 10_000;

/** Nodes that a list names; the map shows all. */
const MOST_NODES = 200;

/** An edit of a person: what it may be about. */
const EDITS = {
  allowed: ["policy", "namespace", "node", "workload"],
  otherwise: "has no effect here: give policies, workloads, nodes or namespaces",
} as const;

export interface JudgingOptions extends ApiServerOptions {
  readonly source?: readonly string[];
  /** What a person types: `kubectl usher`. */
  readonly command: string;
  /** The flags that name the same source: `--source examples/cluster`. */
  readonly flags: string;
}

/** Explains objects and answers what-if in the world that the dashboard shows. */
export class WorldJudging implements Judging {
  readonly #state: DashboardState;
  readonly #source: Source;
  readonly #resources: Resources;
  readonly #options: JudgingOptions;
  #lists:
    | { readonly at: number; readonly tables: ReadonlyMap<string, ReadonlyMap<string, JsonObject>> }
    | undefined;

  #placements: { readonly world: World; readonly placements: Placements } | undefined;
  #known: { readonly revision: number; readonly at: number; readonly world: World } | undefined;

  constructor(state: DashboardState, source: Source, options: JudgingOptions) {
    this.#state = state;
    this.#source = source;
    this.#options = options;
    const { modules, installation } = state.assembly;
    this.#resources = new Resources(modules, installation.workloads.all);
  }

  // -------------------------------------------------------------------------------------------------------------- explain

  manifest = (object: Model.ObjectRef): Model.EditableManifest => {
    const found = this.#find(object);
    return { object: refOf(found), yaml: `${yamlText(editable(found))}\n` };
  };

  explain = async (object: Model.ObjectRef): Promise<Model.Explanations> => {
    const found = this.#find(object);
    const world = await this.#world();
    return { explanations: [await this.#explanation(found, world, true)] };
  };

  explainManifest = async ({
    manifest: text,
    namespace = "default",
  }: Model.ExplainRequest): Promise<Model.Explanations> => {
    const world = await this.#world();
    const { manifests, problems } = await this.#read(text, world);
    if (problems.length > 0)
      throw new BadCall(
        422,
        "the manifest can't be read",
        "Correct these lines, then press Explain again.",
        problemsOf({ manifests, problems }),
      );
    const explanations: Model.ObjectExplanation[] = [];
    for (const { object } of manifests) {
      const { scope } = this.#resources.of(
        stringAt(object, "apiVersion") ?? "",
        stringAt(object, "kind") ?? "",
      );
      const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
      const inside = scope === "Cluster" || (metadata["namespace"] ?? "") !== "" ? {} : { namespace };
      explanations.push(
        await this.#explanation({ ...object, metadata: { ...metadata, ...inside } }, world, false),
      );
    }
    return { explanations };
  };

  async #explanation(object: JsonObject, world: World, stored: boolean): Promise<Model.ObjectExplanation> {
    const opened = { world, resources: this.#resources };
    const explained = await explanationOf(object, opened, {
      written: !stored,
      placements: this.#placementsIn(world),
    }).catch(asBadCall);
    const { today, set, nodes, refusals } = explained;
    const ref = refOf(object);
    const pod = stored && ref.kind === "Pod" ? { pod: this.#state.podDetail(object) } : {};
    const named = `${ref.kind.toLowerCase()}/${ref.name}${ref.namespace === "" ? "" : ` -n ${ref.namespace}`}`;
    return {
      object: ref,
      stored,
      verdict: (today.podViolations ?? []).length > 0 ? "deny" : today.verdict,
      summary: summaryOf(today),
      steps: (today.trace ?? []).map(({ module, kind, policy, rule, applies, why, parts }) => ({
        module,
        policy: this.#link(kind, policy),
        ...(rule === undefined ? {} : { rule }),
        result: applies,
        why,
        parts,
      })),
      violations: [
        ...today.violations.map((one) => ({ ...one, ofPods: false })),
        ...(today.podViolations ?? []).map((one) => ({ ...one, ofPods: true })),
      ].map(({ message, code, policy, module, ofPods }) => ({
        message,
        code,
        by: this.#named(policy === "" ? module : policy),
        ofPods,
      })),
      warnings: today.warnings,
      unknown: today.unknown,
      ...(today.untouched === undefined ? {} : { untouched: today.untouched }),
      set: set.map(({ field, value, policy, today: now, when }) => ({
        field,
        value: typeof value === "string" ? value : JSON.stringify(value),
        by: ref.kind === "Node" ? this.#named(policy) : this.#state.link(policy),
        today: now,
        ...(when === undefined ? {} : { when }),
      })),
      diffs: await this.#diffs(object, explained, world, stored),
      ...(nodes === undefined ? {} : { nodes: whereOf(nodes) }),
      refusals: refusals.map(({ when, message, policy, count }) => ({
        when,
        message,
        ...(policy === undefined ? {} : { policy }),
        ...(count === undefined ? {} : { count }),
      })),
      ...pod,
      ...(stored ? { command: `${this.#options.command} explain ${named} ${this.#options.flags}` } : {}),
    };
  }

  /** What usher has changed, and would change today. */
  async #diffs(
    object: JsonObject,
    { before, set }: Explanation,
    world: World,
    stored: boolean,
  ): Promise<Model.Diff[]> {
    const text = (one: JsonObject) => manifest(shown(one));
    const diffs: Model.Diff[] = [];
    if (stored && set.length > 0 && refOf(object).kind !== "Node")
      diffs.push({
        title: "Before usher, and as it is stored",
        lines: unifiedDiff(text(before), text(object)),
      });
    const workload = workloadOf(object, world.assembly);
    if (workload !== undefined) {
      const edit = await this.#today(object, world, !stored);
      if (edit !== undefined)
        diffs.push({
          title: stored
            ? "As it would be created today: before and after usher"
            : "As written, and with usher's changes",
          lines: unifiedDiff(text(edit.before), text(edit.after)),
        });
    }
    return diffs.filter(({ lines }) => lines.length > 0);
  }

  /** The object before and after the mutating phase, with the API server's defaults on both sides. */
  async #today(object: JsonObject, world: World, written: boolean) {
    const workload = workloadOf(object, world.assembly);
    if (workload === undefined) return undefined;
    const request = requestFor(object, workload, { priorityClasses: world.list(PRIORITY_CLASSES), written });
    const before = structuredClone(request.object) as JsonObject;
    const { evaluation } = await reviewWithPods(request, world, {
      trace: false,
      now: this.#state.options.now(),
    });
    return { before, after: evaluation.draft.object };
  }

  // --------------------------------------------------------------------------------------------------------------- what if

  whatIf = async (request: Model.WhatIfRequest): Promise<Model.WhatIf> => {
    const { manifests: text, remove = [], cordon = [] } = request;
    if (text.trim() === "" && remove.length + cordon.length === 0)
      throw new BadCall(
        400,
        "nothing is edited",
        "Edit a policy or a node, or name what is removed or cordoned.",
      );
    const world = await this.#world();
    const read = await this.#edits(text, remove, cordon, world);
    const dryRuns: readonly DryRunResult[] = [];
    const { edits, results } =
      request.serverDryRun === true && this.#state.options.live
        ? await this.#dryRun(read, world)
        : { edits: read, results: dryRuns };
    const before = world.reconciled();
    const after = world.with(edits.map(({ change }) => change)).reconciled();
    const foresight = await foresee(before, after, {
      now: this.#state.options.now(),
      placements: true,
      priorityClasses: world.list(PRIORITY_CLASSES),
      written: new Set(edits.flatMap(({ change: { object } }) => (object === undefined ? [] : [object]))),
    });
    const lens = pick(this.#state.lenses, request.lens, "lens");
    const grouping = pick(this.#state.groupings, request.group, "group");
    const [old, now] = [this.#map(before, lens, grouping, after), this.#map(after, lens, grouping, before)];
    const stored = storedWorkloads(before);
    const effects = effectsOf(stored, foresight);
    const podsOf = new Map(stored.map(({ object, pods }) => [keyOf(refOf(object)), pods]));
    const podsOn = podsByNode(before);
    const entries = new Map(
      entriesOf({ workloads: foresight.workloads, nodes: [], users: [] }, true).map((one, i) => [
        foresight.workloads[i],
        one,
      ]),
    );
    return {
      edits: read.map(({ name, what }) => ({ name, what })),
      summary: isEmpty(foresight) ? ["nothing changes"] : summaryLines(foresight),
      before: await old,
      after: await now,
      effects: await this.#state.draw({
        lens: { name: "what-if" },
        grouping,
        revision: this.#state.revision,
        nodes: this.#state.order(grouping, before.assembly, before.list("nodes")),
        answers: (node) => counted(podsOn(node), (pod) => effects.get(pod) ?? STAYS),
      }),
      workloads: foresight.workloads.map((one) =>
        workloadEffect(one, podsOf.get(keyOf(one.object)) ?? [], entries.get(one)?.changes ?? []),
      ),
      others: [...foresight.nodes, ...foresight.users].map(({ object, effect, lines }) => ({
        object: { kind: object.kind, namespace: object.namespace ?? "", name: object.name },
        lines:
          lines.length === 0 ? [effect] : lines.map(({ sign, message, by }) => `${sign} ${message} (${by})`),
        tone: effect === "over its limit" ? "bad" : "plain",
      })),
      pools: foresight.pools,
      serverDryRun: results.map(({ name, result, changes }) => ({
        name,
        result,
        lines: changes.map(({ message, by }) => `${message} (${by})`),
      })),
      unknown: foresight.unknown,
      partial: this.#state.source.partial,
      command: this.#command(text, remove, cordon),
      looked: foresight.looked,
    };
  };

  async #edits(
    text: string,
    remove: readonly string[],
    cordon: readonly string[],
    world: World,
  ): Promise<readonly WorldEdit[]> {
    const context: EditContext = { world, resources: this.#resources, namespace: undefined, ...EDITS };
    const input: Input = text.trim() === "" ? { manifests: [], problems: [] } : await this.#read(text, world);
    const { edits, problems } = editsOf(input, context);
    const named = [
      ...remove.map((one) => removalOf(one, context)),
      ...cordon.map((one) => cordonOf(one, context)),
    ];
    const wrong = named.flatMap((one) => ("wrong" in one ? [one.wrong] : []));
    if (problems.length + wrong.length > 0)
      throw new BadCall(422, "the edit can't be used", "Correct it, then press Show what changes again.", [
        ...problemsOf({ manifests: [], problems }),
        ...wrong.map((message) => ({ severity: "error" as const, message })),
      ]);
    return [...edits.map(atTheDoor), ...named.filter((one) => "change" in one)];
  }

  async #dryRun(edits: readonly WorldEdit[], world: World) {
    const { serverDryRun } = await import("../foresight/server-dry-run.ts");
    return serverDryRun(edits, world.assembly.installation.workloads, this.#options, () => undefined).catch(
      asBadCall,
    );
  }

  /** A map of a supposed world; nodes that the other world does not have are tagged. */
  #map(
    world: World,
    lens: Parameters<DashboardState["lensView"]>[0],
    grouping: Parameters<DashboardState["draw"]>[0]["grouping"],
    other: World,
  ) {
    const view = this.#state.lensView(lens, world.assembly);
    const podsOn = podsByNode(world);
    const tag =
      world === other ? [] : other.list("nodes").length > world.list("nodes").length ? ["gone"] : ["new"];
    return this.#state.draw({
      lens,
      grouping,
      revision: this.#state.revision,
      nodes: this.#state.order(grouping, world.assembly, world.list("nodes")),
      answers: (node) => counted(podsOn(node), (pod) => view.of(pod, node)),
      tags: (node) => [...tagsOf(node), ...(other.get("nodes", "", nameOf(node)) === undefined ? tag : [])],
    });
  }

  /** The same on the command line. */
  #command(text: string, remove: readonly string[], cordon: readonly string[]): string {
    const { command, flags } = this.#options;
    const words = [
      `${command} what-if`,
      ...(text.trim() === "" ? [] : ["-"]),
      ...remove.map((one) => `--remove ${quoted(one)}`),
      ...cordon.map((one) => `--cordon ${quoted(one)}`),
      flags,
    ].join(" ");
    if (text.trim() === "") return words;
    let end = "EOF";
    while (text.split("\n").includes(end)) end += "F";
    return `${words} <<'${end}'\n${text.trimEnd()}\n${end}`;
  }

  // ----------------------------------------------------------------------------------------------------------------- world

  #placementsIn(world: World): Placements {
    if (this.#placements?.world !== world) {
      this.#placements = { world, placements: new Placements(world) };
      // The time that it took does not make the world older for the next question.
      if (this.#known?.world === world) this.#known = { ...this.#known, at: this.#state.options.now() };
    }
    return this.#placements.placements;
  }

  #fetch = (needs: readonly Need[]): Promise<readonly Fact[]> => this.#source.fetch(needs, reviewDeadline());

  /** The world that the dashboard shows: pods of some seconds ago, everything else of now. */
  async #world(): Promise<World> {
    const { judgedRevision: revision, options } = this.#state;
    const known = this.#known;
    if (known?.revision === revision && options.now() - known.at < (options.live ? WORLD_MS : 0))
      return known.world;
    const world = await this.#worldNow();
    this.#known = { revision, at: options.now(), world };
    return world;
  }

  async #worldNow(): Promise<World> {
    const { assembly } = this.#state;
    const tables = new Map<string, ReadonlyMap<string, JsonObject>>(await this.#schedulingLists());
    for (const resource of keptResources(assembly.installation.workloads.all)) {
      if (this.#state.options.live && !assembly.view.served(resource)) continue;
      const table = new Map<string, JsonObject>();
      for (const object of assembly.view.list(resource))
        table.set(objectKey(namespaceOf(object), nameOf(object)), object);
      tables.set(resource, table);
    }
    // A copy: the world must stay as it is while changes arrive.
    return new World(assembly.with([]), this.#fetch, tables);
  }

  async #schedulingLists(): Promise<ReadonlyMap<string, ReadonlyMap<string, JsonObject>>> {
    const now = this.#state.options.now();
    if (this.#lists !== undefined && now - this.#lists.at < LISTS_MS && this.#state.options.live)
      return this.#lists.tables;
    const tables = new Map<string, ReadonlyMap<string, JsonObject>>();
    const wanted = Object.values(SCHEDULING_LISTS).filter((one) => one !== "namespaces");
    for (const resource of [...wanted, PRIORITY_CLASSES]) {
      const { objects, failure } = await readAll(resource, this.#fetch);
      // Files without volumes say nothing about volumes.
      if (failure !== undefined || (!this.#state.options.live && objects.length === 0)) continue;
      tables.set(
        resource,
        new Map(objects.map((one) => [objectKey(namespaceOf(one), nameOf(one)), shown(one)])),
      );
    }
    this.#lists = { at: now, tables };
    return tables;
  }

  /** The stored object of a kind: a policy, a workload, a node or a namespace. */
  #find({ kind, namespace, name }: Model.ObjectRef): JsonObject {
    const { assembly } = this.#state;
    const wanted = kind.toLowerCase();
    const kinds = [
      ...assembly.modules.flatMap(({ kinds: all }) =>
        all.map((one) => ({
          kind: one.kind,
          resource: kindResource(one),
          namespaced: one.scope === "Namespaced",
        })),
      ),
      ...assembly.installation.workloads.all.map((one) => ({
        kind: one.kind,
        resource: one.group === "" ? one.resource : `${one.resource}.${one.group}`,
        namespaced: true,
      })),
      { kind: "Node", resource: "nodes", namespaced: false },
      { kind: "Namespace", resource: "namespaces", namespaced: false },
    ];
    const found = kinds.find((one) => one.kind.toLowerCase() === wanted);
    if (found === undefined)
      throw new BadCall(
        404,
        `the dashboard does not read objects of kind ${kind}`,
        `It reads: ${kinds.map((one) => one.kind).join(", ")}. Paste the manifest instead.`,
      );
    const inside = found.namespaced ? namespace || "default" : "";
    const object = assembly.view.get(found.resource, inside, name);
    if (object === undefined)
      throw new BadCall(
        404,
        `there is no ${found.kind} ${inside === "" ? "" : `${inside}/`}${name} here`,
        "It may have been deleted; search for others.",
      );
    return object["kind"] === undefined ? { ...object, kind: found.kind } : object;
  }

  #read(text: string, world: World): Promise<Input> {
    const shape = new Shape(this.#resources, world.assembly);
    const reader = new InputReader(Readable.from([Buffer.from(text)]), shape, () => undefined);
    return reader.read(["-"]).catch(asBadCall);
  }

  /** Traces name a policy by kind and name. */
  #link(kind: string, name: string): Model.PolicyLink {
    return this.#state.link(`${kind}/${name}`);
  }

  /** Violations name a policy without its kind, or a module. */
  #named(name: string): Model.PolicyLink {
    for (const module of this.#state.assembly.modules)
      for (const { ref } of this.#state.assembly.policies(module.name)) {
        const full = ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`;
        if (full === name) return this.#link(ref.kind, full);
      }
    return { title: name };
  }
}

/** A pasted object is reduced like a stored one, so that no answer has its hidden values. */
function atTheDoor(edit: WorldEdit): WorldEdit {
  const { change, of } = edit;
  if (change.object === undefined || of === "policy") return edit;
  const object = of === "node" ? reduceNode(change.object) : shown(change.object);
  return { ...edit, change: { ...change, object } };
}

/** Wrong calls of the command line are wrong calls of the page. */
function asBadCall(error: unknown): never {
  if (error instanceof CallError) throw new BadCall(422, error.message);
  throw error;
}

function problemsOf({ problems }: Input): Model.LocatedProblem[] {
  return problemData(problems).map(({ severity, message, hint, line, column, object }) => ({
    severity,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
    ...(object === undefined ? {} : { object }),
  }));
}

function refOf(object: JsonObject): Model.ObjectRef {
  return { kind: stringAt(object, "kind") ?? "", namespace: namespaceOf(object), name: nameOf(object) };
}

function workloadOf(object: JsonObject, { installation }: Assembly) {
  const { group } = groupVersionOf(stringAt(object, "apiVersion"));
  return installation.workloads.byKind(group, stringAt(object, "kind") ?? "");
}

/** An object for editing. Of a node only the fields that people change. */
function editable(object: JsonObject): JsonObject {
  const { status: _status, ...rest } = withoutMetadata(shown(object), [
    ...SERVER_METADATA,
    "ownerReferences",
  ]);
  const kept = isObject(rest["metadata"]) ? rest["metadata"] : {};
  const isEmptyObject = (value: unknown) => isObject(value) && Object.keys(value).length === 0;
  const shownMetadata = Object.fromEntries(Object.entries(kept).filter(([, value]) => !isEmptyObject(value)));
  const { apiVersion, kind, metadata: _metadata, ...body } = rest;
  const edited = Object.fromEntries(Object.entries(body).filter(([, value]) => !isEmptyObject(value)));
  if (kind === "Node") {
    const { annotations: _annotations, ...plain } = shownMetadata;
    const { taints, unschedulable } = isObject(rest["spec"]) ? rest["spec"] : {};
    const spec = {
      ...(taints === undefined ? {} : { taints }),
      ...(unschedulable === undefined ? {} : { unschedulable }),
    };
    return {
      apiVersion: "v1",
      kind,
      metadata: plain,
      ...(Object.keys(spec).length === 0 ? {} : { spec }),
    } as JsonObject;
  }
  return { apiVersion, kind, metadata: shownMetadata, ...edited } as JsonObject;
}

function summaryOf({
  verdict,
  changes,
  violations,
  podViolations = [],
  warnings,
  untouched,
}: ReviewResult): string {
  if (verdict === "deny") return `usher refuses it: ${violations[0]?.message ?? "see the steps"}`;
  if (podViolations.length > 0)
    return `usher admits it, and refuses its pods: ${podViolations[0]?.message ?? ""}`;
  if (changes.length > 0) {
    const policies = new Set(changes.map(({ policy, module }) => policy || module)).size;
    return `usher changes ${changes.length === 1 ? "1 value" : `${changes.length} values`} by ${policies === 1 ? "1 policy" : `${policies} policies`}.`;
  }
  if (untouched !== undefined) return `usher does nothing: ${untouched}.`;
  if (warnings.length === 0) return "usher admits it as it is.";
  return `usher admits it as it is, with ${warnings.length === 1 ? "a warning" : `${warnings.length} warnings`}.`;
}

function whereOf({
  summary,
  fits,
  unknown,
  fails,
  groups,
  notes,
}: NonNullable<Explanation["nodes"]>): Model.Where {
  const order = { fits: 0, unknown: 1, fails: 2 } as const;
  return {
    summary,
    fits,
    total: fits + unknown + fails,
    groups: groups
      .toSorted((a, b) => order[a.verdict.kind] - order[b.verdict.kind])
      .map(({ verdict, nodes }) => ({
        verdict: verdict.kind,
        ...(verdict.kind === "fits" ? {} : { filter: verdict.filter, reason: verdict.reason }),
        count: nodes.length,
        nodes: nodes.slice(0, MOST_NODES),
      })),
    notes,
  };
}

/** Pods that still run, by their node; those that wait are under the empty name. */
function podsByNode(world: World): (node: JsonObject | undefined) => readonly JsonObject[] {
  const pods = Map.groupBy(
    world.list("pods").filter(isLivePod),
    (pod) => stringAt(pod, "spec", "nodeName") ?? "",
  );
  return (node) => pods.get(node === undefined ? "" : nameOf(node)) ?? [];
}

function counted(pods: readonly JsonObject[], of: (pod: JsonObject) => LensAnswer): Map<LensAnswer, number> {
  const counts = new Map<LensAnswer, number>();
  for (const pod of pods) counts.set(of(pod), (counts.get(of(pod)) ?? 0) + 1);
  return counts;
}

const EFFECTS = {
  refused: effect("refused", "would be refused", "bad"),
  stranded: effect("stranded", "fits nowhere", "bad"),
  moves: effect("moves", "moves when replaced", "warning"),
  admitted: effect("admitted", "admitted again", "good"),
  changed: effect("changed", "changed", "plain"),
  gone: effect("gone", "gone", "plain"),
} as const;
const STAYS = effect("stays", "stays", "none");

function effect(key: string, title: string, tone: Tone): LensAnswer {
  return { key, title, tone, why: "", policies: [] };
}

/** The outcome for each pod on its node. */
function effectsOf(
  stored: ReturnType<typeof storedWorkloads>,
  { workloads }: Foresight,
): Map<JsonObject, LensAnswer> {
  const differences = new Map(workloads.map((one) => [keyOf(one.object), one]));
  const effects = new Map<JsonObject, LensAnswer>();
  for (const { object, pods } of stored) {
    const difference = differences.get(keyOf(refOf(object)));
    if (difference === undefined) continue;
    for (const pod of pods) effects.set(pod, effectOn(difference, stringAt(pod, "spec", "nodeName") ?? ""));
  }
  return effects;
}

function effectOn(difference: WorkloadDifference, node: string): LensAnswer {
  const { effect: what, nodes } = difference;
  if (what === "refused") return EFFECTS.refused;
  if (fitsNowhere(difference)) return EFFECTS.stranded;
  if (nodes?.lost.some((one) => one.node === node)) return EFFECTS.moves;
  if (what === "admitted") return EFFECTS.admitted;
  if (what === "gone") return EFFECTS.gone;
  return what === "changed" ? EFFECTS.changed : STAYS;
}

function keyOf({ kind, namespace, name }: Model.ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}

function workloadEffect(
  difference: WorkloadDifference,
  own: readonly JsonObject[],
  changes: readonly (readonly [text: string, by: string])[],
): Model.WorkloadEffect {
  const { object, effect: what, pods, nodes } = difference;
  const on = new Set(own.map((pod) => stringAt(pod, "spec", "nodeName") ?? ""));
  const leaves = (nodes?.lost ?? []).filter(({ node }) => on.has(node)).map(({ node }) => node);
  const reach = (side: "before" | "after") =>
    nodes?.[side] === undefined ? 0 : nodes[side].fits + nodes[side].unknown;
  return {
    object: { kind: object.kind, namespace: object.namespace, name: object.name },
    effect:
      what === "refused" || what === "still refused"
        ? what
        : fitsNowhere(difference)
          ? "stranded"
          : leaves.length > 0
            ? "moves"
            : what,
    pods,
    lines: changes.map(([text, by]) => (by === "-" ? text : `${text} (${by})`)),
    ...(nodes === undefined
      ? {}
      : {
          nodes: {
            before: reach("before"),
            after: reach("after"),
            gained: nodes.gained.slice(0, MOST_NODES),
            lost: nodes.lost.slice(0, MOST_NODES),
          },
        }),
    leaves,
  };
}

/** For a shell: plain words as they are. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
