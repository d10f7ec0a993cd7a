import { z } from "zod";
import type { Json } from "../../../core/json.ts";
import type { CommandReport, ReportItem } from "../../../core/module/command.ts";
import type { Code } from "../../../core/module/module.ts";
import { CHECKS } from "../security/checks.ts";
import { WINDOWS_CHECKS } from "../security/windows-user.ts";
import { policyText, type ScanPolicies } from "./evaluated-workload.ts";
import type { WorkloadRow } from "./rows.ts";

/** Workloads that violate the policy, or that differ between two; the others are only counted. */
export function scanReport(
  rows: readonly WorkloadRow[],
  how: { readonly policies: ScanPolicies; readonly unread: readonly string[]; readonly calledAs: string },
): CommandReport {
  const { policies, unread } = how;
  const workloads = rows.filter(({ violations }) => violations.length > 0);
  const checks: Record<string, number> = {};
  for (const { violations } of workloads)
    for (const check of new Set(violations.map((one) => one.check))) checks[check] = (checks[check] ?? 0) + 1;
  const against = policies.against === undefined ? {} : { against: policyText(policies.against) };
  const policy = policyText(policies.policy);
  const summary = { policy, ...against, workloads: rows.length, violating: workloads.length, checks };
  const fixable = workloads.some(({ violations }) => violations.some(({ fix }) => fix !== undefined));
  return {
    data: { workloads, summary, unread } as unknown as Json,
    table: { columns: ["WORKLOAD", "REPLICAS", "OS", "VIOLATION"], rows: workloads.flatMap(tableRows) },
    summary: summaryText(rows.length, workloads.length, policies),
    items: rows.map((row) => itemOf(row, policy)),
    codes: CHECK_CODES,
    notes:
      fixable && policies.against === undefined
        ? ["Add --fix to print the manifests with fixes applied."]
        : [],
    errors: unread.map((reason) => `not scanned: ${reason}`),
    exit: unread.length > 0 ? "failed" : workloads.length > 0 ? "found" : "fine",
  };
}

function itemOf({ kind, namespace, name, violations }: WorkloadRow, policy: string): ReportItem {
  return {
    object: { kind, namespace, name },
    verdict: violations.length > 0 ? "violates" : "complies",
    findings: violations.map(({ check, reason, detail, under = policy, fix }) => ({
      level: "error",
      code: check,
      message: `${reason}${detail === "" ? "" : ` (${detail})`}`,
      by: under,
      ...(fix === undefined ? {} : { hint: "--fix prints the corrected manifest" }),
    })),
  };
}

/** The checks of Pod Security, explained for reports. */
const CHECK_CODES: readonly Code[] = [...CHECKS, ...WINDOWS_CHECKS].map(({ id }) => ({
  code: id,
  title: `Pod Security check ${id}`,
  meaning:
    "The pod, or pods of the template, have a field that the Pod Security Standard of this level forbids.",
  remedy:
    "Change the field that the message names; docs/pod-security.md lists the allowed values of each check.",
}));

/** What `-o json` prints. */
export const scanShape = z.strictObject({
  workloads: z.array(
    z.strictObject({
      kind: z.string(),
      namespace: z.string(),
      name: z.string(),
      replicas: z.int(),
      os: z.string().nullable(),
      violations: z.array(
        z.strictObject({
          check: z.string(),
          reason: z.string(),
          detail: z.string(),
          causes: z.array(z.strictObject({ field: z.string(), message: z.string() })),
          fix: z
            .array(
              z.strictObject({
                op: z.enum(["add", "remove", "replace", "test"]),
                path: z.string(),
                value: z.json().optional(),
              }),
            )
            .optional(),
          under: z.string().optional(),
        }),
      ),
    }),
  ),
  summary: z.strictObject({
    policy: z.string(),
    against: z.string().optional(),
    workloads: z.int(),
    violating: z.int(),
    checks: z.record(z.string(), z.int()),
  }),
  unread: z.array(z.string()).describe("What could not be read."),
});

/** The first line of a workload names it; if two policies are compared, each line names the one that forbids it. */
function tableRows({ kind, namespace, name, replicas, os, violations }: WorkloadRow): string[][] {
  return violations.map(({ reason, detail, under }, i) => {
    const text = `${under === undefined ? "" : `${under}: `}${reason}${detail === "" ? "" : ` (${detail})`}`;
    return i === 0 ? [`${kind} ${namespace}/${name}`, String(replicas), os ?? "-", text] : ["", "", "", text];
  });
}

function summaryText(all: number, found: number, { policy, against }: ScanPolicies): string {
  const counted = `${found} of ${all} ${all === 1 ? "workload" : "workloads"}`;
  if (against === undefined)
    return `${counted} ${found === 1 ? "violates" : "violate"} ${policyText(policy)}`;
  return `${counted} ${found === 1 ? "differs" : "differ"} between ${policyText(policy)} and ${policyText(against)}`;
}
