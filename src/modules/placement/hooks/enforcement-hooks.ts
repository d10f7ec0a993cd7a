import type { Hook, Rule } from "../../../core/module/hook.ts";
import { exemptNamespaces, type Installation } from "../../../core/module/installation.ts";
import { protectedNamespaces } from "../../../core/registration/protected.ts";
import type { View } from "../../../core/view/view.ts";
import { policiesIn, reachOf, type WrittenPolicy } from "./reach.ts";

const COMMON = { module: "placement", phase: "validate", sideEffects: "NoneOnDryRun" } as const;

/**
 * The validating hook is called only where a policy enforces; without one it has no rules and is not registered. For a namespaced policy
 * it is called in that namespace, for a cluster policy in all, since namespaces may come to be selected.
 */
export function enforcementHooks(view: View, installation: Installation, rules: readonly Rule[]): Hook[] {
  const enforcing = policiesIn(view, ({ enforcement }) => enforcement === "Warn" || enforcement === "Refuse");
  const wide = enforcing.some(({ namespace }) => namespace === undefined);
  const exempt = exemptNamespaces(installation);
  const named = enforcing.flatMap(({ namespace }) => namespace ?? []);
  const names = [...new Set(named)].filter((name) => !exempt.includes(name)).sort();
  const closed = reachOf(enforcing.filter(isClosed), view, installation);
  const open: Hook = {
    ...COMMON,
    name: "placement-enforcement",
    failure: "open",
    timeoutSeconds: 2,
    namespaces: wide ? { except: exempt } : { only: names },
    rules: wide || names.length > 0 ? rules : [],
  };
  if (!closed.everywhere && closed.names.length === 0) return [open];
  return [
    {
      ...open,
      name: "placement-enforcement-closed",
      askedAs: open.name,
      failure: "closed",
      timeoutSeconds: 5,
      namespaces: closed.everywhere ? { except: protectedNamespaces(installation) } : { only: closed.names },
    },
    open,
  ];
}

function isClosed({ spec }: WrittenPolicy): boolean {
  return spec["enforcement"] === "Refuse" && spec["failurePolicy"] === "Fail";
}
