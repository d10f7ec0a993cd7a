/** The promises of usher, checked at every write and at the end. */

import type { OwnCertificate } from "../../src/admission/tls/certificate.ts";
import { resourceName } from "../../src/core/decision/request.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import {
  annotationsOf,
  isBeingDeleted,
  labelsOf,
  nameOf,
  namespaceOf,
} from "../../src/core/kubernetes/object.ts";
import { parseServerVersion } from "../../src/core/kubernetes/versions.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { readsOf } from "../../src/core/module/module.ts";
import { kindResource } from "../../src/core/policy/kind.ts";
import { registeredWebhooks } from "../../src/core/registration/index.ts";
import { hasStandby, managedSets } from "../../src/core/registration/managed-objects.ts";
import { OWN_NAMES } from "../../src/core/registration/names.ts";
import { STANDBY } from "../../src/core/registration/webhooks.ts";
import { modules } from "../../src/modules/all.ts";
import { trusts } from "../../src/operator/certificates/certificate-record.ts";
import { standbyOf } from "../../src/operator/webhooks/standby.ts";
import { Admission, type Attributes } from "./api-server/admission.ts";
import { type Resource, servedResources, storedName } from "./api-server/resources.ts";
import { Store, type StoreEvent } from "./api-server/store.ts";
import { assemblyOf, moduleIsOn } from "./configurations.ts";
import { EPOCH, type SimulatedProcess } from "./runtime.ts";
import { DOMAIN, DRY_RUN, FORGED, WATCHDOG } from "./scenario.ts";
import { PLACEMENTS, PROTECTED, tenant } from "./tenants.ts";
import {
  joiningNode,
  LIMITS,
  NAMESPACE,
  type Pod,
  RULES_NAMESPACE,
  requestOf,
  USHER,
  WATCHDOG_USER,
  type World,
} from "./world.ts";

function stored({ store }: Pick<World, "store">, resource: string): JsonObject[] {
  return store.list(resource).map(({ object }) => object);
}

const REQUESTER = "openshift.io/requester";
const HOOKS = "admissionregistration.k8s.io";
export const RULES = "labels.node-labels.openshift.io";
export const OWNERSHIPS = "ownedlabels.node-labels.openshift.io";
export const LEDGERS = "projectusages.usher.dev";

/** API servers ask a webhook for at most this long. */
const WEBHOOK_MS = 5_000;
/** Longer than that no write of a node waits. */
const NODES_MS = 2_000;

const LEASES = "leases.coordination.k8s.io";
const LEASE_MS = 15_000;

/** A leader stops this long before its lease expires, so that writes in flight end. */
const IN_FLIGHT_MS = 5_000;

/** Paths that only the leader writes, but for the label of a standby, which each replica that starts ends. */
const LEADERS_OWN = /\/nodes\/|webhookconfigurations|admissionpolic|\/status(\?|$)|\/replicasets\//;

/** Checks every write from now on; a violation ends the run. */
export function watchInvariants(world: World): void {
  const { store, network, runtime } = world;
  const absence = watchAbsence(world);
  const mayHaveTwoLeaders = watchLease(world);
  watchWrites(world, mayHaveTwoLeaders);
  watchRepairs(world);
  store.subscribe((event) => {
    const why =
      event.resource === "namespaces"
        ? limitExceeded(event, world)
        : event.resource === "nodes"
          ? event.by === USHER
            ? (otherFieldChanged(event) ?? labelWronglyRemoved(event, world))
            : lostAtJoin(event)
          : event.resource.endsWith(HOOKS) && event.by === USHER
            ? (changedWithoutReplica(event, world, absence) ?? slowHook(event))
            : event.resource.endsWith(HOOKS) && event.by === WATCHDOG_USER
              ? openedTooEarly(event, world, absence)
              : event.resource === LEDGERS
                ? (dryRunReserved(event) ?? staleStatus(event))
                : staleStatus(event);
    if (event.resource.endsWith(HOOKS))
      void refusedVitalWrite(event, store).then((why) => why === undefined || runtime.fail(why));
    if (why !== undefined) runtime.fail(`${why} (revision ${event.revision})`);
  });
  const led = new Map<SimulatedProcess, number>();
  network.onSent = (process, method, path) => {
    const pod = [...world.pods.values()].find((one) => one.process === process);
    if (pod === undefined) return;
    if (isLeading(pod)) led.set(process, runtime.now);
    const isLeaders = LEADERS_OWN.test(path) && (method === "DELETE" || path.includes("fieldManager=usher"));
    if (method !== "GET" && isLeaders && runtime.now - (led.get(process) ?? -LEASE_MS) > IN_FLIGHT_MS)
      runtime.fail(`${process.name} writes ${path} and does not lead`);
  };
  const before = network.onProcessed;
  network.onProcessed = (processed) => {
    const { process, method, path } = processed;
    // Only the leader writes these.
    if (
      !mayHaveTwoLeaders() &&
      method !== "GET" &&
      (method === "DELETE" || /fieldManager=usher(&|$)/.test(path)) &&
      /\/nodes\/|webhookconfigurations\/|admissionpolic/.test(path)
    )
      for (const pod of world.pods.values())
        if (pod.name !== process.name && pod.process.alive && isLeading(pod))
          runtime.fail(`${process.name} writes ${path} while ${pod.name} leads`);
    before(processed);
  };
}

