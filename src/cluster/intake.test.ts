import { expect, test, vi } from "vitest";
import { Assembly } from "../core/assembly.ts";
import { Gates } from "../core/gates.ts";
import { DEFAULT_INSTALLATION } from "../core/installation.ts";
import { at, type JsonObject } from "../core/json.ts";
import { defineModule } from "../core/module.ts";
import type { Change } from "../core/view.ts";
import { Intake } from "./intake.ts";
import { Turns } from "./turns.ts";

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

const node = (zone: string): JsonObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n", labels: { zone } },
});
const change = (object: JsonObject | undefined): Change => ({
  resource: "nodes",
  namespace: "",
  name: "n",
  object,
});

async function opened() {
  const assembly = new Assembly([reader], DEFAULT_INSTALLATION, new Gates([]));
  const apply = vi.spyOn(assembly, "apply");
  const told: (string | undefined)[] = [];
  const zoneOf = (object: JsonObject | undefined) =>
    at(object, "metadata", "labels", "zone") as string | undefined;
  const intake = new Intake({
    assembly,
    turns: new Turns(),
    inForce: () => true,
    changed: (changes) => told.push(...changes.map(({ object }) => zoneOf(object))),
    synced: () => undefined,
  });
  intake.add("nodes", [change(node("a"))], true);
  await intake.idle();
  told.length = 0;
  apply.mockClear();
  return { intake, apply, told, zone: () => zoneOf(assembly.view.get("nodes", "", "n")) };
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
