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
import type { StoreEvent } from "./api-server/store.ts";
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
  store.subscribe((event) => {
    const why =
      event.resource === "namespaces"
        ? limitExceeded(event, world, unchecked)
        : event.resource === "nodes" && event.by === USHER
          ? (otherFieldChanged(event) ?? coveredLabelRemoved(event, world))
          : event.resource.endsWith(HOOKS)
            ? lockingHook(event)
            : staleStatus(event);
    if (why !== undefined) runtime.fail(`${why} (revision ${event.revision})`);
  });
  let leaseDeleted = Number.NEGATIVE_INFINITY;
  store.subscribe(({ type, resource }) => {
    if (type === "DELETED" && resource === LEASES) leaseDeleted = runtime.now;
  });
  watchAbsence(world);
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

/** The watchdog opens after 40 s of absence; a crash costs it a tenth of that, and a look takes 2 s. */
const OPENED_MS = 55_000;

/** While no replica is ready, hooks that may be opened do not refuse for longer than promised. */
function watchAbsence({ store, runtime }: World): void {
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

/** No fail-closed hook may stop the control plane. */
function lockingHook({ type, object, key }: StoreEvent): string | undefined {
  if (type === "DELETED") return undefined;
  for (const entry of listAt(object, "webhooks")) {
    if (stringAt(entry, "failurePolicy") === "Ignore") continue;
    const resources = listAt(entry, "rules").flatMap((rule) => listAt(rule, "resources"));
    const locked = resources.find((one) =>
      ["*", "*/*", "nodes", "leases", "certificatesigningrequests"].includes(String(one)),
    );
    if (locked !== undefined) return `${key} is fail-closed for ${locked}`;
  }
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
