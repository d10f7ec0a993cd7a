import { at, isObject, type Json, type JsonObject, own, stringAt } from "../../json.ts";
import type { Path } from "../../path.ts";
import { isBuiltIn, REPLICATION_CONTROLLER, type WorkloadKind } from "../workloads.ts";
import { defaultedContainer } from "./container-defaults.ts";
import { changeItems, changeMember, fillAbsent, fillZero } from "./fill.ts";
import { defaultedVolume } from "./volume-defaults.ts";

export { admissionDefaults } from "./admission-defaults.ts";

/**
 * The object as kube-apiserver sees it after decoding, before any admission: with the defaults of pods and pod
 * templates. Returned itself if nothing is missing, else copied as far as needed; unknown fields stay. Custom resources
 * are returned unchanged: their pod templates are never defaulted.
 *
 * Not included, because no decision depends on them: rounding of quantities, pod-level resources derived from those of
 * its containers, and the fields of a workload beside its template (replicas, strategies, history limits).
 */
export function defaulted(object: JsonObject, workload: WorkloadKind): JsonObject {
  if (!isBuiltIn(workload)) return object;
  const [first, ...rest] = [...workload.template, "spec"];
  let filled = first === undefined ? object : changeAt(object, first, rest, defaultedPodSpec);
  if (workload.template.length === 0) filled = changeMember(filled, "spec", defaultedOfPodOnly);
  return workload.kind === REPLICATION_CONTROLLER.kind ? labelledAsTemplate(filled) : filled;
}

function changeAt(
  object: JsonObject,
  first: string | number,
  rest: Path,
  change: (member: JsonObject) => JsonObject,
): JsonObject {
  const [next, ...others] = rest;
  return changeMember(object, String(first), (member) =>
    next === undefined ? change(member) : changeAt(member, next, others, change),
  );
}

/** In pods and templates alike. */
function defaultedPodSpec(spec: JsonObject): JsonObject {
  let filled = fillZero(withOneServiceAccount(spec), {
    schedulerName: "default-scheduler",
    restartPolicy: "Always",
    dnsPolicy: "ClusterFirst",
  });
  filled = fillAbsent(filled, { securityContext: {}, terminationGracePeriodSeconds: 30 });
  for (const list of ["containers", "initContainers", "ephemeralContainers"]) {
    filled = changeItems(filled, list, defaultedContainer);
  }
  return changeItems(filled, "volumes", defaultedVolume);
}

/**
 * `serviceAccount` is the old name of `serviceAccountName`. The API server reads it only if the new one is empty and
 * writes it back with the new one's value.
 */
function withOneServiceAccount(spec: JsonObject): JsonObject {
  const name = stringAt(spec, "serviceAccountName") ?? "";
  const alias = stringAt(spec, "serviceAccount") ?? "";
  const meant = name === "" ? alias : name;
  if (meant === "" || (name === meant && alias === meant)) return spec;
  return { ...spec, serviceAccountName: meant, serviceAccount: meant };
}

/** In pods only: templates do not get these; the pods created from them do. */
function defaultedOfPodOnly(spec: JsonObject): JsonObject {
  let filled = fillAbsent(spec, { enableServiceLinks: true });
  const grace = own(filled, "terminationGracePeriodSeconds");
  if (typeof grace === "number" && grace < 0) filled = { ...filled, terminationGracePeriodSeconds: 1 };
  const onHost = own(spec, "hostNetwork") === true;
  for (const list of ["containers", "initContainers"]) {
    filled = changeItems(filled, list, requestingItsLimits);
    if (onHost)
      filled = changeItems(filled, list, (container) => changeItems(container, "ports", onHostPort));
  }
  return filled;
}

function requestingItsLimits(container: JsonObject): JsonObject {
  return changeMember(container, "resources", (resources) => {
    const limits = own(resources, "limits");
    const requests = own(resources, "requests") ?? {};
    if (!isObject(limits) || Object.keys(limits).length === 0 || !isObject(requests)) return resources;
    const filled = fillAbsent(requests, limits);
    return filled === requests ? resources : { ...resources, requests: filled };
  });
}

/** In the host's network a port of the container is a port of the host. */
function onHostPort(port: JsonObject): JsonObject {
  const containerPort = own(port, "containerPort");
  return typeof containerPort === "number" && containerPort !== 0
    ? fillZero(port, { hostPort: containerPort })
    : port;
}

/** A ReplicationController without labels or selector takes its template's. */
function labelledAsTemplate(controller: JsonObject): JsonObject {
  const labels = at(controller, "spec", "template", "metadata", "labels");
  if (!isObject(labels) || Object.keys(labels).length === 0) return controller;
  const selecting = changeMember(controller, "spec", (spec) => fillEmpty(spec, "selector", labels));
  const metadata = own(selecting, "metadata") ?? {};
  if (!isObject(metadata)) return selecting;
  const labelled = fillEmpty(metadata, "labels", labels);
  return labelled === metadata ? selecting : { ...selecting, metadata: labelled };
}

function fillEmpty(object: JsonObject, key: string, value: Json): JsonObject {
  const found = own(object, key) ?? {};
  return isObject(found) && Object.keys(found).length === 0 ? { ...object, [key]: value } : object;
}
