// The API server's refusals by the OS of a pod, compared with validatePodOS.
import { expect, test } from "vitest";
import { type JsonObject, listAt, setOwn } from "../../../src/core/json.ts";
import { BUILT_IN_WORKLOADS, specPath, type WorkloadKind } from "../../../src/core/kubernetes/workloads.ts";
import { fieldPath } from "../../../src/core/path.ts";
import type { PodFieldError } from "../../../src/modules/pod-os/field-error.ts";
import { validatePodOSResize, validatePodOSUpdate } from "../../../src/modules/pod-os/os/update.ts";
import { validatePodOS } from "../../../src/modules/pod-os/os/validate.ts";
import type { ClusterAccess } from "../../cluster/access/access.ts";
import { causeLines } from "./differential.ts";

const NAMESPACE = "os-validation";

const CONTAINER_CONTEXT: JsonObject = {
  appArmorProfile: { type: "RuntimeDefault" },
  seLinuxOptions: { level: "s0" },
  seccompProfile: { type: "RuntimeDefault" },
  capabilities: {},
  readOnlyRootFilesystem: false,
  privileged: false,
  allowPrivilegeEscalation: false,
  procMount: "Default",
  runAsUser: 0,
  runAsGroup: 0,
};
const POD_CONTEXT: JsonObject = {
  appArmorProfile: { type: "RuntimeDefault" },
  seLinuxOptions: {},
  seccompProfile: { type: "RuntimeDefault" },
  fsGroup: 1,
  fsGroupChangePolicy: "Always",
  sysctls: [{ name: "kernel.shm_rmid_forced", value: "1" }],
  runAsUser: 1,
  runAsGroup: 1,
  supplementalGroups: [],
  supplementalGroupsPolicy: "Strict",
  seLinuxChangePolicy: "Recursive",
};
const ending = (name: string, stopSignal: string): JsonObject => ({ name, lifecycle: { stopSignal } });
const sidecar = { restartPolicy: "Always" };

/** By what each case shows. Containers get an image when they are sent. */
const SPECS: Readonly<Record<string, JsonObject>> = {
  "an empty os": { os: {} },
  "an unknown os": { os: { name: "plan9<" } },
  "linux with windowsOptions": {
    os: { name: "linux" },
    securityContext: { windowsOptions: {} },
    containers: [{ name: "c", securityContext: { windowsOptions: { runAsUserName: "u" } } }],
    initContainers: [{ name: "i", securityContext: { windowsOptions: {} } }],
  },
  "windows with all that is forbidden": {
    os: { name: "windows" },
    securityContext: POD_CONTEXT,
    hostUsers: true,
    shareProcessNamespace: false,
    resources: { limits: { cpu: "1" } },
    containers: [
      { name: "c", securityContext: CONTAINER_CONTEXT },
      { name: "d", ...ending("d", "SIGHUP") },
    ],
    initContainers: [{ ...ending("i", "SIGINT"), ...sidecar, securityContext: { runAsUser: 0 } }],
  },
  "windows with hostPID and hostIPC": { os: { name: "windows" }, hostPID: true, hostIPC: true },
  "windows with its own fields": {
    os: { name: "windows" },
    hostPID: false,
    hostIPC: false,
    securityContext: { sysctls: [], runAsNonRoot: true, windowsOptions: { runAsUserName: "u" } },
    containers: [ending("c", "SIGKILL")],
  },
  "a stop signal without os": {
    containers: [ending("c", "SIGTERM")],
    initContainers: [{ ...ending("i", "SIGTERM"), ...sidecar }],
  },
  "a stop signal that Linux does not have": { os: { name: "linux" }, containers: [ending("c", "SIGNOT")] },
  "stop signals that Linux has": {
    os: { name: "linux" },
    containers: [ending("c", "SIGRTMIN+15"), ending("d", "SIGRTMAX-14"), ending("e", "SIGPWR")],
  },
};

function withImages(spec: JsonObject): JsonObject {
  const sent: Record<string, JsonObject[] | JsonObject[string]> = { containers: [{ name: "c" }], ...spec };
  for (const list of ["containers", "initContainers"])
    if (sent[list] !== undefined)
      sent[list] = listAt(sent as JsonObject, list).map((one) => ({ image: "i", ...(one as JsonObject) }));
  return sent as JsonObject;
}