/**
 * Whether there may be two leaders: the lease was deleted, and a replica that had never read it created it. Its former
 * holder notices at its next renewal.
 */
function watchLease({ network, runtime }: World): () => boolean {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
  /** The processes that have read it. */
  const known = new Set<SimulatedProcess>();
  let existed = false;
  let until = Number.NEGATIVE_INFINITY;
  const before = network.onProcessed;
  network.onProcessed = (processed) => {
    const { process, path: asked, response } = processed;
    if (asked.startsWith(path) && response.status < 300) {
      if (response.status === 201 && existed && !known.has(process)) until = runtime.now + LEASE_MS;
      existed = true;
      // It knows nothing of a lost answer.
      const { delayMs, silent, losesAnswers, unsure } = network.link(process.name);
      if (delayMs === 0 && !silent && !losesAnswers && !unsure) known.add(process);
    }
    before(processed);
  };
  return () => runtime.now < until;
}

/** Objects by which usher counts and reports: each is written on its own schedule. */
const REPORTS = /^(events(\.events\.k8s\.io)?|leases\.coordination\.k8s\.io)$/;

/** Writes without a cause: one event may take several, such as that of labels and, after a grace period, of taints. */
const SPARE_WRITES = 3;

/**
 * No object is written more often than its history explains: once for each change by others of the object itself or of
 * anything but other nodes, each start of a process and each new leader, and a few times more. Two leaders, of which
 * one has an old view, write in turn.
 */
function watchWrites({ store, runtime, pods }: World, mayHaveTwoLeaders: () => boolean): void {
  const written = new Map<string, number>();
  const explained = new Map<string, number>();
  let ofAll = 0;
  let holder: Json | undefined;
  const count = (map: Map<string, number>, key: string): number => {
    const sum = (map.get(key) ?? 0) + 1;
    map.set(key, sum);
    return sum;
  };
  const processes = new Set<object>();
  store.subscribe(({ resource, key, by, object }) => {
    for (const { process } of pods.values()) {
      if (!processes.has(process)) ofAll += 1;
      processes.add(process);
    }
    const next = resource === LEASES ? at(object, "spec", "holderIdentity") : holder;
    if (next !== holder) ofAll += 1;
    holder = next;
    if (REPORTS.test(resource)) return;
    const id = `${resource} ${key}`;
    if (pods.size === 0) return;
    if (by !== USHER) {
      if (resource === "nodes") count(explained, id);
      else ofAll += 1;
      return;
    }
    if (mayHaveTwoLeaders()) count(explained, id);
    const causes = ofAll + (explained.get(id) ?? 0);
    const writes = count(written, id);
    if (writes > causes + SPARE_WRITES)
      runtime.fail(`usher writes ${id} for the ${writes}th time, and ${causes} events explain it`);
  });
}

/** Drift is repaired two workloads at a time, every ten seconds by a clock that may be fast. */
const REPAIRS_MS = 9_000;

/** Each repair may roll out a workload: their rate is bounded, for each time of leading. */
function watchRepairs({ network, runtime, store }: World): void {
  const repairs = new Map<SimulatedProcess, number[]>();
  store.subscribe(({ resource, type, key }) => {
    // A leader whose lease was deleted begins again.
    if (resource === LEASES && type === "ADDED" && key.startsWith(NAMESPACE)) repairs.clear();
  });
  const before = network.onProcessed;
  network.onProcessed = (processed) => {
    const { process, method, path, response } = processed;
    if (method === "PATCH" && path.includes("/replicasets/") && response.status < 300) {
      const times = repairs.get(process) ?? [];
      repairs.set(process, [...times, runtime.now]);
      const since = runtime.now - (times.at(-2) ?? -REPAIRS_MS);
      if (since < REPAIRS_MS) runtime.fail(`${process.name} repairs three workloads in ${since / 1_000} s`);
    }
    before(processed);
  };
}

/** The watchdog opens after 40 s of absence; a crash costs it a tenth of that, and a look takes 2 s. */
const OPENED_MS = 55_000;

/** The watchdog begins a standby after 15 s of absence. */
const FALLBACK_AFTER_MS = 15_000;
const STANDBY_MS = FALLBACK_AFTER_MS + 5_000;

/** A leader changes entries when it has seen a ready replica, at most this long ago: the longest fault. */
const SEEN_READY_MS = 40_000;

/**
 * While no replica is ready, entries change in nothing but their address, or become fail-open; none is added, and none is
 * removed that has a hook of the stored policies. `absence`: for how long none was.
 */
