import type { GrowthCase } from "./case.ts";
import { HOOK_CASES } from "./hooks.ts";
import { noteCases } from "./notes.ts";
import { objectCases } from "./objects.ts";
import { POLICY_CASES } from "./tenant-policies.ts";
import { WRITTEN_CASES } from "./written-policies.ts";

/** Every field and list of objects, provenance annotations and policies that a tenant can grow, for every hook of every module. */
export const GROWTH_CASES: readonly GrowthCase[] = [
  ...objectCases(300),
  ...noteCases(300),
  ...POLICY_CASES,
  ...WRITTEN_CASES,
  ...HOOK_CASES,
];
