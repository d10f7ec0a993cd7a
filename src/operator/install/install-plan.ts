import { at, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { CERT_MANAGER, SERVING_SECRET } from "../../core/registration/certificates.ts";
import { excludedFromTakeOver } from "../../core/registration/crd.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { CONFIGURATION_FILE } from "../../core/registration/pods/restricted-pod.ts";
import { Store } from "../../core/view/store.ts";
import { describeObject, type Objects, sameObject } from "./apply.ts";
import { isReplicas } from "./install.ts";
import { installedNamespaces } from "./installed-namespaces.ts";
import { describeManaged, type Manager, managerOf } from "./manager.ts";
import {
  conflictingCrd,
  describeConflictingCrd,
  describeConflictingWebhooks,
  isNewer,
  isOurs,
  keeperOf,
  ownerOf,
  versionOf,
} from "./ownership-conflict.ts";
import { brokenPolicies, changedAnswers, NAMED, resourceKinds, storedObjects } from "./stored-policies.ts";

type Change = "create" | "update" | "unchanged" | "conflict";

export interface PlannedObject {
  readonly object: JsonObject;
  readonly live: JsonObject | undefined;
  readonly change: Change;
  /** For users: why, or by which owner. */
  readonly note?: string;
  /** Its previous manager, whose labels are removed: see `PlanOptions.conflicts`. */
  readonly from?: Manager;
  /** The leader writes it; an install only waits for it. */
  readonly byUsher: boolean;
}

export interface InstallPlan {
  readonly objects: readonly PlannedObject[];
  /** Conflicts, predecessors and invalid policies, each with the consequence. */
  readonly findings: readonly string[];
  /** Objects of other owners with usher's names, if `PlanOptions.conflicts` does not decide about them. */
  readonly conflicts: readonly PlannedObject[];
  /** Why the plan may not be executed, each with the remedy. */
  readonly refusals: readonly string[];
}

export interface PlanOptions {
  /** How to treat objects of other owners with usher's names. @default nothing is installed */
  readonly conflicts?: "take over" | "leave";
  /** Also if a newer usher wrote the objects. @default refused */
  readonly downgrade?: boolean;
}

/** These follow the policies, so only a running usher knows them. */
export function isWebhookConfiguration(object: JsonObject): boolean {
  return (stringAt(object, "kind") ?? "").endsWith("WebhookConfiguration");
}

/** Since Kubernetes 1.29; some administrators disable it. Usher works without. */
export const FLOW_CONTROL = "flowcontrol.apiserver.k8s.io/v1";
const NO_FLOW_CONTROL = `this API server does not serve ${FLOW_CONTROL}\n  so usher has no priority level of its own, and may respond slowly while the API server is busy`;

const NO_CERT_MANAGER = `certificates: CertManager needs cert-manager, and this API server does not serve ${CERT_MANAGER}\n  install cert-manager first, or choose another way to have a certificate`;

/** Plans an install, and changes nothing. */
export async function planInstall(
  objects: Objects,
  wanted: readonly JsonObject[],
  modules: readonly Module[],
  options: PlanOptions = {},
): Promise<InstallPlan> {
  const planned: PlannedObject[] = [];
  const findings: string[] = [];
  const needsCertManager = wanted.some(({ apiVersion }) => apiVersion === CERT_MANAGER);
  if (needsCertManager && !(await objects.serves(CERT_MANAGER)))
    return { objects: [], findings, conflicts: [], refusals: [NO_CERT_MANAGER] };
  const queues = await objects.serves(FLOW_CONTROL);
  if (!queues) findings.push(NO_FLOW_CONTROL);
  for (const object of wanted) {
    if (!queues && stringAt(object, "apiVersion") === FLOW_CONTROL) continue;
    const one = await planObject(objects, object, modules, options);
    planned.push(one);
    if (
      one.live !== undefined &&
      !isOurs(one.live) &&
      stringAt(object, "kind") === "CustomResourceDefinition"
    )
      findings.push(describeConflictingCrd(conflictingCrd(object, one.live)).join("\n  "));
  }
  for (const { object, live, byUsher } of planned)
    if (byUsher && live !== undefined && !isOurs(live))
      findings.push(describeConflictingWebhooks(object, live).join("\n  "));
  findings.push(...(await predecessorsOf(objects, modules)));
  findings.push(...released(planned));
  findings.push(...(await invalidPolicies(objects, modules)));
  findings.push(...(await changedAnswers(objects.client, modules, planned)));
  const conflicts = planned.filter(({ change }) => change === "conflict");
  const managed = ofOthers(planned, options);
  const refusal = await certificatesChange(objects, wanted);
  // Another manager has its own way to upgrade, and to move.
  const refusals =
    managed.length > 0
      ? managed
      : [
          ...(refusal === undefined ? [] : [refusal]),
          ...(await installedElsewhere(objects, wanted)),
          ...(options.downgrade === true ? [] : writtenByNewer(planned)),
        ];
  return {
    objects: planned,
    findings,
    conflicts: options.conflicts === undefined ? conflicts : [],
    refusals,
  };
}

/** Objects of an installation that another tool manages: it would write them again, or consider them its own and delete them. */
function ofOthers(planned: readonly PlannedObject[], { conflicts }: PlanOptions): string[] {
  const managed = planned.flatMap(managedLive).filter((live) => conflicts !== "take over" || !letsGo(live));
  return describeManaged(managed, ({ what, update, remove, release }) => [
    `to change this installation: ${update}`,
    release === undefined
      ? `to manage it by usher install from now on, remove it before, which leaves CRDs and policies: ${remove}`
      : "to manage it by usher install from now on: usher install --take-over",
    `if ${what} is gone: usher uninstall --force, and then install it again`,
  ]);
}

function letsGo(live: JsonObject): boolean {
  return managerOf(live)?.release !== undefined;
}

/** The stored object of usher with its identity, if it can name its manager: a namespace does not. */
function managedLive({ object, live, byUsher }: PlannedObject): JsonObject[] {
  const isPart = !byUsher && stringAt(object, "kind") !== "Namespace";
  return isPart && live !== undefined && isOurs(live)
    ? [{ ...object, metadata: live["metadata"] ?? {} }]
    : [];
}

/** How to make the previous manager release the adopted objects. */
function released(planned: readonly PlannedObject[]): string[] {
  const adopted = planned.filter(({ from }) => from !== undefined).flatMap(managedLive);
  return describeManaged(adopted.filter(letsGo), ({ release }) => [
    `usher install takes them over; so that it does not write or delete them again: ${release}`,
  ]);
}

/** Names are fixed, so a second installation would take the permissions of the first. */
async function installedElsewhere(objects: Objects, wanted: readonly JsonObject[]): Promise<string[]> {
  const own = wanted.map((object) => namespaceOf(object)).find((name) => name !== "");
  const others = (await installedNamespaces(objects)).filter(({ namespace }) => namespace !== own);
  return others.map(
    ({ namespace, by }) =>
      `usher is in namespace ${namespace} already (found ${by}); a cluster has room for one\n  usher install -n ${namespace} upgrades it; usher uninstall -n ${namespace} removes it, and then it can be installed elsewhere`,
  );
}

/** An older usher would silently remove fields that are in use. */
function writtenByNewer(planned: readonly PlannedObject[]): string[] {
  const newer = planned.filter(
    ({ object, live }) => live !== undefined && isOurs(live) && isNewer(live, versionOf(object)),
  );
  const [first, ...more] = newer;
  if (first?.live === undefined) return [];
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  return [
    `${describeObject(first.object)}${others} ${more.length === 0 ? "was" : "were"} written by usher ${versionOf(first.live)}, and this is ${versionOf(first.object)}\n  install that version, or downgrade with --allow-downgrade`,
  ];
}

async function planObject(
  objects: Objects,
  object: JsonObject,
  modules: readonly Module[],
  options: PlanOptions,
): Promise<PlannedObject> {
  const live = await objects.read(object);
  const byUsher = isWebhookConfiguration(object);
  if (live === undefined) {
    const note = byUsher ? { note: "by usher, once it is ready" } : {};
    return { object, live, change: "create", byUsher, ...note };
  }
  if (!isOurs(live)) {
    // It existed before usher, and outlives it.
    if (stringAt(object, "kind") === "Namespace")
      return { object, live, change: "unchanged", note: "existed before usher", byUsher };
    const note = `belongs to ${ownerOf(live)}`;
    if (
      stringAt(object, "kind") === "CustomResourceDefinition" &&
      (keeperOf(live) !== undefined || excludedFromTakeOver(modules, nameOf(object)))
    )
      return { object, live, change: "unchanged", note: `${note}; used as it is`, byUsher };
    if (options.conflicts !== "take over") return { object, live, change: "conflict", note, byUsher };
    return {
      object,
      live,
      change: "update",
      note: `adopted from ${ownerOf(live)}`,
      byUsher,
      ...fromOf(live),
    };
  }
  if (byUsher) return { object, live, change: "unchanged", note: "reconciled by usher", byUsher };
  const { from } = fromOf(live);
  if (from !== undefined && stringAt(object, "kind") !== "Namespace")
    return options.conflicts === "take over"
      ? { object, live, change: "update", note: `adopted from ${from.what}`, byUsher, from }
      : { object, live, change: "conflict", note: `managed by ${from.what}`, byUsher };
  // The API server knows the defaults and the owner of each field, so it reports the changes.
  const after = await objects.apply(object, undefined, { dryRun: true });
  return { object, live, change: sameObject(live, after) ? "unchanged" : "update", byUsher };
}

function fromOf(live: JsonObject): Pick<PlannedObject, "from"> {
  const from = managerOf(live);
  return from === undefined ? {} : { from };
}

/** Systems that do the work of a module, and whose webhooks still exist. */
export async function predecessorsOf(objects: Objects, modules: readonly Module[]): Promise<string[]> {
  const findings: string[] = [];
  for (const { name, meaning } of modules.flatMap((module) => module.predecessors ?? [])) {
    for (const kind of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]) {
      const object = { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name } };
      if ((await objects.read(object)) !== undefined)
        findings.push(`${describeObject(object)} exists\n  ${meaning}`);
    }
  }
  return findings;
}

