// The ways to add a required node affinity term and a toleration to a pod at its creation: what each needs installed,
// and its policy. All have the same effect on the pods of this bench.
import type { JsonObject } from "../../src/core/json.ts";

/** `bare` is a webhook that answers with a constant. */
export const CONTENDERS = ["nothing", "in-tree", "usher", "kyverno", "gatekeeper", "bare"] as const;
export type ContenderName = (typeof CONTENDERS)[number];

/** Each contender has a namespace with this label, and only its own policies select it. */
const LABEL = "rivals.bench.usher.dev/by";
/** The pods of the bench are of this tenant; all other policies select other tenants. */
export const SELECTED = 0;

export function namespaceOf(name: ContenderName): string {
  return `by-${name}`;
}

export function namespaceObject(name: ContenderName): JsonObject {
  const namespace = namespaceOf(name);
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: namespace, labels: { [LABEL]: namespace } },
  };
}

export function podsPath(name: ContenderName): string {
  return `/api/v1/namespaces/${namespaceOf(name)}/pods`;
}

const tenantOf = (i: number): string => `tenant-${String(i).padStart(5, "0")}`;

/** A pod for a scheduler that does not run: events after its creation are not measured. */
export function podObject(): JsonObject {
  const container = (name: string): JsonObject => ({
    name,
    image: `registry.example/shop/${name}:v1.2.3`,
    command: [`/bin/${name}`, "--listen=:8080"],
    env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    resources: { requests: { cpu: "100m", memory: "200Mi" }, limits: { memory: "1Gi" } },
  });
  return {
    metadata: { generateName: "bench-", labels: { app: "shop", tenant: tenantOf(SELECTED) } },
    spec: { schedulerName: "nobody", containers: [container("shop"), container("cache")] },
  };
}

const TERM_KEY = "pool.example.com/name";
const TOLERATION = { key: "pool.example.com/reserved", operator: "Exists", effect: "NoSchedule" };

const affinityTo = (pool: string): JsonObject => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: TERM_KEY, operator: "In", values: [pool] }] }],
    },
  },
});

/** The pool that a pod was sent to, if both of its changes are there. */
export function poolOf(pod: JsonObject): string | undefined {
  const text = JSON.stringify(pod["spec"]);
  if (!text.includes(`"key":"${TOLERATION.key}"`)) return undefined;
  return new RegExp(`"key":"${TERM_KEY}","operator":"In","values":\\["([^"]+)"\\]`).exec(text)?.[1];
}

/** The patch of such a pod, as a constant: the API server has the same work for it as for other webhooks. */
export const BARE_PATCH = [
  { op: "add", path: "/spec/affinity", value: affinityTo("a") },
  { op: "add", path: "/spec/tolerations/-", value: TOLERATION },
];

interface Policy {
  /** The collection, then the name. */
  readonly path: string;
  readonly object: JsonObject;
}

const named = (path: string, object: JsonObject, name: string, apiVersion: string, kind: string): Policy => ({
  path,
  object: { apiVersion, kind, metadata: { name }, ...object },
});

const selectsFor = (name: ContenderName, i: number) => ({
  namespaceSelector: { matchLabels: { [LABEL]: namespaceOf(name) } },
  podSelector: { matchLabels: { app: "shop", tenant: tenantOf(i) } },
});

function usher(i: number, pool: string): Policy[] {
  const spec = {
    ...selectsFor("usher", i),
    affinity: affinityTo(pool),
    tolerations: [TOLERATION],
  };
  return [
    named(
      "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies",
      { spec },
      `rival-${i}`,
      "kupid.gardener.cloud/v1alpha1",
      "ClusterPodSchedulingPolicy",
    ),
  ];
}

/** As `kubectl explain` and the documentation of Kubernetes teach it; a pod that has the field keeps it and gets the rest. */
function mutations(pool: string): JsonObject[] {
  const affinity = `Object.spec.affinity{nodeAffinity: Object.spec.affinity.nodeAffinity{requiredDuringSchedulingIgnoredDuringExecution: Object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution{nodeSelectorTerms: [Object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms{matchExpressions: [Object.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.matchExpressions{key: "${TERM_KEY}", operator: "In", values: ["${pool}"]}]}]}}}`;
  const toleration = `Object.spec.tolerations{key: "${TOLERATION.key}", operator: "${TOLERATION.operator}", effect: "${TOLERATION.effect}"}`;
  const expression = `(has(object.spec.affinity) ? [] : [JSONPatch{op: "add", path: "/spec/affinity", value: ${affinity}}]) + (has(object.spec.tolerations) ? [JSONPatch{op: "add", path: "/spec/tolerations/-", value: ${toleration}}] : [JSONPatch{op: "add", path: "/spec/tolerations", value: [${toleration}]}])`;
  return [{ patchType: "JSONPatch", jsonPatch: { expression } }];
}

const PODS = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }];

const matches = (name: ContenderName, i: number) => {
  const { namespaceSelector, podSelector } = selectsFor(name, i);
  return { namespaceSelector, objectSelector: podSelector, resourceRules: PODS };
};

function inTree(i: number, pool: string): Policy[] {
  const api = "admissionregistration.k8s.io/v1";
  const name = `rival-${i}`;
  const spec = {
    matchConstraints: matches("in-tree", i),
    failurePolicy: "Fail",
    reinvocationPolicy: "Never",
    mutations: mutations(pool),
  };
  return [
    named(`/apis/${api}/mutatingadmissionpolicies`, { spec }, name, api, "MutatingAdmissionPolicy"),
    named(
      `/apis/${api}/mutatingadmissionpolicybindings`,
      { spec: { policyName: name } },
      name,
      api,
      "MutatingAdmissionPolicyBinding",
    ),
  ];
}

function kyverno(i: number, pool: string): Policy[] {
  const api = "policies.kyverno.io/v1";
  const spec = {
    matchConstraints: matches("kyverno", i),
    failurePolicy: "Fail",
    mutations: mutations(pool),
    // One policy is one rule here: kyverno would make others of it for workloads.
    autogen: { podControllers: { controllers: [] } },
    evaluation: { admission: { enabled: true }, mutateExisting: { enabled: false } },
  };
  return [named(`/apis/${api}/mutatingpolicies`, { spec }, `rival-${i}`, api, "MutatingPolicy")];
}

function gatekeeper(i: number, pool: string): Policy[] {
  const api = "mutations.gatekeeper.sh/v1";
  const applyTo = [{ groups: [""], versions: ["v1"], kinds: ["Pod"] }];
  const { namespaceSelector, podSelector } = selectsFor("gatekeeper", i);
  const match = { scope: "Namespaced", namespaceSelector, labelSelector: podSelector };
  return [
    named(
      `/apis/${api}/assign`,
      {
        spec: {
          applyTo,
          match,
          location: "spec.affinity",
          parameters: {
            pathTests: [{ subPath: "spec.affinity", condition: "MustNotExist" }],
            assign: { value: affinityTo(pool) },
          },
        },
      },
      `rival-${i}`,
      api,
      "Assign",
    ),
    named(
      `/apis/${api}/modifyset`,
      {
        spec: {
          applyTo,
          match,
          location: "spec.tolerations",
          parameters: { operation: "merge", values: { fromList: [TOLERATION] } },
        },
      },
      `rival-${i}`,
      api,
      "ModifySet",
    ),
  ];
}

/** The objects of one policy. A contender without policies has none. */
export const POLICIES: Readonly<Record<ContenderName, (i: number, pool: string) => Policy[]>> = {
  nothing: () => [],
  bare: () => [],
  usher,
  "in-tree": inTree,
  kyverno,
  gatekeeper,
};
