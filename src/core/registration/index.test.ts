import { expect, test } from "vitest";
import { z } from "zod";
import { kindOf } from "../../../test/builders/kind.ts";
import { Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../installation/installation.ts";
import { at, type Json } from "../json.ts";
import { nodeSelectorTerm } from "../kubernetes/schemas/node-affinity.ts";
import {
  affinity,
  labelMap,
  labelSelector,
  nodeAffinity,
  podAffinity,
  podAntiAffinity,
  toleration,
  topologySpreadConstraint,
} from "../kubernetes/schemas.ts";
import { Assembly } from "../module/assembly.ts";
import { defineModule, type Module } from "../module/module.ts";
import { policyCheck } from "../module/policy-check.ts";
import { type Registration, registration } from "./index.ts";

const KIND = kindOf("test.usher.dev", "Seating", {
  scope: "Namespaced",
  versions: [
    {
      name: "v1",
      storage: true,
      spec: z.strictObject({
        labelMap: labelMap.nullish(),
        labelSelector: labelSelector.nullish(),
        nodeAffinity: nodeAffinity.nullish(),
        nodeSelectorTerm: nodeSelectorTerm.nullish(),
        podAffinity: podAffinity.nullish(),
        podAntiAffinity: podAntiAffinity.nullish(),
        affinity: affinity.nullish(),
        tolerations: z.array(toleration).nullish(),
        spread: z.array(topologySpreadConstraint).nullish(),
      }),
    },
  ],
});

const SEATING: Module = defineModule({
  name: "seating",
  summary: "seats pods",
  kinds: [KIND, { ...KIND, plural: "plans", kind: "Plan", standing: "file" }],
  reads: [],
  hooks: () => [
    {
      name: "seating",
      module: "seating",
      phase: "mutate",
      rules: [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
      failure: "closed",
      tooLarge: "deny",
      timeoutSeconds: 5,
      sideEffects: "None",
    },
  ],
  assemble: () => ({}),
});

const OPTIONS = { endpoint: { service: { name: "usher", namespace: "usher-system", port: 443 } } };

function registered(installation: Installation = DEFAULT_INSTALLATION): Registration {
  const modules = [SEATING, policyCheck([SEATING])];
  return registration(new Assembly(modules, installation, new Gates([])), OPTIONS);
}

function reported(list: readonly Json[]): string[] {
  return list.map((object) => `${at(object, "kind")} ${at(object, "metadata", "name")}`);
}

test("an assembly yields all objects, in the order of application", () => {
  const { objects, notes } = registered();
  expect(reported(objects)).toEqual([
    "Namespace usher-system",
    "CustomResourceDefinition seatings.test.usher.dev",
    "ServiceAccount usher",
    "ClusterRole usher",
    "ClusterRoleBinding usher",
    "ClusterRole usher-policies-view",
    "ClusterRole usher-policies-edit",
    "MutatingWebhookConfiguration usher",
    "ValidatingWebhookConfiguration usher",
  ]);
  expect(notes).toEqual([
    "seating: is not asked in kube-node-lease, kube-public, kube-system, usher-system, where no closed hook may be",
  ]);
  const [mutating, validating] = objects.slice(-2);
  expect(at(mutating, "webhooks", 0, "name")).toBe("seating.usher.dev");
  expect(at(validating, "webhooks", 0, "name")).toBe("policies.usher.dev");
});

test("every object is labelled, and keeps the labels that it has", () => {
  for (const object of registered().objects) {
    expect(at(object, "metadata", "labels", "app.kubernetes.io/name")).toBe("usher");
    expect(at(object, "metadata", "labels", "app.kubernetes.io/managed-by")).toBe("usher");
  }
  const view = registered().objects[5];
  expect(at(view, "metadata", "labels", "rbac.authorization.k8s.io/aggregate-to-view")).toBe("true");
});

test.each([
  ["1.2.0", "1.2.0"],
  ["1.2.0-rc.1+b.7", "1.2.0-rc.1"],
])("the label of version %s can be parsed as a version: %s", (version, label) => {
  const assembly = new Assembly([SEATING], DEFAULT_INSTALLATION, new Gates([]));
  for (const object of registration(assembly, { ...OPTIONS, version }).objects)
    expect(at(object, "metadata", "labels", "app.kubernetes.io/version")).toBe(label);
});

test("a namespace that is not usher's own is not included", () => {
  for (const namespace of ["default", "kube-system"]) {
    expect(reported(registered({ ...DEFAULT_INSTALLATION, namespace }).objects)).not.toContain(
      `Namespace ${namespace}`,
    );
  }
});

test("equal declarations give equal text", () => {
  expect(JSON.stringify(registered())).toBe(JSON.stringify(registered()));
});

test("all of it is plain JSON", () => {
  const { objects } = registered();
  expect(JSON.parse(JSON.stringify(objects))).toEqual(objects);
});