function changedWithoutReplica(
  { type, object, previous, key }: StoreEvent,
  world: World,
  absence: () => number,
): string | undefined {
  if (type === "DELETED" || absence() <= SEEN_READY_MS) return undefined;
  const entries = (configuration: JsonObject | undefined) =>
    new Map(
      listAt(configuration, "webhooks").map((entry) => [stringAt(entry, "name") ?? "", entry as JsonObject]),
    );
  const [before, after] = [entries(previous), entries(object)];
  const rest = (entry: JsonObject | undefined) =>
    JSON.stringify({ ...entry, clientConfig: null, failurePolicy: null });
  const isClosed = (entry: JsonObject | undefined) => entry?.["failurePolicy"] !== "Ignore";
  const changed = [...after].find(([name, entry]) => {
    const was = before.get(name);
    return was === undefined || rest(was) !== rest(entry) || (isClosed(entry) && !isClosed(was));
  })?.[0];
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const due = removed.length === 0 ? [] : dueWebhooks(storedAssembly(world));
  const hooks = new Set(due.flatMap((one) => listAt(one, "webhooks").flatMap(hookNames)));
  const wrong = changed ?? removed.find((name) => hookNames({ name }).some((one) => hooks.has(one)));
  return wrong === undefined
    ? undefined
    : `${key} changes or removes ${wrong}, and no replica was ready for ${absence() / 1_000} s`;
}

/** Every request of the cluster waits for a webhook that does not answer, those about nodes above all. */
function slowHook({ type, object, key }: StoreEvent): string | undefined {
  if (type === "DELETED") return undefined;
  for (const entry of listAt(object, "webhooks")) {
    const ofNodes = listAt(entry, "rules").some((rule) =>
      listAt(rule, "resources").some((one) => one === "nodes"),
    );
    const most = ofNodes ? NODES_MS : WEBHOOK_MS;
    if (Number(at(entry, "timeoutSeconds") ?? 10) * 1_000 > most)
      return `API servers wait for ${stringAt(entry, "name")} of ${key} for more than ${most / 1_000} s`;
  }
  return undefined;
}

/** The watchdog looks every two seconds, by a clock that may be fast. */
const EARLY_MS = 5_000;

/** The watchdog opens no hook before no replica was ready for long enough. It may count a time in which it could not look. */
function openedTooEarly(
  { object, previous, key }: StoreEvent,
  { configuration }: World,
  absence: () => number,
): string | undefined {
  const closed = (one: JsonObject | undefined) =>
    listAt(one, "webhooks").filter((entry) => stringAt(entry, "failurePolicy") !== "Ignore").length;
  const due = (configuration.watchdog?.openAfterSeconds ?? 300) * 1_000;
  return closed(object) < closed(previous) && absence() < due - EARLY_MS
    ? `the watchdog opens ${key}, and no replica was ready for ${absence() / 1_000} s only`
    : undefined;
}

/** A project that is only tried takes no place, and none that no API server was asked for. */
function dryRunReserved({ object, key }: StoreEvent): string | undefined {
  const name = listAt(object, "spec", "entries")
    .map((entry) => stringAt(entry, "name") ?? "")
    .find((one) => one.startsWith(DRY_RUN) || one.startsWith(FORGED));
  return name === undefined
    ? undefined
    : `the ledger ${key} has a place for ${name}, which was a dry run, or a review of no API server`;
}

/**
 * While no replica is ready, hooks that may be opened do not refuse for longer than promised. The result is for how
 * long none has been ready.
 */
function watchAbsence(world: World): () => number {
  const { store, runtime, scenario } = world;
  // The watchdog counts only what it sees.
  const blindMs = scenario.faults.reduce(
    (sum, fault) => sum + (fault.process === WATCHDOG && "forMs" in fault ? fault.forMs : 0),
    0,
  );
  let standingIn = 0;
  let hasStoodIn = false;
  let since: number | undefined = runtime.now;
  store.subscribe(({ resource, object }) => {
    if (!resource.startsWith("endpointslices")) return;
    const isReady = listAt(object, "endpoints").some((one) => at(one, "conditions", "ready") === true);
    since = isReady ? undefined : (since ?? runtime.now);
  });
  const look = (): void => {
    for (const kind of ["mutating", "validating"]) {
      const live = store.get(`${kind}webhookconfigurations.${HOOKS}`, OWN_NAMES.webhooks);
      const closed = listAt(live, "webhooks").find(
        (entry) => mayBeOpened(entry, world) && stringAt(entry, "failurePolicy") === "Fail",
      );
      if (closed !== undefined && since !== undefined && runtime.now - since > OPENED_MS + blindMs)
        runtime.fail(
          `${stringAt(closed, "name")} is fail-closed, and no replica was ready for ${(runtime.now - since) / 1_000} s`,
        );
    }
    const standby = standbyOf(store.get(`mutatingwebhookconfigurations.${HOOKS}`, OWN_NAMES.webhooks));
    const forMs = since === undefined ? 0 : runtime.now - since;
    standingIn = standby === STANDBY.active ? standingIn + 1_000 : 0;
    // A replica that starts ends it before it is ready.
    hasStoodIn = since !== undefined && (hasStoodIn || standingIn > 0);
    if (hasStandIn(world) && standby !== undefined)
      if (forMs > STANDBY_MS + blindMs && !hasStoodIn)
        runtime.fail(`no policy stands in, and no replica was ready for ${forMs / 1_000} s`);
      else if (standingIn > Math.max(0, forMs - FALLBACK_AFTER_MS) + EARLY_MS)
        runtime.fail(`policies stand in, and a replica was ready ${forMs / 1_000} s ago`);
    runtime.schedule(1_000, look);
  };
  runtime.schedule(1_000, look);
  return () => (since === undefined ? 0 : runtime.now - since);
}

