import { isBeingDeleted, nameOf } from "../../core/kubernetes/object.ts";
import { describeSelector } from "../../core/kubernetes/selectors/label-selector.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { DashboardParts, PolicyConflict, PolicySummary } from "../../core/module/dashboard.ts";
import { policyKey } from "../../core/policy/policy-ref.ts";
import { desiredOf } from "./desired/desired.ts";
import { ruleIndexOf } from "./evaluator.ts";
import type { NodeRule } from "./rules/rule.ts";
import type { RulePolicy } from "./rules/rule-index.ts";

/** What each rule comes to on the nodes that exist. */
interface Reach {
  nodes: number;
  readonly conflicts: Map<string, PolicyConflict>;
}

function reachOf(assembly: Assembly): Map<string, Reach> {
  const found = new Map<string, Reach>();
  const of = (rule: NodeRule) => {
    const known = found.get(rule.id) ?? { nodes: 0, conflicts: new Map() };
    found.set(rule.id, known);
    return known;
  };
  const index = ruleIndexOf(assembly);
  if (index === undefined) return found;
  for (const node of assembly.view.list("nodes")) {
    if (isBeingDeleted(node)) continue;
    const { rules, labels } = desiredOf(node, index);
    for (const rule of rules) {
      of(rule).nodes += 1;
      for (const [key, value] of rule.labels) {
        const wins = labels.get(key);
        if (wins === undefined || wins.rule === rule || wins.value === value) continue;
        const conflict = {
          about: `label ${key}: ${wins.value} by ${wins.rule.id}, ${value} by ${rule.id}, on ${nameOf(node)} and perhaps others`,
          winner: policyKey(wins.rule.ref),
          why:
            wins.rule.priority === rule.priority
              ? "with the same priority the name decides"
              : `priority ${wins.rule.priority} is higher than ${rule.priority}`,
        };
        const id = `${key} ${wins.rule.id} ${rule.id}`;
        if (of(rule).conflicts.has(id)) continue;
        of(rule).conflicts.set(id, { ...conflict, with: policyKey(wins.rule.ref) });
        of(wins.rule).conflicts.set(id, { ...conflict, with: policyKey(rule.ref) });
      }
    }
  }
  return found;
}

function ruleSummary(rule: NodeRule, reach: Reach | undefined): PolicySummary {
  const names = rule.patterns.map(({ source }) => source);
  return {
    selects: [
      ...(names.length === 0 ? [] : [`nodes by name: ${names.join(", ")}`]),
      ...(rule.selector === undefined ? [] : [`nodes: ${describeSelector(rule.selector)}`]),
    ],
    changes: [
      ...[...rule.labels].map(([key, value]) => `label ${key}=${value}`),
      ...[...rule.annotations.keys()].map((key) => `annotation ${key}`),
      ...rule.taints.map(({ key, value, effect }) => `taint ${key}${value ? `=${value}` : ""}:${effect}`),
    ],
    refuses: [],
    conflicts: [...(reach?.conflicts.values() ?? [])],
    objects: [{ count: reach?.nodes ?? 0, noun: "nodes" }],
  };
}

export const dashboard: DashboardParts = {
  summarize: (assembly) => {
    const reach = reachOf(assembly);
    return ({ policy }) => {
      const known = policy as RulePolicy | undefined;
      if (known === undefined) return { selects: ["none"], changes: [], refuses: [] };
      if (known.kind === "rule") return ruleSummary(known, reach.get(known.id));
      return {
        selects: ["labels of nodes that it owns"],
        changes: ["removes labels that no rule sets"],
        refuses: [],
      };
    };
  },
};
