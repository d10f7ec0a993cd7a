import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate, type Host } from "../../src/core/evaluate/evaluate.ts";
import type { Evaluation, EvaluationRequest } from "../../src/core/evaluate/evaluate-hooks.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../src/core/installation/installation.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import type { Module } from "../../src/core/module/module.ts";
import type { Change } from "../../src/core/view/view.ts";
import { outside } from "./outside.ts";

/** The modules with their loaded state. */
export function assemblyOf(
  modules: readonly Module[],
  changes: readonly Change[] = [],
  installation: Installation = DEFAULT_INSTALLATION,
): Assembly {
  const assembly = new Assembly(
    modules,
    installation,
    new Gates(modules.flatMap(({ gates }) => gates ?? [])),
  );
  assembly.apply(changes);
  return assembly;
}

/** A call of all hooks of an assembly; `change` overrides fields. */
export function callOf(
  assembly: Assembly,
  request: AdmissionRequest,
  change: Partial<EvaluationRequest> = {},
): EvaluationRequest {
  return { assembly, phase: "mutate", hooks: assembly.hooks, request, now: 1_700_000_000_000, ...change };
}

/** Calls all hooks of these modules with a request. */
export function ask(
  modules: readonly Module[],
  request: AdmissionRequest,
  world: Host = outside(),
  change: Partial<EvaluationRequest> = {},
): Evaluation | Promise<Evaluation> {
  return evaluate(callOf(assemblyOf(modules), request, change), world);
}

/** The evaluation of a call that must finish without waiting. */
export function atOnce(evaluation: Evaluation | Promise<Evaluation>): Evaluation {
  if (evaluation instanceof Promise) throw new Error("the evaluation should have finished without waiting");
  return evaluation;
}