/** Whether policies of the API server stand in for placement while no replica is ready. */
function hasStandIn({ configuration }: World): boolean {
  const settings = at((configuration.modules ?? {}) as JsonObject, "placement");
  return moduleIsOn(configuration, "placement") && at(settings, "fallback") === "Compiled";
}

/** Limits and protected nodes stay closed, unless the configuration says otherwise. */
function mayBeOpened(entry: Json, { configuration }: World): boolean {
  const open = configuration.watchdog?.open ?? [];
  const name = stringAt(entry, "name") ?? "";
  return ["project-limit", "node-guard"].every((module) => !name.startsWith(module) || open.includes(module));
}

export function isLeading({ process, live }: Pod): boolean {
  return live !== undefined && process.run(() => live.controllerStats?.().leading === true);
}

/** The number that the limit bounds: two terminating projects do not count. */
function countOf(world: World, user: string, counts: (project: JsonObject) => boolean = () => true): number {
  const own = stored(world, "namespaces").filter(
    (one) => stringAt(one, "metadata", "annotations", REQUESTER) === user && counts(one),
  );
  const terminating = own.filter((one) => stringAt(one, "status", "phase") === "Terminating").length;
  return own.length - Math.min(2, terminating);
}

/** Only projects that usher was asked about count here: by an edited or opened webhook others come beside them. */
function limitExceeded({ type, object }: StoreEvent, world: World): string | undefined {
  if (type !== "ADDED") return undefined;
  const user = stringAt(object, "metadata", "annotations", REQUESTER);
  const admitted = world.admitted.get(requestOf(object));
  const now = world.runtime.now;
  // An API server ends a request after 34 s.
  if (user === undefined || admitted === undefined || now - admitted > 35_000) return undefined;
  world.counted.add(requestOf(object));
  const oldest = world.oldestView(admitted) - WEBHOOK_MS;
  const inForce = world.limits.filter((_, i) => (world.limits[i + 1]?.at ?? now) >= oldest);
  const most = Math.max(...inForce.map(({ max }) => max));
  const count = countOf(world, user, (one) => world.counted.has(requestOf(one)));
  return count > most ? `${user} has ${count} projects of ${most}` : undefined;
}

/** A project is refused only if places that are stored are as many as some limit that a replica may still see. */
export function wronglyLimited(
  world: World,
  user: string,
  started: number,
  message: string,
): string | undefined {
  const { history, limits, runtime } = world;
  if (history === undefined || !message.includes("cannot create more than")) return undefined;
  const oldest = world.oldestView(started);
  const least = Math.min(
    ...limits.filter((_, i) => (limits[i + 1]?.at ?? runtime.now) >= oldest).map(({ max }) => max),
  );
  const entries = history
    .since(LEDGERS, started)
    .flatMap((state) => listAt(state.get(`u-${user}`), "spec", "entries"))
    .map((entry) => `${stringAt(entry, "name")} ${stringAt(entry, "uid")}`);
  const projects = history
    .since("namespaces", oldest)
    .flatMap((state) => [...state.values()])
    .filter((one) => stringAt(one, "metadata", "annotations", REQUESTER) === user)
    .map((one) => `${nameOf(one)} ${stringAt(one, "metadata", "uid")}`);
  const places = new Set([...entries, ...projects]).size;
  return places >= least ? undefined : `${user} was refused with ${places} places of ${least}: ${message}`;
}

/** A path that a call without an answer may have shown is replaced. */
export function exposedPath({ store, exposed }: World): string | undefined {
  for (const kind of ["mutating", "validating"])
    for (const entry of listAt(
      store.get(`${kind}webhookconfigurations.${HOOKS}`, OWN_NAMES.webhooks),
      "webhooks",
    )) {
      const path = stringAt(entry, "clientConfig", "service", "path") ?? "";
      if (exposed.has(path.split("/")[1] ?? ""))
        return `${stringAt(entry, "name")} still has a path by which a call failed`;
    }
  return undefined;
}

/** The parts of a node that are not usher's. */
function othersPart(node: JsonObject): JsonObject {
  const isOwn = (name: string): boolean => name.startsWith(`${DOMAIN}/`) || name.startsWith("usher.dev/");
  return {
    labels: Object.fromEntries(Object.entries(labelsOf(node) ?? {}).filter(([name]) => !isOwn(name))),
    annotations: Object.fromEntries(
      Object.entries(annotationsOf(node) ?? {}).filter(([name]) => !isOwn(name)),
    ),
    taints: listAt(node, "spec", "taints").filter((one) => !isOwn(stringAt(one, "key") ?? "")),
    spec: { ...(isObject(node["spec"]) ? node["spec"] : {}), taints: undefined },
  };
}

