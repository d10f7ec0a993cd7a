import { setImmediate as nextTurn } from "node:timers/promises";
import { resourceName } from "../core/decision/request.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../core/json.ts";
import { controllerOf, labelsOf, nameOf, namespaceOf } from "../core/kubernetes/object.ts";
import { Assembly } from "../core/module/assembly.ts";
import type { DashboardTable, Grouping, Lens, LensAnswer, NodeGroup } from "../core/module/dashboard.ts";
import type { Standing } from "../core/module/standing.ts";
import { fieldPath, steps } from "../core/path.ts";
import { checkObject } from "../core/policy/check.ts";
import { kindResource } from "../core/policy/kind.ts";
import { policyKey, policyName } from "../core/policy/policy-ref.ts";
import { describeProblem } from "../core/policy/problem.ts";
import { provenanceOf } from "../core/provenance/annotation.ts";
import { TimeSlices } from "../core/time-slices.ts";
import type { Change } from "../core/view/view.ts";
import { isLive, KeptPods, keeping, PODS_BY_NODE } from "./kept-objects.ts";
import { addCells, Categories, cellsOf, LensView } from "./lens-views.ts";
import type * as Model from "./model.ts";
import { GROUPINGS, tagsOf, taintsOf } from "./nodes.ts";

/** A call that can't be answered, with the remedy. */
export class BadCall extends Error {
  readonly status: number;
  readonly hint: string | undefined;
  readonly problems: readonly Model.LocatedProblem[] | undefined;

  constructor(status: number, message: string, hint?: string, problems?: readonly Model.LocatedProblem[]) {
    super(message);
    this.status = status;
    this.hint = hint;
    this.problems = problems;
  }
}

export interface StateOptions {
  readonly version: string;
  /** `examples/cluster`, or the name of a context. */
  readonly name: string;
  readonly live: boolean;
  readonly now: () => number;
  /** Problems of files; a cluster has none of its own. */
  readonly problems: () => readonly Model.LocatedProblem[];
}

/** Yields to the event loop after this time: a request about a large cluster must not delay others. */
const SLICE_MS = 20;

/** Answers may depend on workloads, which change all the time in a large cluster: they are computed again after this time. */
const WORKLOADS_MS = 5_000;

/** Decisions that are kept. */
const MOST_DECISIONS = 1_000;

const MOST_RESULTS = 50;
/** The search stops at this many matches and shows the best of them. */
const MOST_FOUND = 5_000;

/** A group keeps its index by its name, as categories do. */
class GroupNames {
  readonly #indexes = new Map<string, number>();
  readonly titles: { readonly key: string; title: string }[] = [];

  indexOf({ key, title }: { readonly key: string; readonly title: string }): number {
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    this.#indexes.set(key, this.titles.length);
    this.titles.push({ key, title });
    return this.titles.length - 1;
  }
}

/** A lens for the current policies, with its answers for each node. */
interface LensState {
  readonly view: LensView;
  /** The revision that it was made at: everything before is outdated. */
  readonly since: number;
  readonly preparedAt: number;
  readonly nodes: Map<string, { readonly revision: number; readonly answers: Map<LensAnswer, number> }>;
}

interface OrderedNode {
  readonly node: JsonObject;
  readonly name: string;
  readonly group: NodeGroup;
}

/** An assembly that reports its changes, for any source. */
class ObservedAssembly extends Assembly {
  readonly #changed: (changes: readonly Change[]) => void;

  constructor(of: Assembly, pods: KeptPods, changed: (changes: readonly Change[]) => void) {
    const { modules, installation, gates } = of;
    super([...modules, keeping(installation.workloads.all, pods)], installation, gates);
    this.#changed = changed;
  }

  override apply(changes: readonly Change[]): Change[] {
    const real = super.apply(changes);
    if (real.length > 0) this.#changed(real);
    return real;
  }
}

export interface ChangedParts {
  readonly map: boolean;
  readonly policies: boolean;
}

