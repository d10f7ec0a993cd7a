// The contests, and the policies of each contender: policies add a required node affinity term and a toleration to a pod
// at its creation, refuse a pod that asks for the nodes of the control plane, or judge a pod by the Pod Security Standard
// restricted. All contenders of a contest have the same effect on its pods.
import { type JsonObject, listAt } from "../../src/core/json.ts";
import { controlPlanePolicy } from "../../test/builders/guard.ts";
import type { Identity } from "../../test/cluster/access/identity.ts";

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

/** Azure adds the expression that excludes this label to every webhook, and usher leaves it there. */
export const NOT_FOR_USHER = "kubernetes.azure.com/managedby";

export function namespaceObject(name: ContenderName, { judged }: Contest): JsonObject {
  const namespace = namespaceOf(name);
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: namespace,
      labels: {
        [LABEL]: namespace,
        ...(name === "usher" ? {} : { [NOT_FOR_USHER]: "aks" }),
        ...(judged?.includes(name) ? { "pod-security.kubernetes.io/enforce": "restricted" } : {}),
      },
    },
  };
}

export function podsPath(name: ContenderName): string {
  return `/api/v1/namespaces/${namespaceOf(name)}/pods`;
}

const tenantOf = (i: number): string => `tenant-${String(i).padStart(5, "0")}`;

