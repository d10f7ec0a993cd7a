import { isObject, type Json, type JsonObject, listAt, own, stringAt } from "../../../core/json.ts";

export type PodOS = "linux" | "windows";

/** The sources of a pod's OS, the strongest first. */
export type PodOSSource = "explicit" | "nodeSelector" | "nodeAffinity" | "runtimeClass" | "podLabel" | "none";

/** `certain`: the pod names it. `high`: it can run nowhere else. `low`: a label, which restricts nothing. */
export type PodOSConfidence = "certain" | "high" | "low" | "none";

export interface PodOSContradiction {
  /** Contradictions of the pod's OS. */
  readonly source: PodOSSource;
  readonly field: string;
  readonly message: string;
}

export interface ResolvedPodOS {
  readonly os?: PodOS;
  readonly source: PodOSSource;
  readonly confidence: PodOSConfidence;
  readonly contradictions: readonly PodOSContradiction[];
}

/** The result of one source: the OS that it names, if any, and those that it allows. */
interface Statement {
  readonly source: Exclude<PodOSSource, "none">;
  readonly field: string;
  readonly os: PodOS | undefined;
  /** As the source has it. */
  readonly value: string;
  readonly allows: (os: PodOS) => boolean;
}

export const OS_LABEL = "kubernetes.io/os";
/** Deprecated, and copied from the other one by the node lifecycle controller. */
const LABELS = [OS_LABEL, "beta.kubernetes.io/os"];
/** Terms, requirements and values that a message lists: each takes at least two of the 1,024 characters of a refusal's line. */
const MOST_DESCRIBED = 512;
const AFFINITY = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
const CONFIDENCE: Readonly<Record<PodOSSource, PodOSConfidence>> = {
  explicit: "certain",
  nodeSelector: "high",
  nodeAffinity: "high",
  runtimeClass: "high",
  podLabel: "low",
  none: "none",
};

/**
 * The OS of a pod, or of the pod of a template, by the strongest source that names one, and its contradictions. A value
 * other than linux and windows names none, and contradicts both.
 */
export function resolvePodOS(
  { metadata, spec }: { readonly metadata?: JsonObject | undefined; readonly spec?: JsonObject | undefined },
  runtimeClass?: JsonObject,
): ResolvedPodOS {
  const statements = [
    ...named("explicit", "spec.os.name", stringAt(spec, "os", "name")),
    ...LABELS.flatMap((key) =>
      named("nodeSelector", `spec.nodeSelector[${key}]`, stringAt(spec, "nodeSelector", key)),
    ),
    ...affinityStatement(spec),
    ...LABELS.flatMap((key) =>
      named(
        "runtimeClass",
        "spec.runtimeClassName",
        stringAt(runtimeClass, "scheduling", "nodeSelector", key),
      ),
    ),
    ...named("podLabel", `metadata.labels[${OS_LABEL}]`, stringAt(metadata, "labels", OS_LABEL)),
  ];
  const first = statements.find(({ os }) => os !== undefined);
  if (first?.os === undefined) return { source: "none", confidence: "none", contradictions: [] };
  const { os, source, field } = first;
  const contradictions = statements
    .filter(({ allows }) => !allows(os))
    .map((one) => ({
      source: one.source,
      field: one.field,
      message: `${one.value} contradicts ${field}: ${os}`,
    }));
  return { os, source, confidence: CONFIDENCE[source], contradictions };
}

function isOS(value: string): value is PodOS {
  return value === "linux" || value === "windows";
}

function named(source: Statement["source"], field: string, value: string | undefined): Statement[] {
  if (value === undefined || value === "") return [];
  return [{ source, field, value, os: isOS(value) ? value : undefined, allows: (os) => os === value }];
}

/** Terms are alternatives, so a required affinity names an OS only if each term that can match does. */
function affinityStatement(spec: JsonObject | undefined): Statement[] {
  const written = listAt(spec, "affinity", ...AFFINITY.split("."));
  // Usually none does, and then nothing is kept of thousands of terms.
  if (!written.some((term) => listAt(term, "matchExpressions").some(mentionsOS))) return [];
  const terms = written
    .filter(isObject)
    // A term with nothing in it matches no node.
    .filter((term) => listAt(term, "matchExpressions").length + listAt(term, "matchFields").length > 0)
    .map((term) => listAt(term, "matchExpressions").filter(mentionsOS))
    .map((expressions) => ({
      names: expressions.some((one) => stringAt(one, "operator") === "In"),
      allows: (os: PodOS) => expressions.every((one) => allowedBy(one, os)),
      expressions,
    }));
  if (!terms.some(({ expressions }) => expressions.length > 0)) return [];
  const allows = (os: PodOS): boolean => terms.some((term) => term.allows(os));
  const possible = (["linux", "windows"] as const).filter(allows);
  const os = terms.every(({ names }) => names) && possible.length === 1 ? possible[0] : undefined;
  const value = terms
    .slice(0, MOST_DESCRIBED)
    .map(({ expressions }) => expressions.slice(0, MOST_DESCRIBED).map(described).join(" and ") || "any")
    .join(" or ");
  return [{ source: "nodeAffinity", field: `spec.affinity.${AFFINITY}`, os, value, allows }];
}

function mentionsOS(expression: Json): boolean {
  return LABELS.includes(stringAt(expression, "key") ?? "");
}

function allowedBy(expression: Json, os: PodOS): boolean {
  const values = listAt(expression, "values");
  switch (own(expression, "operator")) {
    case "In":
      return values.includes(os);
    case "NotIn":
      return !values.includes(os);
    case "DoesNotExist":
      // Every node of a kubelet has the label.
      return false;
    default:
      return true;
  }
}

function described(expression: Json): string {
  const values = listAt(expression, "values")
    .slice(0, MOST_DESCRIBED)
    .filter((value) => typeof value === "string");
  return `${stringAt(expression, "key")} ${stringAt(expression, "operator") ?? ""} (${values.join(", ")})`;
}
