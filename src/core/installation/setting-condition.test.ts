import { describe, expect, test } from "vitest";
import type { JsonObject } from "../json.ts";
import { type Gate, Gates } from "./gates.ts";
import { DEFAULT_INSTALLATION } from "./installation.ts";
import {
  configuredValues,
  gateEnabled,
  holds,
  MANAGES_CRDS,
  moduleEnabled,
  moduleSetting,
  type SettingCondition,
} from "./setting-condition.ts";

const GATE: Gate = { name: "Guarded", stage: "alpha", default: false, summary: "" };
const LISTED: SettingCondition = { listed: ["modules", "m", "resources"] };

describe("a condition", () => {
  test.each<[string, SettingCondition, JsonObject, boolean]>([
    ["an absent setting counts as its default", moduleEnabled("m"), {}, true],
    ["a module that is off", moduleEnabled("m"), { modules: { m: { enabled: false } } }, false],
    ["another module that is off", moduleEnabled("m"), { modules: { n: { enabled: false } } }, true],
    ["a gate by its default", gateEnabled(GATE), {}, false],
    ["a gate that is on", gateEnabled(GATE), { featureGates: { Guarded: true } }, true],
    ["CRDs that are not managed", MANAGES_CRDS, { manageCrds: false }, false],
    [
      "a value within a module",
      moduleSetting("m", ["a", "b"], "X", "Y"),
      { modules: { m: { a: { b: "X" } } } },
      true,
    ],
    [
      "another value within a module",
      moduleSetting("m", ["a", "b"], "X", "Y"),
      { modules: { m: { a: { b: "Z" } } } },
      false,
    ],
    ["an absent list has everything", LISTED, {}, true],
    ["a resource in the list", LISTED, { modules: { m: { resources: ["jobs.batch"] } } }, true],
    ["a resource that is not in the list", LISTED, { modules: { m: { resources: ["pods"] } } }, false],
    ["an empty list has nothing", LISTED, { modules: { m: { resources: [] } } }, false],
  ])("%s", (_what, condition, values, expected) => {
    expect(holds([condition], values, "jobs.batch")).toBe(expected);
  });

  test("all must hold, and an empty list always does", () => {
    const off = { featureGates: { Guarded: true }, manageCrds: false };
    expect(holds([gateEnabled(GATE), MANAGES_CRDS], off)).toBe(false);
    expect(holds(undefined, off)).toBe(true);
  });
});

test("the values of an installation are those of its configuration", () => {
  const installation = { ...DEFAULT_INSTALLATION, manageCrds: false, settings: { m: { a: 1 } } };
  expect(configuredValues(installation, new Gates([GATE], new Map([["Guarded", true]])))).toEqual({
    manageCrds: false,
    modules: { m: { a: 1 } },
    featureGates: { Guarded: true },
  });
});
