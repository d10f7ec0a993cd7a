import { expect, test } from "vitest";
import { equal, type Json } from "../../src/core/json.ts";
import { assemblyOf, BASE, CONFIGURATIONS } from "./configurations.ts";
import { operatorFields, operatorMoves } from "./operator.ts";
import { configurationFields, transitions, UNMOVED } from "./transitions.ts";

test("every field of UsherConfiguration moves in the simulation, or has a reason why not", () => {
  const fields = configurationFields().map(({ path }) => path);
  const moved = new Set(transitions().map(({ path }) => path));
  // A field that is forgotten has no values, and `transitions` throws.
  expect(fields.filter((path) => !moved.has(path) && UNMOVED[path] === undefined)).toEqual([]);
  expect(Object.keys(UNMOVED).filter((path) => !fields.includes(path))).toEqual([]);
  for (const name of ["placement", "node-labels", "node-guard", "pod-os", "project-limit"])
    expect(moved).toContain(`modules.${name}.enabled`);
});

test("every field of a ProjectRequestLimit moves under the operator", () => {
  const moved = new Set(operatorMoves().map(({ path }) => path));
  expect(operatorFields().filter(({ path }) => !moved.has(path))).toEqual([]);
  expect([...moved]).toEqual(
    expect.arrayContaining(["limits", "namespaces", "exempt.groups", "certificates"]),
  );
});

test("each transition is a valid configuration, and another one than the base", () => {
  for (const { path, value, configuration } of transitions()) {
    expect(() => assemblyOf(configuration), `${path}: ${JSON.stringify(value)}`).not.toThrow();
    expect(equal(configuration as Json, BASE as Json), path).toBe(false);
  }
  for (const [name, configuration] of Object.entries(CONFIGURATIONS))
    expect(() => assemblyOf(configuration), name).not.toThrow();
});
