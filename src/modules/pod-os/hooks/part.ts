import type { Result } from "../../../core/evaluate/decision.ts";
import type { Gates } from "../../../core/module/gates.ts";
import type { Hook } from "../../../core/module/hook.ts";
import type { Installation } from "../../../core/module/installation.ts";
import type { Context } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import type { Exceptions } from "../exceptions/exceptions.ts";

/** One question that this module answers: when it is asked, and how it is answered. */
export interface Part {
  /** The name by which its hooks are asked. */
  readonly name: string;
  /** Empty where the settings have no use for it. */
  readonly hooks: (installation: Installation, gates: Gates, view: View) => readonly Hook[];
  readonly evaluate: (context: Context, exceptions: Exceptions) => Result;
}
