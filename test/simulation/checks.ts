/** The promises of usher, checked at every write and at the end. */

import type { OwnCertificate } from "../../src/admission/tls/certificate.ts";
import { resourceName } from "../../src/core/decision/request.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { annotationsOf, labelsOf, nameOf, namespaceOf } from "../../src/core/kubernetes/object.ts";
import { parseServerVersion } from "../../src/core/kubernetes/versions.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { readsOf } from "../../src/core/module/module.ts";
import { kindResource } from "../../src/core/policy/kind.ts";
import { registeredWebhooks } from "../../src/core/registration/index.ts";
import { hasStandby, managedSets } from "../../src/core/registration/managed-objects.ts";
import { OWN_NAMES } from "../../src/core/registration/names.ts";
import { OPENABLE_ANNOTATION } from "../../src/core/registration/webhooks.ts";
import { modules } from "../../src/modules/all.ts";
import { trusts } from "../../src/operator/certificates/certificate-record.ts";
import { Admission, type Attributes } from "./api-server/admission.ts";
import { type Resource, servedResources, storedName } from "./api-server/resources.ts";
import { Store, type StoreEvent } from "./api-server/store.ts";
import { assemblyOf } from "./configurations.ts";
import { EPOCH } from "./runtime.ts";
import { DOMAIN } from "./scenario.ts";
import { NAMESPACE, type Pod, RULES_NAMESPACE, USHER, type World } from "./world.ts";

function stored({ store }: World, resource: string): JsonObject[] {
  return store.list(resource).map(({ object }) => object);
}

const REQUESTER = "openshift.io/requester";
const HOOKS = "admissionregistration.k8s.io";
const RULES = "labels.node-labels.openshift.io";
const OWNERSHIPS = "ownedlabels.node-labels.openshift.io";
const LEDGERS = "projectusages.usher.dev";

/** For how long a replica may still decide by an old limit: longer than any fault plus the detection of a dead watch. */
const OLD_VIEW_MS = 60_000;

const LEASES = "leases.coordination.k8s.io";
const LEASE_MS = 15_000;

/** Checks every write from now on; a violation ends the run. */
export function watchInvariants(world: World): void {
  const { store, network, runtime } = world;
  const unchecked = new Set<string>();
  const absence = watchAbsence(world);
  watchWrites(world);
  store.subscribe((event) => {
    const why =
      event.resource === "namespaces"
        ? limitExceeded(event, world, unchecked)
        : event.resource === "nodes" && event.by === USHER
          ? (otherFieldChanged(event) ?? coveredLabelRemoved(event, world))
          : event.resource.endsWith(HOOKS) && event.by === USHER
            ? closedWithoutReplica(event, absence)
            : staleStatus(event);
    if (event.resource.endsWith(HOOKS))
      void lockingHook(event).then((locks) => locks === undefined || runtime.fail(locks));
    if (why !== undefined) runtime.fail(`${why} (revision ${event.revision})`);
  });
  let leaseDeleted = Number.NEGATIVE_INFINITY;
  store.subscribe(({ type, resource }) => {
    if (type === "DELETED" && resource === LEASES) leaseDeleted = runtime.now;
  });
  const before = network.onProcessed;
  network.onProcessed = (processed) => {
    const { process, method, path } = processed;
    // Only the leader writes these. Deleting the lease makes a second leader, until the first renews.
    if (runtime.now - leaseDeleted < LEASE_MS) return before(processed);
    if (
      method !== "GET" &&
      /fieldManager=usher(&|$)/.test(path) &&
      /\/nodes\/|webhookconfigurations\//.test(path)
    )
      for (const pod of world.pods.values())
        if (pod.process !== process && pod.process.alive && isLeading(pod))
          runtime.fail(`${process.name} writes ${path} while ${pod.name} leads`);
    before(processed);
  };
}

/** Objects by which usher counts and reports: each is written on its own schedule. */
const REPORTS = /^(events(\.events\.k8s\.io)?|leases\.coordination\.k8s\.io)$/;

/** Writes without a cause: one event may take several, such as that of labels and, after a grace period, of taints. */
const SPARE_WRITES = 3;

/**
 * No object is written more often than its history explains: once for each change by others of the object itself or of
 * anything but other nodes, each start of a process and each new leader, and a few times more.
 */
function watchWrites({ store, runtime, pods }: World): void {
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
    const causes = ofAll + (explained.get(id) ?? 0);
    const writes = count(written, id);
    if (writes > causes + SPARE_WRITES)
      runtime.fail(`usher writes ${id} for the ${writes}th time, and ${causes} events explain it`);
  });
}

