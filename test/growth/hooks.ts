import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { node } from "../builders/node.ts";
import { pod, workload } from "../builders/pod.ts";
import { namespace } from "../builders/policy.ts";
import { requestFor } from "../builders/request.ts";
import { type GrowthCase, many, pairs } from "./case.ts";
import { WORLDS, type World } from "./worlds.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

interface Growing {
  readonly name: string;
  /** As in a case: an eighth of the API server's limit. */
  readonly n: number;
  readonly grown: (n: number) => JsonObject;
}

const requirement = (i: number): JsonObject => ({ key: `k${i}`, operator: "NotIn", values: ["a"] });
const terms = (nodeSelectorTerms: readonly JsonObject[]): JsonObject => ({
  affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } },
});
const contextOf = (securityContext: JsonObject): JsonObject => ({
  containers: [{ name: "main", image: "a", securityContext }],
});

/** The parts of a pod's spec that a hook reads and an author can grow. */
const SPECS: readonly Growing[] = [
  {
    name: "containers",
    n: 2_500,
    grown: (n) => ({ containers: many(n, (i) => ({ name: `c${i}`, image: "a" })) }),
  },
  {
    name: "containers that break every check",
    n: 1_000,
    grown: (n) => ({
      containers: many(n, (i) => ({
        name: `c${i}`,
        image: "a",
        ports: [{ hostPort: i + 1 }],
        livenessProbe: { httpGet: { host: `h${i}` } },
        securityContext: {
          privileged: true,
          capabilities: { add: [`C${i}`] },
          seLinuxOptions: { type: `t${i}`, user: "u", role: "r" },
          seccompProfile: { type: `s${i}` },
          procMount: `p${i}`,
          runAsUser: 0,
          runAsNonRoot: false,
        },
      })),
    }),
  },
  {
    name: "containers of a Windows pod",
    n: 1_500,
    grown: (n) => ({
      os: { name: "windows" },
      containers: many(n, (i) => ({
        name: `c${i}`,
        securityContext: { privileged: false, runAsUser: 1 },
        lifecycle: { stopSignal: "x" },
      })),
    }),
  },
  {
    name: "capabilities",
    n: 7_500,
    grown: (n) => contextOf({ capabilities: { add: many(n, (i) => `C${i}`) } }),
  },
  {
    name: "ports",
    n: 3_500,
    grown: (n) => ({ containers: [{ name: "main", ports: many(n, (i) => ({ hostPort: i + 1 })) }] }),
  },
  {
    name: "sysctls",
    n: 5_000,
    grown: (n) => ({
      securityContext: { sysctls: many(n, (i) => ({ name: `kernel.s${i}`, value: "1" })) },
      containers: [{ name: "main" }],
    }),
  },
  {
    name: "volumes",
    n: 3_500,
    grown: (n) => ({ volumes: many(n, (i) => ({ name: `v${i}`, hostPath: { path: "/" } })) }),
  },
  { name: "nodeSelector keys", n: 10_000, grown: (n) => ({ nodeSelector: pairs(n) }) },
  {
    name: "tolerations",
    n: 7_500,
    grown: (n) => ({ tolerations: many(n, (i) => ({ key: `t${i}`, operator: "Exists" })) }),
  },
  {
    name: "required terms",
    n: 4_000,
    grown: (n) => terms(many(n, (i) => ({ matchExpressions: [requirement(i)] }))),
  },
  {
    name: "requirements of a term",
    n: 7_500,
    grown: (n) => terms([{ matchExpressions: many(n, requirement) }]),
  },
  {
    name: "requirements about the OS",
    n: 3_500,
    grown: (n) =>
      terms([
        {
          matchExpressions: many(n, () => ({ key: "kubernetes.io/os", operator: "In", values: ["windows"] })),
        },
      ]),
  },
  {
    name: "values of a requirement",
    n: 25_000,
    grown: (n) =>
      terms([{ matchExpressions: [{ key: "pool", operator: "In", values: many(n, (i) => `v${i}`) }] }]),
  },
];

const METADATA: readonly Growing[] = [
  { name: "labels", n: 8_000, grown: (n) => ({ labels: pairs(n) }) },
  { name: "annotations", n: 2_000, grown: (n) => ({ annotations: pairs(n) }) },
];

interface Form {
  readonly name: string;
  /** Two objects share the size limit of one request. */
  readonly share?: number;
  readonly request: (spec: JsonObject) => { readonly request: AdmissionRequest; readonly pod?: JsonObject };
}

