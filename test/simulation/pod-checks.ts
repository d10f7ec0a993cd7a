/**
 * The promises about pods, workloads and the policies that decide about them. A replica may decide by an old view, so
 * each answer is compared with every state of the policies that a replica may have seen; the probe at the end, with the
 * stored one alone. The expected results are computed here, not by usher's code.
 */
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { annotationsOf, labelsOf, nameOf, namespaceOf } from "../../src/core/kubernetes/object.ts";
import { readProvenance } from "../../src/core/provenance/annotation.ts";
import { REAPPLY } from "../../src/core/provenance/reapply.ts";
import type { Store, StoreEvent } from "./api-server/store.ts";
import { moduleIsOn } from "./configurations.ts";
import type { Runtime } from "./runtime.ts";
import {
  createPod,
  DEDICATED_KEY,
  EXCEPTIONS,
  GUARDS,
  isAsked,
  LEVEL_LABEL,
  PLACEMENTS,
  POOL_KEY,
  PROTECTED,
  podOf,
  type Review,
  SHOP,
  tenant,
} from "./tenants.ts";
import type { World } from "./world.ts";

const WORKLOADS = "replicasets.apps";

/** The objects of a resource at one time, by key. */
type State = ReadonlyMap<string, JsonObject>;

/** The states of some resources, with their times. The store itself forgets them when it is compacted. */
export class History {
  readonly #states = new Map<string, { readonly at: number; readonly state: State }[]>();
  readonly #runtime: Runtime;