/** The watchdog opens after 40 s of absence; a crash costs it a tenth of that, and a look takes 2 s. */
const OPENED_MS = 55_000;

/** A leader closes hooks when it has seen a ready replica, at most this long ago: the longest fault. */
const SEEN_READY_MS = 40_000;

/** No hook becomes fail-closed while no replica is ready. `absence`: for how long none was. */
function closedWithoutReplica(
  { type, object, previous, key }: StoreEvent,
  absence: () => number,
): string | undefined {
  const closed = (configuration: JsonObject | undefined) =>
    listAt(configuration, "webhooks")
      .filter((entry) => stringAt(entry, "failurePolicy") !== "Ignore")
      .map((entry) => stringAt(entry, "name") ?? "");
  const before = closed(previous);
  const one = type === "DELETED" ? undefined : closed(object).find((name) => !before.includes(name));
  return one === undefined || absence() <= SEEN_READY_MS
    ? undefined
    : `${key} closes ${one}, and no replica was ready for ${absence() / 1_000} s`;
}

/**
 * While no replica is ready, hooks that may be opened do not refuse for longer than promised. The result is for how
 * long none has been ready.
 */
function watchAbsence({ store, runtime }: World): () => number {
  let since: number | undefined;
  const look = (): void => {
    const slice = store.get("endpointslices.discovery.k8s.io", `${NAMESPACE}/usher-1`);
    const isReady = listAt(slice, "endpoints").some((one) => at(one, "conditions", "ready") === true);
    since = isReady ? undefined : (since ?? runtime.now);
    for (const kind of ["mutating", "validating"]) {
      const live = store.get(`${kind}webhookconfigurations.${HOOKS}`, OWN_NAMES.webhooks);
      const openable = stringAt(live, "metadata", "annotations", OPENABLE_ANNOTATION)?.split(",") ?? [];
      const closed = listAt(live, "webhooks").find(
        (entry) =>
          openable.includes(stringAt(entry, "name") ?? "") && stringAt(entry, "failurePolicy") === "Fail",
      );
      if (closed !== undefined && since !== undefined && runtime.now - since > OPENED_MS)
        runtime.fail(
          `${stringAt(closed, "name")} is fail-closed, and no replica was ready for ${OPENED_MS / 1_000} s`,
        );
    }
    runtime.schedule(1_000, look);
  };
  runtime.schedule(1_000, look);
  return () => (since === undefined ? 0 : runtime.now - since);
}

function isLeading({ process, live }: Pod): boolean {
  return live !== undefined && process.run(() => live.controllerStats?.().leading === true);
}

/** The number that the limit bounds: two terminating projects do not count. */
function countOf(world: World, user: string): number {
  const own = stored(world, "namespaces").filter(
    (one) => stringAt(one, "metadata", "annotations", REQUESTER) === user,
  );
  const terminating = own.filter((one) => stringAt(one, "status", "phase") === "Terminating").length;
  return own.length - Math.min(2, terminating);
}

function limitExceeded(
  { type, object, by, key }: StoreEvent,
  world: World,
  unchecked: Set<string>,
): string | undefined {
  const user = stringAt(object, "metadata", "annotations", REQUESTER);
  if (type !== "ADDED" || user === undefined) return undefined;
  const now = world.runtime.now;
  // An API server ends a request after 34 s. Without usher, by an edited or opened webhook, no count is exact.
  const isAdmitted = now - (world.admitted.get(key) ?? -60_000) <= 35_000;
  // A later project of the same name needs an answer of its own.
  world.admitted.delete(key);
  if (by === user && !isAdmitted) unchecked.add(user);
  if (isAdmitted) world.counted.add(key);
  else world.counted.delete(key);
  if (unchecked.has(user)) return undefined;
  const inForce = world.limits.filter((_, i) => now - (world.limits[i + 1]?.at ?? now) < OLD_VIEW_MS);
  const most = Math.max(...inForce.map(({ max }) => max));
  const count = countOf(world, user);
  return count > most ? `${user} has ${count} projects of ${most}` : undefined;
}

