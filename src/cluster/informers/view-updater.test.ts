import { expect, test, vi } from "vitest";
import { node as nodeOf } from "../../../test/builders/node.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { Assembly } from "../../core/module/assembly.ts";
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

const node = (zone: string, name = "n"): JsonObject => nodeOf(name, { zone });
const change = (object: JsonObject | undefined, name = "n"): Change => ({
  resource: "nodes",
  namespace: "",
  name,
  object,
});

async function opened(isServing = true) {
  const synced: string[] = [];
  const assembly = new Assembly([reader], DEFAULT_INSTALLATION, new Gates([]));
  const apply = vi.spyOn(assembly, "apply");
  const applied: (string | undefined)[] = [];
  const zoneOf = (object: JsonObject | undefined) =>
    at(object, "metadata", "labels", "zone") as string | undefined;
  const updater = new ViewUpdater({
    assembly,
    timeSlices: new TimeSliceQueue(),
    isServing: () => isServing,
    onChange: (changes) => applied.push(...changes.map(({ object }) => zoneOf(object))),
    onSync: (resource) => synced.push(resource),
  });
  updater.add("nodes", [change(node("a"))], true);
  await updater.idle();
  applied.length = 0;
  synced.length = 0;
  apply.mockClear();
  const names = () => [...assembly.view.list("nodes")].map(nameOf);
  return {
    updater,
    assembly,
    apply,
    applied,
    synced,
    names,
    zone: () => zoneOf(assembly.view.get("nodes", "", "n")),
  };
}

test("an unchanged object is not applied", async () => {
  const { updater, apply, applied } = await opened();
  for (let i = 0; i < 100; i++) updater.add("nodes", [change(node("a"))], false);
  await updater.idle();
  expect(apply).not.toHaveBeenCalled();
  expect(applied).toEqual([]);
});

test("a change that is reverted while queued leaves the view unchanged", async () => {
  const { updater, applied, zone } = await opened();
  updater.add("nodes", [change(node("b"))], false);
  updater.add("nodes", [change(node("a"))], false);
  await updater.idle();
  expect(zone()).toBe("a");
  expect(applied).toEqual(["b", "a"]);
});

test("an object that is deleted and recreated exists", async () => {
  const { updater, zone } = await opened();
  updater.add("nodes", [change(undefined)], false);
  updater.add("nodes", [change(node("a"))], false);
  await updater.idle();
  expect(zone()).toBe("a");
  updater.add("nodes", [change(undefined)], false);
  await updater.idle();
  expect(zone()).toBeUndefined();
});

test("queued changes of a forgotten resource are dropped, and so is its sync", async () => {
  const { updater, assembly, synced, names } = await opened();
  updater.add("nodes", [change(node("b", "late"), "late")], true);
  updater.forget("nodes", assembly.view);
  await updater.idle();
  expect(names()).toEqual([]);
  expect(synced).toEqual([]);
  updater.add("nodes", [change(node("a"))], true);
  await updater.idle();
  expect(names()).toEqual(["n"]);
  expect(synced).toEqual(["nodes"]);
});

test("queued changes of other resources stay when a resource is forgotten", async () => {
  const { updater, assembly, synced } = await opened();
  updater.add("pods", [], true);
  updater.add("nodes", [change(node("b"))], false);
  updater.forget("nodes", assembly.view);
  await updater.idle();
  expect(synced).toEqual(["pods"]);
});

test("an initial list that breaks repeatedly keeps the latest state of each object", async () => {
  const { updater, assembly, apply, zone } = await opened();
  updater.forget("nodes", assembly.view);
  await updater.idle();
  apply.mockClear();
  for (const zone of ["a", "b", "c"]) updater.add("nodes", [change(node(zone))], false);
  updater.add("nodes", [], true);
  await updater.idle();
  expect(apply).toHaveBeenCalledExactlyOnceWith([change(node("c"))]);
  expect(zone()).toBe("c");
});

test("more changes than fit into function arguments are applied", async () => {
  const { updater, applied } = await opened();
  const many = Array.from({ length: 130_000 }, () => change(node("b")));
  updater.add("nodes", many.slice(0, 1), false);
  updater.add("nodes", many, false);
  await updater.idle();
  expect(applied).toEqual(["b"]);
});

test("the version of a resource counts when the view has all changes before it, queued ones included", async () => {
  const { updater, zone } = await opened();
  updater.received("nodes", "1");
  expect(updater.versionOf("nodes")).toBe("1");
  for (const [i, name] of ["b", "c", "d"].entries()) {
    updater.add("nodes", [change(node(name))], false);
    updater.received("nodes", String(2 + i));
  }
  // The queue is not applied yet.
  expect([zone(), updater.versionOf("nodes")]).toEqual(["a", "1"]);
  await updater.idle();
  expect([zone(), updater.versionOf("nodes")]).toEqual(["d", "4"]);
});

test("a forgotten resource has no version, also if one was queued", async () => {
  const { updater, assembly } = await opened();
  updater.received("nodes", "1");
  updater.add("nodes", [change(node("b"))], false);
  updater.received("nodes", "2");
  updater.forget("nodes", assembly.view);
  await updater.idle();
  expect(updater.versionOf("nodes")).toBeUndefined();
});
