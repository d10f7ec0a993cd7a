import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { at, type Json, type JsonObject } from "../../json.ts";
import { BUILT_IN_WORKLOADS, POD, specPath, type WorkloadKind, workloadTable } from "../workloads.ts";
import { defaulted } from "./defaults.ts";

const table = workloadTable([]);
function kind(group: string, name: string): WorkloadKind {
  const found = table.byKind(group, name);
  if (found === undefined) throw new Error(`${name} must be a workload`);
  return found;
}
const DEPLOYMENT = kind("apps", "Deployment");
const CONTROLLER = kind("", "ReplicationController");

/** An object of this kind around a pod spec. */
function around(workload: WorkloadKind, spec: Json): JsonObject {
  let object: Json = spec;
  for (const step of specPath(workload).toReversed()) object = { [step]: object };
  return object as JsonObject;
}
const specOf = (object: JsonObject, workload: WorkloadKind) =>
  at(object, ...specPath(workload)) as JsonObject;

const TEMPLATE_DEFAULTS = {
  schedulerName: "default-scheduler",
  restartPolicy: "Always",
  dnsPolicy: "ClusterFirst",
  terminationGracePeriodSeconds: 30,
  securityContext: {},
};

test.each(BUILT_IN_WORKLOADS.map((workload) => [workload.kind, workload] as const))(
  "fills the spec of a %s at its path",
  (_kind, workload) => {
    const filled = defaulted(around(workload, {}), workload);
    const ofPods = workload === POD ? { enableServiceLinks: true } : {};
    expect(filled).toEqual(around(workload, { ...TEMPLATE_DEFAULTS, ...ofPods }));
  },
);

test("a custom resource is not defaulted", () => {
  const object = around(DEPLOYMENT, {});
  const rollout = { ...DEPLOYMENT, group: "argoproj.io", kind: "Rollout", resource: "rollouts" };
  expect(defaulted(object, rollout)).toBe(object);
});

test("set values stay; empty and null count as unset", () => {
  const said = {
    schedulerName: "mine",
    restartPolicy: "Never",
    dnsPolicy: "None",
    securityContext: { runAsUser: 1 },
    terminationGracePeriodSeconds: 0,
  };
  expect(specOf(defaulted(around(DEPLOYMENT, said), DEPLOYMENT), DEPLOYMENT)).toEqual(said);
  const unsaid = {
    schedulerName: "",
    restartPolicy: null,
    dnsPolicy: "",
    securityContext: null,
    terminationGracePeriodSeconds: null,
  };
  expect(specOf(defaulted(around(DEPLOYMENT, unsaid), DEPLOYMENT), DEPLOYMENT)).toEqual(TEMPLATE_DEFAULTS);
});

test("a negative grace period becomes a second in a pod and stays in a template", () => {
  const spec = { terminationGracePeriodSeconds: -5 };
  const grace = (workload: WorkloadKind) =>
    specOf(defaulted(around(workload, spec), workload), workload)?.["terminationGracePeriodSeconds"];
  expect(grace(POD)).toBe(1);
  expect(grace(DEPLOYMENT)).toBe(-5);
});

test("every list of containers and the volumes are filled", () => {
  const spec = {
    containers: [{ image: "a" }],
    initContainers: [{}],
    ephemeralContainers: [{}],
    volumes: [{ name: "v" }],
  };
  const filled = specOf(defaulted(around(DEPLOYMENT, spec), DEPLOYMENT), DEPLOYMENT);
  for (const list of ["containers", "initContainers", "ephemeralContainers"]) {
    expect(at(filled, list, 0, "terminationMessagePolicy")).toBe("File");
  }
  expect(at(filled, "containers", 0, "imagePullPolicy")).toBe("Always");
  expect(filled["volumes"]).toEqual([{ name: "v", emptyDir: {} }]);
});

describe("the two names of the service account", () => {
  test.each<[JsonObject, JsonObject]>([
    [{}, {}],
    [{ serviceAccountName: "a" }, { serviceAccountName: "a", serviceAccount: "a" }],
    [{ serviceAccount: "b" }, { serviceAccountName: "b", serviceAccount: "b" }],
    [
      { serviceAccountName: "", serviceAccount: "b" },
      { serviceAccountName: "b", serviceAccount: "b" },
    ],
    [
      { serviceAccountName: "a", serviceAccount: "b" },
      { serviceAccountName: "a", serviceAccount: "a" },
    ],
  ])("%j becomes %j", (spec, expected) => {
    expect(specOf(defaulted(around(DEPLOYMENT, spec), DEPLOYMENT), DEPLOYMENT)).toEqual({
      ...TEMPLATE_DEFAULTS,
      ...expected,
    });
  });
});

