// One pod, evaluated by the API server's plugin PodSecurity and by usher.
import { isObject, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { evaluatePodSecurity } from "../../../src/modules/pod-os/security/evaluate.ts";
import type { ClusterAccess } from "../../cluster/access/access.ts";
import type { AskedPod } from "./pods.ts";

/** Concurrent requests. */
const PARALLEL = 12;
const LABELS = "pod-security.kubernetes.io/";

export interface Difference {
  readonly pod: string;
  readonly policy: string;
  readonly server: string;
  readonly usher: string;
}

export interface Comparison {
  /** The number of each check's pods that reached the plugin. */
  readonly compared: Map<string, number>;
  readonly denied: Map<string, number>;
  readonly differences: Difference[];
}

/** A namespace that enforces one level at one version, and warns by restricted if that is baseline. */
export async function policyNamespace(
  cluster: ClusterAccess,
  level: string,
  version: string,
): Promise<string> {
  const name = `${level}-${version.replace(".", "-")}`;
  await cluster.call("POST", "/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name,
      labels: {
        [`${LABELS}enforce`]: level,
        [`${LABELS}enforce-version`]: version,
        [`${LABELS}warn`]: "restricted",
        [`${LABELS}warn-version`]: version,
      },
    },
  });
  return name;
}

export function podObject({ metadata, spec }: { metadata: JsonObject; spec: JsonObject }): JsonObject {
  return { apiVersion: "v1", kind: "Pod", metadata, spec };
}

/** The warning of the plugin, as the header quotes it. */
function warningOf(header: string | string[] | undefined): string {
  const text = [header ?? []].flat().join(", ");
  const found = /299 - "(would violate PodSecurity (?:\\.|[^"\\])*)"/.exec(text)?.[1] ?? "";
  return found.replace(/\\(.)/g, "$1");
}

export async function compare(
  cluster: ClusterAccess,
  jobs: readonly { readonly pod: AskedPod; readonly namespace: string; readonly version: string }[],
  newest: number,
): Promise<Comparison> {
  const result: Comparison = { compared: new Map(), denied: new Map(), differences: [] };
  const pending = [...jobs];
  const worker = async (): Promise<void> => {
    for (let job = pending.pop(); job !== undefined; job = pending.pop()) {
      const { pod, namespace, version } = job;
      const level = namespace.split("-")[0] ?? "";
      const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
      const { status, body, headers } = await cluster.request("POST", path, podObject(pod));
      // Not valid, so the plugin was not called.
      if (status === 422) continue;
      const judge = (by: string) =>
        evaluatePodSecurity({ level: by, version }, pod.metadata, pod.judged, {
          osSkipTrusted: true,
          newest,
        });
      const { allowed, policy, detail } = judge(level);
      result.compared.set(pod.check, (result.compared.get(pod.check) ?? 0) + 1);
      let server: string;
      let usher: string;
      if (allowed) {
        const restricted = judge("restricted");
        server = `${status} ${status === 201 ? warningOf(headers["warning"]) : stringAt(body, "message")}`;
        usher = `201 ${restricted.allowed ? "" : `would violate PodSecurity "${restricted.policy}": ${restricted.detail}`}`;
      } else {
        result.denied.set(pod.check, (result.denied.get(pod.check) ?? 0) + 1);
        server = `${status} ${isObject(body) ? stringAt(body, "message") : ""}`;
        usher = `403 pods "p" is forbidden: violates PodSecurity "${policy}": ${detail}`;
      }
      if (server !== usher) result.differences.push({ pod: pod.name, policy, server, usher });
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return result;
}

/** The causes of a refusal, as lines. */
export function causeLines(body: unknown): string[] {
  return listAt(body as JsonObject, "details", "causes").map(
    (cause) => `${stringAt(cause, "field")} ${stringAt(cause, "reason")} ${stringAt(cause, "message")}`,
  );
}
