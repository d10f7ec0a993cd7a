import type { Json } from "../../../core/json.ts";
import type { CommandReport } from "../../../core/module/command.ts";
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
    notes:
      fixable && policies.against === undefined
        ? ["Add --fix to print the manifests with fixes applied."]
        : [],
    errors: unread.map((reason) => `not scanned: ${reason}`),
    exit: unread.length > 0 ? "failed" : workloads.length > 0 ? "found" : "fine",
  };
}

/** The first line of a workload names it; where two policies are compared, each line names the one that forbids it. */
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
