// Every way to make a pod of high priority schedulable on a protected node, with pods and with every kind of workload,
// as a tenant would try.
import { at, type Json, type JsonObject, listAt } from "../../../src/core/json.ts";
import { BUILT_IN_WORKLOADS, type WorkloadKind } from "../../../src/core/kubernetes/workloads.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { ROLE } from "./rows.ts";
import { EVERYTHING, type GuardStage, MALLORY, workload } from "./stage.ts";

export interface Tried {
  readonly way: string;
  readonly status: number;
  readonly expected: number;
}

const TENANT = "m3";
const GATED: JsonObject = { schedulingGates: [{ name: "example.com/a" }] };
const TOO_MANY: JsonObject = {
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: Array.from({ length: 257 }, (_, i) => ({
          matchExpressions: [{ key: `k${i}`, operator: "DoesNotExist" }],
        })),
      },
    },
  },
};
/** The API server allows one write of a Job's template, and a PodTemplate creates no pods. */
const KINDS = BUILT_IN_WORKLOADS.filter(
  ({ kind, template }) => template.length > 0 && kind !== "PodTemplate",
);

/** Tries all ways in sequence. `important` is the priority that a pod needs to evict others on a full node. */
export async function tryEvictions(
  stage: GuardStage,
  cluster: () => Cluster,
  important: JsonObject,
): Promise<readonly Tried[]> {
  const all: Tried[] = [];
  const pods = `/api/v1/namespaces/${TENANT}/pods`;
  const send = async (method: string, path: string, body: JsonObject, way: string, expected: number) => {
    const { status } = await cluster().request(method, path, body, MALLORY);
    all.push({ way, status, expected });
  };
  const create = async (name: string, spec: JsonObject, way: string, expected = 201) => {
    const { status } = await stage.pod({ ...important, ...spec }, { namespace: TENANT, metadata: { name } });
    all.push({ way, status, expected });
  };
  const tolerate = async (name: string, more: JsonObject, way: string, expected: number) => {
    const before = listAt(await cluster().call("GET", `${pods}/${name}`), "spec", "tolerations");
    const tolerations: readonly Json[] = [...before, { operator: "Exists" }];
    await send("PATCH", `${pods}/${name}`, { spec: { tolerations, ...more } }, way, expected);
  };
  await create("late", {}, "a pending pod");
  await tolerate("late", {}, "row 25: gets a toleration", 403);
  await create("gated", GATED, "a gated pod");
  await tolerate("gated", {}, "row 83: gets a toleration", 200);
  await send(
    "PATCH",
    `${pods}/gated`,
    { spec: { schedulingGates: null } },
    "row 83: its gate is removed",
    200,
  );
  await create("large", { ...EVERYTHING, ...TOO_MANY }, "row 78: a pod of 257 terms", 403);
  const tolerations = [
    { operator: "Exists" },
    ...Array.from({ length: 2_000 }, (_, i) => ({ key: `k${i}`, operator: "Exists" })),
  ];
  await create("tolerant", { tolerations }, "row 78: a pod of 2,001 tolerations", 403);
  for (const kind of KINDS) {
    const path = `${kind.group === "" ? "/api" : "/apis"}/${[kind.group, kind.version].filter(Boolean).join("/")}/namespaces/${TENANT}/${kind.resource}`;
    const name = `all-${kind.kind.toLowerCase()}`;
    const late = kind.kind === "Job" ? EVERYTHING : {};
    await send("POST", path, objectOf(kind, name, { ...important, ...late }), `row 80: a ${kind.kind}`, 201);
    const patch = around(kind, { spec: EVERYTHING });
    if (kind.kind !== "Job")
      await send("PATCH", `${path}/${name}`, patch, `row 80: its template gets a toleration`, 200);
    const large = objectOf(kind, `${name}-large`, { ...important, ...EVERYTHING, ...TOO_MANY });
    await send("POST", path, large, `row 78: a ${kind.kind} of 257 terms`, 403);
    const there = { ...important, ...EVERYTHING, nodeSelector: { [ROLE]: "" } };
    if (kind.kind === "DaemonSet")
      await send(
        "POST",
        path,
        objectOf(kind, `${name}-there`, there),
        "row 81: a DaemonSet for protected nodes",
        403,
      );
  }
  return all;
}

/** Ends the workloads that create pods repeatedly. */
export async function endEvictions(cluster: () => Cluster): Promise<void> {
  await cluster().call("DELETE", `/apis/batch/v1/namespaces/${TENANT}/cronjobs/all-cronjob`);
}

function objectOf(kind: WorkloadKind, name: string, spec: JsonObject): JsonObject {
  const plain = workload(name, spec);
  const template = at(plain, "spec", "template") as JsonObject;
  const selector = { app: name };
  const once = { ...template, spec: { ...(template["spec"] as JsonObject), restartPolicy: "Never" } };
  const specs: Readonly<Record<string, JsonObject>> = {
    ReplicationController: { selector, template },
    StatefulSet: { selector: { matchLabels: selector }, serviceName: name, template },
    Job: { template: once },
    CronJob: { schedule: "* * * * *", jobTemplate: { spec: { template: once } } },
  };
  return { metadata: { name }, spec: specs[kind.kind] ?? (plain["spec"] as JsonObject) };
}

function around({ template }: WorkloadKind, inner: JsonObject): JsonObject {
  return template.reduceRight<JsonObject>((made, step) => ({ [step]: made }), inner);
}
