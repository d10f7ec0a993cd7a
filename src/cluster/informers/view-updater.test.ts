import { expect, test, vi } from "vitest";
import { Assembly } from "../../core/evaluate/assembly.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { Gates } from "../../core/module/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/module/installation.ts";
import { defineModule } from "../../core/module/module.ts";
import type { Change } from "../../core/view/view.ts";
import { TimeSliceQueue } from "./time-slices.ts";
import { ViewUpdater } from "./view-updater.ts";

const reader = defineModule<never>({
  name: "reader",
  summary: "for tests",
  kinds: [],
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [["metadata", "labels"]],
    },
  ],
  hooks: () => [],
  assemble: () => ({}),
});

const node = (zone: string, name = "n"): JsonObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, labels: { zone } },
});
const change = (object: JsonObject | undefined, name = "n"): Change => ({
  resource: "nodes",
  namespace: "",
  name,
  object,
});

async function opened(inForce = true) {
  const synced: string[] = [];
  const assembly = new Assembly([reader], DEFAULT_INSTALLATION, new Gates([]));
  const apply = vi.spyOn(assembly, "apply");
  const told: (string | undefined)[] = [];
  const zoneOf = (object: JsonObject | undefined) =>
    at(object, "metadata", "labels", "zone") as string | undefined;
  const intake = new ViewUpdater({
    assembly,
    turns: new TimeSliceQueue(),
    inForce: () => inForce,
    changed: (changes) => told.push(...changes.map(({ object }) => zoneOf(object))),
    synced: (resource) => synced.push(resource),
  });
  intake.add("nodes", [change(node("a"))], true);
  await intake.idle();
  told.length = 0;
  synced.length = 0;
  apply.mockClear();
  const names = () => [...assembly.view.list("nodes")].map(nameOf);
  return {
    intake,
    assembly,
    apply,
    told,
    synced,
    names,
    zone: () => zoneOf(assembly.view.get("nodes", "", "n")),
  };
}

test("what the view has just so is no work at all", async () => {
  const { intake, apply, told } = await opened();
  for (let i = 0; i < 100; i++) intake.add("nodes", [change(node("a"))], false);
  await intake.idle();
  expect(apply).not.toHaveBeenCalled();
  expect(told).toEqual([]);
});

test("what changes and changes back ends as it was, though the view never saw the first", async () => {
  const { intake, told, zone } = await opened();
  intake.add("nodes", [change(node("b"))], false);
  intake.add("nodes", [change(node("a"))], false);
  await intake.idle();
  expect(zone()).toBe("a");
  expect(told).toEqual(["b", "a"]);
});

test("what goes and comes back as it was is there", async () => {
  const { intake, zone } = await opened();
  intake.add("nodes", [change(undefined)], false);
  intake.add("nodes", [change(node("a"))], false);
  await intake.idle();
  expect(zone()).toBe("a");
  intake.add("nodes", [change(undefined)], false);
  await intake.idle();
  expect(zone()).toBeUndefined();
});

test("what still waits when a resource is forgotten does not come back, nor does word that it is whole", async () => {
  const { intake, assembly, synced, names } = await opened();
  intake.add("nodes", [change(node("b", "late"), "late")], true);
  intake.forget("nodes", assembly.view);
  await intake.idle();
  expect(names()).toEqual([]);
  expect(synced).toEqual([]);
  intake.add("nodes", [change(node("a"))], true);
  await intake.idle();
  expect(names()).toEqual(["n"]);
  expect(synced).toEqual(["nodes"]);
});

test("what others wait for stays when a resource is forgotten", async () => {
  const { intake, assembly, synced } = await opened();
  intake.add("pods", [], true);
  intake.add("nodes", [change(node("b"))], false);
  intake.forget("nodes", assembly.view);
  await intake.idle();
  expect(synced).toEqual(["pods"]);
});

test("a first list that breaks off many times is held once, as it was the last time", async () => {
  const { intake, assembly, apply, zone } = await opened();
  intake.forget("nodes", assembly.view);
  await intake.idle();
  apply.mockClear();
  for (const zone of ["a", "b", "c"]) intake.add("nodes", [change(node(zone))], false);
  intake.add("nodes", [], true);
  await intake.idle();
  expect(apply).toHaveBeenCalledExactlyOnceWith([change(node("c"))]);
  expect(zone()).toBe("c");
});

test("more than a call can take comes in all the same", async () => {
  const { intake, told } = await opened();
  const many = Array.from({ length: 130_000 }, () => change(node("b")));
  intake.add("nodes", many.slice(0, 1), false);
  intake.add("nodes", many, false);
  await intake.idle();
  expect(told).toEqual(["b"]);
});
