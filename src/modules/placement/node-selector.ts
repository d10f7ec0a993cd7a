import type { Draft } from "../../core/draft.ts";
import type { Finding, FindingEvent, PolicyRef } from "../../core/finding.ts";
import { policyName } from "../../core/finding.ts";
import type { Path } from "../../core/path.ts";
import type { PlacementPolicy } from "./policy.ts";

/**
 * nodeSelector: a key that the pod has not is added; one that it has stays as it is, whoever set it. All keys of a nodeSelector
 * must match, so adding can only narrow where the pod may run. Applying it twice changes nothing further.
 */
export function injectNodeSelector(
  draft: Draft,
  spec: Path,
  policy: PlacementPolicy,
  setBy: Map<string, PolicyRef>,
  findings: Finding[],
): void {
  for (const [key, value] of policy.nodeSelector) {
    const path = [...spec, "nodeSelector", key];
    const common = { policy: policy.ref, rule: "nodeSelector", path };
    const present = draft.get(...path);
    if (present === undefined || present === null) {
      const done = draft.set(path, value, {
        ...common,
        outcome: "applied",
        message: `nodeSelector ${key}=${value}`,
        event: about(policy.ref, "Normal", "PlacementApplied"),
      });
      if (done) setBy.set(key, policy.ref);
      else
        findings.push({ ...common, outcome: "failed", message: "nodeSelector is no object here", warn: 80 });
    } else if (present === value) {
      findings.push({ ...common, outcome: "same", message: `nodeSelector ${key}=${value} is there already` });
    } else {
      const other = setBy.get(key);
      const holder = other === undefined ? "the pod" : `policy ${policyName(other)}`;
      findings.push({
        ...common,
        outcome: "skipped",
        code: "USHER-P01",
        message: `nodeSelector ${key}: ${holder} says ${String(present)}, policy ${policyName(policy.ref)} says ${value}; the first stays`,
        warn: 60,
        event: about(policy.ref, "Warning", "PlacementSkipped"),
      });
    }
  }
}

/** Events are about the policy: the object may not even have its name yet, and whoever wrote the policy looks there. */
function about(
  { kind, namespace, name }: PolicyRef,
  type: FindingEvent["type"],
  reason: string,
): FindingEvent {
  return { type, reason, regarding: { kind, ...(namespace === undefined ? {} : { namespace }), name } };
}
