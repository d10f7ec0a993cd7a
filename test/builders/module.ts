import type { Finding } from "../../src/core/decision/finding.ts";
import type { Hook } from "../../src/core/module/hook.ts";
import type { Evaluator, Module } from "../../src/core/module/module.ts";

export interface ModuleParts extends Pick<Evaluator, "mutate" | "validate"> {
  readonly failure?: "open" | "closed";
  readonly hook?: Partial<Hook>;
}

/** A module without policies whose hooks match every request in the phases that it has a function for. */
export function moduleThat(name: string, { mutate, validate, failure = "open", hook }: ModuleParts): Module {
  const common = {
    module: name,
    failure,
    tooLarge: "deny" as const,
    timeoutSeconds: 5,
    sideEffects: "None" as const,
    rules: [
      {
        groups: ["*"],
        versions: ["*"],
        // A fail-closed hook that reaches everything would be reduced to its fail-open part.
        resources: failure === "open" ? ["*"] : ["pods"],
        operations: ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const,
      },
    ],
  };
  const hooks: Hook[] = [];
  if (mutate !== undefined) hooks.push({ ...common, name: `${name}-mutate`, phase: "mutate", ...hook });
  if (validate !== undefined) hooks.push({ ...common, name: `${name}-validate`, phase: "validate", ...hook });
  return {
    name,
    summary: "made for a test",
    kinds: [],
    reads: [],
    hooks: () => hooks,
    assemble: () => ({
      ...(mutate === undefined ? {} : { mutate }),
      ...(validate === undefined ? {} : { validate }),
    }),
  };
}

/** A finding of some policy; `change` overrides fields. */
export function finding(change: Partial<Finding> = {}): Finding {
  return { rule: "rule", outcome: "applied", message: "done", ...change };
}