function objectOf(workload: WorkloadKind, podSpec: JsonObject): JsonObject {
  const { group, version, kind, template } = workload;
  const labels = { app: "a" };
  const restarts = group === "batch" ? { restartPolicy: "Never" } : {};
  const root: Record<string, JsonObject[string]> = {
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    metadata: { name: "p", labels },
  };
  let here = root;
  for (const step of template) {
    const next: Record<string, JsonObject[string]> = {};
    // The required fields of a workload beside its template.
    if (step === "template" && here !== root && group === "apps") here["selector"] = { matchLabels: labels };
    if (step === "template" && here !== root && kind === "ReplicationController") here["selector"] = labels;
    if (step === "jobTemplate") here["schedule"] = "* * * * *";
    if (step === "template" && kind === "StatefulSet") here["serviceName"] = "s";
    setOwn(here, String(step), next);
    here = next;
  }
  if (here !== root) here["metadata"] = { labels };
  here["spec"] = { ...podSpec, ...restarts };
  return root;
}

export function describeOSValidation(cluster: () => ClusterAccess): void {
  test.each(BUILT_IN_WORKLOADS.map((workload) => [workload.kind, workload] as const))(
    "%s",
    async (_kind, workload) => {
      await makeNamespace(cluster());
      const { group, version, resource } = workload;
      const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
      const prefix = fieldPath(specPath(workload));
      for (const [name, given] of Object.entries(SPECS)) {
        const spec = withImages(given);
        const path = `${root}/namespaces/${NAMESPACE}/${resource}?dryRun=All`;
        const { status, body } = await cluster().request("POST", path, objectOf(workload, spec));
        const expected = described(validatePodOS(spec, prefix));
        expect({ name, status, causes: causeLines(body) }).toEqual({
          name,
          status: expected.length === 0 ? 201 : 422,
          causes: expected,
        });
      }
    },
  );

  test("updates of a pod: immutable os, ephemeral containers, resize", async () => {
    await makeNamespace(cluster());
    const spec = { os: { name: "windows" }, containers: [{ name: "c", image: "i" }] };
    const pods = `/api/v1/namespaces/${NAMESPACE}/pods`;
    await cluster().call("POST", pods, { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec });
    const stored = (await cluster().call("GET", `${pods}/p`)) as JsonObject;
    const storedSpec = stored["spec"] as JsonObject;

    const changed = { ...storedSpec, os: { name: "linux" } };
    const update = await cluster().request("PUT", `${pods}/p?dryRun=All`, { ...stored, spec: changed });
    const [line = ""] = causeLines(update.body);
    // The API server adds the difference of both specs.
    expect([line.split("\n")[0]]).toEqual(described(validatePodOSUpdate(storedSpec, changed)));

    const debug = {
      name: "d",
      image: "i",
      imagePullPolicy: "Always",
      terminationMessagePolicy: "File",
      securityContext: { privileged: false, runAsUser: 0 },
    };
    const debugged = { ...storedSpec, ephemeralContainers: [debug] };
    const added = await cluster().request("PUT", `${pods}/p/ephemeralcontainers?dryRun=All`, {
      ...stored,
      spec: debugged,
    });
    expect(causeLines(added.body)).toEqual(described(validatePodOSUpdate(storedSpec, debugged)));

    const sizes = { limits: { cpu: "1" } };
    const resized = { ...storedSpec, containers: [{ name: "c", image: "i", resources: sizes }] };
    const resize = await cluster().request("PUT", `${pods}/p/resize?dryRun=All`, {
      ...stored,
      spec: resized,
    });
    expect(causeLines(resize.body)).toEqual(described(validatePodOSResize(storedSpec)));
    expect([update.status, added.status, resize.status]).toEqual([422, 422, 422]);
  });
}

function makeNamespace(cluster: ClusterAccess): Promise<unknown> {
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } };
  return cluster.request("POST", "/api/v1/namespaces", namespace);
}

/** In the API server's order of causes. */
function described(errors: readonly PodFieldError[]): string[] {
  return errors.map(({ field, type, message }) => `${field} FieldValue${type} ${message}`);
}
