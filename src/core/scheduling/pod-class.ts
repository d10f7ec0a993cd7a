// Which pods are equal for all filters.
import { at, canonical, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";
import { labelsOf, nameOf, namespaceOf } from "../kubernetes/object.ts";
import { labelValue } from "../kubernetes/selectors/label-selector.ts";
import type { PreparedWorld } from "./prepared-world.ts";

/** Fields of a pod's spec that filters read as they are. */
const FIELDS: readonly string[] = [
  "schedulerName",
  "schedulingGroup",
  "workloadRef",
  "schedulingGates",
  "nodeName",
  "nodeSelector",
  "tolerations",
  "topologySpreadConstraints",
  "overhead",
  "resources",
  "volumes",
  "resourceClaims",
  "hostNetwork",
  "hostUsers",
  "priority",
  "priorityClassName",
  "preemptionPolicy",
];

const CONTAINER_FIELDS: readonly string[] = ["resources", "restartPolicy", "restartPolicyRules"];
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/**
 * One string for pods that are equal for all filters, such as pods of one template. Only labels that a selector names
 * count, so that a label with the pod's own name or index creates no class.
 */
export function podClass(pod: JsonObject, world: PreparedWorld): string {
  const spec = own(pod, "spec");
  const affinity = ["nodeAffinity", "podAffinity", "podAntiAffinity"].map(
    (field) => at(spec, "affinity", field, REQUIRED) ?? null,
  );
  const containers = ["initContainers", "containers", "ephemeralContainers"].map((field) =>
    listAt(spec, field).map(containerClass),
  );
  const volumes = listAt(spec, "volumes");
  const named = volumes.some((volume) => isObject(own(volume, "ephemeral")));
  const uid = stringAt(pod, "metadata", "uid") ?? "";
  return canonical([
    namespaceOf(pod),
    namedLabels(pod, world),
    FIELDS.map((field) => own(spec, field) ?? null),
    affinity,
    containers,
    // Claims created for the pod have its name, and belong to it by its UID.
    named ? [nameOf(pod), uid] : [uid !== ""],
  ]);
}

function containerClass(container: Json): Json {
  const ports = listAt(container, "ports").filter((port) => own(port, "hostPort") !== undefined);
  const options = listAt(container, "volumeMounts").some(
    (mount) => listAt(mount, "bindMountOptions").length > 0,
  );
  return [CONTAINER_FIELDS.map((field) => own(container, field) ?? null), ports, options];
}

/** The labels that selectors of the pod itself, or of a placed pod's anti-affinity, name. */
function namedLabels(pod: JsonObject, world: PreparedWorld): Json {
  const labels = labelsOf(pod);
  if (labels === undefined) return null;
  const keys = new Set(world.placed?.antiAffinity.keys);
  const spec = own(pod, "spec");
  const terms = [
    ...listAt(spec, "topologySpreadConstraints"),
    ...listAt(spec, "affinity", "podAffinity", REQUIRED),
    ...listAt(spec, "affinity", "podAntiAffinity", REQUIRED),
  ];
  for (const term of terms) for (const key of keysOf(term)) keys.add(key);
  return [...keys].sort().map((key) => [key, labelValue(labels, key) ?? null]);
}

/** The labels that the selector of a term names. */
function keysOf(term: Json): readonly string[] {
  const selector = own(term, "labelSelector");
  const matchLabels = own(selector, "matchLabels");
  const keys: readonly (Json | undefined)[] = [
    ...(isObject(matchLabels) ? Object.keys(matchLabels) : []),
    ...listAt(selector, "matchExpressions").map((expression) => own(expression, "key")),
    ...listAt(term, "matchLabelKeys"),
    ...listAt(term, "mismatchLabelKeys"),
  ];
  return keys.filter((key) => typeof key === "string");
}
