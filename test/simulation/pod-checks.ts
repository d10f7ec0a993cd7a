/**
 * The promises about pods, workloads and the policies that decide about them. A replica may decide by an old view, so
 * each answer is compared with every state of the policies that a replica may have seen; the probe at the end, with the
 * stored one alone. The expected results are computed here, not by usher's code.
 */
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { annotationsOf, labelsOf, nameOf, namespaceOf } from "../../src/core/kubernetes/object.ts";
import { readProvenance } from "../../src/core/provenance/annotation.ts";
import { REAPPLY } from "../../src/core/provenance/reapply.ts";
import type { StoreEvent } from "./api-server/store.ts";
import { isLeading, LEDGERS, OWNERSHIPS, POLICIES, RULES, wronglyLimited } from "./checks.ts";
import { moduleIsOn } from "./configurations.ts";
import type { ServerRequest } from "./network.ts";
import type { Runtime } from "./runtime.ts";
import {
  ADMIN,
  applyWorkload,
  bindPod,
  createPod,
  DEDICATED_KEY,
  EXCEPTIONS,
  GUARDS,
  INFRA,
  isAsked,
  LEVEL_LABEL,
  OVERRIDE,
  OVERRIDES,
  PLACEMENTS,
  POOL_KEY,
  PROTECTED,
  podOf,
  type Review,
  SHOP,
  SRE,
  tenant,
} from "./tenants.ts";
import { LIMITS, VIEW_MS, type World } from "./world.ts";

const WORKLOADS = "replicasets.apps";

/** The objects of a resource at one time, by key. */
type State = ReadonlyMap<string, JsonObject>;

/** The states of some resources, with their times. The store itself forgets them when it is compacted. */
export class History {
  readonly #states = new Map<string, { readonly at: number; readonly state: State }[]>();
  readonly #runtime: Runtime;
  readonly #world: World;

