// Sets each field of an object in turn to a value that an API server never sends. No module may throw.
import { expect, test } from "vitest";
import { ReviewHandler } from "../src/admission/review/handle.ts";
import { isObject } from "../src/core/json.ts";
import { SILENT } from "../src/core/log.ts";
import { loadModules } from "../src/core/module/declaration.ts";
import type { Change } from "../src/core/view/view.ts";
import { declarations } from "../src/modules/index.ts";
import { assemblyOf } from "./builders/evaluation.ts";
import { HOSTILE_VALUES, replaced } from "./builders/hostile.ts";
import { came, clusterPolicy, namespace } from "./builders/policy.ts";
import { review, testSource } from "./support/admission/example-cluster.ts";

const TERM = { matchExpressions: [{ key: "pool", operator: "In", values: ["a", "b"] }] };
const PODS = { labelSelector: { matchLabels: { app: "web" } }, topologyKey: "zone" };
const SPREAD = {
  maxSkew: 1,
  topologyKey: "zone",
  whenUnsatisfiable: "DoNotSchedule",
  labelSelector: { matchLabels: { app: "web" } },
};
const PLACING = {
  nodeSelector: { pool: "a" },
  tolerations: [{ key: "pool", operator: "Equal", value: "a", effect: "NoSchedule" }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [TERM] },
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, preference: TERM }],
    },
    podAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [PODS],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: PODS }],
    },
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [PODS] },
  },
  topologySpreadConstraints: [SPREAD],
  schedulerName: "binpack",
  priorityClassName: "high",
  runtimeClassName: "gvisor",
};
const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "web",
    generateName: "web-",
    namespace: "shop",
    labels: { app: "web" },
    annotations: { note: "x", "usher.dev/provenance": "{}" },
    ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "web", uid: "1" }],
  },
  spec: { ...PLACING, containers: [{ name: "web", image: "web:1" }] },
};
const SELECTS = { namespaceSelector: {}, podSelector: { matchLabels: { app: "web" } } };
const OTHER = {
  nodeSelector: { pool: "b", zone: "z" },
  schedulerName: "other",
  priorityClassName: "low",
  runtimeClassName: "kata",
};

/** The policies add, conflict and refuse. */
const POLICIES = [
  clusterPolicy("adding", { ...SELECTS, ...PLACING, onUpdate: "Inject" }),
  clusterPolicy("conflicting", { ...SELECTS, ...OTHER, priority: -1 }),
  clusterPolicy("refusing", { ...SELECTS, ...PLACING, ...OTHER, enforcement: "Refuse" }),
  clusterPolicy("warning", { ...SELECTS, ...PLACING, onConflict: "Refuse", enforcement: "Warn" }),
];
const DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "shop" },
  spec: { selector: SELECTS.podSelector, template: { metadata: POD.metadata, spec: POD.spec } },
};
const NODE = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n", labels: { pool: "a" }, annotations: { note: "x" } },
  spec: { taints: [{ key: "pool", value: "a", effect: "NoSchedule" }] },
};
const RULE = {
  apiVersion: "node-labels.openshift.io/v1beta1",
  kind: "Labels",
  metadata: { name: "edge", namespace: "shop" },
  spec: {
    nodeNamePatterns: ["n.*"],
    labels: { "example.com/x": "y" },
    annotations: { "example.com/z": "y" },
    taints: [{ key: "example.com/x", value: "b", effect: "NoSchedule" }],
  },
};

const RULES: Change = { ...came(RULE), resource: "labels.node-labels.openshift.io" };

const KINDS = [
  ["pods", "", POD],
  ["deployments", "apps", DEPLOYMENT],
  ["nodes", "", NODE],
] as const;

const modules = await loadModules(declarations);

test.each(KINDS)(
  "%s with a hostile value in any field are decided by every hook",
  async (resource, group, valid) => {
    const assembly = assemblyOf(modules, [...[...POLICIES, namespace("shop")].map(came), RULES]);
    const { handle } = new ReviewHandler({ source: testSource({ assembly }), log: SILENT });
    const kind = { group, version: "v1", kind: valid.kind };
    const about = {
      kind,
      resource: { ...kind, resource },
      name: valid.metadata.name,
      namespace: resource === "nodes" ? "" : "shop",
    };
    const faults = new Set<string>();
    const outcomes = new Set<boolean>();
    for (const value of HOSTILE_VALUES) {
      for (const object of replaced(valid, value)) {
        if (!isObject(object)) continue;
        const requests = [
          { ...about, operation: "CREATE", object },
          { ...about, operation: "UPDATE", object, oldObject: valid },
          { ...about, operation: "UPDATE", object: valid, oldObject: object },
        ];
        for (const request of requests) {
          const body = Buffer.from(JSON.stringify(review(request)));
          for (const path of ["/mutate", "/validate"]) {
            const { body: text, evaluation } = await handle(body, path);
            if (text.includes("USHER-E01")) faults.add(JSON.stringify(request));
            if (evaluation !== undefined) outcomes.add(evaluation.draft.edits.length > 0);
          }
        }
      }
    }
    expect([...faults]).toEqual([]);
    // Policies applied to some objects, so the hooks did read them.
    expect(outcomes).toContain(true);
  },
  // Six thousand reviews take five seconds on an idle machine, and half a minute beside other work.
  120_000,
);
