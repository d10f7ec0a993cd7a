import type { Assembly } from "../evaluate/assembly.ts";
import { type Evaluation, type EvaluationRequest, evaluateHooks } from "../evaluate/evaluate-hooks.ts";
import type { Facts, Need } from "../evaluate/need.ts";
import { resourceName } from "../evaluate/request.ts";
import { at, copyOf, equal, isObject, type Json, type JsonObject, stringAt } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";
import { specPath, type WorkloadKind, type WorkloadTable } from "../kubernetes/workloads.ts";
import type { Module } from "../module/module.ts";
import { kindResource } from "../policy/kind.ts";
import { type Injection, injectionsIn } from "./injections.ts";

/** What a module says of itself where what it writes into workloads can be looked at, and renewed, afterwards. */
export interface DriftScan {
  /** An annotation on the stored object that asks the module to take back what it wrote and to write what it wants now. */
  readonly annotation: string;
  /** Why an object is left as it is, whatever the policies say; `undefined` where it may be changed. */
  readonly leftAlone: (
    object: JsonObject,
    workload: WorkloadKind,
    workloads: WorkloadTable,
  ) => string | undefined;
  /** An object that is left alone only because it can't be changed any more, as it would come in now: what it lacks is told. */
  readonly asNew?: (
    object: JsonObject,
    workload: WorkloadKind,
    workloads: WorkloadTable,
  ) => JsonObject | undefined;
  /** Which stored objects of a kind can still be changed, so that the leader need not read the others. @default all */
  readonly fieldSelector?: (workload: WorkloadKind) => string | undefined;
}

/** How a stored object stands to the policies of a module. */
export interface ObjectDrift {
  readonly carried: readonly Injection[];
  /** Whether writing anew what is wanted would change the pod or its template, and so roll it out. */
  readonly rolls: boolean;
  /** Why it can't be written anew as it stands. */
  readonly refused?: string;
}

/** A skipped finding of this rule says why an object that asked for it was not written anew. */
const NOT_RENEWED = "reapply";

const CLOSED = "it can't be changed any more; made anew it gets what it lacks";

/** Not an object that this module ever touches. */
const NOTHING: ObjectDrift = { carried: [], rolls: false };

/**
 * What would happen if somebody asked for a stored object to be written anew: the same heart is asked as by the webhook, on a dry run. So
 * a driftScan can't disagree with what then happens. `undefined` where the module leaves the object alone.
 */
export function driftScanCall(
  { name, driftScan }: Module,
  object: JsonObject,
  workload: WorkloadKind,
  assembly: Assembly,
  now: number,
): EvaluationRequest | undefined {
  const { installation, hooks } = assembly;
  if (driftScan === undefined) return undefined;
  const { workloads } = installation;
  const apart = driftScan.leftAlone(object, workload, workloads) !== undefined;
  const asNew = apart ? driftScan.asNew?.(object, workload, workloads) : undefined;
  if (apart && asNew === undefined) return undefined;
  const { group, version, kind, resource } = workload;
  return {
    assembly,
    phase: "mutate",
    hooks: hooks.filter(({ module }) => module === name),
    now,
    request: {
      uid: "driftScan",
      kind: { group, version, kind },
      resource: { group, version, resource },
      subResource: "",
      name: nameOf(object),
      namespace: namespaceOf(object),
      operation: asNew === undefined ? "UPDATE" : "CREATE",
      userInfo: { username: "usher", groups: [] },
      // A draft edits in place, and what is stored must stay to be compared with.
      object: copyOf(asNew ?? withAnnotation(object, driftScan.annotation)) as JsonObject,
      oldObject: asNew === undefined ? object : undefined,
      dryRun: true,
      options: undefined,
    },
  };
}

/** One object, with what is known; or what would have to be known. */
export function scanObject(
  module: Module,
  object: JsonObject,
  workload: WorkloadKind,
  assembly: Assembly,
  known: { readonly facts: Facts; readonly now: number },
): ObjectDrift | { readonly needs: readonly Need[] } {
  const call = driftScanCall(module, object, workload, assembly, known.now);
  if (call === undefined) return NOTHING;
  const result = evaluateHooks(call, known.facts);
  return "needs" in result ? result : driftOf(module, object, workload, result);
}

/** Reads a driftScan out of what the heart said to its call. */
export function driftOf(
  module: Module,
  stored: JsonObject,
  workload: WorkloadKind,
  { request, asked, denials, draft, findings }: Evaluation,
): ObjectDrift {
  // In a namespace that usher stays out of nobody is asked.
  if (asked.length === 0) return NOTHING;
  const spec = specPath(workload);
  const left = findings.filter(({ rule, outcome }) => rule === NOT_RENEWED && outcome === "skipped");
  const refusals = [...denials, ...left].map(({ message }) => message);
  if (refusals.length > 0) {
    const carried = injectionsIn(module.name, stored, stored, spec);
    return { carried, rolls: false, refused: refusals.join("\n") };
  }
  const carried = injectionsIn(module.name, stored, draft.object, spec);
  if (request.operation === "CREATE") return { carried, rolls: false, refused: CLOSED };
  const rolls = !equal(at(stored, ...spec), at(draft.object, ...spec));
  return { carried: rolls ? carried : carried.map(satisfied), rolls };
}

/** Where nothing would change the object has all that is wanted of it, though its note may give it to another policy. */
function satisfied(carried: Injection): Injection {
  return carried.state === "orphaned" ? carried : { ...carried, state: "current" };
}

/** A page of the stored objects of a kind, whole: who wrote a field can matter. With `all` also of those that can't be changed. */
export function scanPage(
  { driftScan }: Module,
  workload: WorkloadKind,
  limit: number,
  from: { readonly namespace?: string; readonly continue?: string; readonly all?: boolean } = {},
): Need {
  const { all, ...where } = from;
  const fieldSelector = all === true ? undefined : driftScan?.fieldSelector?.(workload);
  return {
    list: {
      resource: resourceName(workload),
      managers: true,
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...where,
    },
    limit,
    share: 1,
  };
}

/** Whether the policy that an object carries something of is still there: `ClusterPodSchedulingPolicy/etcd-pool`. */
export function policyExists({ kinds }: Module, { view }: Assembly, key: string): boolean {
  const [kindName = "", first = "", second] = key.split("/");
  const kind = kinds.find((one) => one.kind === kindName);
  if (kind === undefined) return false;
  const resource = kindResource(kind);
  return view.get(resource, second === undefined ? "" : first, second ?? first) !== undefined;
}

/** The operations that ask for an object to be written anew. Any value asks; this one says whose request it was. */
export function requestReapply(object: JsonObject, annotation: string, by: string) {
  const { metadata } = object;
  const annotations = isObject(metadata) ? metadata["annotations"] : undefined;
  const key = annotation.replaceAll("~", "~0").replaceAll("/", "~1");
  return isObject(annotations)
    ? [{ op: "add" as const, path: `/metadata/annotations/${key}`, value: by }]
    : [{ op: "add" as const, path: "/metadata/annotations", value: { [annotation]: by } }];
}

/** Whether nobody has heard what was asked for by the annotation. */
export function reapplyRequested(object: Json | undefined, annotation: string): boolean {
  return stringAt(object, "metadata", "annotations", annotation) !== undefined;
}

function withAnnotation(object: JsonObject, annotation: string): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const annotations = isObject(metadata["annotations"]) ? metadata["annotations"] : {};
  return { ...object, metadata: { ...metadata, annotations: { ...annotations, [annotation]: "driftScan" } } };
}
