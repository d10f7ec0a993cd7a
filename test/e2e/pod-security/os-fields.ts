// Every field of a pod spec, classified by OS. A field that the API server has and this list lacks fails a test: it
// belongs in one of the tables of OS validation, or here.
import { at, type JsonObject, stringAt } from "../../../src/core/json.ts";
import {
  CONTAINER_LISTS,
  LINUX_CONTEXT,
  WINDOWS_CONTAINER_CONTEXT,
  WINDOWS_POD,
  WINDOWS_POD_CONTEXT,
} from "../../../src/modules/pod-os/os/tables.ts";

export type FieldClass = "any" | "linux" | "windows" | "by os";

const ANY_POD =
  "volumes restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork imagePullSecrets hostname subdomain affinity schedulerName tolerations hostAliases priorityClassName priority dnsConfig readinessGates runtimeClassName enableServiceLinks preemptionPolicy overhead topologySpreadConstraints setHostnameAsFQDN os schedulingGates resourceClaims hostnameOverride schedulingGroup evictionResponders";
const ANY_CONTAINER =
  "name image command args workingDir ports envFrom env resources resizePolicy restartPolicy restartPolicyRules volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle.postStart lifecycle.preStop terminationMessagePath terminationMessagePolicy imagePullPolicy stdin stdinOnce tty securityContext.runAsNonRoot";
/** Only in ephemeral containers. */
const EPHEMERAL = "ephemeralContainers.targetContainerName";

function classified(fieldClass: FieldClass, paths: readonly string[]): [string, FieldClass][] {
  return paths.map((path) => [path, fieldClass]);
}

/** The class of a field applies to all fields below it. */
export const CLASSES: ReadonlyMap<string, FieldClass> = new Map([
  ...classified("any", [...ANY_POD.split(" "), "securityContext.runAsNonRoot", EPHEMERAL]),
  // Fields that the API server refuses in a Windows pod belong to Linux, and vice versa.
  ...classified("linux", [...WINDOWS_POD, "resources"]),
  ...classified(
    "linux",
    WINDOWS_POD_CONTEXT.map((field) => `securityContext.${field}`),
  ),
  ...classified(
    "windows",
    LINUX_CONTEXT.map((field) => `securityContext.${field}`),
  ),
  ...CONTAINER_LISTS.flatMap((list) => [
    ...classified(
      "any",
      ANY_CONTAINER.split(" ").map((field) => `${list}.${field}`),
    ),
    ...classified(
      "linux",
      WINDOWS_CONTAINER_CONTEXT.map((field) => `${list}.securityContext.${field}`),
    ),
    ...classified(
      "windows",
      LINUX_CONTEXT.map((field) => `${list}.securityContext.${field}`),
    ),
    ...classified("by os", [`${list}.lifecycle.stopSignal`]),
  ]),
]);

const POD_SPEC = "io.k8s.api.core.v1.PodSpec";

/** The fields of a pod spec in an OpenAPI document, down to classified fields. */
export function podFields(
  openapi: JsonObject,
): { readonly path: string; readonly fieldClass: FieldClass | undefined }[] {
  const found: { path: string; fieldClass: FieldClass | undefined }[] = [];
  const visit = (schema: JsonObject | undefined, path: string): void => {
    const fieldClass = CLASSES.get(path);
    const inner = properties(openapi, schema);
    if (fieldClass !== undefined || inner.length === 0) {
      found.push({ path, fieldClass });
      return;
    }
    for (const [name, property] of inner) visit(property, path === "" ? name : `${path}.${name}`);
  };
  visit(at(openapi, "components", "schemas", POD_SPEC) as JsonObject, "");
  return found;
}

/** Of an object, or of the elements of a list; references and their `allOf` are followed. */
function properties(openapi: JsonObject, schema: JsonObject | undefined): [string, JsonObject][] {
  const reference =
    stringAt(schema, "$ref") ??
    stringAt(schema, "allOf", 0, "$ref") ??
    stringAt(schema, "items", "$ref") ??
    stringAt(schema, "items", "allOf", 0, "$ref");
  const name = reference?.split("/").at(-1);
  const target = name === undefined ? schema : at(openapi, "components", "schemas", name);
  return Object.entries((at(target, "properties") ?? {}) as Record<string, JsonObject>);
}
