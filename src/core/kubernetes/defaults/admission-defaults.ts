import { type Json, type JsonObject, listAt, own, stringAt } from "../../json.ts";
import { isMirrorPod, nameOf } from "../object.ts";
import { changeMember, fillAbsent } from "./fill.ts";

export interface AdmissionDefaultsOptions {
  /** The PriorityClass objects of the cluster; the two that every cluster has need not be among them. */
  readonly priorityClasses?: readonly JsonObject[];
  /** An UPDATE gets tolerations only. */
  readonly operation?: "CREATE" | "UPDATE";
}

/** The classes that the API server creates itself, above all classes that users may define. */
const SYSTEM_CLASSES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
]);

/** How long a pod stays on a not-ready or unreachable node, unless it or the API server's flags set another time. */
const TROUBLE_SECONDS = 300;
const TROUBLE_TAINTS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/**
 * A pod as the plugins inside the API server leave it to webhooks: ServiceAccount (its name, not the token's volume,
 * which depends on the account), Priority, DefaultTolerationSeconds. They act on pods alone, never on templates.
 */
export function admissionDefaults(pod: JsonObject, options: AdmissionDefaultsOptions = {}): JsonObject {
  return changeMember(pod, "spec", (spec) => {
    if (options.operation === "UPDATE") return withTroubleTolerations(spec);
    // The kubelet compares a mirror pod's spec with its own file, so ServiceAccount skips it. The other plugins do not.
    const accounted = isMirrorPod(pod) ? spec : withServiceAccount(spec);
    return withTroubleTolerations(withPriority(accounted, options.priorityClasses ?? []));
  });
}

function withServiceAccount(spec: JsonObject): JsonObject {
  if ((own(spec, "serviceAccountName") ?? "") !== "") return spec;
  const alias = stringAt(spec, "serviceAccount") ?? "";
  const name = alias === "" ? "default" : alias;
  return { ...spec, serviceAccountName: name, serviceAccount: name };
}

/** An unknown class leaves the pod as it is: the API server would refuse it. */
function withPriority(spec: JsonObject, classes: readonly JsonObject[]): JsonObject {
  const named = stringAt(spec, "priorityClassName") ?? "";
  const found = named === "" ? globalDefault(classes) : classes.find((item) => nameOf(item) === named);
  if (named === "" && found === undefined) {
    return fillAbsent(spec, { priority: 0, preemptionPolicy: "PreemptLowerPriority" });
  }
  const priority = found === undefined ? SYSTEM_CLASSES.get(named) : priorityValue(found);
  if (priority === undefined) return spec;
  const preemptionPolicy = stringAt(found, "preemptionPolicy") ?? "PreemptLowerPriority";
  const filled = fillAbsent(spec, { priority, preemptionPolicy });
  return named === "" && found !== undefined ? { ...filled, priorityClassName: nameOf(found) } : filled;
}

/** There should be one; of several the API server uses the one with the lowest value. */
function globalDefault(classes: readonly JsonObject[]): JsonObject | undefined {
  let lowest: JsonObject | undefined;
  for (const item of classes) {
    if (own(item, "globalDefault") !== true) continue;
    if (lowest === undefined || priorityValue(item) < priorityValue(lowest)) lowest = item;
  }
  return lowest;
}

function priorityValue(priorityClass: JsonObject): number {
  const value = own(priorityClass, "value");
  return typeof value === "number" ? value : 0;
}

/** Only key and effect decide whether a pod has such a toleration already; its operator and value do not count. */
function withTroubleTolerations(spec: JsonObject): JsonObject {
  const present = listAt(spec, "tolerations");
  const missing = TROUBLE_TAINTS.filter((taint) => !present.some((toleration) => isAbout(toleration, taint)));
  if (missing.length === 0) return spec;
  const added = missing.map((key) => ({
    key,
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: TROUBLE_SECONDS,
  }));
  return { ...spec, tolerations: [...present, ...added] };
}

function isAbout(toleration: Json, taint: string): boolean {
  const key = stringAt(toleration, "key") ?? "";
  const effect = stringAt(toleration, "effect") ?? "";
  return (key === "" || key === taint) && (effect === "" || effect === "NoExecute");
}