/** A node that joins keeps everything that its kubelet has sent. */
function lostAtJoin({ type, object, key }: StoreEvent): string | undefined {
  if (type !== "ADDED") return undefined;
  const [sent, is] = [othersPart(joiningNode(key)), othersPart(object)];
  return equal(sent, is)
    ? undefined
    : `usher changed what node ${key} joins with: ${JSON.stringify(sent)} → ${JSON.stringify(is)}`;
}

/** Usher changes only its rules' labels and taints, and its own annotations. */
function otherFieldChanged({ type, object, previous, key }: StoreEvent): string | undefined {
  if (type !== "MODIFIED" || previous === undefined) return undefined;
  const [was, is] = [previous, object].map((one) => JSON.stringify([othersPart(one), one["status"] ?? null]));
  return was === is ? undefined : `usher changed fields of others on node ${key}: ${was} → ${is}`;
}

const created = (object: JsonObject): number =>
  Date.parse(stringAt(object, "metadata", "creationTimestamp") ?? "");

/** A label is removed only if an OwnedLabels has owned it for the grace period, and no rule sets it. */
function labelWronglyRemoved({ type, object, previous, key }: StoreEvent, world: World): string | undefined {
  if (type !== "MODIFIED" || previous === undefined) return undefined;
  const oldest = world.oldestView(world.runtime.now);
  for (const label of Object.keys(labelsOf(previous) ?? {})) {
    if (labelsOf(object)?.[label] !== undefined) continue;
    const what = `the label ${label} of node ${key}`;
    const owners = world.history?.since(OWNERSHIPS, oldest) ?? [];
    const isOwned = owners.some((state) =>
      [...state.values()].some(
        (one) => created(one) - EPOCH <= world.runtime.now - LEAST_GRACE_MS || isSkewed(world),
      ),
    );
    if (!isOwned) return `usher removed ${what}, which nothing owns`;
    // A new rule may not be in the view yet.
    for (const rule of rulesOf(world))
      if (label in rule.labels && rule.matches(key) && rule.created < EPOCH + oldest)
        return `usher removed ${what}, which a rule sets`;
  }
  return undefined;
}

/** The grace period is five seconds, by a clock that may be fast; times of creation are in whole seconds. */
const LEAST_GRACE_MS = 3_500;

/** By a wall clock that is ahead, an object looks older than it is. */
function isSkewed({ pods, scenario }: World): boolean {
  return (
    scenario.faults.some(({ fault }) => fault === "jump") ||
    [...pods.values()].some(({ process }) => process.wallOffset !== 0)
  );
}

/** Namespaces in which everything must go on while no replica answers: the control plane's, and usher's own. */
const VITAL_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease", NAMESPACE];

/** A protected node of the control plane. */
const VITAL_NODE = "core-1";

/** The policies of the API server that protect nodes while no replica answers, and their bindings. */
export const POLICIES = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"].map(
  (one) => `${one}.${HOOKS}`,
);

/** Kinds by which the control plane works, in its own namespaces. */
const VITAL_KINDS = [
  ...["pods", "configmaps", "secrets", "serviceaccounts", "services", "endpoints", "persistentvolumeclaims"],
  ...["deployments.apps", "daemonsets.apps", "replicasets.apps", "statefulsets.apps"],
  ...[
    "jobs.batch",
    "cronjobs.batch",
    "endpointslices.discovery.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
  ],
];

/** Writes that must succeed while no replica answers, because no cluster recovers without them. */
function vitalWrites(): Attributes[] {
  const served = servedResources(new Store(), 0);
  const write = (name: string, namespace: string, object: string, username: string, subresource = "") => {
    const resource = served.find((one) => storedName(one) === name) as Resource;
    const { group, version, kind } = resource;
    const labels = { "kubernetes.io/metadata.name": object };
    const template = { metadata: {}, spec: { containers: [{ name: "c", image: "c" }] } };
    const stored: JsonObject = {
      apiVersion: group === "" ? version : `${group}/${version}`,
      kind,
      metadata: {
        name: object,
        ...(namespace === "" ? {} : { namespace }),
        ...(name === "namespaces" ? { labels } : {}),
      },
      spec: name === "pods" ? { ...template.spec, nodeName: VITAL_NODE } : { template },
    };
    const user = { username, groups: ["system:authenticated"] };
    const common = { resource, subresource, kind, namespace, name: object, options: {}, dryRun: false, user };
    return (["CREATE", "UPDATE", "DELETE"] as const).map((operation) => ({
      ...common,
      operation,
      object: operation === "DELETE" ? undefined : stored,
      oldObject: operation === "CREATE" ? undefined : stored,
    }));
  };
  const bindings = (namespace: string) =>
    write("pods", namespace, "vital", "system:kube-scheduler", "binding")
      .filter(({ operation }) => operation === "CREATE")
      .map((one) => ({
        ...one,
        kind: "Binding",
        object: {
          apiVersion: "v1",
          kind: "Binding",
          metadata: { name: one.name, namespace },
          target: { apiVersion: "v1", kind: "Node", name: VITAL_NODE },
        },
      }));
  const manager = "system:kube-controller-manager";
  return [
    ...["system:node:edge-1", manager, "admin"].flatMap((user) => [
      ...write("nodes", "", "edge-1", user),
      ...write("nodes", "", "edge-1", user, "status"),
      ...write("certificatesigningrequests.certificates.k8s.io", "", "csr-1", user),
      // Of nodes and of leaders, wherever they are.
      ...["kube-node-lease", "default"].flatMap((one) => write(LEASES, one, "edge-1", user)),
    ]),
    ...VITAL_NAMESPACES.flatMap((namespace) => [
      ...write("namespaces", namespace, namespace, manager),
      ...VITAL_KINDS.flatMap((kind) => write(kind, namespace, "vital", manager)),
      ...write("pods", namespace, "vital", manager, "status"),
      ...bindings(namespace),
    ]),
  ];
}

