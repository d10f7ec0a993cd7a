import { expect, test } from "vitest";
import { z } from "zod";
import { kindOf } from "../../../test/builders/kind.ts";
import { watchedResources } from "../../cluster/informers/informer-cache.ts";
import { type Gate, Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { at, type JsonObject, listAt, stringAt } from "../json.ts";
import { Assembly } from "../module/assembly.ts";
import { defineModule, type Module } from "../module/module.ts";
import type { StateKind } from "../policy/kind.ts";
import { excludedFromTakeOver } from "./crd.ts";
import { registration } from "./index.ts";

const VERSIONS = [{ name: "v1", storage: true, spec: z.strictObject({ entries: z.array(z.string()) }) }];
const GATE: Gate = { name: "Ledger", stage: "alpha", default: false, summary: "" };

const LEDGER: StateKind = {
  group: "test.usher.dev",
  kind: "Usage",
  plural: "usages",
  singular: "usage",
  scope: "Cluster",
  summary: "Who uses what.",
  versions: VERSIONS,
  verbs: ["create", "update"],
};

function module(more: Partial<Module>): Module {
  return defineModule({
    name: "ledger",
    summary: "",
    kinds: [],
    reads: [],
    hooks: () => [],
    assemble: () => ({}),
    gates: [GATE],
    ...more,
  });
}

function declared(one: Module) {
  return { modules: [one], installation: DEFAULT_INSTALLATION, gates: new Gates([GATE]) };
}

function objectsOf(one: Module, gates: ReadonlyMap<string, boolean> = new Map()): readonly JsonObject[] {
  return registration(new Assembly([one], DEFAULT_INSTALLATION, new Gates([GATE], gates)), {
    endpoint: { url: "https://usher" },
    workload: { image: "usher:1" },
  }).objects;
}

function crds(objects: readonly JsonObject[]): unknown[] {
  return objects
    .filter(({ kind }) => kind === "CustomResourceDefinition")
    .map((one) => at(one, "metadata", "name"));
}

/** Every verb that a role grants on a resource, with the names that it is limited to. */
function verbs(objects: readonly JsonObject[], role: string, resource: string): unknown[] {
  return objects
    .filter((one) => one["kind"] === "ClusterRole" && at(one, "metadata", "name") === role)
    .flatMap((one) => listAt(one, "rules"))
    .filter((rule) => listAt(rule, "resources").includes(resource))
    .map((rule) => [at(rule, "verbs"), at(rule, "resourceNames")]);
}

test("a state kind has a CRD from its declaration", () => {
  const objects = objectsOf(module({ stateKinds: [LEDGER] }));
  expect(crds(objects)).toEqual(["usages.test.usher.dev"]);
  const crd = objects.find(({ kind }) => kind === "CustomResourceDefinition");
  const schema = at(crd, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec");
  expect(at(schema, "properties", "entries", "type")).toBe("array");
});

test("usher writes a state kind only as declared, and no role for users names it", () => {
  const objects = objectsOf(module({ stateKinds: [LEDGER] }));
  expect(verbs(objects, "usher", "usages")).toEqual([
    [["get", "list", "watch", "create", "update"], undefined],
  ]);
  const others = objects.filter(
    (one) => stringAt(one, "kind") === "ClusterRole" && at(one, "metadata", "name") !== "usher",
  );
  for (const role of others)
    expect(JSON.stringify(listAt(role, "rules").map((rule) => at(rule, "resources")))).not.toContain(
      "usages",
    );
});

test("its objects are not policies: usher watches them only if a read declares it", () => {
  const one = module({ stateKinds: [LEDGER] });
  expect(watchedResources(declared(one))).toEqual([]);
  expect(new Assembly([one], DEFAULT_INSTALLATION, new Gates([])).wants("usages.test.usher.dev")).toBe(false);
});

test("a CRD that is registered by a gate, and the permission to write it, follow the gate", () => {
  const registered = [{ setting: ["featureGates", "Ledger"], equals: true, default: false }];
  const policies = kindOf("test.usher.dev", "Seating", { versions: VERSIONS, registered });
  const one = module({ kinds: [policies], stateKinds: [{ ...LEDGER, registered }] });
  const written = (objects: readonly JsonObject[]) =>
    verbs(objects, "usher-registration", "customresourcedefinitions").map((rule) => at(rule as never, 1));
  const off = objectsOf(one);
  expect([crds(off), written(off)]).toEqual([[], []]);
  const on = objectsOf(one, new Map([["Ledger", true]]));
  const names = ["seatings.test.usher.dev", "usages.test.usher.dev"];
  expect([crds(on), written(on)]).toEqual([names, [names]]);
  // If it is not registered it may not be served, and usher must still start.
  expect(watchedResources(declared(one))).toMatchObject([
    { resource: "seatings.test.usher.dev", required: false },
  ]);
});

test("a CRD can be declared as never taken over", () => {
  const modules = [module({ stateKinds: [{ ...LEDGER, takeOver: "never" }] })];
  expect(excludedFromTakeOver(modules, "usages.test.usher.dev")).toBe(true);
  expect(excludedFromTakeOver(modules, "others.test.usher.dev")).toBe(false);
  expect(excludedFromTakeOver([module({ stateKinds: [LEDGER] })], "usages.test.usher.dev")).toBe(false);
});

test("managed objects give usher only permissions on their resources, in the role that is deleted first", () => {
  const resource = { group: "a.io", version: "v1", resource: "as", kind: "A", scope: "Cluster" as const };
  const objects = objectsOf(module({ managed: { why: "", resources: [resource], desired: () => [] } }));
  expect(verbs(objects, "usher-registration", "as")).toEqual([
    [["get", "list"], undefined],
    [["create", "patch", "delete"], undefined],
  ]);
  expect(verbs(objects, "usher", "as")).toEqual([]);
});
