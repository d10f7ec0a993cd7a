import { expect, test } from "vitest";
import type { JsonObject } from "../../../core/json.ts";
import { LABEL_PREFIX, type Level, podSecurityPolicyOf } from "./policy.ts";

const labelled = (labels: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(labels).map(([key, value]) => [`${LABEL_PREFIX}${key}`, value]));
const lv = (level: Level, version = "latest") => ({ level, version });
const text = ({ enforce, audit, warn }: ReturnType<typeof podSecurityPolicyOf>) =>
  [enforce, audit, warn].map(({ level, version }) => `${level}:${version}`).join(" ");

test.each<[string, JsonObject, string, string[]]>([
  ["no labels", {}, "privileged:latest privileged:latest privileged:latest", []],
  ["warn follows enforce", { enforce: "baseline" }, "baseline:latest privileged:latest baseline:latest", []],
  [
    "with its version",
    { enforce: "baseline", "enforce-version": "v1.5" },
    "baseline:v1.5 privileged:latest baseline:v1.5",
    [],
  ],
  [
    "unless it has one",
    { enforce: "baseline", "enforce-version": "v1.5", "warn-version": "v1.6" },
    "baseline:v1.5 privileged:latest baseline:v1.6",
    [],
  ],
  [
    "or a level, even privileged",
    { enforce: "restricted", warn: "privileged" },
    "restricted:latest privileged:latest privileged:latest",
    [],
  ],
  [
    "audit follows nothing",
    { enforce: "restricted", audit: "baseline" },
    "restricted:latest baseline:latest restricted:latest",
    [],
  ],
  [
    "a wrong enforce level",
    { enforce: "x" },
    "restricted:latest privileged:latest privileged:latest",
    ["enforce"],
  ],
  [
    "wrong audit and warn levels",
    { audit: "", warn: "Baseline" },
    "privileged:latest privileged:latest privileged:latest",
    ["audit", "warn"],
  ],
  [
    "wrong versions",
    { "enforce-version": "v1", "audit-version": "1.1", "warn-version": "v1.01" },
    "privileged:latest privileged:latest privileged:latest",
    ["enforce-version", "audit-version", "warn-version"],
  ],
  [
    "a version as it is written",
    { "enforce-version": "v1.9007199254740993" },
    "privileged:v1.9007199254740993 privileged:latest privileged:latest",
    [],
  ],
  [
    "beyond 64 bits",
    { "enforce-version": "v1.9223372036854775808" },
    "privileged:latest privileged:latest privileged:latest",
    ["enforce-version"],
  ],
])("%s", (_name, labels, policy, errors) => {
  const found = podSecurityPolicyOf(labelled(labels));
  expect(text(found)).toBe(policy);
  expect(found.errors.map(({ field }) => field)).toEqual(
    errors.map((key) => `metadata.labels[${LABEL_PREFIX}${key}]`),
  );
});

test("labels override the defaults, each its part", () => {
  const defaults = {
    enforce: lv("baseline", "v1.20"),
    audit: lv("restricted", "v1.21"),
    warn: lv("restricted", "v1.22"),
  };
  expect(text(podSecurityPolicyOf({}, defaults))).toBe("baseline:v1.20 restricted:v1.21 restricted:v1.22");
  expect(
    text(podSecurityPolicyOf(labelled({ enforce: "restricted", "audit-version": "v1.9" }), defaults)),
  ).toBe("restricted:v1.20 restricted:v1.9 restricted:v1.22");
});

test("has errors in the API server's wording", () => {
  const { errors } = podSecurityPolicyOf(labelled({ enforce: 'a"', "warn-version": "v2.0" }));
  expect(errors.map(({ message }) => message)).toEqual([
    'Invalid value: "a\\"": must be one of privileged, baseline, restricted',
    'Invalid value: "v2.0": must be "latest" or "v1.x"',
  ]);
});

test("no shape of labels throws", () => {
  for (const labels of [undefined, null, "x", [], JSON.parse('{"__proto__":{}}')])
    expect(text(podSecurityPolicyOf(labels as JsonObject))).toBe(
      "privileged:latest privileged:latest privileged:latest",
    );
});