/** The state that the dashboard shows. It reads the view of its assembly and writes nothing. */
export class DashboardState {
  readonly assembly: Assembly;
  readonly pods = new KeptPods();
  readonly lenses: readonly Lens[];
  readonly groupings: readonly Grouping[];
  readonly tables: readonly DashboardTable[];
  readonly options: StateOptions;
  readonly #categories = new Map<string, Categories>();
  readonly #groupNames = new Map<string, GroupNames>();
  readonly #orders = new Map<string, { readonly revision: number; readonly nodes: readonly OrderedNode[] }>();
  readonly #views = new Map<string, LensState>();
  readonly #nodeRevisions = new Map<string, number>();
  readonly #gone = new Map<string, number>();
  readonly #memories = new Map<string, WeakMap<object, unknown>>();
  readonly #tableCache = new Map<string, { readonly revision: number; readonly table: Model.Table }>();
  readonly #listeners = new Set<(parts: ChangedParts) => void>();
  #standings: { readonly revision: number; readonly byNode: Map<string, Owned[]> } | undefined;
  #revision = 1;
  /** Revisions of the last change of policies or namespaces, of nodes, and of workloads. */
  #last = { policies: 1, nodes: 1, workloads: 1 };
  #source: Omit<Model.SourceState, "revision" | "live" | "name">;
  readonly #decisions: Model.LiveDecision[] = [];
  #nextDecision = 1;
  decisionNote = "";

