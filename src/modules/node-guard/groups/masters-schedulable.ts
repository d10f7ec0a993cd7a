import type { Consistency } from "../policy/guard-policy.ts";
import { CONTROL_PLANE, type Mode } from "./group.ts";

/**
 * How the mode of ControlPlane goes with mastersSchedulable. The enhancement's text asks for Enable just where masters are open to
 * everyone; Corrected turns it round. Either way a contradiction weakens to Inform and never strengthens, as a mode that nobody set
 * would refuse what an administrator allowed.
 */
export interface Agreement {
  readonly consistent: boolean;
  readonly message: string;
}

export function agreement(
  mode: Mode,
  consistency: Consistency,
  mastersSchedulable: boolean | undefined,
): Agreement {
  if (consistency === "Disabled") return { consistent: true, message: "mastersSchedulable is not compared" };
  if (mastersSchedulable === undefined)
    return { consistent: true, message: "there is no Scheduler to compare with" };
  const message = `mastersSchedulable is ${mastersSchedulable} and the mode of ${CONTROL_PLANE} is ${mode}`;
  const consistent =
    consistency === "Corrected"
      ? !(mastersSchedulable && mode === "Enable")
      : mastersSchedulable === (mode === "Enable");
  return { consistent, message };
}

/** The mode of a group under mastersSchedulable. */
export function cappedMode(
  group: { readonly name: string; readonly mode: Mode; readonly because: string },
  consistency: Consistency,
  mastersSchedulable: boolean | undefined,
): { readonly mode: Mode; readonly because: string } {
  const { name, mode, because } = group;
  if (name !== CONTROL_PLANE || mode !== "Enable") return { mode, because };
  const { consistent } = agreement(mode, consistency, mastersSchedulable);
  if (consistent) return { mode, because };
  return {
    mode: "Inform",
    because: `mastersSchedulable is ${mastersSchedulable} (consistency ${consistency})`,
  };
}
