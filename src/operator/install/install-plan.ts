import { type JsonObject, stringAt } from "../../core/json.ts";
import { namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { Store } from "../../core/view/store.ts";
import { describeObject, type Objects, sameObject } from "./apply.ts";
import { installedNamespaces } from "./installed-namespaces.ts";
import {
  conflictingCrd,
  describeConflictingCrd,
  describeConflictingWebhooks,
  isOurs,
  ownerOf,
} from "./ownership-conflict.ts";
import { brokenPolicies, resourceKinds, storedObjects } from "./stored-policies.ts";
import { isNewer, versionOf } from "./version.ts";

export type Change = "create" | "update" | "unchanged" | "foreign";

export interface PlannedObject {
  readonly object: JsonObject;
  readonly live: JsonObject | undefined;
  readonly change: Change;
  /** What there is to say of it. */
  readonly note?: string;
  /** Usher writes it itself while it runs; an installation only waits for it. */
  readonly byUsher: boolean;
}

export interface InstallPlan {
  readonly objects: readonly PlannedObject[];
  /** What other hands have left here, each a sentence or several with what follows from it. */
  readonly findings: readonly string[];
  /** Objects of others that stand where ours would be, and that nobody has said what to do with. */
  readonly foreign: readonly PlannedObject[];
  /** Why nothing may be done, each with what to do instead. */
  readonly refusals: readonly string[];
}

export interface PlanOptions {
  /** What to do with objects of others that have our names. @default nothing is installed */
  readonly foreign?: "take over" | "leave";
  /** Also over what a newer usher wrote. @default that is refused */
  readonly downgrade?: boolean;
}

/** Usher follows its policies with these, so only the running usher knows how they must be. */
export function isWebhookConfiguration(object: JsonObject): boolean {
  return (stringAt(object, "kind") ?? "").endsWith("WebhookConfiguration");
}

/** Since Kubernetes 1.29; some administrators switch it off. All else works without. */
export const FLOW_CONTROL = "flowcontrol.apiserver.k8s.io/v1";
const NO_FLOW_CONTROL = `this API server does not serve ${FLOW_CONTROL}\n  so usher has no priority level of its own there, and may be slow to answer when the API server is busy`;

/** Says what an installation would do, without doing any of it. */
export async function planInstall(
  objects: Objects,
  wanted: readonly JsonObject[],
  modules: readonly Module[],
  options: PlanOptions = {},
): Promise<InstallPlan> {
  const planned: PlannedObject[] = [];
  const findings: string[] = [];
  const queues = await objects.serves(FLOW_CONTROL);
  if (!queues) findings.push(NO_FLOW_CONTROL);
  for (const object of wanted) {
    if (!queues && stringAt(object, "apiVersion") === FLOW_CONTROL) continue;
    const one = await planObject(objects, object, options);
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
  findings.push(...(await brokenOnes(objects, modules)));
  const foreign = planned.filter(({ change }) => change === "foreign");
  const refusals = [
    ...(await installedElsewhere(objects, wanted)),
    ...(options.downgrade === true ? [] : writtenByNewer(planned)),
  ];
  return { objects: planned, findings, foreign: options.foreign === undefined ? foreign : [], refusals };
}

/** Names are fixed, so a second installation would take the first one's rights and leave it without. */
async function installedElsewhere(objects: Objects, wanted: readonly JsonObject[]): Promise<string[]> {
  const own = wanted.map((object) => namespaceOf(object)).find((name) => name !== "");
  const others = (await installedNamespaces(objects)).filter(({ namespace }) => namespace !== own);
  return others.map(
    ({ namespace, by }) =>
      `usher is in namespace ${namespace} already, as ${by} says, and a cluster has room for one\n  usher install -n ${namespace} brings that one to this version; usher uninstall -n ${namespace} takes it out, and then it can be installed elsewhere`,
  );
}

/** An older usher would take away fields that are in use, without a word. */
function writtenByNewer(planned: readonly PlannedObject[]): string[] {
  const newer = planned.filter(
    ({ object, live }) => live !== undefined && isOurs(live) && isNewer(live, versionOf(object)),
  );
  const [first, ...more] = newer;
  if (first?.live === undefined) return [];
  const others = more.length === 0 ? "" : ` and ${more.length} more`;
  return [
    `${describeObject(first.object)}${others} ${more.length === 0 ? "was" : "were"} written by usher ${versionOf(first.live)}, and this is ${versionOf(first.object)}\n  run the install of that version, or go back to this one with --allow-downgrade`,
  ];
}

async function planObject(
  objects: Objects,
  object: JsonObject,
  options: PlanOptions,
): Promise<PlannedObject> {
  const live = await objects.read(object);
  const byUsher = isWebhookConfiguration(object);
  if (live === undefined) {
    const note = byUsher ? { note: "by usher, once it is ready" } : {};
    return { object, live, change: "create", byUsher, ...note };
  }
  if (!isOurs(live)) {
    // It was there before usher and will be there after it.
    if (stringAt(object, "kind") === "Namespace")
      return { object, live, change: "unchanged", note: "was there before usher", byUsher };
    if (options.foreign !== "take over")
      return { object, live, change: "foreign", note: `belongs to ${ownerOf(live)}`, byUsher };
    return { object, live, change: "update", note: `taken over from ${ownerOf(live)}`, byUsher };
  }
  if (byUsher) return { object, live, change: "unchanged", note: "usher keeps it right", byUsher };
  // The API server itself says what would change: it knows the defaults, and who owns which field.
  const after = await objects.apply(object, undefined, { dryRun: true });
  return { object, live, change: sameObject(live, after) ? "unchanged" : "update", byUsher };
}

/** Systems that do the same as one of our modules, and whose webhooks are still there. */
export async function predecessorsOf(objects: Objects, modules: readonly Module[]): Promise<string[]> {
  const findings: string[] = [];
  for (const { name, meaning } of modules.flatMap((module) => module.predecessors ?? [])) {
    for (const kind of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]) {
      const object = { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name } };
      if ((await objects.read(object)) !== undefined)
        findings.push(`${describeObject(object)} is here\n  ${meaning}`);
    }
  }
  return findings;
}

/** So many are named; a cluster that has more has one cause for them. */
const NAMED = 5;

async function brokenOnes(objects: Objects, modules: readonly Module[]): Promise<string[]> {
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
  const head = broken.length === 1 ? "1 stored policy breaks" : `${broken.length} stored policies break`;
  const after =
    "what is wrong in a policy has no effect and stops no other; correct it, or delete the policy";
  return [[`${head} usher's rules`, ...lines, after].join("\n  ")];
}
