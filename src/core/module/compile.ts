import type { Gates } from "../installation/gates.ts";
import type { Installation } from "../installation/installation.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";
import type { View } from "../view/view.ts";

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

/** The result for one policy, or for one group or setting that counts as a policy. */
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

/** The highest cost of one expression when the API server evaluates it: PerCallLimit in k8s.io/apiserver/pkg/apis/cel. */
const MAX_COST = 1_000_000;

/** The longest expression that the parser of cel-go reads, in code points. */
const MAX_LENGTH = 100_000;

/** A compiled policy, unless the API server would refuse its expressions, when they are written or when it evaluates them. */
export function withinBudget(compiled: CompiledPolicy): CompiledPolicy {
  const { policy, objects, cost = 0 } = compiled;
  const longest = Math.max(0, ...objects.flatMap(expressionsIn).map((text) => [...text].length));
  if (longest > MAX_LENGTH)
    return {
      ...notCompiled(
        policy,
        "the policy",
        `an expression would have ${longest} characters, and the API server reads ${MAX_LENGTH}; split the policy`,
      ),
      cost,
    };
  if (cost > MAX_COST)
    return {
      ...notCompiled(
        policy,
        "the policy",
        `its estimated cost for a large pod is ${cost}, and the API server stops at ${MAX_COST}; use fewer terms`,
      ),
      cost,
    };
  return compiled;
}

function expressionsIn(value: Json | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(expressionsIn);
  if (!isObject(value)) return [];
  const { expression, ...rest } = value;
  return [
    ...(typeof expression === "string" ? [expression] : []),
    ...Object.values(rest).flatMap(expressionsIn),
  ];
}
