import { describe, expect, test } from "vitest";
import { atLeast, compareVersions, type KubernetesVersion, parseVersion } from "./versions.ts";

function version(text: string): KubernetesVersion {
  const parsed = parseVersion(text);
  if (parsed === undefined) throw new Error(`${text} must be a version`);
  return parsed;
}

test.each<[string, Partial<KubernetesVersion>]>([
  ["v1.37.1", { major: 1, minor: 37, patch: 1, prerelease: [], build: "" }],
  ["v1.37.1-gke.1", { patch: 1, prerelease: ["gke", "1"] }],
  ["v1.38.0-alpha.2+abc", { minor: 38, patch: 0, prerelease: ["alpha", "2"], build: "abc" }],
  ["v1.27.3-eks-a5565ad", { prerelease: ["eks-a5565ad"] }],
  ["v1.28.2+k3s1", { prerelease: [], build: "k3s1" }],
  ["1.37", { minor: 37, patch: 0 }],
  ["1.37+", { minor: 37, build: "" }],
])("%s is read", (text, parts) => {
  expect(parseVersion(text)).toMatchObject(parts);
});

test.each([
  "",
  "v",
  "1",
  "v1",
  "v1.x",
  "1.37.",
  "v1.37.1.2",
  "v1.37.1-",
  "v1.37.1-a..b",
  " v1.37.1",
  "v1.37.1\n",
  "v-1.2.3",
])("%j is not a version", (text) => {
  expect(parseVersion(text)).toBeUndefined();
});

test("handles a string of any length", () => {
  expect(parseVersion(`v1.37.0-${"a".repeat(1_000_000)}`)).toBeUndefined();
});

describe("order", () => {
  const ordered = [
    "v1.9.9",
    "v1.36.0",
    "v1.37.0-alpha",
    "v1.37.0-alpha.1",
    "v1.37.0-alpha.beta",
    "v1.37.0-beta",
    "v1.37.0-beta.2",
    "v1.37.0-beta.11",
    "v1.37.0-rc.1",
    "v1.37.0",
    "v1.37.1-gke.1",
    "v1.37.1",
    "v1.37.10",
    "v2.0.0",
  ];

  test("orders every pair", () => {
    for (const [i, left] of ordered.entries()) {
      for (const [j, right] of ordered.entries()) {
        expect([left, right, Math.sign(compareVersions(version(left), version(right)))]).toEqual([
          left,
          right,
          Math.sign(i - j),
        ]);
      }
    }
  });

  test("the build does not count", () => {
    expect(compareVersions(version("v1.37.0+a"), version("v1.37.0+b"))).toBe(0);
  });
});

test.each<[string, number, boolean]>([
  ["v1.36.9", 37, false],
  ["v1.37.0", 37, true],
  ["v1.37.0-gke.1", 37, true],
  ["v1.38.0-alpha.2+abc", 38, true],
  ["v1.38.0", 37, true],
  ["v1.9.0", 10, false],
  ["v2.0.0", 99, true],
  ["v0.99.0", 1, false],
])("%s has what 1.%i has: %s", (text, minor, has) => {
  expect(atLeast(version(text), minor)).toBe(has);
});
