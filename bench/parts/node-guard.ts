// The node guard: the worst-case cost of a verdict, and the module's cost for a pod that it does not affect.

import { Facts } from "../../src/core/decision/need.ts";
import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluateHooks } from "../../src/core/evaluate/evaluate-hooks.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import { nodeGuard } from "../../src/modules/node-guard/index.ts";
import { podObject } from "../fixtures/pod.ts";
import { time } from "../report/number.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import type { Servers } from "../servers/servers.ts";

const NODES = 10_000;
const PROTECTED = 100;
const ENTRIES = 1_000;
const VERDICT_AT_MOST_MS = 50;
/** Of each request: as many as a p99 needs. */
const ROUNDS = 300;
const LABEL = "node-role.kubernetes.io/control-plane";
const NOW = 1_700_000_000_000;

function nodeObject(i: number): JsonObject {
  const isProtected = i < PROTECTED;
  const labels = {
    "kubernetes.io/hostname": `node-${i}`,
    "topology.kubernetes.io/zone": `zone-${i % 5}`,
    pool: `pool-${i % 50}`,
    ...(isProtected ? { [LABEL]: "" } : {}),
  };
  const spec = isProtected ? { taints: [{ key: LABEL, effect: "NoSchedule" }] } : {};
  return { apiVersion: "v1", kind: "Node", metadata: { name: `node-${i}`, labels }, spec };
}

function guardedAssembly(): Assembly {
  const group = {
    name: "ControlPlane",
    mode: "Enable",
    labelSelector: { matchExpressions: [{ key: LABEL, operator: "Exists" }] },
    authorizedUsers: Array.from({ length: ENTRIES }, (_, i) => `namespace-${i}/account-${i}`),
  };
  const installation = {
    ...DEFAULT_INSTALLATION,
    settings: { "node-guard": { policy: { groups: [group] } } },
  };
  const gates = new Gates(nodeGuard.gates ?? [], new Map([["OpenShiftNodeSchedulingPolicy", true]]));
  const assembly = new Assembly([nodeGuard], installation, gates);
  assembly.apply(
    Array.from({ length: NODES }, (_, i) => ({
      resource: "nodes",
      namespace: "",
      name: `node-${i}`,
      object: nodeObject(i),
    })),
  );
  return assembly;
}

function podWith(spec: JsonObject): JsonObject {
  const pod = podObject(1, "main") as JsonObject;
  const containers = Array.from({ length: 20 }, (_, i) => ({
    name: `c${i}`,
    image: "i",
    env: Array.from({ length: 50 }, (_, e) => ({ name: `E${e}`, value: "x" })),
  }));
  return { ...pod, spec: { ...(pod["spec"] as JsonObject), containers, ...spec } };
}

function requiring(terms: readonly JsonObject[]): JsonObject {
  return {
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
    },
  };
}

/** Terms that match no node, so that every node is compared with all of them. */
const VAIN_TERMS = Array.from({ length: 50 }, (_, i) => ({
  matchExpressions: [
    { key: "topology.kubernetes.io/zone", operator: "Exists" },
    { key: "pool", operator: "In", values: [`none-${i}`] },
  ],
}));
const ONE_PROTECTED = {
  matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["node-7"] }],
};
const EXISTS = { tolerations: [{ operator: "Exists" }] };

/** As many as a request of 3 MiB has. */
const REQUIREMENTS = Array.from({ length: 60_000 }, (_, i) => ({ key: `k${i}`, operator: "DoesNotExist" }));

const PODS: Readonly<Record<string, JsonObject>> = {
  "a large pod that only a protected node fits": podWith({
    ...EXISTS,
    ...requiring([...VAIN_TERMS, ONE_PROTECTED]),
  }),
  "a large pod that is steered": podWith(EXISTS),
  "a pod with the most requirements that are looked at": podWith({
    ...EXISTS,
    ...requiring([{ matchExpressions: REQUIREMENTS.slice(0, 1_900) }]),
  }),
  "a pod with 60,000 requirements": podWith({
    ...EXISTS,
    ...requiring([{ matchExpressions: REQUIREMENTS }]),
  }),
  "a pod that no group concerns": podObject(2, "main") as JsonObject,
};

function requestOf(object: JsonObject): AdmissionRequest {
  return {
    uid: "u",
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: "",
    name: "web",
    namespace: "shop",
    operation: "CREATE",
    userInfo: { username: "jane", groups: ["system:authenticated"] },
    object,
    oldObject: undefined,
    dryRun: false,
    options: undefined,
  };
}

/** Both phases, as the API server calls them. */
function verdict(assembly: Assembly, pod: JsonObject): void {
  const common = { assembly, hooks: assembly.hooks, now: NOW };
  const mutated = evaluateHooks(
    { ...common, phase: "mutate", request: requestOf(structuredClone(pod)) },
    new Facts(),
  );
  if ("needs" in mutated) throw new Error("the bench needs no facts");
  evaluateHooks({ ...common, phase: "validate", request: requestOf(mutated.draft.object) }, new Facts());
}

export async function nodeGuardPart({ quick }: Servers): Promise<Result> {
  const assembly = guardedAssembly();
  const rounds = quick ? ROUNDS / 3 : ROUNDS;
  const figures: Record<string, { median: number; p99: number }> = {};
  const rows: Row[] = [];
  for (const [what, pod] of Object.entries(PODS)) {
    for (let i = 0; i < 20; i++) verdict(assembly, pod);
    const times: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const copied = performance.now();
      structuredClone(pod);
      const started = performance.now();
      verdict(assembly, pod);
      // Less the copy, which the API server's request needs no more than once.
      times.push(performance.now() - started - (started - copied));
    }
    times.sort((a, b) => a - b);
    const median = times[Math.floor(rounds / 2)] ?? Number.NaN;
    const p99 = times[Math.floor(rounds * 0.99)] ?? Number.NaN;
    figures[what] = { median, p99 };
    rows.push({
      what,
      figure: `${time(p99 * 1_000)} p99`,
      detail: `${time(median * 1_000)} median`,
      target: atMost(VERDICT_AT_MOST_MS, p99, " ms"),
    });
  }
  const title = `node guard: ${NODES} nodes, ${ENTRIES} entries, both phases`;
  return { title, rows, figures };
}