/** Objects that were found to let vital writes pass, without what does not matter for it. */
const harmless = new Set<string>();

/** No fail-closed hook and no policy may stop the control plane: they are asked about vital writes, and no replica answers. */
async function refusedVitalWrite(
  { type, object, resource, key }: StoreEvent,
  store: Store,
): Promise<string | undefined> {
  if (type === "DELETED") return undefined;
  const isHook = resource.includes("webhook");
  // A policy counts with its binding.
  const asked = (one: string): readonly JsonObject[] =>
    one === resource ? [object] : isHook ? [] : stored({ store }, one);
  const text = JSON.stringify(
    isHook
      ? listAt(object, "webhooks").map((entry) => ({ ...(entry as JsonObject), clientConfig: null }))
      : POLICIES.flatMap((one) => asked(one).map(({ spec = null }) => spec)),
  );
  if (harmless.has(text)) return undefined;
  const admission = new Admission({
    view: {
      list: asked,
      namespace: (name) => ({ metadata: { name, labels: { "kubernetes.io/metadata.name": name } } }),
      // The control plane runs on protected nodes.
      ofKind: () => [{ metadata: { name: VITAL_NODE, labels: { [PROTECTED]: "" } } }],
    },
    call: async () => ({ failed: "no replica answers" }),
    schedule: () => undefined,
    uid: () => "uid",
  });
  for (const one of vitalWrites()) {
    const { operation, subresource, namespace, name } = one;
    const what = [storedName(one.resource), subresource, `${namespace}/${name}`].filter(Boolean).join(" ");
    try {
      await (resource.startsWith("mutating") ? admission.mutate(one, []) : admission.validate(one, []));
    } catch (error) {
      return `${key} refuses ${operation} of ${what} while no replica answers: ${error}`;
    }
  }
  harmless.add(text);
  return undefined;
}

// ——— at the end ———

interface StoredRule {
  readonly name: string;
  readonly matched: Json | undefined;
  readonly labels: JsonObject;
  readonly taints: readonly Json[];
  readonly created: number;
  readonly matches: (node: string) => boolean;
}

function rulesOf(world: World): StoredRule[] {
  return stored(world, RULES).map((object) => ({
    name: nameOf(object),
    matched: at(object, "status", "matchedNodes"),
    labels: (at(object, "spec", "labels") ?? {}) as JsonObject,
    taints: listAt(object, "spec", "taints"),
    created: created(object),
    matches: (node) =>
      listAt(object, "spec", "nodeNamePatterns").some((one) => new RegExp(`^(${one})$`).test(node)),
  }));
}

/** Each node has what the rules say, and nothing that they do not cover. */
export function wrongNode(world: World): string | undefined {
  if (!moduleIsOn(world.configuration, "node-labels")) return keptStartupTaint(world);
  const rules = rulesOf(world);
  const owned = world.store.get(OWNERSHIPS, `${RULES_NAMESPACE}/sim`) !== undefined;
  for (const node of stored(world, "nodes")) {
    const name = nameOf(node);
    const mine = rules.filter((rule) => rule.matches(name));
    const wanted = Object.assign({}, ...mine.map((rule) => rule.labels)) as JsonObject;
    for (const [key, value] of Object.entries(wanted))
      if (labelsOf(node)?.[key] !== value)
        return `node ${name} has ${key}=${labelsOf(node)?.[key]}, a rule says ${value}`;
    for (const key of Object.keys(labelsOf(node) ?? {}))
      if (owned && key.startsWith(`${DOMAIN}/`) && wanted[key] === undefined)
        return `node ${name} keeps the owned label ${key}`;
    const taintOf = (one: Json) =>
      `${stringAt(one, "key")}=${stringAt(one, "value") ?? ""}:${stringAt(one, "effect")}`;
    const has = listAt(node, "spec", "taints").map(taintOf);
    if (hasStartupTaint(node)) return `node ${name} keeps its startup taint`;
    const due = mine.flatMap((rule) => rule.taints.map(taintOf));
    const missing = due.find((one) => !has.includes(one));
    if (missing !== undefined) return `node ${name} lacks the taint ${missing}`;
    const left = has.find((one) => one.startsWith(`${DOMAIN}/`) && !due.includes(one));
    if (left !== undefined) return `node ${name} keeps the taint ${left}`;
  }
  return undefined;
}

function hasStartupTaint(node: JsonObject): boolean {
  return listAt(node, "spec", "taints").some((one) => stringAt(one, "key") === "usher.dev/starting");
}

