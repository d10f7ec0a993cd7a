/**
 * Transitions of the UsherConfiguration, as Acto does it for operators: each field of the schema moves to each
 * interesting value, from whatever the value before has left, and at last all moves back. After each move the cluster
 * must be as after a new installation with the same configuration.
 */
import { CONFIGURATION, type Configuration } from "../../src/cli/configuration/configuration.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { annotationsOf, labelsOf, nameOf } from "../../src/core/kubernetes/object.ts";
import { OPENABLE_ANNOTATION, STANDBY_LABEL } from "../../src/core/registration/webhooks.ts";
import { modules } from "../../src/modules/all.ts";
import { watchInvariants } from "./checks.ts";
import { BASE } from "./configurations.ts";
import type { Plan } from "./plans.ts";
import { activate } from "./runtime.ts";
import type { Call, Scenario } from "./scenario.ts";
import {
  type Field,
  fieldsOf,
  jsonSchema,
  type Move,
  movesOf,
  nameOfMove,
  stepsOf,
  withField,
} from "./schema-fields.ts";
import { createPod, EXCEPTIONS, GUARDS, PLACEMENTS, podOf, SHOP, tenant } from "./tenants.ts";
import { issuePairs, RULES_NAMESPACE, World } from "./world.ts";

/** Fields that do not move here, and why. */
export const UNMOVED: Readonly<Record<string, string>> = {
  namespace: "another namespace is another installation",
  certificates: "certificates of other issuers are mounted files, which the simulation leaves out",
  certificateSecret: "certificates of other issuers are mounted files, which the simulation leaves out",
  "certificateIssuer.name":
    "certificates of other issuers are mounted files, which the simulation leaves out",
  "certificateIssuer.kind":
    "certificates of other issuers are mounted files, which the simulation leaves out",
  "certificateIssuer.group":
    "certificates of other issuers are mounted files, which the simulation leaves out",
  clientCa: "TLS is left out",
  kubernetesVersion: "it counts only without an API server",
  controlPlaneNodes: "only usher install reads it, for the Deployment",
  "networkPolicy.enabled": "only usher install reads it, for the NetworkPolicy",
  "networkPolicy.webhookCidrs": "only usher install reads it, for the NetworkPolicy",
  "tracing.endpoint": "spans are sent by a socket, which the simulation leaves out",
  "tracing.sampling": "spans are sent by a socket, which the simulation leaves out",
};

/** Values of fields whose schema does not name any. */
const SAMPLES: Readonly<Record<string, readonly unknown[]>> = {
  controlPlaneNamespaces: [["lab"]],
  openNamespaces: [["kube-system"]],
  excludedNamespaces: [["lab"], [SHOP]],
  workloads: [
    [
      {
        group: "argoproj.io",
        version: "v1alpha1",
        kind: "Rollout",
        resource: "rollouts",
        template: "spec.template",
      },
    ],
  ],
  "watchdog.open": [["pod-os"]],
  "modules.placement.resources": [["pods"], ["replicasets.apps"]],
  "modules.placement.trustedControllers": [["argo-rollouts/argo-rollouts"]],
  "modules.node-labels.namespace": [RULES_NAMESPACE, "elsewhere"],
  "modules.node-labels.startupTaint": ["example.com/starting"],
  "modules.node-guard.policy": [
    {
      groups: [
        {
          name: "edge",
          labelSelector: { matchLabels: { "node-role.kubernetes.io/edge": "" } },
          mode: "Inform",
          authorizedUsers: [],
        },
      ],
    },
  ],
  "modules.pod-os.os.harden": [[SHOP]],
  "modules.pod-os.podSecurity.configuration.apiVersion": ["pod-security.admission.config.k8s.io/v1"],
  "modules.pod-os.podSecurity.configuration.kind": ["PodSecurityConfiguration"],
  "modules.pod-os.podSecurity.configuration.defaults.enforce": ["restricted"],
  "modules.pod-os.podSecurity.configuration.defaults.enforce-version": ["v1.30"],
  "modules.pod-os.podSecurity.configuration.defaults.audit": ["baseline"],
  "modules.pod-os.podSecurity.configuration.defaults.audit-version": ["v1.30"],
  "modules.pod-os.podSecurity.configuration.defaults.warn": ["baseline"],
  "modules.pod-os.podSecurity.configuration.defaults.warn-version": ["v1.30"],
  "modules.pod-os.podSecurity.configuration.exemptions.usernames": [["ann"]],
  "modules.pod-os.podSecurity.configuration.exemptions.runtimeClasses": [["gvisor"]],
  "modules.pod-os.podSecurity.configuration.exemptions.namespaces": [[SHOP]],
};

export interface Transition extends Move {
  readonly configuration: Configuration;
}

/** Every field of UsherConfiguration's spec, with those of modules and their gates. */
export function configurationFields(): readonly Field[] {
  const spec = CONFIGURATION.versions[0]?.spec;
  if (spec === undefined) throw new Error("UsherConfiguration has no spec");
  return [...fieldsOf(jsonSchema(spec), SAMPLES, fieldsOfModules)];
}