/** A pod for a scheduler that does not run: events after its creation are not measured. */
function podWith(spec: JsonObject): JsonObject {
  const container = (name: string): JsonObject => ({
    name,
    image: `registry.example/shop/${name}:v1.2.3`,
    command: [`/bin/${name}`, "--listen=:8080"],
    env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    resources: { requests: { cpu: "100m", memory: "200Mi" }, limits: { memory: "1Gi" } },
  });
  return {
    metadata: { generateName: "bench-", labels: { app: "shop", tenant: tenantOf(SELECTED) } },
    spec: { schedulerName: "nobody", containers: [container("shop"), container("cache")], ...spec },
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
function poolOf(pod: JsonObject): string | undefined {
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

const ROLE = "node-role.kubernetes.io/control-plane";
const REFUSED = "not for the nodes of the control plane";

/** As people write it who know which nodes they mean: it looks at the pod alone. */
const VALIDATIONS = [
  {
    expression: `!has(object.spec.nodeSelector) || !("${ROLE}" in object.spec.nodeSelector)`,
    message: REFUSED,
  },
  {
    expression: `!has(object.spec.tolerations) || !object.spec.tolerations.exists(t, !has(t.key) || t.key == "${ROLE}")`,
    message: REFUSED,
  },
];

function guardedInTree(): Policy[] {
  const api = "admissionregistration.k8s.io/v1";
  const name = "rival-guard";
  const spec = {
    matchConstraints: matches("in-tree", SELECTED),
    failurePolicy: "Fail",
    validations: VALIDATIONS,
  };
  return [
    named(`/apis/${api}/validatingadmissionpolicies`, { spec }, name, api, "ValidatingAdmissionPolicy"),
    named(
      `/apis/${api}/validatingadmissionpolicybindings`,
      { spec: { policyName: name, validationActions: ["Deny"] } },
      name,
      api,
      "ValidatingAdmissionPolicyBinding",
    ),
  ];
}

function guardedByKyverno(): Policy[] {
  const api = "policies.kyverno.io/v1";
  const spec = {
    matchConstraints: matches("kyverno", SELECTED),
    failurePolicy: "Fail",
    validationActions: ["Deny"],
    validations: VALIDATIONS,
    autogen: { podControllers: { controllers: [] } },
    evaluation: { background: { enabled: false } },
  };
  return [named(`/apis/${api}/validatingpolicies`, { spec }, "rival-guard", api, "ValidatingPolicy")];
}

/** It guards nodes, in every namespace: the others of this contest are asked about their own namespace. */
function guardedByUsher(): Policy[] {
  const api = "scheduling.openshift.io/v1alpha1";
  return [{ path: `/apis/${api}/nodeschedulingpolicies`, object: controlPlanePolicy({ mode: "Enable" }) }];
}

/** Its rule for Pod Security has the library of Kubernetes inside. */
function securedByKyverno(): Policy[] {
  const api = "kyverno.io/v1";
  const resources = { kinds: ["Pod"], operations: ["CREATE"], namespaces: [namespaceOf("kyverno")] };
  const rule = {
    name: "restricted",
    match: { any: [{ resources }] },
    validate: { failureAction: "Enforce", podSecurity: { level: "restricted", version: "latest" } },
  };
  const annotations = { "pod-policies.kyverno.io/autogen-controllers": "none" };
  const object: JsonObject = {
    apiVersion: api,
    kind: "ClusterPolicy",
    metadata: { name: "rival-restricted", annotations },
    spec: { background: false, failurePolicy: "Fail", rules: [rule] },
  };
  return [{ path: `/apis/${api}/clusterpolicies`, object }];
}

const OFF = { enabled: false };

export interface Contest {
  readonly name: "placing" | "guarding" | "refusing" | "passing";
  readonly title: string;
  /** The pods that are created. */
  readonly pod: () => JsonObject;
  /** A pod that shows whether the policies are in force; absent: the created pods do. */
  readonly probe?: () => JsonObject;
  /** Contenders whose namespace has a label of Pod Security. The API server's plugin judges all of them but usher's. */
  readonly judged?: readonly ContenderName[];
  /** Contenders that can't take part, with the reason. */
  readonly absent?: Partial<Record<ContenderName, string>>;
  /** Creates the pods. */
  readonly as: Identity;
  /** The objects of policy `i`; `variant` tells an edited one from the first. A contender without policies is not in it. */
  readonly policies: Partial<Record<ContenderName, (i: number, variant: string) => readonly Policy[]>>;
  /** What became of a pod; `undefined`: it passed as it was. */
  readonly outcome: (status: number, body: JsonObject) => string | undefined;
  /** The outcome if policies of the variant have an effect. */
  readonly expected: (variant: string) => string;
  /** How many policies there are at most; an edit is only measured where there can be many. */
  readonly many: boolean;
  /** spec of usher's configuration: only the module of this contest. */
  readonly usher: JsonObject;
}

/** Its rights are those of an administrator, and no policy names it. */
const CREATOR: Identity = { user: "mallory" };

const none = (): Policy[] => [];

/** A pod that restricted allows. */
function restrictedPod(): JsonObject {
  const pod = podWith({
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
  });
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
  const containers = listAt(pod, "spec", "containers").map((one) => ({
    ...(one as JsonObject),
    securityContext,
  }));
  return { ...pod, spec: { ...(pod["spec"] as JsonObject), containers } };
}

/** In these two usher judges in place of the API server's plugin, in its namespace alone. */
const SECURING: Omit<Contest, "name" | "title" | "pod"> = {
  as: CREATOR,
  judged: ["in-tree", "usher"],
  absent: {
    gatekeeper:
      "its rules for Pod Security are a library of their own, which the Go module proxy does not have (github.com/open-policy-agent/gatekeeper-library: 403, not available)",
  },
  policies: { nothing: none, "in-tree": none, usher: none, kyverno: securedByKyverno },
  outcome: (status, body) =>
    status === 201
      ? undefined
      : /violates PodSecurity|validation rule 'restricted'/i.test(JSON.stringify(body))
        ? "refused"
        : `${status}: ${JSON.stringify(body).slice(0, 300)}`,
  expected: () => "refused",
  many: false,
  usher: {
    modules: {
      "pod-os": { podSecurity: { mode: "Replace" } },
      placement: OFF,
      "node-labels": OFF,
      "node-guard": OFF,
      "project-limit": OFF,
    },
  },
};

export const CONTESTS: Readonly<Record<Contest["name"], Contest>> = {
  placing: {
    name: "placing",
    title:
      "Pods that get a required node affinity term and a toleration, by usher and by others; one of N policies selects them",
    pod: () => podWith({}),
    as: CREATOR,
    policies: { nothing: none, bare: none, usher, "in-tree": inTree, kyverno, gatekeeper },
    outcome: (status, body) =>
      status === 201 ? poolOf(body) : `refused with ${status}: ${JSON.stringify(body).slice(0, 300)}`,
    expected: (variant) => variant,
    many: true,
    usher: { modules: { "node-labels": OFF, "node-guard": OFF, "pod-os": OFF, "project-limit": OFF } },
  },
  guarding: {
    name: "guarding",
    title: "Pods that ask for the nodes of the control plane, and are refused",
    pod: () =>
      podWith({
        nodeSelector: { [ROLE]: "" },
        tolerations: [{ key: ROLE, operator: "Exists", effect: "NoSchedule" }],
      }),
    as: CREATOR,
    policies: {
      nothing: none,
      usher: guardedByUsher,
      "in-tree": guardedInTree,
      kyverno: guardedByKyverno,
    },
    outcome: (status, body) =>
      status === 201
        ? undefined
        : /USHER-G|not for the nodes/.test(JSON.stringify(body))
          ? "refused"
          : `${status}: ${JSON.stringify(body).slice(0, 300)}`,
    expected: () => "refused",
    many: false,
    usher: {
      featureGates: { OpenShiftNodeSchedulingPolicy: true },
      // Otherwise the API server's own policies would refuse beside the webhook.
      modules: {
        "node-guard": { fallback: false },
        placement: OFF,
        "node-labels": OFF,
        "pod-os": OFF,
        "project-limit": OFF,
      },
    },
  },
  refusing: {
    name: "refusing",
    title: "Pods that violate the Pod Security Standard restricted, and are refused",
    pod: () => podWith({}),
    ...SECURING,
  },
  passing: {
    name: "passing",
    title: "Pods that the Pod Security Standard restricted allows",
    pod: restrictedPod,
    probe: () => podWith({}),
    ...SECURING,
  },
};
