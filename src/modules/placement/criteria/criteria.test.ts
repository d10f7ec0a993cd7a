import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CRITERION_CASES } from "../../../../test/builders/criterion-cases.ts";
import { carried, merged, mergedSpec } from "../../../../test/builders/merged.ts";
import { pod } from "../../../../test/builders/pod.ts";
import { canonical, type Json, type JsonObject } from "../../../core/json.ts";
import { pointer } from "../../../core/path.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { ALL_STALE } from "../place/injections.ts";
import type { PlacementRequest } from "./context.ts";
import { CRITERIA, parseCriteria } from "./criteria.ts";
import { ComparedPod } from "./unmet.ts";
import { WorkLimit } from "./work-limit.ts";

const MODULE = join(import.meta.dirname, "..");

/** All files of criteria. */
const SOURCES = readdirSync(join(MODULE, "criteria"))
  .filter((file) => !file.endsWith(".test.ts"))
  .map((file) => readFileSync(join(MODULE, "criteria", file), "utf8"))
  .join("\n");

/** The placement request of a policy with this spec. */
function requestOf(spec: JsonObject): PlacementRequest {
  const criteria = parseCriteria(spec, []);
  return { ref: { kind: "K", name: "p" }, criteria, onConflict: "Skip", failure: "Ignore", restoring: false };
}

describe.each(CRITERIA.map((criterion) => [criterion.name, criterion] as const))("%s", (name, criterion) => {
  const cases = CRITERION_CASES[name] ?? { table: [], policies: fc.constant({}), hostile: [] };
  const unmet = (podSpec: JsonObject, policy: JsonObject) =>
    parseCriteria(policy, []).flatMap(
      ({ prepared }) => criterion.unmet?.(new ComparedPod(podSpec), prepared, new WorkLimit()) ?? [],
    );

  test("has a table of cases, a property and hostile values", () => {
    expect(cases.table.length).toBeGreaterThan(1);
    expect(cases.hostile.length).toBeGreaterThan(1);
    const [sample = {}] = fc.sample(cases.policies, 1);
    expect(parseCriteria(sample, []).map((want) => want.criterion)).toEqual([criterion]);
  });

  test.each(cases.table)("%s", (_what, policy, before, after) => {
    const first = mergedSpec(before, [requestOf(policy)]);
    expect(canonical(first.spec)).toBe(canonical({ ...after }));
    expect(merged(first.object, [requestOf(policy)]).patch).toEqual([]);
  });

  test("on a pod without it all is added, enforced, restored and removed", () => {
    fc.assert(
      fc.property(cases.policies, (policy) => {
        const manifest = pod({ spec: { containers: [] } });
        const stored = merged(manifest, [requestOf(policy)]);
        if (criterion.unmet !== undefined) expect(unmet({}, policy)).not.toEqual([]);
        expect(unmet(stored.spec, policy)).toEqual([]);
        expect(canonical(carried(manifest, stored.object).spec)).toBe(canonical(stored.spec));
        const removed = carried(stored.object, stored.object, { stalePart: ALL_STALE });
        expect(removed.spec).toEqual(manifest["spec"]);
        expect(provenanceOf(removed.object)).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  test("provenance entries belong to it", () => {
    fc.assert(
      fc.property(cases.policies, (policy) => {
        const [origin] = provenanceOf(merged(pod({ spec: {} }), [requestOf(policy)]).object);
        const places = [...(origin?.set ?? []), ...Object.keys(origin?.added ?? {})];
        expect(places.length).toBeGreaterThan(0);
        const own = [criterion.path, ...(criterion.derived ?? []).map((field) => [field])];
        const starts = own.map((path) => pointer(["spec", ...path]));
        for (const place of places)
          expect(starts.some((start) => place === start || place.startsWith(`${start}/`))).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  test.each(cases.hostile.map((value) => [JSON.stringify(value), value] as const))(
    "hostile: %s",
    (_text, value) => {
      const written = criterion.path.reduceRight<Json>(
        (inner, step) => ({ [step]: inner }),
        value,
      ) as JsonObject;
      const problems: Problem[] = [];
      expect(parseCriteria(written, problems)).toEqual([]);
      expect(problems).toMatchObject([{ severity: "error" }]);
      const [policy = {}] = fc.sample(cases.policies, 1);
      const { patch, findings } = mergedSpec(written, [requestOf(policy)]);
      expect(patch).toEqual([]);
      expect(findings.every(({ outcome }) => outcome === "failed" || outcome === "skipped")).toBe(true);
      expect(() => unmet(written, policy)).not.toThrow();
    },
  );

  test("a comment says what it is, how it merges, what holds and where it is mutable", () => {
    const field = `spec.${criterion.path.join(".")}`.replaceAll(".", "\\.");
    expect(SOURCES).toMatch(
      new RegExp(`\\n \\* Field: +${field}\\n \\* Merge: [^/]*\\n \\* Holds: [^/]*\\n \\* Update: `),
    );
  });
});

test("cases are of criteria that exist, whose names are unique", () => {
  const names = CRITERIA.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(Object.keys(CRITERION_CASES).toSorted()).toEqual(names.toSorted());
});

/**
 * Texts of error codes and commands explain fields to users; a sample policy has some; importers read the fields of other programs;
 * the dashboard leaves out the one that the scheduler sets.
 */
const EXPLAINS = [
  "codes.ts",
  "declaration.ts",
  "kinds.ts",
  "import/in-tree.ts",
  "import/kyverno.ts",
  "dashboard.ts",
];

test("no file outside this folder names a criterion", () => {
  const words = new Set(CRITERIA.flatMap(({ name, path }) => [name, ...path.map(String)]));
  const named = new RegExp(`\\b(?:${[...words].join("|")})\\b`);
  const files = readdirSync(MODULE, { recursive: true, encoding: "utf8" }).filter(
    (file) =>
      file.endsWith(".ts") &&
      !file.endsWith(".test.ts") &&
      !file.startsWith("criteria/") &&
      !EXPLAINS.includes(file),
  );
  expect(files.length).toBeGreaterThan(30);
  const naming = files.flatMap((file) => {
    const code = readFileSync(join(MODULE, file), "utf8").replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
    const found = named.exec(code);
    return found === null ? [] : [`${file}: ${found[0]}`];
  });
  expect(naming).toEqual([]);
});
