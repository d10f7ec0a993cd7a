import type { PolicyRef } from "../evaluate/finding.ts";
import type { JsonObject } from "../json.ts";
import type { View } from "../view/view.ts";
import type { Gates } from "./gates.ts";
import type { Installation } from "./installation.ts";

/** The inputs of `compile`. */
export interface CompileContext<Policy = unknown> {
  /** The prepared ones, as for `assemble`. */
  readonly policies: readonly Policy[];
  readonly view: View;
  readonly installation: Installation;
  readonly gates: Gates;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** For files of the API server: their policies have no parameters, so they name what is known now. @default for the API */
  readonly files?: true;
}

/** A part of a policy that the API server can't evaluate by itself. */
export interface LeftOut {
  /** `templates`, `enforcement of updates` */
  readonly what: string;
  /** A part of a sentence. */
  readonly why: string;
}

/** What became of one policy, or of one group or setting that counts as a policy. */
export interface CompiledPolicy {
  readonly policy: PolicyRef;
  /** Each with its binding. Empty: nothing was compiled. */
  readonly objects: readonly JsonObject[];
  /** Empty: the objects do everything that the policy says. */
  readonly leftOut: readonly LeftOut[];
  /** The estimated cost of its most expensive expression, in the units of the API server. @default not estimated */
  readonly cost?: number;
}

export type CompileResult = "whole" | "in part" | "not";

export function compileResult({ objects, leftOut }: CompiledPolicy): CompileResult {
  if (objects.length === 0) return "not";
  return leftOut.length === 0 ? "whole" : "in part";
}

/** A policy that is not compiled, with the reason. */
export function notCompiled(policy: PolicyRef, what: string, why: string): CompiledPolicy {
  return { policy, objects: [], leftOut: [{ what, why }] };
}