function fieldsOfModules(name: string): Field[] | undefined {
  if (name === "featureGates")
    return modules
      .flatMap(({ gates }) => gates ?? [])
      .map((gate) => ({ path: `${name}.${gate.name}`, values: [true, false] }));
  if (name !== "modules") return undefined;
  return modules.flatMap((module) => [
    { path: `${name}.${module.name}.enabled`, values: [true, false] },
    ...(module.settings === undefined
      ? []
      : fieldsOf(jsonSchema(module.settings), SAMPLES, undefined, [name, module.name])),
  ]);
}

const SECURITY = "modules.pod-os.podSecurity.configuration";

/** The base, with the fields that this one does not go without. */
function baseFor(path: string): JsonObject {
  const base = BASE as JsonObject;
  if (!path.startsWith(SECURITY)) return base;
  const apiVersion = withField(
    base,
    stepsOf(`${SECURITY}.apiVersion`),
    "pod-security.admission.config.k8s.io/v1",
  );
  return withField(apiVersion, stepsOf(`${SECURITY}.kind`), "PodSecurityConfiguration");
}

/** Each field at each of its values that the base configuration does not have. */
export function transitions(): Transition[] {
  return movesOf(configurationFields(), BASE as JsonObject, UNMOVED).map((move) => ({
    ...move,
    configuration: withField(baseFor(move.path), stepsOf(move.path), move.value) as Configuration,
  }));
}

// ——— the runs ———

/** Policies of every module, so that each setting has something to decide about. */
const OBJECTS: readonly Call[] = [
  { at: 8_000, call: "set placement", name: "pool", value: "a", failurePolicy: "Fail" },
  { at: 8_000, call: "set placement", name: "dedicated", value: "a" },
  { at: 8_000, call: "set guard", mode: "Enable", closed: false },
  { at: 8_000, call: "set level", namespace: SHOP, level: "baseline" },
  { at: 8_000, call: "set exception", namespaces: ["lab"] },
  { at: 8_000, call: "set rule", name: "all", pattern: ".*", value: "a", taint: true },
];

function scenario(configuration: Configuration, replicas: readonly string[]): Scenario {
  return {
    seed: 0,
    replicas,
    limit: 2,
    renewal: false,
    openable: false,
    clocks: {},
    calls: OBJECTS,
    faults: [],
    activeMs: 2_000,
    persistent: true,
    configuration,
  };
}

/** The leader has written everything: a resync is 3 s, the scan of protected nodes a minute. */
const STABLE_MS = 15_000;

/** What the configuration decides: objects of usher, nodes, statuses, and the answers about new pods. */
async function endOf(world: World, step: number): Promise<Json> {
  const list = (resource: string) => world.store.list(resource).map(({ object }) => object);
  const answers = await probes(world, step);
  const hooks = ["mutating", "validating"].flatMap((kind) =>
    list(`${kind}webhookconfigurations.admissionregistration.k8s.io`).map((one) => [
      kind,
      labelsOf(one)?.[STANDBY_LABEL] ?? null,
      annotationsOf(one)?.[OPENABLE_ANNOTATION] ?? null,
      ...listAt(one, "webhooks").map((entry) =>
        ["name", "failurePolicy", "rules", "timeoutSeconds", "namespaceSelector", "matchConditions"]
          .map((field) => at(entry, field) ?? null)
          .concat(stringAt(entry, "clientConfig", "service", "path")?.replace(/^\/[0-9a-f]{40}/, "") ?? ""),
      ),
    ]),
  );
  const managed = ["validating", "mutating"].flatMap((kind) =>
    [`${kind}admissionpolicies`, `${kind}admissionpolicybindings`].flatMap((plural) =>
      list(`${plural}.admissionregistration.k8s.io`).map((one) => [plural, nameOf(one), one["spec"] ?? null]),
    ),
  );
  const nodes = list("nodes").map((node) => [
    nameOf(node),
    Object.entries(labelsOf(node) ?? {}).sort() as Json,
    listAt(node, "spec", "taints").toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
  ]);
  const statuses = [PLACEMENTS, GUARDS, EXCEPTIONS, "labels.node-labels.openshift.io"].flatMap((resource) =>
    list(resource).map((one) => [
      resource,
      nameOf(one),
      listAt(one, "status", "conditions")
        .map((condition) => ["type", "status", "reason"].map((field) => stringAt(condition, field) ?? ""))
        .sort(),
      at(one, "status", "groups") ?? null,
    ]),
  );
  return { hooks, managed, nodes, statuses, answers } as Json;
}