  constructor(runtime: Runtime, store: Store, resources: readonly string[]) {
    this.#runtime = runtime;
    for (const resource of resources) this.#states.set(resource, [{ at: 0, state: new Map() }]);
    store.subscribe((event) => this.#record(event));
  }

  #record({ resource, type, key, object }: StoreEvent): void {
    const states = this.#states.get(resource);
    if (states === undefined) return;
    const next = new Map(states.at(-1)?.state);
    if (type === "DELETED") next.delete(key);
    else next.set(key, object);
    states.push({ at: this.#runtime.now, state: next });
  }

  /** Every state that was current at some time since then. */
  since(resource: string, time: number): State[] {
    const states = this.#states.get(resource) ?? [];
    const first = states.findLastIndex((one) => one.at <= time);
    return states.slice(Math.max(0, first)).map(({ state }) => state);
  }

  now(resource: string): State {
    return this.#states.get(resource)?.at(-1)?.state ?? new Map();
  }
}

/** For how long a replica may decide by an old view: longer than any fault plus the detection of a dead watch. */
const OLD_VIEW_MS = 60_000;

/** Checks every write of a pod or a workload of a tenant, and every refusal. */
export function watchPods(world: World): void {
  const { store, runtime } = world;
  const history = new History(runtime, store, [PLACEMENTS, GUARDS, EXCEPTIONS, "namespaces", "nodes"]);
  world.history = history;
  store.subscribe((event) => {
    if (event.resource !== "pods" && event.resource !== WORKLOADS) return;
    if (event.type === "DELETED" || !["shop", "lab"].includes(namespaceOf(event.object))) return;
    const why = wrongObject(event, world, history);
    if (why !== undefined)
      runtime.fail(`${why}: ${event.resource} ${event.key} (revision ${event.revision})`);
  });
  world.answered = (review, status, message) => {
    const why = status === 403 ? wrongRefusal(review, message, history) : undefined;
    if (why !== undefined) runtime.fail(`${why}: ${message}`);
  };
}

function wrongObject(event: StoreEvent, world: World, history: History): string | undefined {
  const { resource, key, object, previous } = event;
  const spec = podSpecOf(resource, object);
  const twice = duplicate(spec) ?? danglingProvenance(object);
  if (twice !== undefined) return twice;
  if (previous !== undefined && stringAt(podSpecOf(resource, previous), "nodeName") === undefined) {
    const node = stringAt(spec, "nodeName");
    const bound = world.reviews.get(`pods/binding ${key}`);
    if (node !== undefined && bound !== undefined && !bound.overlaps)
      return unauthorized(node, bound, "node-guard-bind", history);
  }
  const found = world.reviews.get(`${resource} ${key}`);
  if (found === undefined || found.overlaps) return undefined;
  if (found.how !== "create" && previous === undefined) return undefined;
  // A reapply is a patch, of the stored object.
  const review = found.how === "reapply" && previous !== undefined ? { ...found, sent: previous } : found;
  const lost = lostField(review.sent, object, [], review);
  if (lost !== undefined) return `${lost} of the sender is gone`;
  if (
    review.how === "reapply" &&
    isAsked(review, "placement") &&
    annotationsOf(object)?.[REAPPLY] !== undefined
  )
    return "the request for a reapply stays";
  return (
    wronglyPlaced(event, review, history) ??
    (resource === "pods" && review.how === "create"
      ? (wronglyAssigned(object, review, history) ??
        wronglySteered(object, review, history) ??
        insecure(object, review, history) ??
        withoutSelectorOfOS(object, review))
      : undefined)
  );
}

function podSpecOf(resource: string, object: JsonObject): JsonObject {
  const spec = resource === "pods" ? at(object, "spec") : at(object, "spec", "template", "spec");
  return isObject(spec) ? spec : {};
}

function requiredTerms(spec: JsonObject): readonly Json[] {
  return listAt(
    spec,
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
  );
}

/** Nothing is injected twice; no caller here sends anything twice. */
function duplicate(spec: JsonObject): string | undefined {
  const lists = [
    listAt(spec, "tolerations"),
    requiredTerms(spec),
    ...requiredTerms(spec).map((term) => listAt(term, "matchExpressions")),
  ];
  for (const list of lists) {
    const texts = list.map((one) => JSON.stringify(one));
    const again = texts.find((text, i) => texts.indexOf(text) !== i);
    if (again !== undefined) return `${again} is there twice`;
  }
  return undefined;
}

/** Each place that the provenance names as set exists. */
function danglingProvenance(object: JsonObject): string | undefined {
  for (const { policy, set } of readProvenance(object).origins)
    for (const pointer of set) {
      const steps = pointer.split("/").slice(1);
      const names = steps.map((one) => one.replaceAll("~1", "/").replaceAll("~0", "~"));
      if (at(object, ...names) === undefined)
        return `provenance of ${policy} names ${pointer}, which is not there`;
    }
  return undefined;
}

/** A field that was sent and not stored. Lists grow at their end only. */
function lostField(
  sent: Json | undefined,
  stored: Json | undefined,
  path: readonly string[],
  review: Review,
): string | undefined {
  const name = path.at(-1);
  // They are consumed: the version of the object, a reapply, and spec.os where its gate is off.
  if (path.length === 1 && name === "status") return undefined;
  if (name === "resourceVersion" || name === "managedFields" || name === "generation" || name === REAPPLY)
    return undefined;
  if (name === "os" && isAsked(review, "pod-os-gate")) return undefined;
  // Usher's own record changes with what it records.
  if (name === "usher.dev/provenance") return undefined;
  // A reapply takes back what was injected.
  if (review.how === "reapply" && (name === "nodeSelector" || name === "tolerations")) return undefined;
  if (Array.isArray(sent)) {
    for (const [i, one] of sent.entries()) {
      const lost = lostField(one, at(stored, i), [...path, String(i)], review);
      if (lost !== undefined) return lost;
    }
    return undefined;
  }
  if (isObject(sent)) {
    for (const [key, one] of Object.entries(sent)) {
      const lost = lostField(one, at(stored, key), [...path, key], review);
      if (lost !== undefined) return lost;
    }
    return undefined;
  }
  return sent === undefined || sent === stored ? undefined : path.join(".");
}

// ——— placement ———

/** The part of a pod's spec that the policies of placement are about. */
interface Placed {
  readonly pool: string | undefined;
  /** The values of the toleration `dedicated`, sorted. */
  readonly dedicated: readonly string[];
}

function placedIn(spec: JsonObject): Placed {
  const dedicated = listAt(spec, "tolerations").flatMap((one) =>
    stringAt(one, "key") === DEDICATED_KEY ? [stringAt(one, "value") ?? ""] : [],
  );
  return { pool: stringAt(spec, "nodeSelector", POOL_KEY), dedicated: dedicated.sort() };
}

/** The injections that an object's provenance names. */
function injectedIn(object: JsonObject): Placed {
  const spec = podSpecOf(WORKLOADS, object);
  const origins = readProvenance(object).origins.filter(({ module }) => module === "placement");
  const isSet = origins.some(({ set }) => set.some((one) => one.endsWith(`/${POOL_KEY.replace("/", "~1")}`)));
  const added = origins.flatMap((one) =>
    Object.values(one.added).flatMap((list) => list.map((element) => stringAt(element, "value") ?? "")),
  );
  const { pool, dedicated } = placedIn(spec);
  return { pool: isSet ? pool : undefined, dedicated: dedicated.filter((one) => added.includes(one)) };
}

/** The values that the policies of a state want for a pod. */
function wantedBy(state: State, object: JsonObject, spec: JsonObject) {
  const [pool, dedicated] = [state.get("pool"), state.get("dedicated")];
  const isWeb =
    stringAt(object, "metadata", "labels", "app") === "web" ||
    stringAt(object, "spec", "template", "metadata", "labels", "app") === "web";
  return {
    pool: namespaceOf(object) === SHOP ? stringAt(pool, "spec", "nodeSelector", POOL_KEY) : undefined,
    poolInjects: stringAt(pool, "spec", "onUpdate") === "Inject",
    dedicated:
      isWeb && !toleratesAll(spec) ? stringAt(dedicated, "spec", "tolerations", 0, "value") : undefined,
    dedicatedInjects: stringAt(dedicated, "spec", "onUpdate") === "Inject",
  };
}

function toleratesAll(spec: JsonObject): boolean {
  return listAt(spec, "tolerations").some((one) => stringAt(one, "key") === undefined);
}

function union(...values: readonly (string | undefined)[]): string[] {
  return [...new Set(values.filter((one) => one !== undefined))].sort();
}

/** The object is placed by some state of the policies, or, if usher was not asked, as it was sent. */
function wronglyPlaced(event: StoreEvent, review: Review, history: History): string | undefined {
  const { resource, object, previous } = event;
  const spec = podSpecOf(resource, object);
  const is = placedIn(spec);
  const expected = expectedPlacements(resource, object, previous, review, history);
  const answering = review.asked.get("placement")?.size ?? 0;
  // Two replicas answered one request: each may have added by its own view.
  if (answering > 1) return undefined;
  const text = JSON.stringify(is);
  if (expected.includes(text)) return undefined;
  const how = answering === 0 ? "without usher" : "by usher";
  return `placed ${how} as ${text} instead of ${[...new Set(expected)].join(" or ")}`;
}

function expectedPlacements(
  resource: string,
  object: JsonObject,
  previous: JsonObject | undefined,
  review: Review,
  history: History,
): string[] {
  const sentSpec = podSpecOf(resource, review.sent);
  const sent = placedIn(sentSpec);
  const isBound = resource === "pods" && stringAt(sentSpec, "nodeName") !== undefined;
  if (!isAsked(review, "placement") || isBound) return [JSON.stringify(sent)];
  const before = previous === undefined ? { pool: undefined, dedicated: [] } : injectedIn(previous);
  return history.since(PLACEMENTS, review.started - OLD_VIEW_MS).map((state) => {
    const wanted = wantedBy(state, object, sentSpec);
    if (review.how === "create")
      return JSON.stringify({
        pool: sent.pool ?? wanted.pool,
        dedicated: union(...sent.dedicated, wanted.dedicated),
      });
    if (review.how === "reapply")
      return JSON.stringify({
        pool: (sent.pool === before.pool ? undefined : sent.pool) ?? wanted.pool,
        dedicated: union(
          ...sent.dedicated.filter((one) => !before.dedicated.includes(one)),
          wanted.dedicated,
        ),
      });
    // An injected value stays, unless its policy also applies to updates and asks for another value.
    const pool = wanted.poolInjects && wanted.pool !== undefined ? wanted.pool : before.pool;
    const dedicated =
      wanted.dedicatedInjects && wanted.dedicated !== undefined ? [wanted.dedicated] : before.dedicated;
    return JSON.stringify({ pool: sent.pool ?? pool, dedicated: union(...sent.dedicated, ...dedicated) });
  });
}

// ——— protected nodes ———

function modeIn(state: State): string {
  return stringAt(state.get("cluster"), "spec", "groups", 0, "mode") ?? "Disable";
}

function modesFor({ started }: Review, history: History): string[] {
  return history.since(GUARDS, started - OLD_VIEW_MS).map(modeIn);
}

/** No tenant is authorised: while usher was asked, its pods get no protected node. */
function unauthorized(node: string, review: Review, hook: string, history: History): string | undefined {
  if (!isAsked(review, hook)) return undefined;
  // A node that joins or leaves during the request may count as either.
  const isProtected = history
    .since("nodes", review.started - OLD_VIEW_MS)
    .every((state) => labelsOf(state.get(node) ?? {})?.[PROTECTED] !== undefined);
  if (!isProtected || modesFor(review, history).some((mode) => mode !== "Enable")) return undefined;
  return `an unauthorised pod got the protected node ${node}`;
}

function wronglyAssigned(object: JsonObject, review: Review, history: History): string | undefined {
  const node = stringAt(object, "spec", "nodeName");
  return node === undefined ? undefined : unauthorized(node, review, "node-guard-assign", history);
}

function isSteered(object: JsonObject): boolean {
  return requiredTerms(podSpecOf("pods", object)).some((term) =>
    listAt(term, "matchExpressions").some((one) => stringAt(one, "key") === PROTECTED),
  );
}

/** A pod is kept off protected nodes only while a policy says so. */
function wronglySteered(object: JsonObject, review: Review, history: History): string | undefined {
  const modes = modesFor(review, history);
  if (isSteered(object) && (!isAsked(review, "node-guard-steering") || !modes.includes("Enable")))
    return "kept off nodes that no policy protects";
  const spec = podSpecOf("pods", object);
  // With a selector or a node, or without tolerations, it may not reach them.
  if (!toleratesAll(spec)) return undefined;
  if (isSteered(object) || spec["nodeSelector"] !== undefined || spec["nodeName"] !== undefined)
    return undefined;
  const reachable = history
    .since("nodes", review.started - OLD_VIEW_MS)
    .every((state) => [...state.values()].some((node) => labelsOf(node)?.[PROTECTED] !== undefined));
  const isDue = reachable && modes.every((mode) => mode === "Enable");
  return isDue && isAsked(review, "node-guard-steering") ? "not kept off protected nodes" : undefined;
}

// ——— Pod Security ———

function levelsFor(namespace: string, { started }: Review, history: History): string[] {
  return history
    .since("namespaces", started - OLD_VIEW_MS)
    .map((state) => String(labelsOf(state.get(namespace) ?? {})?.[LEVEL_LABEL] ?? ""));
}

function waivers(namespace: string, { started }: Review, history: History): boolean[] {
  return history
    .since(EXCEPTIONS, started - OLD_VIEW_MS)
    .map((state) => listAt(state.get("host"), "spec", "namespaces").includes(namespace));
}

function insecure(object: JsonObject, review: Review, history: History): string | undefined {
  if (at(object, "spec", "hostPID") !== true || !isAsked(review, "pod-security")) return undefined;
  const namespace = namespaceOf(object);
  const isForbidden =
    levelsFor(namespace, review, history).every((level) => level === "baseline") &&
    waivers(namespace, review, history).every((isWaived) => !isWaived);
  return isForbidden ? "a pod was admitted that the level of its namespace forbids" : undefined;
}

/** A pod of a known OS selects nodes of that OS, where the answering replica is told to write it. */
function withoutSelectorOfOS(object: JsonObject, { asked }: Review): string | undefined {
  if (at(object, "spec", "os", "name") === undefined) return undefined;
  for (const { configuration } of asked.get("pod-os-write") ?? []) {
    const writes = at((configuration.modules ?? {}) as JsonObject, "pod-os", "os", "write") === true;
    if (writes && stringAt(object, "spec", "nodeSelector", "kubernetes.io/os") !== "linux")
      return "spec.os is known, and the selector of nodes is not written";
  }
  return undefined;
}

/** A refusal follows from some state of the policies. */
function wrongRefusal(review: Review, message: string, history: History): string | undefined {
  const namespace = namespaceOf(review.sent);
  if (message.includes("USHER-G"))
    return modesFor(review, history).includes("Enable")
      ? undefined
      : "refused for nodes that no policy protects";
  if (message.includes("violates PodSecurity"))
    return levelsFor(namespace, review, history).includes("baseline") &&
      waivers(namespace, review, history).includes(false)
      ? undefined
      : "refused by a level that the namespace does not have";
  if (message.includes("USHER-P"))
    return history
      .since(PLACEMENTS, review.started - OLD_VIEW_MS)
      .some((state) =>
        [...state.values()].some((policy) => stringAt(policy, "spec", "enforcement") === "Refuse"),
      )
      ? undefined
      : "refused by an enforcement that no policy has";
  return undefined;
}

// ——— at the end ———

/** The status of each policy tells its own state, and that of the cluster. */
export function wrongPolicyStatus(world: World): string | undefined {
  const { store } = world;
  const kinds = [
    [PLACEMENTS, moduleIsOn(world.configuration, "placement")],
    [GUARDS, moduleIsOn(world.configuration, "node-guard")],
    [EXCEPTIONS, moduleIsOn(world.configuration, "pod-os")],
  ] as const;
  for (const [resource, isOn] of kinds)
    for (const { object } of store.list(resource)) {
      const what = `${resource} ${nameOf(object)}`;
      const [generation, observed] = [
        at(object, "metadata", "generation"),
        at(object, "status", "observedGeneration"),
      ];
      if (generation !== observed)
        return `the status of ${what} is of generation ${observed}, not ${generation}`;
      const types = listAt(object, "status", "conditions").map((one) => stringAt(one, "type") ?? "");
      if (types.includes("Ignored") === isOn)
        return `the status of ${what} has the conditions ${types.join(", ")}, and its module is ${isOn ? "on" : "off"}`;
    }
  return undefined;
}

/** Nodes and pods of the group are counted once a minute. */
export function wrongGroup({ store, configuration }: World): string | undefined {
  if (!moduleIsOn(configuration, "node-guard")) return undefined;
  const policy = store.get(GUARDS, "cluster");
  if (policy === undefined) return undefined;
  const group = listAt(policy, "status", "groups").find((one) => stringAt(one, "name") === "core");
  const names = store
    .list("nodes")
    .filter(({ object }) => labelsOf(object)?.[PROTECTED] !== undefined)
    .map(({ key }) => key);
  const pods = store
    .list("pods")
    .filter(({ object }) => names.includes(stringAt(object, "spec", "nodeName") ?? ""));
  const expected = {
    mode: stringAt(policy, "spec", "groups", 0, "mode"),
    nodes: names.length,
    violations: pods.length,
  };
  const is = { mode: at(group, "mode"), nodes: at(group, "nodes"), violations: at(group, "violations") };
  return JSON.stringify(is) === JSON.stringify(expected)
    ? undefined
    : `the status of the group is ${JSON.stringify(is)}, should be ${JSON.stringify(expected)}`;
}

/** After its last change the policy `pool` counts the nodes that it selects, and the workloads with an old value; or they are repaired. */
export function wrongCounts({ store, configuration }: World): string | undefined {
  const policy = store.get(PLACEMENTS, "pool");
  if (policy === undefined || !moduleIsOn(configuration, "placement")) return undefined;
  const value = stringAt(policy, "spec", "nodeSelector", POOL_KEY);
  const nodes = store.list("nodes").filter(({ object }) => labelsOf(object)?.[POOL_KEY] === value).length;
  // Without any node, there is nothing to count.
  const counted = at(policy, "status", "nodes") ?? 0;
  if (counted !== nodes) return `the status of the policy pool counts ${counted} nodes of ${nodes}`;
  const behind = store
    .list(WORKLOADS)
    .filter(({ object }) => {
      const { pool } = injectedIn(object);
      return pool !== undefined && pool !== value;
    })
    .map(({ key }) => key);
  const settings = at((configuration.modules ?? {}) as JsonObject, "placement");
  if (at(settings, "repairDrift") === true)
    return behind.length === 0 ? undefined : `${behind.join(", ")} keep an old value, and drift is repaired`;
  const stale = Number(at(policy, "status", "workloads", "stale") ?? 0);
  return stale >= behind.length
    ? undefined
    : `the policy pool counts ${stale} stale workloads, and ${behind.join(", ")} have an old value`;
}

/** New pods are placed, guarded and judged as the stored policies say, exactly. */
export async function wrongNewPod(world: World): Promise<string | undefined> {
  const { store, history, configuration } = world;
  if (history === undefined) return undefined;
  const user = tenant("ann");
  const one = (name: string, more: object) => podOf({ namespace: SHOP, name, app: "web", ...more });
  const node = store.list("nodes").find(({ object }) => labelsOf(object)?.[PROTECTED] !== undefined)?.key;
  const sent = [
    createPod(world, user, one("probe-plain", {})),
    createPod(world, user, one("probe-host", { host: true })),
    ...(node === undefined ? [] : [createPod(world, user, one("probe-node", { node }))]),
  ];
  await world.runtime.run(world.runtime.now + 12_000);
  if (world.runtime.failure !== undefined) return undefined;
  const [plain, host, assigned] = await Promise.all(sent);
  const state = history.now(PLACEMENTS);
  const wanted = wantedBy(state, one("probe-plain", {}), {});
  const isPlaced = moduleIsOn(configuration, "placement");
  const expected = JSON.stringify(
    isPlaced ? { pool: wanted.pool, dedicated: union(wanted.dedicated) } : { pool: undefined, dedicated: [] },
  );
  const is = JSON.stringify(placedIn(podSpecOf("pods", isObject(plain?.body) ? plain.body : {})));
  if (plain?.status !== 201 || is !== expected)
    return `a new pod was answered ${plain?.status}, placed as ${is}, should be ${expected}`;
  const mode = moduleIsOn(configuration, "node-guard") ? modeIn(history.now(GUARDS)) : "Disable";
  const should = mode === "Enable" ? 403 : 201;
  if (assigned !== undefined && assigned.status !== should)
    return `a pod on a protected node was answered ${assigned.status} in mode ${mode}: ${stringAt(assigned.body, "message")}`;
  const level = labelsOf(store.get("namespaces", SHOP) ?? {})?.[LEVEL_LABEL];
  const isWaived = listAt(history.now(EXCEPTIONS).get("host"), "spec", "namespaces").includes(SHOP);
  const isForbidden = moduleIsOn(configuration, "pod-os") && level === "baseline" && !isWaived;
  return host?.status === (isForbidden ? 403 : 201)
    ? undefined
    : `a pod with hostPID was answered ${host?.status} at level ${level}`;
}