/** Usher changes only its rules' labels and taints, and its own annotations. */
function otherFieldChanged({ type, object, previous, key }: StoreEvent): string | undefined {
  if (type !== "MODIFIED" || previous === undefined) return undefined;
  const isOwn = (name: string): boolean => name.startsWith(`${DOMAIN}/`) || name.startsWith("usher.dev/");
  const others = (node: JsonObject): Json => ({
    labels: Object.fromEntries(Object.entries(labelsOf(node) ?? {}).filter(([name]) => !isOwn(name))),
    annotations: Object.fromEntries(
      Object.entries(annotationsOf(node) ?? {}).filter(([name]) => !isOwn(name)),
    ),
    taints: listAt(node, "spec", "taints").filter((one) => !isOwn(stringAt(one, "key") ?? "")),
    spec: { ...(isObject(node["spec"]) ? node["spec"] : {}), taints: undefined },
    status: node["status"],
  });
  const [was, is] = [others(previous), others(object)];
  return equal(was, is)
    ? undefined
    : `usher changed fields of others on node ${key}: ${JSON.stringify(was)} → ${JSON.stringify(is)}`;
}

const created = (object: JsonObject): number =>
  Date.parse(stringAt(object, "metadata", "creationTimestamp") ?? "");

function coveredLabelRemoved({ type, object, previous, key }: StoreEvent, world: World): string | undefined {
  if (type !== "MODIFIED" || previous === undefined) return undefined;
  for (const label of Object.keys(labelsOf(previous) ?? {})) {
    if (labelsOf(object)?.[label] !== undefined) continue;
    // A new rule may not be in the view yet.
    for (const rule of rulesOf(world))
      if (label in rule.labels && rule.matches(key) && EPOCH + world.runtime.now - rule.created > OLD_VIEW_MS)
        return `usher removed the label ${label} of node ${key}, which a rule sets`;
  }
  return undefined;
}

/** Namespaces in which everything must go on while no replica answers: the control plane's, and usher's own. */
const VITAL_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease", NAMESPACE];

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
      spec: name === "pods" ? template.spec : { template },
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
    ]),
  ];
}

/** Hooks that were found to let vital writes pass, without what does not matter for it. */
const harmless = new Set<string>();

/** No fail-closed hook may stop the control plane: asks its hooks about vital writes, and none of them answers. */
async function lockingHook({ type, object, resource, key }: StoreEvent): Promise<string | undefined> {
  const text = JSON.stringify(
    listAt(object, "webhooks").map((entry) => ({ ...(entry as JsonObject), clientConfig: null })),
  );
  if (type === "DELETED" || harmless.has(text)) return undefined;
  const admission = new Admission({
    view: {
      list: (one) => (one === resource ? [object] : []),
      namespace: (name) => ({ metadata: { name, labels: { "kubernetes.io/metadata.name": name } } }),
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
    if (has.some((one) => one.startsWith("usher.dev/starting")))
      return `node ${name} keeps its startup taint`;
    const due = mine.flatMap((rule) => rule.taints.map(taintOf));
    const missing = due.find((one) => !has.includes(one));
    if (missing !== undefined) return `node ${name} lacks the taint ${missing}`;
    const left = has.find((one) => one.startsWith(`${DOMAIN}/`) && !due.includes(one));
    if (left !== undefined) return `node ${name} keeps the taint ${left}`;
  }
  return undefined;
}

/** The status of each policy is that of its last generation, and counts the nodes that exist. */
export function wrongStatus(world: World): string | undefined {
  for (const resource of [RULES, OWNERSHIPS, "projectrequestlimits.operator.project.openshift.io"])
    for (const policy of stored(world, resource)) {
      const [generation, observed] = [
        at(policy, "metadata", "generation"),
        at(policy, "status", "observedGeneration"),
      ];
      if (generation !== observed)
        return `the status of ${resource} ${nameOf(policy)} is of generation ${observed}, not ${generation}`;
    }
  const nodes = stored(world, "nodes").map(nameOf);
  for (const { name, matches, matched } of rulesOf(world)) {
    const count = nodes.filter(matches).length;
    if (matched !== count) return `the status of rule ${name} counts ${matched} nodes of ${count}`;
  }
  return undefined;
}

/** Both webhook configurations are those of the stored policies. */
export function wrongWebhooks(world: World): string | undefined {
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
  const managed = wrongManaged(world, assembly);
  if (managed !== undefined) return managed;
  const { objects } = registeredWebhooks(assembly, {
    endpoint: { service: { name: "usher", namespace: NAMESPACE, port: 443 } },
    standby: hasStandby(assembly),
  });
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
    (one) => world.counted.has(nameOf(one)) && !places.has(stringAt(one, "metadata", "uid")),
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
  const expected = count < max ? 201 : 403;
  return status === expected
    ? undefined
    : `${user} has ${count} projects of ${max}, and the next one was answered ${status}`;
}
