import { allow, deny } from "../evaluate/decision.ts";
import type { Finding } from "../evaluate/finding.ts";
import { describeRequest, resourceName } from "../evaluate/request.ts";
import { nameIn } from "../evaluate/status.ts";
import { defineModule, type Module } from "../module/module.ts";
import { defineReconciler } from "../module/reconciler.ts";
import { configuredValues, holds } from "../module/setting-condition.ts";
import { checkObject } from "./check.ts";
import { ignoredBecause, ignoredKinds, ignoredPoliciesReconciler } from "./ignored-kind.ts";
import { kindResource } from "./kind.ts";
import { describeProblem } from "./problem.ts";

/** The name of the module and of its hook. */
export const POLICY_CHECK = "policies";

/**
 * The module that judges policies themselves when they are written, made from what the other modules declare. It is open: a
 * policy that came in while usher was away is reported by its own status instead. Policies that usher ignores, because their module or
 * gate is off, are never refused: a warning says that they have no effect, and so does their status.
 *
 * @param off Modules that take no part in this configuration.
 */
export function policyCheck(modules: readonly Module[], off: readonly Module[] = []): Module {
  const ignored = off.flatMap(ignoredKinds);
  const kinds = [...modules.flatMap((module) => module.kinds), ...ignored].filter(
    ({ standing }) => standing === "resource",
  );
  const byResource = new Map(kinds.map((kind) => [kindResource(kind), kind]));
  return defineModule<never>({
    name: POLICY_CHECK,
    summary: "checks policies when they are written",
    kinds: ignored,
    reads: [],
    reconciler: defineReconciler(ignoredPoliciesReconciler(kinds)),
    hooks: (_policies, _view, installation, gates) => {
      // A kind that another owner registers is not for usher to refuse.
      const values = configuredValues(installation, gates);
      const checked = kinds.filter(
        ({ takeOver, registered }) => takeOver !== "never" || holds(registered, values),
      );
      return checked.length === 0
        ? []
        : [
            {
              name: POLICY_CHECK,
              module: POLICY_CHECK,
              phase: "validate",
              failure: "open",
              tooLarge: "deny",
              timeoutSeconds: 5,
              sideEffects: "None",
              rules: [...new Set(checked.map(({ group }) => group))].map((group) => {
                const mine = checked.filter((kind) => kind.group === group);
                return {
                  groups: [group],
                  versions: [...new Set(mine.flatMap(({ versions }) => versions.map(({ name }) => name)))],
                  resources: mine.map(({ plural }) => plural),
                  operations: ["CREATE", "UPDATE"] as const,
                };
              }),
            },
          ];
    },
    assemble: () => ({
      validate: ({ request, object, view, installation, gates, now, trace }) => {
        const kind = byResource.get(resourceName(request.resource));
        const policy = { kind: request.kind.kind, name: nameIn(request.name, request.object) };
        // Fields that an UPDATE did not touch are not checked again: a finalizer must come off a policy that became invalid.
        if (kind === undefined || request.object === undefined || !object.changed([["spec"]])) {
          trace?.({ policy, applies: "not", why: "its spec stays as it is" });
          return allow();
        }
        const configured = { installation, gates };
        const isIgnored = ignoredBecause(kind, configured) !== undefined;
        const findings = checkObject(kind, request.object, view, configured, now).map((found): Finding => {
          const isWrong = found.severity === "error" && !isIgnored;
          return {
            rule: "policy",
            outcome: isWrong ? "violated" : "skipped",
            path: found.path,
            message: describeProblem(found),
            ...(isWrong ? { code: "USHER-E04" } : { warn: 50 }),
          };
        });
        const wrong = findings.filter(({ outcome }) => outcome === "violated");
        trace?.({
          policy,
          applies: wrong.length === 0 ? "applies" : "refuses",
          why:
            findings.length === 0 ? "the policy is valid" : findings.map(({ message }) => message).join("; "),
        });
        if (wrong.length === 0) return allow(findings);
        const lines = wrong.map(({ message }) => message).join("\n");
        return deny(
          {
            code: 422,
            reason: "Invalid",
            message: `${describeRequest(request)} is not valid: ${lines} (USHER-E04)`,
          },
          findings,
        );
      },
    }),
  });
}