/** While node-labels is off, labels and taints stay; `usher install` has freed the nodes that were starting. */
function keptStartupTaint(world: World): string | undefined {
  // Times of creation are in whole seconds.
  const kept = stored(world, "nodes").find(
    (node) => hasStartupTaint(node) && created(node) < EPOCH + world.rolledOut - 1_000,
  );
  return kept === undefined
    ? undefined
    : `node ${nameOf(kept)} keeps its startup taint, and its module is off`;
}

/** The status of each rule counts the nodes that exist. */
export function wrongStatus(world: World): string | undefined {
  if (!moduleIsOn(world.configuration, "node-labels")) return undefined;
  const nodes = stored(world, "nodes").map(nameOf);
  for (const { name, matches, matched } of rulesOf(world)) {
    const count = nodes.filter(matches).length;
    if (matched !== count) return `the status of rule ${name} counts ${matched} nodes of ${count}`;
  }
  return undefined;
}

/** Of the stored configuration and policies. */
function storedAssembly(world: World): Assembly {
  const assembly = assemblyOf(world.configuration);
  const version = parseServerVersion({ major: "1", minor: "37", gitVersion: "v1.37.0" });
  if (version !== undefined) assembly.observeServerVersion(version);
  const resources = [
    ...assembly.modules.flatMap(({ kinds }) => kinds.map(kindResource)),
    ...readsOf(assembly).map(resourceName),
  ];
  for (const resource of new Set(resources))
    assembly.apply(
      stored(world, resource).map((object) => ({
        resource,
        namespace: namespaceOf(object),
        name: nameOf(object),
        object,
      })),
    );
  return assembly;
}

function dueWebhooks(assembly: Assembly): readonly JsonObject[] {
  return registeredWebhooks(assembly, {
    endpoint: { service: { name: "usher", namespace: NAMESPACE, port: 443 } },
    standby: hasStandby(assembly),
  }).objects;
}

/** The hooks of an entry, by its name: `placement.pod-os.usher.dev`. */
function hookNames(entry: Json): string[] {
  return (stringAt(entry, "name") ?? "").split(".").slice(0, -2);
}

/** Both webhook configurations are those of the stored policies. */
export function wrongWebhooks(world: World): string | undefined {
  const assembly = storedAssembly(world);
  const wrong = wrongManaged(world, assembly) ?? openHook(world);
  if (wrong !== undefined) return wrong;
  const objects = dueWebhooks(assembly);
  const essence = (object: Json | undefined): Json =>
    listAt(object, "webhooks").map((entry) => [
      at(entry, "name") ?? null,
      at(entry, "failurePolicy") ?? null,
      at(entry, "rules") ?? null,
      at(entry, "timeoutSeconds") ?? null,
      at(entry, "namespaceSelector") ?? null,
      at(entry, "matchConditions") ?? null,
    ]);
  for (const [i, kind] of ["mutating", "validating"].entries()) {
    const live = world.store.get(`${kind}webhookconfigurations.${HOOKS}`, OWN_NAMES.webhooks);
    const [is, should] = [essence(live), essence(objects[i])];
    if (!equal(is, should))
      return `the ${kind} webhooks are ${JSON.stringify(is)}, should be ${JSON.stringify(should)}`;
    for (const entry of listAt(live, "webhooks"))
      for (const pod of world.pods.values()) {
        const pair = pod.live?.certificate?.current as OwnCertificate | undefined;
        if (pair !== undefined && !trusts(stringAt(entry, "clientConfig", "caBundle"), pair.ca))
          return `${pod.name} serves a certificate that is not in the bundle of ${stringAt(entry, "name")}`;
      }
  }
  return undefined;
}

/** By the objects alone: hooks that must be fail-closed, and are not. */
function openHook({ store, configuration }: World): string | undefined {
  const closed = ["mutating", "validating"].flatMap((kind) =>
    listAt(store.get(`${kind}webhookconfigurations.${HOOKS}`, OWN_NAMES.webhooks), "webhooks").flatMap(
      (entry) => (at(entry, "failurePolicy") === "Fail" ? [stringAt(entry, "name") ?? ""] : []),
    ),
  );
  const isLimited = moduleIsOn(configuration, "project-limit") && stored({ store }, LIMITS).length > 0;
  const isClosed = stored({ store }, PLACEMENTS).some((one) => at(one, "spec", "failurePolicy") === "Fail");
  const due = [
    ...(isLimited ? ["project-limit"] : []),
    ...(isClosed && moduleIsOn(configuration, "placement") ? ["placement"] : []),
  ];
  const open = due.find((module) => !closed.some((name) => name.startsWith(module)));
  return open === undefined ? undefined : `no webhook of ${open} is fail-closed`;
}

/** The objects that modules manage are those of the stored policies. */
function wrongManaged(world: World, assembly: Assembly): string | undefined {
  const wanted = managedSets(assembly, assembly.view, EPOCH + world.runtime.now).flatMap(({ desired }) =>
    desired.map((one) => `${one["kind"]} ${nameOf(one)}`),
  );
  const resources = new Set(
    modules.flatMap(({ managed }) => (managed?.resources ?? []).map((one) => resourceName(one))),
  );
  const is = [...resources].flatMap((resource) =>
    stored(world, resource).map((one) => `${one["kind"]} ${nameOf(one)}`),
  );
  return equal(is.toSorted(), wanted.toSorted())
    ? undefined
    : `modules manage ${is.join(", ") || "nothing"}, should be ${wanted.join(", ") || "nothing"}`;
}