  constructor(assembly: Assembly, options: StateOptions) {
    this.options = options;
    this.assembly = new ObservedAssembly(assembly, this.pods, (changes) => this.#changed(changes));
    const parts = assembly.modules.flatMap(({ dashboard }) => dashboard ?? []);
    this.lenses = parts.flatMap(({ lenses = [] }) => lenses);
    this.groupings = [...GROUPINGS, ...parts.flatMap(({ groupings = [] }) => groupings)];
    this.tables = parts.flatMap(({ tables = [] }) => tables);
    this.#source = { state: "waiting", since: new Date(options.now()).toISOString(), partial: [] };
  }

  get revision(): number {
    return this.#revision;
  }

  /** Of the last change of anything but pods: the inputs of evaluations. */
  get judgedRevision(): number {
    return Math.max(this.#last.policies, this.#last.nodes, this.#last.workloads);
  }

  onChange(listener: (parts: ChangedParts) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // ------------------------------------------------------------------------------------------------------------- changes

  #changed(changes: readonly Change[]): void {
    this.#revision += 1;
    let [map, policies] = [false, false];
    for (const { resource, name, object, before } of changes) {
      if (resource === "pods") {
        this.#touch(stringAt(before, "spec", "nodeName") ?? "");
        this.#touch(stringAt(object, "spec", "nodeName") ?? "");
        map = true;
      } else if (resource === "nodes") {
        this.#touch(name);
        if (object === undefined) this.#gone.set(name, this.#revision);
        else this.#gone.delete(name);
        this.#last.nodes = this.#revision;
        map = true;
      } else if (this.#isWorkload(resource)) {
        this.#last.workloads = this.#revision;
        policies = true;
      } else {
        this.#last.policies = this.#revision;
        map = true;
        policies = true;
      }
    }
    for (const listener of this.#listeners) listener({ map, policies });
  }

  /** The problems of files have changed, perhaps without a change of any object. */
  problemsChanged(): void {
    this.#revision += 1;
    for (const listener of this.#listeners) listener({ map: false, policies: true });
  }

  #isWorkload(resource: string): boolean {
    return this.assembly.installation.workloads.all.some((one) => resourceName(one) === resource);
  }

  #touch(node: string): void {
    this.#nodeRevisions.set(node, this.#revision);
  }

  /** The state of the source; says whether it is another one. */
  setSource(state: Model.SourceState["state"], partial: readonly string[]): boolean {
    const same = this.#source.state === state && this.#source.partial.join("\n") === partial.join("\n");
    if (same) return false;
    const since =
      this.#source.state === state ? this.#source.since : new Date(this.options.now()).toISOString();
    this.#source = { state, since, partial };
    return true;
  }

  get source(): Model.SourceState {
    const { live, name } = this.options;
    return { live, name, ...this.#source, revision: this.#revision };
  }

  // ------------------------------------------------------------------------------------------------------------ overview

  overview(): Model.Overview {
    const { view, modules } = this.assembly;
    const policies = modules.reduce((sum, { name }) => sum + [...this.assembly.policies(name)].length, 0);
    return {
      version: this.options.version,
      source: this.source,
      lenses: this.lenses.map(({ name, title, summary }) => ({ name, title, summary })),
      groupings: this.groupings.map(({ name, title }) => ({ name, title })),
      tables: this.tables.map(({ name, title, summary }) => ({ name, title, summary })),
      counts: {
        nodes: view.count("nodes"),
        pods: view.count("pods"),
        namespaces: view.count("namespaces"),
        policies,
        problems: this.options.problems().length,
      },
    };
  }

  // ----------------------------------------------------------------------------------------------------------------- map

  async map(call: {
    readonly lens?: string;
    readonly group?: string;
    readonly since?: number;
  }): Promise<Model.NodeMap> {
    const lens = pick(this.lenses, call.lens, "lens");
    const grouping = pick(this.groupings, call.group, "group");
    const state = this.#lensState(lens);
    const since = call.since ?? -1;
    const revision = this.#revision;
    const whole = since < state.since || since < this.#last.policies || since > revision;
    return this.draw({
      lens,
      grouping,
      revision,
      nodes: this.#ordered(grouping),
      answers: (node) => this.#nodeAnswers(state, node === undefined ? "" : nameOf(node), node),
      ...(whole ? {} : { include: (name) => (this.#nodeRevisions.get(name) ?? 0) > since }),
      gone: whole ? [] : [...this.#gone].filter(([, at]) => at > since).map(([name]) => name),
    });
  }

  /** The nodes as they are now, in their order on the map, until nodes or policies change. */
  #ordered(grouping: Grouping): readonly OrderedNode[] {
    const revision = Math.max(this.#last.nodes, this.#last.policies);
    const known = this.#orders.get(grouping.name);
    if (known?.revision === revision) return known.nodes;
    const nodes = this.order(grouping, this.assembly, this.assembly.view.list("nodes"));
    this.#orders.set(grouping.name, { revision, nodes });
    return nodes;
  }

  /** Nodes with their groups, in their order on the map; those without a group come last. */
  order(grouping: Grouping, assembly: Assembly, nodes: Iterable<JsonObject>): OrderedNode[] {
    const groupOf = grouping.prepare(assembly, this.options.now());
    const title = ({ group }: OrderedNode) => (group.key === "" ? "\uffff" : group.title);
    return [...nodes]
      .map((node) => ({ node, name: nameOf(node), group: groupOf(node) }))
      .sort((a, b) => compare(title(a), title(b)) || compareNames(a.name, b.name));
  }

  /** Draws a map of nodes, of this world or of a supposed one. */
  async draw(drawing: {
    readonly lens: Pick<Lens, "name">;
    readonly grouping: Grouping;
    readonly revision: number;
    readonly nodes: readonly OrderedNode[];
    /** `undefined`: pods without a node. */
    readonly answers: (node: JsonObject | undefined) => ReadonlyMap<LensAnswer, number>;
    /** Nodes to include. @default all */
    readonly include?: (name: string) => boolean;
    readonly gone?: readonly string[];
    readonly tags?: (node: JsonObject) => readonly string[];
  }): Promise<Model.NodeMap> {
    const { lens, grouping, include, tags = tagsOf } = drawing;
    const categories = this.categoriesOf(lens.name);
    const names = this.#groupNames.get(grouping.name) ?? new GroupNames();
    this.#groupNames.set(grouping.name, names);
    const totals = new Map<number, number>();
    const groups = new Map<number, { nodes: number; pods: number }>();
    const nodes: Model.MapNode[] = [];
    const slices = new TimeSlices({ clock: () => performance.now(), turn: nextTurn, ms: SLICE_MS });
    for (const { node, name, group } of drawing.nodes) {
      const index = names.indexOf(group);
      const cells = cellsOf(drawing.answers(node), categories);
      addCells(totals, cells);
      const count = groups.get(index) ?? { nodes: 0, pods: 0 };
      groups.set(index, count);
      count.nodes += 1;
      for (let i = 1; i < cells.length; i += 2) count.pods += cells[i] ?? 0;
      if (include === undefined || include(name)) nodes.push({ name, group: index, cells, tags: tags(node) });
      await slices.next();
    }
    const pending = cellsOf(drawing.answers(undefined), categories);
    addCells(totals, pending);
    return {
      revision: drawing.revision,
      lens: lens.name,
      group: grouping.name,
      categories: categories.shown(totals),
      groups: names.titles.map(({ key, title }, i) => ({
        key,
        title,
        ...(groups.get(i) ?? { nodes: 0, pods: 0 }),
      })),
      nodes,
      pending,
      whole: include === undefined,
      gone: drawing.gone ?? [],
    };
  }

  categoriesOf(lens: string): Categories {
    const known = this.#categories.get(lens) ?? new Categories();
    this.#categories.set(lens, known);
    return known;
  }

  lensView(lens: Lens, assembly: Assembly): LensView {
    return new LensView(lens, assembly, this.options.now(), (pod) => this.pods.templateOf(pod));
  }

  #lensState(lens: Lens): LensState {
    const known = this.#views.get(lens.name);
    const now = this.options.now();
    const isOld =
      known === undefined ||
      known.since < this.#last.policies ||
      (known.since < this.#last.workloads && now - known.preparedAt > WORKLOADS_MS);
    if (!isOld) return known;
    const state = {
      view: this.lensView(lens, this.assembly),
      since: this.#revision,
      preparedAt: now,
      nodes: new Map(),
    };
    this.#views.set(lens.name, state);
    return state;
  }

  /** A lens's answers for the pods of a node, until one of them changes. */
  #nodeAnswers(
    state: LensState,
    name: string,
    node: JsonObject | undefined,
  ): ReadonlyMap<LensAnswer, number> {
    const revision = this.#nodeRevisions.get(name) ?? 0;
    const known = state.nodes.get(name);
    if (known !== undefined && known.revision === revision) return known.answers;
    const answers = new Map<LensAnswer, number>();
    for (const pod of this.podsOn(name)) {
      const answer = state.view.of(pod, node);
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
    state.nodes.set(name, { revision, answers });
    return answers;
  }

  *podsOn(node: string): Iterable<JsonObject> {
    for (const pod of this.assembly.view.lookup("pods", PODS_BY_NODE, node)) if (isLive(pod)) yield pod;
  }

  // ------------------------------------------------------------------------------------------------------- node and pod

  node(name: string): Model.NodeDetail {
    const node = this.assembly.view.get("nodes", "", name);
    if (node === undefined)
      throw new BadCall(404, `there is no node ${name} here`, "The map lists the nodes that exist.");
    const now = this.options.now();
    const owned = this.#standingsOf(name);
    const value = (path: string, text: string): Model.NodeValue => {
      const mine = owned.filter((one) => one.path === path);
      const holds = mine.find(({ pending }) => pending === undefined);
      const change = mine.find(({ pending }) => pending !== undefined);
      const by = holds?.by ?? change?.by;
      return {
        text,
        ...(by === undefined ? {} : { by: this.link(by) }),
        ...(change?.pending === undefined ? {} : { pending: change.pending }),
      };
    };
    const labels = Object.entries(labelsOf(node) ?? {})
      .sort(([a], [b]) => compare(a, b))
      .map(([key, one]) => value(fieldPath(["metadata", "labels", key]), `${key}=${String(one)}`));
    const taints = taintsOf(node).map(({ key, value: text, effect }) =>
      value(
        fieldPath(["spec", "taints", `${key}:${effect}`]),
        `${key}${text === "" ? "" : `=${text}`}:${effect}`,
      ),
    );
    // Values that rules would add and the node does not have.
    const paths = new Set([
      ...Object.keys(labelsOf(node) ?? {}).map((key) => fieldPath(["metadata", "labels", key])),
      ...taintsOf(node).map(({ key, effect }) => fieldPath(["spec", "taints", `${key}:${effect}`])),
    ]);
    const missing = owned.filter(({ path, pending }) => pending !== undefined && !paths.has(path));
    const shownMissing = missing.map(({ path, message, by, pending }) => ({
      taint: path.startsWith("spec"),
      // The list says whether it is a label or a taint.
      text: message.replace(/^(?:label|taint) /, ""),
      ...(by === undefined ? {} : { by: this.link(by) }),
      pending: pending ?? "",
    }));
    const allocatable = at(node, "status", "allocatable");
    return {
      name,
      tags: tagsOf(node),
      groups: this.groupings.map(({ title, prepare }) => ({
        grouping: title,
        title: prepare(this.assembly, now)(node).title,
      })),
      labels: [...labels, ...shownMissing.filter(({ taint }) => !taint).map(({ taint: _, ...one }) => one)],
      taints: [...taints, ...shownMissing.filter(({ taint }) => taint).map(({ taint: _, ...one }) => one)],
      allocatable: isObject(allocatable)
        ? Object.fromEntries(Object.entries(allocatable).map(([key, one]) => [key, String(one)]))
        : {},
      pods: [...this.podsOn(name)]
        .map((pod) => this.podLine(pod, node))
        .sort((a, b) => compare(a.namespace, b.namespace) || compareNames(a.name, b.name)),
      revision: this.#revision,
    };
  }

  podLine(pod: JsonObject, node: JsonObject | undefined): Model.PodLine {
    const owner = controllerOf(pod);
    return {
      namespace: namespaceOf(pod),
      name: nameOf(pod),
      owner: owner === undefined ? "" : `${owner.kind} ${owner.name}`,
      phase: stringAt(pod, "status", "phase") ?? "",
      values: this.lenses.map((lens) => {
        const answer = this.#lensState(lens).view.of(pod, node);
        const { key, title, tone, why, policies } = answer;
        const category = this.categoriesOf(lens.name).indexOf(answer);
        return { category, key, title, tone, why, policies: policies.map((one) => this.link(one)) };
      }),
    };
  }

  pod(namespace: string, name: string): Model.PodDetail {
    const pod = this.assembly.view.get("pods", namespace, name);
    if (pod === undefined)
      throw new BadCall(
        404,
        `there is no pod ${namespace}/${name} here`,
        "It may have been deleted; search for others.",
      );
    return this.podDetail(pod);
  }

  podDetail(pod: JsonObject): Model.PodDetail {
    const nodeName = stringAt(pod, "spec", "nodeName") ?? "";
    return {
      ...this.podLine(pod, this.assembly.view.get("nodes", "", nodeName)),
      node: nodeName,
      serviceAccount: stringAt(pod, "spec", "serviceAccountName") || "default",
      labels: Object.entries(labelsOf(pod) ?? {}).map(([key, value]) => `${key}=${String(value)}`),
      set: provenanceOf(pod).flatMap(({ policy, set, added }) =>
        [
          ...set.map((place) => ({ place, value: at(pod, ...steps(place)) })),
          ...Object.entries(added).flatMap(([place, values]) => values.map((value) => ({ place, value }))),
        ].flatMap(({ place, value }) =>
          value === undefined
            ? []
            : [{ field: fieldPath(steps(place)), value: textOf(value), by: this.link(policy) }],
        ),
      ),
      revision: this.#revision,
    };
  }

  /** What rules have set on each node, and would still change. */
  #standingsOf(node: string): readonly Owned[] {
    const revision = Math.max(this.#last.nodes, this.#last.policies);
    if (this.#standings?.revision !== revision) {
      const byNode = new Map<string, Owned[]>();
      for (const { kinds, standing } of this.assembly.modules)
        for (const { object, holds, changes } of standing?.(this.assembly) ?? []) {
          if (object.kind !== "Node") continue;
          const key = (by: string | undefined) =>
            by === undefined ? undefined : `${kinds[0]?.kind ?? ""}/${by}`;
          byNode.set(object.name, [...(byNode.get(object.name) ?? []), ...ownedOf(holds, changes, key)]);
        }
      this.#standings = { revision, byNode };
    }
    return this.#standings.byNode.get(node) ?? [];
  }

  // ------------------------------------------------------------------------------------------------------------- policies

  /** A link to a policy, by its key; without an id where it is not stored. */
  link(key: string): Model.PolicyLink {
    const [kind = "", ...rest] = key.split("/");
    const title = rest.join("/") || kind;
    const resource = this.assembly.modules.flatMap(({ kinds }) => kinds).find((one) => one.kind === kind);
    const [first = "", second] = rest;
    const exists =
      resource !== undefined &&
      this.assembly.view.get(kindResource(resource), second === undefined ? "" : first, second ?? first) !==
        undefined;
    return { ...(exists ? { id: key } : {}), title };
  }

  policies(): Model.PolicyList {
    const { assembly } = this;
    const now = this.options.now();
    const problems = this.options.problems();
    const used = new Set<Model.LocatedProblem>();
    const policies = assembly.modules.flatMap((module): Model.ListedPolicy[] => {
      const summarize = module.dashboard?.summarize?.(assembly, now);
      const counts = this.#podsByPolicy(module.dashboard?.lenses ?? []);
      return [...assembly.policies(module.name)].map((standing) => {
        const { ref } = standing;
        const id = policyKey(ref);
        const {
          selects = [],
          changes = [],
          refuses = [],
          conflicts = [],
          objects = [],
        } = summarize?.(standing) ?? {};
        const own = problems.filter(({ object }) => object === `${ref.kind} ${policyName(ref)}`);
        for (const one of own) used.add(one);
        const counted = counts.get(id);
        return {
          id,
          module: module.name,
          kind: ref.kind,
          namespace: ref.namespace ?? "",
          name: ref.name,
          selects,
          changes,
          refuses,
          conflicts: conflicts.map(({ about, why, winner, with: other }) => ({
            about,
            why,
            winner: this.link(winner),
            with: this.link(other),
          })),
          problems: own.length > 0 ? own : this.#problemsOf(standing.ref, now),
          objects: [...(counted === undefined ? [] : [{ count: counted.pods, noun: "pods" }]), ...objects],
          ...(counted === undefined ? {} : { onMap: { lens: counted.lens, category: counted.category } }),
        };
      });
    });
    return {
      policies: policies.sort(
        (a, b) => compare(a.kind, b.kind) || compare(a.namespace, b.namespace) || compare(a.name, b.name),
      ),
      problems: problems.filter((one) => !used.has(one)),
      revision: this.#revision,
    };
  }

  /** Problems of a stored policy; files say them with their lines. */
  #problemsOf(
    ref: { readonly kind: string; readonly namespace?: string; readonly name: string },
    now: number,
  ): Model.LocatedProblem[] {
    const { assembly } = this;
    const kind = assembly.modules.flatMap(({ kinds }) => kinds).find((one) => one.kind === ref.kind);
    const object = kind && assembly.view.get(kindResource(kind), ref.namespace ?? "", ref.name);
    if (kind === undefined || object === undefined || !this.options.live) return [];
    const { installation, gates } = assembly;
    return checkObject(kind, object, assembly.view, { installation, gates }, now).map((found) => ({
      severity: found.severity,
      message: describeProblem({ path: found.path, message: found.message, severity: found.severity }),
      ...(found.hint === undefined ? {} : { hint: found.hint }),
      object: `${ref.kind} ${policyName(ref)}`,
    }));
  }

  /** How many pods a lens names each policy for, and where the map shows them. */
  #podsByPolicy(lenses: readonly Lens[]): Map<string, { pods: number; lens: string; category: string }> {
    const found = new Map<string, { pods: number; lens: string; category: string }>();
    for (const lens of lenses) {
      const state = this.#lensState(lens);
      const counts = new Map<string, { pods: number; lens: string; category: string }>();
      const nodes = [...this.assembly.view.list("nodes")];
      for (const node of [...nodes, undefined])
        for (const [answer, count] of this.#nodeAnswers(state, node === undefined ? "" : nameOf(node), node))
          for (const policy of answer.policies) {
            const category = answer.key === policy ? policy : (counts.get(policy)?.category ?? answer.key);
            counts.set(policy, { pods: (counts.get(policy)?.pods ?? 0) + count, lens: lens.name, category });
          }
      // The first lens of a module is the one that is about its policies.
      for (const [policy, one] of counts) if (!found.has(policy)) found.set(policy, one);
      if (found.size > 0) return found;
    }
    return found;
  }

  // --------------------------------------------------------------------------------------------------------------- tables

  table(name: string): Model.Table {
    const table = pick(this.tables, name, "table");
    const known = this.#tableCache.get(name);
    if (known?.revision === this.#revision) return known.table;
    const memory = this.#memories.get(name) ?? new WeakMap<object, unknown>();
    this.#memories.set(name, memory);
    const remember = <Value>(object: JsonObject, make: () => Value): Value => {
      // A view keeps the spec of an object that did not change.
      const key = isObject(object["spec"]) ? object["spec"] : object;
      if (!memory.has(key)) memory.set(key, make());
      return memory.get(key) as Value;
    };
    const { title, summary, columns, empty } = table;
    const content = table.rows(this.assembly, this.options.now(), remember);
    const shown = { name, title, summary, columns, empty, ...content, revision: this.#revision };
    this.#tableCache.set(name, { revision: this.#revision, table: shown });
    return shown;
  }

  // --------------------------------------------------------------------------------------------------------------- search

  search(text: string): Model.SearchResults {
    const wanted = text.trim().toLowerCase();
    if (wanted === "") return { results: [], more: false };
    const { view, modules, installation } = this.assembly;
    const found: (readonly [rank: number, result: Model.SearchResult])[] = [];
    const add = (
      namespace: string,
      name: string,
      make: () => Omit<Model.SearchResult, "object"> & { readonly kind: string },
    ) => {
      const rank = rankOf(namespace, name, wanted);
      if (rank === undefined || found.length >= MOST_FOUND) return;
      const { kind, ...result } = make();
      found.push([rank, { ...result, object: { kind, namespace, name } }]);
    };
    for (const { name: id, title, summary } of this.tables)
      add("", title, () => ({ kind: "View", what: "view", id: `/tables/${id}`, note: summary }));
    for (const { name } of modules)
      for (const { ref } of this.assembly.policies(name))
        add(ref.namespace ?? "", ref.name, () => ({
          kind: ref.kind,
          what: "policy",
          id: policyKey(ref),
          note: ref.kind,
        }));
    for (const node of view.list("nodes"))
      add("", nameOf(node), () => ({ kind: "Node", what: "node", note: tagsOf(node).join(", ") }));
    for (const namespace of view.list("namespaces"))
      add("", nameOf(namespace), () => ({ kind: "Namespace", what: "namespace", note: "" }));
    for (const { kind, template, ...workload } of installation.workloads.all)
      for (const object of view.list(resourceName(workload))) {
        // This runs for every pod of the cluster, so it walks no path.
        const { name = "", namespace = "" } = isObject(object["metadata"]) ? object["metadata"] : {};
        add(String(namespace), String(name), () => {
          if (template.length > 0) return { kind, what: "workload", note: kind };
          const node = stringAt(object, "spec", "nodeName");
          return { kind, what: "pod", note: node === undefined ? "not on a node" : `on ${node}` };
        });
      }
    const results = found.sort(([a, x], [b, y]) => a - b || compare(x.object.name, y.object.name));
    return {
      results: results.slice(0, MOST_RESULTS).map(([, result]) => result),
      more: results.length > MOST_RESULTS,
    };
  }

  // ------------------------------------------------------------------------------------------------------------ decisions

  /** Adds decisions, the earliest first; returns them as they are shown. */
  decide(decisions: readonly Omit<Model.LiveDecision, "id">[]): Model.LiveDecision[] {
    const numbered = decisions.map((one) => ({ id: this.#nextDecision++, ...one }));
    this.#decisions.push(...numbered);
    if (this.#decisions.length > MOST_DECISIONS)
      this.#decisions.splice(0, this.#decisions.length - MOST_DECISIONS);
    return numbered;
  }

  decisions(): Model.Decisions {
    return { decisions: this.#decisions.toReversed(), note: this.decisionNote };
  }
}

/** A value that a rule has set on a node, or would still change. */
interface Owned {
  readonly path: string;
  readonly message: string;
  readonly by: string | undefined;
  readonly pending?: string;
}

const PENDING = { add: "to be set", change: "to be changed", remove: "to be removed" } as const;

function ownedOf(
  holds: Standing["holds"],
  changes: Standing["changes"],
  key: (by: string | undefined) => string | undefined,
): Owned[] {
  return [
    ...holds.map(({ path, message, by }) => ({ path: fieldPath(path), message, by: key(by) })),
    ...changes.map(({ path, message, by, change }) => ({
      path: fieldPath(path),
      message,
      by: key(by),
      pending: PENDING[change],
    })),
  ];
}

/** One of a list by its name; the first where none is named. */
export function pick<One extends { readonly name: string }>(
  all: readonly One[],
  name: string | undefined,
  what: string,
): One {
  const found = name === undefined || name === "" ? all[0] : all.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = all.map((one) => one.name).join(", ");
  throw new BadCall(
    404,
    `there is no ${what} ${name ?? ""}`,
    names === "" ? "No module that is on has one." : `There are: ${names}.`,
  );
}

/** Names of Kubernetes are in lower case; titles of views and names of users may not be. */
function rankOf(namespace: string, name: string, wanted: string): number | undefined {
  const lower = name.includes(wanted) ? name : name.toLowerCase();
  const at = lower.indexOf(wanted);
  if (at >= 0) return lower.length === wanted.length ? 0 : at === 0 ? 1 : 2;
  if (!wanted.includes("/")) return namespace.includes(wanted) ? 3 : undefined;
  const whole = `${namespace}/${lower}`;
  return whole === wanted ? 0 : whole.includes(wanted) ? 3 : undefined;
}

function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const byNumber = new Intl.Collator("en", { numeric: true });

/** `worker-2` comes before `worker-10`. */
function compareNames(a: string, b: string): number {
  return byNumber.compare(a, b);
}
