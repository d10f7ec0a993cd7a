import { expect, test } from "vitest";
import type { Fact, Need } from "../src/core/decision/need.ts";
import type { AdmissionRequest } from "../src/core/decision/request.ts";
import { evaluate } from "../src/core/evaluate/evaluate.ts";
import { Gates } from "../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../src/core/installation/installation.ts";
import type { JsonObject } from "../src/core/json.ts";
import { Assembly } from "../src/core/module/assembly.ts";
import type { Hook, Rule } from "../src/core/module/hook.ts";
import { policyCheck } from "../src/core/module/policy-check.ts";
import { modules } from "../src/modules/all.ts";
import { GROUP, MALLORY, NODES, NOW } from "./builders/guard.ts";
import { outside } from "./builders/outside.ts";
import { labelled } from "./builders/pod-security.ts";

const CONTAINERS = [{ name: "main", image: "a:1" }];
const SPEC = { os: { name: "windows" }, nodeName: "cp-0", hostPID: true, containers: CONTAINERS };
const NAMES = { name: "web", namespace: "shop" };
const META = { ...NAMES, uid: "u-1", labels: { app: "web" } };
const POD = { apiVersion: "v1", kind: "Pod", metadata: META, spec: SPEC };

const PLACEMENT = {
  apiVersion: "kupid.gardener.cloud/v1alpha1",
  kind: "ClusterPodSchedulingPolicy",
  metadata: { name: "pool" },
  spec: { namespaceSelector: {}, podSelector: {}, enforcement: "Refuse", nodeSelector: { pool: "web" } },
};
const LABELS = {
  apiVersion: "node-labels.openshift.io/v1beta1",
  kind: "Labels",
  metadata: { name: "workers" },
  spec: { nodeNamePatterns: [".*"], labels: { tier: "work" } },
};
const LIMIT = {
  apiVersion: "operator.project.openshift.io/v1",
  kind: "ProjectRequestLimit",
  metadata: { name: "cluster" },
  spec: { limits: [{ maxProjects: 1 }], namespaces: {} },
};

/** Objects by resource, for requests; a workload holds the pod as its template. */
const OBJECTS: Readonly<Record<string, JsonObject>> = {
  pods: POD,
  bindings: { apiVersion: "v1", kind: "Binding", metadata: NAMES, target: { kind: "Node", name: "cp-0" } },
  nodes: { apiVersion: "v1", kind: "Node", metadata: { name: "n-9", labels: { a: "b" } }, spec: {} },
  namespaces: labelled("shop", { enforce: "restricted" }),
  projectrequests: { apiVersion: "project.openshift.io/v1", kind: "ProjectRequest", metadata: { name: "p" } },
  nodeguardoverrides: {
    apiVersion: "usher.dev/v1alpha1",
    kind: "NodeGuardOverride",
    metadata: { name: "night" },
    spec: {},
  },
  clusterpodschedulingpolicies: PLACEMENT,
};

function assemblyWith(gatesOn: boolean): Assembly {
  const all = [...modules, policyCheck(modules)];
  const declared = all.flatMap(({ gates }) => gates ?? []);
  const on = declared.map(({ name }) => [name, name === "IdentifyPodOS" ? gatesOn : true] as const);
  const settings = {
    "node-guard": {
      policy: { groups: [{ ...GROUP, mode: "Enable", guardAccessOnProtectedNodes: true }] },
    },
    "pod-os": {
      os: { write: true, harden: ["shop"], contradictions: "Deny", nodeMismatch: "Deny" },
      podSecurity: { mode: "Replace", templates: "Deny" },
    },
  };
  const assembly = new Assembly(all, { ...DEFAULT_INSTALLATION, settings }, new Gates(declared, new Map(on)));
  assembly.serve("nodes");
  const came = (resource: string, object: JsonObject) => {
    const { name = "" } = object["metadata"] as { name?: string };
    return { resource, namespace: "", name, object };
  };
  assembly.apply([
    ...NODES.map((node) => came("nodes", node)),
    came("namespaces", labelled("shop", { enforce: "restricted" })),
    came("clusterpodschedulingpolicies.kupid.gardener.cloud", PLACEMENT),
    came("labels.node-labels.openshift.io", LABELS),
    came("projectrequestlimits.operator.project.openshift.io", LIMIT),
  ]);
  return assembly;
}

/** One request for each resource and operation that a rule names. */
function requestsFor(hook: Hook): AdmissionRequest[] {
  return hook.rules.flatMap((rule: Rule) =>
    rule.resources.flatMap((wanted) =>
      rule.operations.map((operation) => {
        const [resource = "", subResource = ""] = wanted.split("/");
        const known = OBJECTS[subResource === "binding" ? "bindings" : resource];
        const object: JsonObject = known ?? {
          metadata: META,
          spec: {
            template: { metadata: META, spec: SPEC },
            jobTemplate: { spec: { template: { spec: SPEC } } },
          },
        };
        const { metadata, kind = "Workload" } = object as { metadata: JsonObject; kind?: string };
        const changed = { ...object, metadata: { ...metadata, labels: { other: "label" } }, spec: {} };
        const { name = "", namespace = "" } = metadata as { name?: string; namespace?: string };
        return {
          uid: "uid",
          kind: { group: rule.groups[0] ?? "", version: rule.versions[0] ?? "", kind },
          resource: { group: rule.groups[0] ?? "", version: rule.versions[0] ?? "", resource },
          subResource,
          name,
          namespace: resource === "namespaces" ? name : namespace,
          operation,
          userInfo: MALLORY,
          object,
          oldObject: operation === "CREATE" ? undefined : changed,
          dryRun: true,
          options: undefined,
        };
      }),
    ),
  );
}

const cases = [true, false].flatMap((gatesOn) => {
  const assembly = assemblyWith(gatesOn);
  return assembly.hooks
    .filter(({ rules }) => rules.length > 0)
    .flatMap((hook) =>
      requestsFor(hook).map((request) => {
        const what = `${request.operation} ${request.resource.resource}/${request.subResource}`;
        return [
          `${hook.name}${gatesOn ? "" : " without IdentifyPodOS"}`,
          what,
          assembly,
          hook,
          request,
        ] as const;
      }),
    );
});

test("the cases cover a hook of every module", () => {
  const asked = new Set(cases.map(([, , , { module }]) => module));
  expect([...asked].sort()).toEqual([...modules.map(({ name }) => name), "policies"].sort());
});

test.each(cases)("%s explains %s in the trace", async (_name, _what, assembly, hook, request) => {
  const fact = (need: Need): Fact =>
    "get" in need && need.get.resource === "pods" ? { found: POD, complete: true } : { absent: "NotFound" };
  const evaluation = await evaluate(
    {
      assembly,
      phase: hook.phase,
      hooks: [{ ...hook, namespaces: { except: [] } }],
      request,
      now: NOW,
      trace: true,
    },
    outside({ fact }),
  );
  expect(evaluation.findings.filter(({ code }) => code === "USHER-E01")).toEqual([]);
  expect(evaluation.trace.map(({ module }) => module)).toContain(hook.module);
  for (const { why } of evaluation.trace) expect(why).not.toBe("");
});