/** A status is written for the generation that it was computed from, and for no earlier one. */
function staleStatus({ type, resource, object, previous, key, by }: StoreEvent): string | undefined {
  if (type !== "MODIFIED" || by !== USHER) return undefined;
  const observed = at(object, "status", "observedGeneration");
  if (observed === undefined || equal(at(previous, "status") ?? null, at(object, "status") ?? null))
    return undefined;
  const generation = at(object, "metadata", "generation");
  return observed === generation
    ? undefined
    : `the status of ${resource} ${key} was written for generation ${observed}, and it is ${generation}`;
}

/** Each reservation has become a project. */
export function wrongLedger(world: World): string | undefined {
  if (!moduleIsOn(world.configuration, "project-limit")) return undefined;
  for (const ledger of stored(world, LEDGERS))
    for (const entry of listAt(ledger, "spec", "entries")) {
      const name = stringAt(entry, "name") ?? "";
      const project = world.store.get("namespaces", name);
      if (project === undefined || stringAt(project, "metadata", "uid") !== stringAt(entry, "uid"))
        return `the ledger ${nameOf(ledger)} keeps a place for ${name}, which does not exist`;
    }
  const places = new Set(
    stored(world, LEDGERS).flatMap((one) =>
      listAt(one, "spec", "entries").map((entry) => stringAt(entry, "uid")),
    ),
  );
  const lost = stored(world, "namespaces").find(
    (one) => world.counted.has(requestOf(one)) && !places.has(stringAt(one, "metadata", "uid")),
  );
  if (lost !== undefined) return `no ledger has a place for ${nameOf(lost)}, which usher admitted`;
  return undefined;
}

export function wrongLeader(world: World): string | undefined {
  const leaders = [...world.pods.values()].filter(isLeading).map(({ name }) => name);
  const holder = stringAt(
    world.store.get(LEASES, `${NAMESPACE}/${OWN_NAMES.lease}`),
    "spec",
    "holderIdentity",
  );
  if (leaders.length !== 1) return `leaders: ${leaders.join(", ") || "none"}; the lease names ${holder}`;
  return leaders[0] === holder ? undefined : `${leaders[0]} leads, and the lease names ${holder}`;
}

export function notReady(world: World): string | undefined {
  const pod = [...world.pods.values()].find((one) => !one.isTerminating && !world.isReady(one));
  return pod === undefined ? undefined : `${pod.name} is not ready`;
}

/** A user below the limit gets a project, and no other does. */
export async function wrongAnswer(world: World, user: string): Promise<string | undefined> {
  const max = world.limits.at(-1)?.max ?? 0;
  const count = countOf(world, user);
  const status = await world.tryProject(user, `probe-${user}`);
  const expected = count < max || !moduleIsOn(world.configuration, "project-limit") ? 201 : 403;
  return status === expected
    ? undefined
    : `${user} has ${count} projects of ${max}, and the next one was answered ${status}`;
}

/** A node that joins has the labels and taints of its rules from its first version on. */
export async function wrongNewNode(world: World): Promise<string | undefined> {
  const name = "edge-probe";
  await world.runtime.waitFor(world.perform({ at: 0, call: "join node", name }), 12_000);
  if (!moduleIsOn(world.configuration, "node-labels") || world.runtime.failure !== undefined)
    return undefined;
  const [node] = world.history?.versions("nodes", name) ?? [];
  if (node === undefined) return `node ${name} did not join`;
  for (const rule of rulesOf(world).filter((one) => one.matches(name))) {
    for (const [key, value] of Object.entries(rule.labels))
      if (labelsOf(node)?.[key] !== value) return `node ${name} joins without the label ${key}=${value}`;
    const missing = rule.taints.find(
      (taint) =>
        !listAt(node, "spec", "taints").some((one) => stringAt(one, "key") === stringAt(taint, "key")),
    );
    if (missing !== undefined) return `node ${name} joins without the taint ${JSON.stringify(missing)}`;
  }
  return undefined;
}

/** The requester of a project is its creator, and stays it. */
export async function wrongRequester(world: World): Promise<string | undefined> {
  const project = stored(world, "namespaces").find(
    (one) => stringAt(one, "metadata", "annotations", REQUESTER) === "ann" && !isBeingDeleted(one),
  );
  if (project === undefined || !moduleIsOn(world.configuration, "project-limit")) return undefined;
  const name = nameOf(project);
  const body = { metadata: { annotations: { [REQUESTER]: "bob" } } };
  const path = `/api/v1/namespaces/${name}`;
  const sent = world.send(tenant("ann"), "PATCH", path, body, "application/merge-patch+json");
  const status = (await world.runtime.waitFor(sent, 12_000))?.status;
  return status === 403 ? undefined : `a tenant who gives the project ${name} away was answered ${status}`;
}