async function invalidPolicies(objects: Objects, modules: readonly Module[]): Promise<string[]> {
  const broken = [];
  for (const kind of resourceKinds(modules)) {
    broken.push(...brokenPolicies(kind, await storedObjects(objects.client, kind), new Store()));
  }
  if (broken.length === 0) return [];
  const lines = broken.slice(0, NAMED).map(({ kind, namespace, name, problems }) => {
    const where = namespace === "" ? name : `${namespace}/${name}`;
    return `${kind} ${where}: ${problems.join("; ")}`;
  });
  if (broken.length > NAMED) lines.push(`and ${broken.length - NAMED} more`);
  const head = broken.length === 1 ? "1 stored policy is" : `${broken.length} stored policies are`;
  const after =
    "the invalid parts have no effect, and other policies are not affected; correct or delete the policy";
  return [[`${head} not valid`, ...lines, after].join("\n  ")];
}

/** The ConfigMap that replicas read their configuration from. */
function isConfiguration(object: JsonObject): boolean {
  return stringAt(object, "kind") === "ConfigMap" && nameOf(object) === OWN_NAMES.configuration;
}

/**
 * Why a configuration can't replace that of running replicas: their bundle does not trust the certificate of another
 * mode, so new replicas would never be ready. `undefined` if it can, or no replica runs.
 */
export async function certificatesChange(
  objects: Objects,
  wanted: readonly JsonObject[],
): Promise<string | undefined> {
  const configuration = wanted.find(isConfiguration);
  const deployment = wanted.find(isReplicas);
  if (configuration === undefined || deployment === undefined) return undefined;
  const before = certificatesOf(await objects.read(configuration));
  const after = certificatesOf(configuration);
  if (before === undefined || before === after) return undefined;
  if (Number(at(await objects.read(deployment), "status", "readyReplicas") ?? 0) === 0) return undefined;
  return `certificates can't change from ${before} to ${after} while usher runs: API servers would not trust the new replicas, which would never be ready\n  keep ${before}; or uninstall usher, which leaves policies, and install it again`;
}

/** `undefined` if there is no configuration, or it was edited into another form. */
function certificatesOf(configMap: JsonObject | undefined): string | undefined {
  try {
    const spec = at(JSON.parse(stringAt(configMap, "data", CONFIGURATION_FILE) ?? ""), "spec");
    const mode = stringAt(spec, "certificates") ?? "Own";
    return mode === "Secret" ? `Secret ${stringAt(spec, "certificateSecret") ?? SERVING_SECRET}` : mode;
  } catch {
    return undefined;
  }
}