describe("only in pods", () => {
  const spec = {
    hostNetwork: true,
    containers: [
      {
        ports: [
          { containerPort: 80 },
          { containerPort: 81, hostPort: 0 },
          { containerPort: 82, hostPort: 9 },
          {},
        ],
      },
    ],
    initContainers: [{ ports: [{ containerPort: 83 }] }],
    ephemeralContainers: [{ ports: [{ containerPort: 84 }] }],
  };
  const hostPorts = (object: JsonObject, workload: WorkloadKind, list: string) =>
    (at(specOf(object, workload), list, 0, "ports") as JsonObject[]).map((port) => port["hostPort"]);

  test("host ports in the host's network", () => {
    const pod = defaulted(around(POD, spec), POD);
    expect(hostPorts(pod, POD, "containers")).toEqual([80, 81, 9, undefined]);
    expect(hostPorts(pod, POD, "initContainers")).toEqual([83]);
    expect(hostPorts(pod, POD, "ephemeralContainers")).toEqual([undefined]);
    const template = defaulted(around(DEPLOYMENT, spec), DEPLOYMENT);
    expect(hostPorts(template, DEPLOYMENT, "containers")).toEqual([undefined, 0, 9, undefined]);
    const own = defaulted(around(POD, { ...spec, hostNetwork: false }), POD);
    expect(hostPorts(own, POD, "containers")).toEqual([undefined, 0, 9, undefined]);
  });

  test("copies requests from limits", () => {
    const resources = { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1" } };
    const containers = {
      containers: [{ resources }, { resources: { limits: { cpu: "1" } } }, { resources: { limits: {} } }],
    };
    const requests = (workload: WorkloadKind) =>
      (specOf(defaulted(around(workload, containers), workload), workload)["containers"] as JsonObject[]).map(
        (container) => at(container, "resources", "requests"),
      );
    expect(requests(POD)).toEqual([{ cpu: "1", memory: "1Gi" }, { cpu: "1" }, undefined]);
    expect(requests(DEPLOYMENT)).toEqual([{ cpu: "1" }, undefined, undefined]);
  });
});

describe("a ReplicationController", () => {
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: TEMPLATE_DEFAULTS };

  test("takes labels and selector from its template", () => {
    expect(defaulted({ spec: { template } }, CONTROLLER)).toEqual({
      metadata: { labels },
      spec: { template, selector: labels },
    });
    expect(
      defaulted({ metadata: { name: "x", labels: {} }, spec: { template, selector: null } }, CONTROLLER),
    ).toEqual({
      metadata: { name: "x", labels },
      spec: { template, selector: labels },
    });
  });

  test("keeps its own", () => {
    const own = { metadata: { labels: { a: "b" } }, spec: { template, selector: { c: "d" } } };
    expect(defaulted(own, CONTROLLER)).toBe(own);
  });

  test("may have no template", () => {
    const bare = { spec: { replicas: 1, template: null } };
    expect(defaulted(bare, CONTROLLER)).toBe(bare);
  });

  test("is the only such kind", () => {
    expect(defaulted({ spec: { template } }, DEPLOYMENT)).toEqual({ spec: { template } });
  });
});

/** Pod specs with the fields that defaults read, wrong types, and unknown fields. */
const anything = fc.jsonValue({ maxDepth: 1 });
const container = fc.record(
  {
    image: fc.oneof(fc.constantFrom("nginx", "nginx:1", ""), anything),
    imagePullPolicy: fc.constantFrom("", "Never", null),
    resources: fc.oneof(
      fc.record({ limits: fc.dictionary(fc.constantFrom("cpu", "__proto__"), fc.constant("1")) }),
      anything,
    ),
    ports: fc.oneof(
      fc.array(fc.record({ containerPort: fc.constantFrom(0, 80, null), hostPort: fc.constantFrom(0, 80) })),
      anything,
    ),
    livenessProbe: fc.oneof(fc.record({ httpGet: anything, periodSeconds: fc.constantFrom(0, 3) }), anything),
    env: fc.oneof(fc.array(fc.record({ valueFrom: fc.record({ fieldRef: anything }) })), anything),
    unknown: anything,
  },
  { requiredKeys: [] },
);
const podSpec = fc.record(
  {
    schedulerName: fc.constantFrom("", "x", null),
    securityContext: anything,
    serviceAccount: fc.constantFrom("", "a"),
    serviceAccountName: fc.constantFrom("", "b"),
    hostNetwork: fc.boolean(),
    containers: fc.oneof(fc.array(container, { maxLength: 2 }), anything),
    initContainers: fc.array(container, { maxLength: 1 }),
    volumes: fc.oneof(
      fc.array(fc.dictionary(fc.constantFrom("name", "secret", "projected", "image", "x"), anything)),
      anything,
    ),
    unknown: anything,
  },
  { requiredKeys: [] },
);

/** Everything that was there and was not empty is there still. */
function keeps(before: Json | undefined, after: Json | undefined, path: string): void {
  if (before === null || before === undefined || before === "" || before === 0) return;
  if (path.endsWith("/serviceAccount")) return;
  if (typeof before !== "object") expect([path, after]).toEqual([path, before]);
  else
    for (const key of Object.keys(before))
      keeps((before as JsonObject)[key], (after as JsonObject)[key], `${path}/${key}`);
}

test("is idempotent, keeps its input unchanged, and loses no set value", () => {
  fc.assert(
    fc.property(podSpec, fc.constantFrom(...BUILT_IN_WORKLOADS), (spec, workload) => {
      const object = around(workload, spec as Json);
      const before = JSON.stringify(object);
      const once = defaulted(object, workload);
      expect(JSON.stringify(object)).toBe(before);
      expect(defaulted(once, workload)).toBe(once);
      keeps(object, once, "");
    }),
    { numRuns: 500 },
  );
});

test("never throws for any JSON", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom("spec", "metadata", "template", "__proto__"), fc.jsonValue()),
      (object) => {
        for (const workload of BUILT_IN_WORKLOADS)
          expect(typeof defaulted(object as JsonObject, workload)).toBe("object");
      },
    ),
  );
});