const AS_TENANT = { username: "jane", groups: ["system:authenticated"] };
const AS_SCHEDULER = { username: "system:kube-scheduler", groups: ["system:authenticated"] };
const containers = [{ name: "main", image: "registry.example/app:1" }];
const podWith = (spec: JsonObject, namespaceName = "shop"): JsonObject =>
  pod({ namespace: namespaceName, labels: { app: "web" }, spec: { containers, ...spec } });
const on = (resource: string, subResource: string, change: Partial<AdmissionRequest>) => ({
  ...change,
  resource: { group: "", version: "v1", resource },
  subResource,
});

/** The pod with another image, and one more toleration. */
function changed(object: JsonObject): JsonObject {
  const spec = object["spec"] as JsonObject & { readonly containers: readonly JsonObject[] };
  const [first = {}, ...rest] = spec.containers;
  return {
    ...object,
    spec: { ...spec, containers: [{ ...first, image: "other" }, ...rest], hostNetwork: true },
  };
}

/** Every way in which an API server sends a pod or a template. */
const FORMS: readonly Form[] = [
  { name: "a new pod", request: (spec) => ({ request: requestFor(podWith(spec)) }) },
  {
    name: "a new pod with its node",
    request: (spec) => ({
      request: requestFor(podWith({ nodeName: "node-10", os: { name: "linux" }, ...spec })),
    }),
  },
  {
    name: "a new pod of the control plane",
    request: (spec) => ({ request: requestFor(podWith(spec, "kube-system")) }),
  },
  {
    name: "an update of a pod",
    share: 2,
    request: (spec) => {
      const oldObject = podWith({ ...spec, schedulingGates: [{ name: "g" }] });
      return { request: requestFor(changed(oldObject), { operation: "UPDATE", oldObject }) };
    },
  },
  {
    name: "a new ephemeral container",
    share: 2,
    request: (spec) => {
      const oldObject = podWith({ nodeName: "node-10", ...spec });
      const object = changed(oldObject);
      const added = { ...(object["spec"] as JsonObject), ephemeralContainers: [{ name: "debug" }] };
      return {
        request: requestFor(
          { ...object, spec: added },
          on("pods", "ephemeralcontainers", { operation: "UPDATE", oldObject }),
        ),
      };
    },
  },
  {
    name: "a new template",
    request: (spec) => ({
      request: requestFor(workload("apps/v1", "Deployment", { spec: { containers, ...spec } })),
    }),
  },
  {
    name: "a new DaemonSet",
    request: (spec) => ({
      request: requestFor(workload("apps/v1", "DaemonSet", { spec: { containers, ...spec } })),
    }),
  },
  {
    name: "an update of a template",
    share: 2,
    request: (spec) => {
      const of = (more: JsonObject) =>
        workload("apps/v1", "Deployment", { spec: { containers, ...spec, ...more } });
      return { request: requestFor(of({ hostNetwork: true }), { operation: "UPDATE", oldObject: of({}) }) };
    },
  },
  {
    name: "a binding of a pod",
    request: (spec) => ({
      request: bindingTo("node-10"),
      pod: podWith({ os: { name: "linux" }, ...spec }),
    }),
  },
];

function bindingTo(name: string): AdmissionRequest {
  const object = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name: "web-0", namespace: "shop" },
    target: { kind: "Node", name },
  };
  return requestFor(object, on("pods", "binding", { userInfo: AS_SCHEDULER, name: "web-0" }));
}

interface Other {
  readonly name: string;
  readonly n: number;
  readonly request: (n: number) => { readonly request: AdmissionRequest; readonly pod?: JsonObject };
}

