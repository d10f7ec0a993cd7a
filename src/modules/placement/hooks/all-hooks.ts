import type { Hook } from "../../../core/module/hook.ts";
import type { Installation } from "../../../core/module/installation.ts";
import type { View } from "../../../core/view/view.ts";
import { closedHooks } from "./closed-hooks.ts";
import { enforcementHooks } from "./enforcement-hooks.ts";
import { placementHooks } from "./hooks.ts";

/** Every hook that the policies of the moment ask for: those that place, their closed twins, and the validating one. */
export function allHooks(view: View, installation: Installation): Hook[] {
  const placing = placementHooks(view, installation);
  const rules = placing.find(({ name }) => name === "placement")?.rules ?? [];
  return [...closedHooks(view, installation, placing), ...enforcementHooks(view, installation, rules)];
}
