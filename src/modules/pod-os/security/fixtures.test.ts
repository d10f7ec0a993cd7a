// Every check at every version, from its declaration: pods that pass and pods that fail, in each list of containers,
// for each OS.
import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import {
  BREAKPOINTS,
  fixturesOf,
  LISTS,
  MINORS,
  SYSTEMS,
} from "../../../../test/builders/pod-security-fixtures.ts";
import { copyOf, type JsonObject } from "../../../core/json.ts";
import { CHECKS } from "./checks.ts";
import { evaluatePodSecurity } from "./evaluate.ts";

const TRUSTED = { osSkipTrusted: true };

function failing(level: string, minor: number, metadata: JsonObject, spec: JsonObject): string {
  const { violations } = evaluatePodSecurity({ level, version: `v1.${minor}` }, metadata, spec, TRUSTED);
  return violations.map(({ check }) => check).join(", ");
}

describe.each(CHECKS.map((check) => [check.id, check] as const))("%s", (_id, check) => {
  const all = MINORS.flatMap((minor) => fixturesOf(check, minor));

  test("each fixture gets its verdict, from this check alone", () => {
    const wrong = all
      .map(({ name, minor, expected, metadata, spec }) => ({
        name,
        expected: expected === "pass" ? "" : check.id,
        found: failing(check.level, minor, metadata, spec),
      }))
      .filter(({ expected, found }) => expected !== found);
    expect(wrong).toEqual([]);
  });

  test("no fixture is missing: each variant, verdict, list of containers and OS", () => {
    const seen = new Set(
      all.map(
        ({ variant, declared, list, system }) => `${variant.since} ${declared} ${list ?? "pod"} ${system}`,
      ),
    );
    const perContainer = (since: number): boolean =>
      check.variants
        .filter((one) => one.since === since)
        .flatMap(({ fields }) => fields)
        .some(({ scope }) => scope === "container");
    for (const { since } of check.variants)
      for (const declared of ["allowed", "forbidden"])
        for (const system of SYSTEMS)
          for (const list of perContainer(since) ? LISTS : ["pod"])
            expect(seen).toContain(`${since} ${declared} ${list} ${system}`);
    expect(new Set(all.map(({ minor }) => minor))).toEqual(
      new Set(MINORS.filter((minor) => minor >= (check.variants[0]?.since ?? 0))),
    );
  });

  test("each variant differs from the one before", () => {
    for (const [i, { since }] of check.variants.entries()) {
      if (i === 0) continue;
      const pods = [...fixturesOf(check, since - 1), ...fixturesOf(check, since)];
      const differ = pods.some(({ metadata, spec }) => {
        const ids = [since - 1, since].map((minor) =>
          failing(check.level, minor, metadata, spec).split(", ").includes(check.id),
        );
        return ids[0] !== ids[1];
      });
      expect(differ, `v1.${since - 1} and v1.${since}`).toBe(true);
    }
  });

  test("with its fix applied, alone, the pod passes", () => {
    let fixed = 0;
    for (const { name, minor, expected, metadata, spec } of all) {
      if (expected === "pass") continue;
      const policy = { level: check.level, version: `v1.${minor}` };
      const [violation] = evaluatePodSecurity(policy, metadata, spec, { ...TRUSTED, fixes: true }).violations;
      if (violation?.fix === undefined) continue;
      const pod = copyOf({ metadata, spec }) as { metadata: JsonObject; spec: JsonObject };
      const problems = applyPatch(pod, violation.fix as Operation[]).filter((one) => one !== null);
      expect(problems, name).toEqual([]);
      expect(evaluatePodSecurity(policy, pod.metadata, pod.spec, TRUSTED).detail, name).toBe("");
      fixed++;
    }
    const unfixable = check.id === "hostPathVolumes" || check.id === "restrictedVolumes";
    expect(fixed > 0).toBe(!unfixable);
  });
});

test("19 checks, 31 variants, and the versions at which they change", () => {
  expect(CHECKS).toHaveLength(19);
  expect(CHECKS.flatMap(({ variants }) => variants)).toHaveLength(31);
  expect(BREAKPOINTS).toEqual([0, 8, 19, 22, 23, 25, 27, 29, 31, 32, 34, 35, 37]);
});
