import { expect, test } from "vitest";
import { z } from "zod";
import { type Gate, Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { gateEnabled } from "../installation/setting-condition.ts";
import { at, listAt, stringAt } from "../json.ts";
import { defineModule, type Module, readsOf } from "../module/module.ts";
import { policyCheck } from "../module/policy-check.ts";
import type { Kind } from "../policy/kind.ts";
import { accessObjects } from "./rbac.ts";

const GATE: Gate = { name: "Guarded", stage: "alpha", default: false, summary: "x" };
const ON = new Gates([{ ...GATE, default: true }]);
const OFF = new Gates([GATE]);

const kind = (name: string, more: Partial<Kind>): Kind => ({
  group: "test.usher.dev",
  kind: name,
  plural: `${name.toLowerCase()}s`,
  singular: name.toLowerCase(),
  scope: "Cluster",
  standing: "resource",
  summary: "x",
  versions: [{ name: "v1", storage: true, spec: z.strictObject({}) }],
  prepare: () => ({ policy: undefined, problems: [] }),
  ...more,
});

const guarded: Module = defineModule<unknown>({
  name: "guarded",
  summary: "x",
  kinds: [
    kind("Plain", {}),
    kind("Pass", { grantedBy: "usher-pass" }),
    kind("Other", { takeOver: "never", registered: [gateEnabled(GATE)] }),
  ],
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [],
      when: [gateEnabled(GATE)],
    },
    { resource: "namespaces", group: "", version: "v1", kind: "Namespace", scope: "Cluster", keep: [] },
  ],
  hooks: () => [],
  assemble: () => ({}),
  gates: [GATE],
});

const declared = (gates: Gates) => ({ modules: [guarded], installation: DEFAULT_INSTALLATION, gates });

function resourcesOf(role: string, gates = ON): string[] {
  const found = accessObjects(declared(gates)).find(
    (one) => one["kind"] === "ClusterRole" && stringAt(one, "metadata", "name") === role,
  );
  return listAt(found, "rules").flatMap((rule) => listAt(rule, "resources").map(String));
}

test("a kind with its own role is only in that role, and another owner's kind is in none", () => {
  expect(resourcesOf("usher-pass")).toEqual(["passs"]);
  expect(resourcesOf("usher-cluster-policies-edit")).toEqual(["plains"]);
  expect(resourcesOf("usher-cluster-policies-view")).toEqual(["passs", "plains"]);
});

test("a kind behind a disabled gate is neither read nor granted", () => {
  expect(readsOf(declared(OFF)).map(({ resource }) => resource)).toEqual(["namespaces"]);
  expect(readsOf(declared(ON))).toHaveLength(2);
  expect(resourcesOf("usher", OFF)).not.toContain("nodes");
  expect(resourcesOf("usher", ON)).toContain("nodes");
});

test("objects of a kind that usher does not register are not checked", () => {
  const check = policyCheck([guarded]);
  const resources = (gates: Gates) =>
    check
      .hooks([], {} as never, DEFAULT_INSTALLATION, gates)
      .flatMap(({ rules }) => rules.flatMap((rule) => at(rule as never, "resources")));
  expect(resources(OFF)).toEqual([["plains", "passs"]].flat());
  expect(resources(ON)).toContain("others");
});