/** Cases of requests without a pod spec. */
const OTHERS: readonly Other[] = [
  ...METADATA.flatMap(({ name, n, grown }): Other[] => [
    {
      name: `a new pod with ${name}`,
      n,
      request: (size) => ({ request: requestFor(pod({ metadata: grown(size) })) }),
    },
    {
      name: `a new node with ${name}`,
      n,
      request: (size) => ({ request: requestFor(nodeWith(grown(size))) }),
    },
    {
      name: `an update of a node with ${name}`,
      n: Math.ceil(n / 2),
      request: (size) => ({
        request: requestFor(nodeWith(grown(size)), {
          operation: "UPDATE",
          oldObject: nodeWith({
            ...grown(size),
            labels: { ...(grown(size)["labels"] as JsonObject), "node-role.kubernetes.io/control-plane": "" },
          }),
        }),
      }),
    },
    {
      name: `a new namespace with ${name}`,
      n,
      request: (size) => ({ request: namespaceRequest(namespaceWith(grown(size))) }),
    },
    {
      name: `a stricter namespace with ${name}`,
      n: Math.ceil(n / 2),
      request: (size) => {
        const given = grown(size);
        const strict = {
          ...given,
          labels: { ...(given["labels"] as JsonObject), "pod-security.kubernetes.io/enforce": "restricted" },
        };
        return {
          request: namespaceRequest(namespaceWith(strict), {
            operation: "UPDATE",
            oldObject: namespaceWith(given),
          }),
          pod: pod(),
        };
      },
    },
    {
      name: `an override with ${name}`,
      n,
      request: (size) => ({
        request: requestFor(
          {
            apiVersion: "usher.dev/v1alpha1",
            kind: "NodeGuardOverride",
            metadata: { name: "o", ...grown(size) },
            spec: { group: "ControlPlane", reason: "r", expires: "2023-11-15T00:00:00Z" },
          },
          {},
        ),
      }),
    },
    {
      name: `a binding with ${name}`,
      n,
      request: (size) => {
        const request = bindingTo("node-10");
        const metadata = { ...(request.object?.["metadata"] as JsonObject), ...grown(size) };
        return { request: { ...request, object: { ...request.object, metadata } }, pod: podWith({}) };
      },
    },
    {
      name: `a scaled template with ${name}`,
      n,
      request: (size) => ({
        request: scaled({
          apiVersion: "autoscaling/v1",
          kind: "Scale",
          metadata: { name: "web", namespace: "shop", ...grown(size) },
          spec: { replicas: 3 },
        }),
      }),
    },
  ]),
  {
    name: "a new node with taints",
    n: 7_500,
    request: (n) => ({
      request: requestFor({
        ...nodeWith({}),
        spec: { taints: many(n, (i) => ({ key: `t${i}`, effect: "NoSchedule" })) },
      }),
    }),
  },
  {
    name: "a project of a user in groups",
    n: 10_000,
    request: (n) => ({
      request: requestFor(
        { apiVersion: "project.openshift.io/v1", kind: "ProjectRequest", metadata: { name: "new" } },
        { userInfo: { username: "jane", groups: many(n, (i) => `g${i}`) } },
      ),
    }),
  },
  {
    name: "a namespace of a user in groups",
    n: 10_000,
    request: (n) => ({
      request: namespaceRequest(namespaceWith({}), {
        userInfo: { username: "jane", groups: many(n, (i) => `g${i}`) },
      }),
    }),
  },
  {
    name: "an exec by a user in groups",
    n: 10_000,
    request: (n) => ({
      request: requestFor(
        { apiVersion: "v1", kind: "PodExecOptions", metadata: { name: "web-0", namespace: "shop" } },
        on("pods", "exec", {
          operation: "CONNECT",
          name: "web-0",
          userInfo: { username: "jane", groups: many(n, (i) => `g${i}`) },
        }),
      ),
      pod: podWith({ nodeName: "node-10" }),
    }),
  },
];

function nodeWith(metadata: JsonObject): JsonObject {
  const { labels, ...rest } = metadata;
  return node("node-10", (labels ?? {}) as JsonObject, { metadata: rest });
}

function namespaceWith(metadata: JsonObject): JsonObject {
  const one = namespace("shop");
  return { ...one, metadata: { ...(one["metadata"] as JsonObject), ...metadata } };
}

function namespaceRequest(object: JsonObject, change: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return requestFor(object, {
    namespace: stringAt(object, "metadata", "name") ?? "",
    userInfo: AS_TENANT,
    ...change,
  });
}

function scaled(object: JsonObject): AdmissionRequest {
  const oldObject = { ...object, spec: { replicas: 1 } };
  return requestFor(object, {
    operation: "UPDATE",
    oldObject,
    resource: { group: "apps", version: "v1", resource: "deployments" },
    subResource: "scale",
  });
}

/** Every form of a request with everything that can grow in it, in both phases. */
function casesIn(world: World, specs: readonly Growing[]): GrowthCase[] {
  const requests: Other[] = [
    ...specs.flatMap(({ name, n, grown }) =>
      FORMS.map(({ name: form, share = 1, request }) => ({
        name: `${form} with ${name}`,
        n: Math.ceil(n / share),
        request: (size: number) => request(grown(size)),
      })),
    ),
    ...OTHERS,
  ];
  return requests.flatMap(({ name, n, request }) =>
    (["mutate", "validate"] as const).map((phase) => ({
      name: `${name}, ${phase}, ${world.name}`,
      n,
      review: (size: number) => ({ policies: [], phase, world, ...request(size) }),
    })),
  );
}

/** Other modes do less of the same work: every request, with the most expensive fields. */
const FEW_SPECS = SPECS.filter(({ name }) => /every check|OS|terms/.test(name));

/** Every hook of every module, in every mode. */
export const HOOK_CASES: readonly GrowthCase[] = WORLDS.flatMap((world, i) =>
  casesIn(world, i === 0 ? SPECS : FEW_SPECS),
);