/** What becomes of new pods. They are deleted again. */
async function probes(world: World, step: number): Promise<Json> {
  const sent = [
    podOf({ namespace: SHOP, name: `plain-${step}`, app: "web", os: true }),
    podOf({ namespace: SHOP, name: `host-${step}`, app: "web", host: true }),
    podOf({ namespace: SHOP, name: `node-${step}`, app: "web", node: "core-1" }),
  ];
  const answers = sent.map((pod) => createPod(world, tenant("ann"), pod));
  await world.runtime.run(world.runtime.now + 3_000);
  // A run that has failed stops, and nothing is answered any more.
  if (world.runtime.failure !== undefined) return [];
  const all = await Promise.all(answers);
  for (const pod of sent)
    void world.send(undefined, "DELETE", `/api/v1/namespaces/${SHOP}/pods/${nameOf(pod)}`, {
      kind: "DeleteOptions",
      apiVersion: "v1",
      gracePeriodSeconds: 0,
    });
  await world.runtime.run(world.runtime.now + 1_000);
  return all.map(({ status, body }) => [status, status === 201 ? (at(body, "spec") ?? null) : null]) as Json;
}

/** Goes through configurations one after the other, and takes down the end of each. */
async function walk(
  configurations: readonly Configuration[],
  replicas: readonly string[],
  trace?: (line: string) => void,
): Promise<{ readonly ends: readonly Json[]; readonly failure: string | undefined }> {
  await issuePairs();
  const [first = BASE, ...rest] = configurations;
  const world = new World(scenario(first, replicas), trace === undefined ? {} : { trace });
  const { runtime } = world;
  watchInvariants(world);
  await world.run();
  await runtime.run(runtime.now + STABLE_MS);
  const ends = [await endOf(world, 0)];
  for (const [i, configuration] of rest.entries()) {
    if (runtime.failure !== undefined) break;
    void world.configure(configuration);
    await world.untilRolledOut();
    await runtime.run(runtime.now + STABLE_MS);
    ends.push(await endOf(world, i + 1));
  }
  activate(undefined);
  return { ends, failure: runtime.failure };
}

/** How many configurations one run goes through. */
const CHAIN = 8;

/** Each plan moves some fields, one after the other, and goes back to the base. */
export async function transitionPlans(): Promise<readonly Plan[]> {
  const all = transitions();
  const chains = Array.from({ length: Math.ceil(all.length / CHAIN) }, (_, i) =>
    all.slice(i * CHAIN, (i + 1) * CHAIN),
  );
  const base = await installed(BASE);
  return chains.map((chain) => ({
    name: `configuration: ${chain.map(nameOfMove).join(", ")}`,
    check: (trace) => moved(chain, base, trace),
  }));
}

/** The end of a new installation. */
async function installed(configuration: Configuration): Promise<Json> {
  const { ends, failure } = await walk([configuration], ["usher-a"]);
  if (failure !== undefined)
    throw new Error(`a new installation with ${JSON.stringify(configuration)}: ${failure}`);
  return ends[0] ?? null;
}

async function moved(
  chain: readonly Transition[],
  base: Json,
  trace?: (line: string) => void,
): Promise<string | undefined> {
  const path = [BASE, ...chain.map(({ configuration }) => configuration), BASE];
  const { ends, failure } = await walk(path, ["usher-a", "usher-b"], trace);
  if (failure !== undefined) return failure;
  for (const [i, one] of chain.entries()) {
    if (isWrittenByOthers(one)) continue;
    const why = difference(
      ends[i + 1] ?? null,
      await installed(one.configuration),
      leavesMarks(one) ? ["nodes", "statuses"] : [],
    );
    const before = i === 0 ? "the base" : nameOfMove(chain[i - 1] as Transition);
    if (why !== undefined) return `${nameOfMove(one)} after ${before}: ${why}`;
  }
  const why = difference(ends.at(-1) ?? null, base);
  return why === undefined ? undefined : `back from ${nameOfMove(chain.at(-1) as Transition)}: ${why}`;
}

/** Then another tool writes the webhooks and the objects of modules: they stay as they are, and a new installation has none. */
function isWrittenByOthers({ path, value }: Transition): boolean {
  return path === "manageWebhooks" && value === false;
}

/** Labels and taints of rules stay on nodes when the rules no longer count, and so does a startup taint of another name. Statuses count such nodes. */
function leavesMarks({ path, value }: Transition): boolean {
  return (
    (path === "modules.node-labels.enabled" && value === false) ||
    (path === "modules.node-labels.namespace" && value !== RULES_NAMESPACE) ||
    path === "modules.node-labels.startupTaint"
  );
}

function difference(is: Json, should: Json, except: readonly string[] = []): string | undefined {
  for (const part of Object.keys(isObject(is) ? is : {})) {
    if (except.includes(part)) continue;
    const [one, other] = [at(is, part) ?? null, at(should, part) ?? null];
    if (equal(one, other)) continue;
    const texts = (value: Json) => new Set(listAt(value).map((element) => JSON.stringify(element)));
    const [has, wants] = [texts(one), texts(other)];
    const cut = (all: ReadonlySet<string>) => [...all].map((text) => text.slice(0, 400)).join(" ");
    return `${part}: has ${cut(has.difference(wants))} instead of ${cut(wants.difference(has))}`;
  }
  return undefined;
}
