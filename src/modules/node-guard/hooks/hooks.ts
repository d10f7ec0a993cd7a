import type { Gates } from "../../../core/module/gates.ts";
import type { Hook } from "../../../core/module/hook.ts";
import type { Installation } from "../../../core/module/installation.ts";
import type { View } from "../../../core/view/view.ts";
import { OVERRIDE_HOOK } from "../overrides/record-grant.ts";
import { isOn } from "../settings.ts";

/** What the API server asks for: nothing while the gate is off. */
export function hooks(_view: View, _installation: Installation, gates: Gates): readonly Hook[] {
  return isOn(gates) ? [OVERRIDE_HOOK] : [];
}
