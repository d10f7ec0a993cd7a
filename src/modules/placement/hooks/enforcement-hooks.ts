import { exemptNamespaces, type Installation } from "../../../core/installation/installation.ts";
import { isBoundExpression } from "../../../core/kubernetes/pod-state.ts";
import type { Hook, NamespaceScope, Rule } from "../../../core/module/hook.ts";
import { protectedNamespaces } from "../../../core/module/protected.ts";
import type { View } from "../../../core/view/view.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { isPods, TEMPLATE_CHANGES } from "./closed-hooks.ts";
import { reachOf } from "./reach.ts";

const COMMON = {
  module: "placement",
  phase: "validate",
  failure: "open",
  timeoutSeconds: 2,
  sideEffects: "NoneOnDryRun",
} as const;

/** A pod comes under a policy by its labels; few fields of its spec may change. */
const POD_CHANGES = [
  "has(object.metadata.labels) != has(oldObject.metadata.labels)",
  "(has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)",
  "object.spec != oldObject.spec",
].join(" || ");

/** A workload that gets no further pods needs no warning about them. */
const SCALES_UP =
  "has(object.spec.replicas) && object.spec.replicas > (has(oldObject.spec.replicas) ? oldObject.spec.replicas : 0)";

/** Kinds with a template that have no replicas. */
const NOT_SCALED: ReadonlySet<string> = new Set(["podtemplates", "daemonsets", "jobs", "cronjobs"]);

/**
 * The validating hooks are called only if a policy enforces; without one they have no rules and are not registered. For
 * a namespaced policy they are called in that namespace, for a cluster policy in all, because namespaces may become
 * selected.
 */
export function enforcementHooks(
  policies: readonly PlacementPolicy[],
  view: View,
  installation: Installation,
  rules: readonly Rule[],
): Hook[] {
  const enforcing = policies.filter(({ enforcement }) => enforcement !== "None");
  const wide = enforcing.some(({ ref }) => ref.namespace === undefined);
  const exempt = exemptNamespaces(installation);
  const named = enforcing.flatMap(({ ref }) => ref.namespace ?? []);
  const names = [...new Set(named)].filter((name) => !exempt.includes(name)).sort();
  const namespaces: NamespaceScope = wide ? { except: exempt } : { only: names };
  const inForce = wide || names.length > 0;
  const tooLarge = enforcing.some(({ enforcement }) => enforcement === "Refuse") ? "deny" : "allow";
  const hook = (name: string, some: readonly Rule[], condition?: string): Hook => ({
    ...COMMON,
    tooLarge,
    name,
    namespaces,
    rules: inForce ? some : [],
    ...(condition === undefined ? {} : { conditions: [{ name: "changes", expression: condition }] }),
  });
  const objects = hook("placement-enforcement", rules);
  const pods = hook("placement-enforcement-pod-updates", podUpdates(rules), POD_CHANGES);
  const scales = hook("placement-enforcement-scale", scaleRules(rules), SCALES_UP);
  const closed = reachOf(enforcing.filter(isClosed), view, installation);
  // All of them, in force or not: the names that a replica serves must not depend on the policies that it has seen.
  const open = [objects, pods, scales];
  if (!closed.everywhere && closed.names.length === 0) return open;
  const scope: NamespaceScope = closed.everywhere
    ? { except: protectedNamespaces(installation) }
    : { only: closed.names };
  // Finalizers and labels of workloads must change while usher is down: only changes that enforcement would evaluate
  // wait for it.
  const shadow = (of: Hook, condition: string): Hook => ({
    ...of,
    name: `${of.name}-closed`,
    askedAs: of.name,
    failure: "closed",
    timeoutSeconds: 5,
    namespaces: scope,
    conditions: [{ name: "changes", expression: condition }],
  });
  return [
    shadow(objects, TEMPLATE_CHANGES),
    // A pod that has its node stays there with any labels: operators relabel such pods at a failover.
    ...(pods.rules.length === 0
      ? []
      : [shadow(pods, `!${isBoundExpression("oldObject")} && (${POD_CHANGES})`)]),
    ...open,
  ];
}

function podUpdates(rules: readonly Rule[]): Rule[] {
  return rules.filter(isPods).map((rule) => ({ ...rule, operations: ["UPDATE"] }));
}

function scaleRules(rules: readonly Rule[]): Rule[] {
  // Without pods among the kinds, none is evaluated.
  if (!rules.some(isPods)) return [];
  return rules
    .filter((rule) => !isPods(rule))
    .map((rule) => ({
      ...rule,
      operations: ["UPDATE"] as const,
      resources: rule.resources.filter((name) => !NOT_SCALED.has(name)).map((name) => `${name}/scale`),
    }))
    .filter(({ resources }) => resources.length > 0);
}

function isClosed({ enforcement, failure }: PlacementPolicy): boolean {
  return enforcement === "Refuse" && failure === "Fail";
}