  constructor(world: World, resources: readonly string[]) {
    const { runtime, store } = world;
    this.#world = world;
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

  /** Every version of an object, the first one first. */
  versions(resource: string, key: string): JsonObject[] {
    return (this.#states.get(resource) ?? [])
      .map(({ state }) => state.get(key))
      .filter((one) => one !== undefined);
  }

  /** Every state that was current at some time since then. */
  since(resource: string, time: number): State[] {
    return this.#since(resource, time).map(({ state }) => state);
  }

  /** When the state began that was current then. */
  begin(resource: string, time: number): number {
    return this.#since(resource, time)[0]?.at ?? 0;
  }

  #since(resource: string, time: number): readonly { readonly at: number; readonly state: State }[] {
    const states = this.#states.get(resource) ?? [];
    const first = states.findLastIndex((one) => one.at <= time);
    return states.slice(Math.max(0, first));
  }

  /** Every state that the replicas may have seen that answered a request, or the API server. */
  seenBy(resource: string, review: Review): State[] {
    return this.since(resource, this.oldest(review));
  }

  /** The time of the oldest state that may count for a request. */
  oldest({ started, asked }: Review): number {
    const replicas = [...asked.values()].flatMap((pods) => [...pods]);
    return this.#world.oldestView(started, replicas.length === 0 ? undefined : replicas);
  }

  /** The same, at another time. */
  oldestAt(time: number): number {
    return this.#world.oldestView(time);
  }

  now(resource: string): State {
    return this.#states.get(resource)?.at(-1)?.state ?? new Map();
  }

  /** Since a time, what the wall clock of each replica said: from, and to. */
  clocks(time: number): (readonly [number, number])[] {
    const { pods, scenario } = this.#world;
    const { now } = this.#runtime;
    const jumped = scenario.faults.some((one) => one.fault === "jump" && one.at >= time && one.at <= now);
    if (jumped) return [[Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]];
    return [...pods.values()].map(({ process }) => {
      const to = process.run(() => Date.now());
      return [to - (now - time) * process.rate, to];
    });
  }
}

/** Checks every write of a pod or a workload of a tenant, and every refusal. */
export function watchPods(world: World): void {
  const { store, runtime } = world;
  const history = new History(world, [
    ...[PLACEMENTS, GUARDS, OVERRIDES, EXCEPTIONS, OWNERSHIPS],
    ...["namespaces", "nodes", LEDGERS, ...POLICIES],
  ]);
  world.history = history;
  store.subscribe((event) => {
    if (event.resource === OVERRIDES && event.type === "ADDED") {
      const why = wrongGrant(event.object, world);
      if (why !== undefined) runtime.fail(why);
    }
    if (event.resource !== "pods" && event.resource !== WORKLOADS) return;
    if (event.type === "DELETED" || !["shop", "lab"].includes(namespaceOf(event.object))) return;
    const why = wrongObject(event, world, history);
    if (why !== undefined)
      runtime.fail(`${why}: ${event.resource} ${event.key} (revision ${event.revision})`);
  });
  world.createdProject = (user, started, message) => {
    const why = wronglyLimited(world, user, started, message);
    if (why !== undefined) runtime.fail(why);
  };
  world.answered = (review, status, message) => {
    // A hook that refused is not recorded: any replica may have answered it.
    const why = status === 403 ? wrongRefusal({ ...review, asked: new Map() }, message, history) : undefined;
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
      return unauthorized(node, bound, "bind", history);
  }
  const found = world.reviews.get(`${resource} ${key}`);
  if (found === undefined || found.overlaps) return undefined;
  if (found.how !== "create" && previous === undefined) return undefined;
  // A reapply is a patch, of the stored object.
  const review = found.how === "reapply" && previous !== undefined ? { ...found, sent: previous } : found;
  const had = previous === undefined ? undefined : at(podSpecOf(resource, previous), "os");
  if (
    had !== undefined &&
    at(podSpecOf(resource, review.sent), "os") !== undefined &&
    at(spec, "os") === undefined
  )
    return "a stored spec.os is dropped";
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
  const isTargeted =
    stringAt(dedicated, "spec", "targets") !== "Templates" || at(object, "spec", "template") !== undefined;
  return {
    pool: namespaceOf(object) === SHOP ? stringAt(pool, "spec", "nodeSelector", POOL_KEY) : undefined,
    poolInjects: stringAt(pool, "spec", "onUpdate") === "Inject",
    dedicated:
      isWeb && isTargeted && !toleratesAll(spec)
        ? stringAt(dedicated, "spec", "tolerations", 0, "value")
        : undefined,
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
  return history.seenBy(PLACEMENTS, review).map((state) => {
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

const MODES = ["Disable", "Inform", "Enable"];

/** The modes that count at some time between two, by a clock. An override only weakens. */
function weakened(mode: string, overrides: State, [from, to]: readonly [number, number]): string[] {
  const override = overrides.get(OVERRIDE);
  const weaker = stringAt(override, "spec", "mode") ?? mode;
  if (MODES.indexOf(weaker) >= MODES.indexOf(mode)) return [mode];
  const begin = Date.parse(stringAt(override, "spec", "from") ?? "");
  const end = Date.parse(stringAt(override, "spec", "until") ?? "");
  if (begin <= from && to < end) return [weaker];
  return to < begin || from >= end ? [mode] : [mode, weaker];
}

/** The modes that may count for a request, by any view and any clock of a replica. */
function modesFor(review: Review, history: History): string[] {
  const clocks = history.clocks(review.started);
  const overrides = history.seenBy(OVERRIDES, review);
  const modes = new Set(history.seenBy(GUARDS, review).map(modeIn));
  return [...modes].flatMap((mode) =>
    overrides.flatMap((state) => clocks.flatMap((clock) => weakened(mode, state, clock))),
  );
}

/** An override names the user who granted it, if usher was asked. */
function wrongGrant(override: JsonObject, { reviews }: World): string | undefined {
  const review = reviews.get(`${OVERRIDES} undefined/${OVERRIDE}`);
  if (review === undefined || review.overlaps) return undefined;
  const is = annotationsOf(override)?.["usher.dev/granted-by"];
  const expected = isAsked(review, "node-guard-override") ? SRE.username : undefined;
  return is === expected ? undefined : `an override is granted by ${is}, should be ${expected}`;
}

/** Whether policies of the API server refuse this to unauthorised pods of a namespace, as every API server sees them. */
function isRefusedByFallback(rule: "assign" | "bind", namespace: string, review: Review, history: History) {
  const isRefusing = (object: JsonObject | undefined) =>
    listAt(object, "spec", "validations").length > 0 ||
    (listAt(object, "spec", "validationActions").includes("Deny") &&
      !JSON.stringify(at(object, "spec", "matchResources") ?? null).includes(JSON.stringify(namespace)));
  return POLICIES.every((resource) =>
    history.seenBy(resource, review).every((state) => isRefusing(state.get(`usher-node-guard-core-${rule}`))),
  );
}

/** No tenant is authorised: while usher is asked, or policies of the API server stand in, its pods get no protected node. */
function unauthorized(
  node: string,
  review: Review,
  rule: "assign" | "bind",
  history: History,
): string | undefined {
  const namespace = namespaceOf(review.sent);
  if (namespace === INFRA) return undefined;
  if (!isAsked(review, `node-guard-${rule}`) && !isRefusedByFallback(rule, namespace, review, history))
    return undefined;
  // A node that joins or leaves during the request may count as either. That of a new pod is read past the view.
  const isRead = rule === "assign" && isAsked(review, "node-guard-assign");
  const states = isRead ? history.since("nodes", review.started) : history.seenBy("nodes", review);
  const isProtected = states.every((state) => labelsOf(state.get(node) ?? {})?.[PROTECTED] !== undefined);
  if (!isProtected || modesFor(review, history).some((mode) => mode !== "Enable")) return undefined;
  return `an unauthorised pod got the protected node ${node}`;
}

function wronglyAssigned(object: JsonObject, review: Review, history: History): string | undefined {
  const node = stringAt(object, "spec", "nodeName");
  return node === undefined ? undefined : unauthorized(node, review, "assign", history);
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
    .seenBy("nodes", review)
    .every((state) => [...state.values()].some((node) => labelsOf(node)?.[PROTECTED] !== undefined));
  const isDue = reachable && modes.every((mode) => mode === "Enable");
  return isDue && isAsked(review, "node-guard-steering") ? "not kept off protected nodes" : undefined;
}

// ——— Pod Security ———

function levelsFor(namespace: string, review: Review, history: History): string[] {
  return history
    .seenBy("namespaces", review)
    .map((state) => String(labelsOf(state.get(namespace) ?? {})?.[LEVEL_LABEL] ?? ""));
}

function waivers(namespace: string, review: Review, history: History): boolean[] {
  return history
    .seenBy(EXCEPTIONS, review)
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
function withoutSelectorOfOS(object: JsonObject, review: Review): string | undefined {
  const { asked } = review;
  if (at(object, "spec", "os", "name") === undefined || !isAsked(review, "pod-os-write")) return undefined;
  for (const { configuration } of asked.get("pod-os-write") ?? []) {
    const writes = at((configuration.modules ?? {}) as JsonObject, "pod-os", "os", "write") === true;
    if (writes && stringAt(object, "spec", "nodeSelector", "kubernetes.io/os") !== "linux")
      return "spec.os is known, and the selector of nodes is not written";
  }
  return undefined;
}

/** Whether a leader that wrote the fallback may have seen nodes that a policy protects. */
function wroteFallback(review: Review, history: History): boolean {
  return POLICIES.some((resource) => {
    const written = history.begin(resource, history.oldest(review));
    return history.since(GUARDS, history.oldestAt(written)).some((state) => modeIn(state) === "Enable");
  });
}

/** A refusal follows from some state of the policies. */
function wrongRefusal(review: Review, message: string, history: History): string | undefined {
  const namespace = namespaceOf(review.sent);
  if (message.includes("USHER-G")) {
    const isMode = message.includes("ValidatingAdmissionPolicy")
      ? wroteFallback(review, history)
      : modesFor(review, history).includes("Enable");
    return isMode ? undefined : "refused for nodes that no policy protects";
  }
  if (message.includes("violates PodSecurity"))
    return levelsFor(namespace, review, history).includes("baseline") &&
      waivers(namespace, review, history).includes(false)
      ? undefined
      : "refused by a level that the namespace does not have";
  if (message.includes("USHER-P"))
    return history
      .seenBy(PLACEMENTS, review)
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
    [PLACEMENTS, "placement"],
    [GUARDS, "node-guard"],
    [OVERRIDES, "node-guard"],
    [EXCEPTIONS, "pod-os"],
    [RULES, "node-labels"],
    [OWNERSHIPS, "node-labels"],
    [LIMITS, "project-limit"],
  ] as const;
  for (const [resource, module] of kinds) {
    const isOn = moduleIsOn(world.configuration, module);
    for (const { object } of store.list(resource)) {
      const what = `${resource} ${nameOf(object)}`;
      const [generation, observed] = [
        at(object, "metadata", "generation"),
        at(object, "status", "observedGeneration"),
      ];
      if (generation !== observed)
        return `the status of ${what} is of generation ${observed}, not ${generation}`;
      const types = listAt(object, "status", "conditions")
        .filter((one) => stringAt(one, "status") === "True")
        .map((one) => stringAt(one, "type") ?? "");
      if (types.includes("Ignored") === isOn)
        return `the status of ${what} has the conditions ${types.join(", ")}, and its module is ${isOn ? "on" : "off"}`;
    }
  }
  return wrongFallbackStatus(world);
}

/** Policies of the API server refuse what the group refuses, unless the configuration says otherwise, and the status says so. */
function wrongFallbackStatus(world: World): string | undefined {
  const { store, configuration, history } = world;
  const policy = store.get(GUARDS, "cluster");
  if (policy === undefined || !moduleIsOn(configuration, "node-guard")) return undefined;
  const now = clockOfLeader(world);
  const mode = stringAt(policy, "spec", "groups", 0, "mode") ?? "";
  const modes = weakened(mode, history?.now(OVERRIDES) ?? new Map(), [now - RECENT_MS, now]);
  const settings = at((configuration.modules ?? {}) as JsonObject, "node-guard");
  const isInForce = at(settings, "fallback") !== false && modes[0] === "Enable";
  const group = listAt(policy, "status", "groups").find((one) => stringAt(one, "name") === "core");
  return at(group, "fallback") === isInForce || modes.length > 1
    ? undefined
    : `the status of the group in mode ${modes[0]} says that its fallback is in force: ${at(group, "fallback")}`;
}

function clockOfLeader({ pods }: World): number {
  const leader = [...pods.values()].find(isLeading);
  return leader === undefined ? Number.NaN : leader.process.run(() => Date.now());
}

/** Nodes and pods of the group are counted once a minute. */
export function wrongGroup(world: World): string | undefined {
  const { store, configuration, history } = world;
  if (!moduleIsOn(configuration, "node-guard")) return undefined;
  const now = clockOfLeader(world);
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
  const mode = stringAt(policy, "spec", "groups", 0, "mode") ?? "";
  const expected = {
    mode,
    effectiveMode: weakened(mode, history?.now(OVERRIDES) ?? new Map(), [now, now])[0],
    nodes: names.length,
    violations: pods.length,
  };
  const is = {
    mode: at(group, "mode"),
    effectiveMode: at(group, "effectiveMode"),
    nodes: at(group, "nodes"),
    violations: at(group, "violations"),
  };
  return JSON.stringify(is) === JSON.stringify(expected)
    ? undefined
    : `the status of the group is ${JSON.stringify(is)}, should be ${JSON.stringify(expected)}`;
}

/** Whether an override begins or ends soon, or a moment ago, by the clock of the leader. */
export function overrideTurns(world: World, withinMs: number): boolean {
  const override = world.store.get(OVERRIDES, OVERRIDE);
  const now = clockOfLeader(world);
  return ["from", "until"].some((one) => {
    const inMs = Date.parse(stringAt(override, "spec", one) ?? "") - now;
    return inMs > -RECENT_MS && inMs < withinMs + RECENT_MS;
  });
}

/** The leader's part in it is over after this time. */
const RECENT_MS = 5_000;

/** An override says whether it counts, by the clock of the leader. */
export function wrongOverride(world: World): string | undefined {
  const { store, configuration } = world;
  const override = store.get(OVERRIDES, OVERRIDE);
  if (override === undefined || !moduleIsOn(configuration, "node-guard")) return undefined;
  const now = clockOfLeader(world);
  const [from, until] = ["from", "until"].map((one) => Date.parse(stringAt(override, "spec", one) ?? ""));
  const isActive = now >= Number(from) && now < Number(until) && store.get(GUARDS, "cluster") !== undefined;
  const found = listAt(override, "status", "conditions").find((one) => stringAt(one, "type") === "Active");
  return stringAt(found, "status") === (isActive ? "True" : "False")
    ? undefined
    : `the override counts: ${isActive}, and its status says ${JSON.stringify(found)}`;
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

/** Whether a workload waits for its repair, of two every ten seconds, or was repaired before the webhook was registered that does it: the next scan repeats it. */
export function waitsForReapply({ store, configuration }: World): boolean {
  const settings = at((configuration.modules ?? {}) as JsonObject, "placement");
  if (at(settings, "repairDrift") !== true || !moduleIsOn(configuration, "placement")) return false;
  const value = stringAt(store.get(PLACEMENTS, "pool"), "spec", "nodeSelector", POOL_KEY);
  return store.list(WORKLOADS).some(({ object }) => {
    const { pool } = injectedIn(object);
    const isBehind = value !== undefined && pool !== undefined && pool !== value;
    return isBehind || annotationsOf(object)?.[REAPPLY] !== undefined;
  });
}

/**
 * New pods, workloads and bindings are placed, guarded and judged as the stored policies say, exactly: at the end every
 * request must have been asked about.
 */
export async function wrongNewPod(world: World): Promise<string | undefined> {
  const { store, history, configuration, runtime } = world;
  if (history === undefined) return undefined;
  const user = tenant("ann");
  const started = runtime.now;
  const one = (name: string, more: object) => podOf({ namespace: SHOP, name, app: "web", ...more });
  const node = store.list("nodes").find(({ object }) => labelsOf(object)?.[PROTECTED] !== undefined)?.key;
  const workload = { namespace: SHOP, name: "probe", image: "example.com/c:1" };
  const created = await runtime.waitFor(
    Promise.all([
      createPod(world, user, one("probe-plain", {})),
      createPod(world, user, podOf({ namespace: INFRA, name: "probe-infra", app: "agent" })),
      createPod(world, user, one("probe-host", { host: true })),
      applyWorkload(world, workload),
      node === undefined ? undefined : createPod(world, user, one("probe-node", { node })),
    ]),
    12_000,
  );
  const next = await runtime.waitFor(
    Promise.all([
      applyWorkload(world, { ...workload, image: "example.com/c:2" }),
      ...[
        { namespace: SHOP, name: "probe-plain" },
        { namespace: INFRA, name: "probe-infra" },
      ].map((pod) => (node === undefined ? undefined : bindPod(world, { ...pod, node }))),
    ]),
    12_000,
  );
  if (runtime.failure !== undefined) return undefined;
  const [plain, authorised, host, first, assigned] = created ?? [];
  const [second, bound, authorisedBound] = next ?? [];
  const said = (answer: typeof plain) => `${answer?.status}: ${stringAt(answer?.body, "message")}`;
  const state = history.now(PLACEMENTS);
  const isPlaced = moduleIsOn(configuration, "placement");
  for (const [what, answer, resource, status] of [
    ["pod", plain, "pods", 201],
    ["workload", first, WORKLOADS, 201],
    ["update of a workload", second, WORKLOADS, 200],
  ] as const) {
    const object = isObject(answer?.body) ? answer.body : {};
    const is = JSON.stringify(placedIn(podSpecOf(resource, object)));
    const wanted = isPlaced ? wantedBy(state, object, {}) : undefined;
    const expected = JSON.stringify({ pool: wanted?.pool, dedicated: union(wanted?.dedicated) });
    if (answer?.status !== status || is !== expected)
      return `a new ${what} was answered ${said(answer)}, placed as ${is}, should be ${expected}`;
  }
  const configured = moduleIsOn(configuration, "node-guard") ? modeIn(history.now(GUARDS)) : "Disable";
  const modes = new Set(
    history.clocks(started).flatMap((clock) => weakened(configured, history.now(OVERRIDES), clock)),
  );
  const mode = [...modes].join(" or ");
  // A pod with a node is not placed, so that it lacks what an enforced policy asks for.
  const isRefused = isPlaced && stringAt(state.get("pool"), "spec", "enforcement") === "Refuse";
  const should = mode === "Enable" || isRefused ? 403 : 201;
  if (assigned !== undefined && assigned.status !== should && (modes.size === 1 || isRefused))
    return `a pod on a protected node was answered ${said(assigned)} in mode ${mode}`;
  if (bound !== undefined && bound.status !== (mode === "Enable" ? 403 : 201) && modes.size === 1)
    return `the binding of a pod to a protected node was answered ${said(bound)} in mode ${mode}`;
  if (authorised?.status !== 201 || (authorisedBound !== undefined && authorisedBound.status !== 201))
    return `an authorised pod was answered ${said(authorised)}, its binding to a protected node ${said(authorisedBound)}`;
  const level = labelsOf(store.get("namespaces", SHOP) ?? {})?.[LEVEL_LABEL];
  const isWaived = listAt(history.now(EXCEPTIONS).get("host"), "spec", "namespaces").includes(SHOP);
  const isForbidden = moduleIsOn(configuration, "pod-os") && level === "baseline" && !isWaived;
  return host?.status === (isForbidden ? 403 : 201)
    ? undefined
    : `a pod with hostPID was answered ${said(host)} at level ${level}`;
}

/** The record of who granted an override stays. */
export async function wrongGranter(world: World): Promise<string | undefined> {
  const recorded = () => annotationsOf(world.store.get(OVERRIDES, OVERRIDE) ?? {})?.["usher.dev/granted-by"];
  const by = recorded();
  if (by === undefined || !moduleIsOn(world.configuration, "node-guard")) return undefined;
  const body = { metadata: { annotations: { "usher.dev/granted-by": "ann" } } };
  const path = `/apis/usher.dev/v1alpha1/nodeguardoverrides/${OVERRIDE}`;
  await world.runtime.waitFor(world.send(SRE, "PATCH", path, body, "application/merge-patch+json"), 12_000);
  return recorded() === by ? undefined : `an override was granted by ${by}, and says ${recorded()}`;
}

/** A tenant's pod that is on a protected node since before can't be made to stay there when it is to be evicted. */
export async function wrongRetained(world: World): Promise<string | undefined> {
  const { store, history, configuration, runtime } = world;
  const isOn = moduleIsOn(configuration, "node-guard") && history !== undefined;
  if (!isOn || modeIn(history.now(GUARDS)) !== "Enable" || history.now(OVERRIDES).size > 0) return undefined;
  const isProtected = (name: string | undefined) =>
    labelsOf(store.get("nodes", name ?? "") ?? {})?.[PROTECTED] !== undefined;
  const pod = store
    .list("pods")
    .map(({ object }) => object)
    // One that tolerates everything stays anyway.
    .find(
      (one) =>
        namespaceOf(one) === SHOP &&
        isProtected(stringAt(one, "spec", "nodeName")) &&
        !toleratesAll(podSpecOf("pods", one)),
    );
  if (pod === undefined) return undefined;
  const node = stringAt(pod, "spec", "nodeName") ?? "";
  const evicting = { key: "other.example.com/evict", effect: "NoExecute" };
  const patch = (user: ServerRequest["user"], path: string, spec: JsonObject) =>
    runtime.waitFor(world.send(user, "PATCH", path, { spec }, "application/merge-patch+json"), 12_000);
  await patch(ADMIN, `/api/v1/nodes/${node}`, {
    taints: [...listAt(store.get("nodes", node), "spec", "taints"), evicting],
  });
  await runtime.run(runtime.now + VIEW_MS);
  const answer = await patch(tenant("ann"), `/api/v1/namespaces/${SHOP}/pods/${nameOf(pod)}`, {
    tolerations: [...listAt(pod, "spec", "tolerations"), { ...evicting, operator: "Exists" }],
  });
  return answer?.status === 403
    ? undefined
    : `a tenant who keeps ${nameOf(pod)} on the protected node ${node} was answered ${answer?.status}`;
}

/** The kubelet's next probe fails, and the endpoints follow. */
const GONE_MS = 3_000;

/** While no replica answers, protected nodes and limits stay closed to tenants, and nodes join. */
export async function wrongWithoutReplicas(world: World): Promise<string | undefined> {
  const { store, history, configuration, runtime } = world;
  if (history === undefined) return undefined;
  world.stopReplicas();
  await runtime.run(runtime.now + GONE_MS);
  const node = store.list("nodes").find(({ object }) => labelsOf(object)?.[PROTECTED] !== undefined)?.key;
  const user = tenant("ann");
  const answers = await runtime.waitFor(
    Promise.all([
      world.tryProject("ann", "probe-away"),
      world.perform({ at: 0, call: "join node", name: "edge-away" }),
      ...(node === undefined
        ? []
        : [
            createPod(world, user, podOf({ namespace: SHOP, name: "probe-away", app: "web", node })),
            bindPod(world, { namespace: SHOP, name: "probe-host", node }),
            bindPod(world, { namespace: INFRA, name: "probe-infra", node }),
          ]),
    ]),
    12_000,
  );
  if (runtime.failure !== undefined) return undefined;
  if (answers === undefined) return "without a replica, requests are not answered within 12 s";
  const [project, , assigned, bound, authorised] = answers;
  const isLimited = moduleIsOn(configuration, "project-limit") && store.list(LIMITS).length > 0;
  if (isLimited && project < 400) return `without a replica, a project was answered ${project}`;
  const isProtected = moduleIsOn(configuration, "node-guard") && modeIn(history.now(GUARDS)) === "Enable";
  const isOverridden = history.now(OVERRIDES).size > 0;
  for (const [what, answer] of [
    ["a pod", assigned],
    ["a binding", bound],
  ] as const) {
    const message = stringAt(answer?.body, "message") ?? "";
    // The webhook of Pod Security may refuse as well; it comes last.
    const passes = answer !== undefined && (answer.status < 400 || message.includes("pod-security"));
    if (passes && isProtected && !isOverridden)
      return `without a replica, ${what} to the protected node ${node} was answered ${answer.status}: ${message}`;
  }
  return authorised?.status === 403
    ? `without a replica, an authorised pod was refused: ${stringAt(authorised.body, "message")}`
    : undefined;
}
