import type { StepCounter } from "../../../core/evaluate/step-counter.ts";
import type { Json } from "../../../core/json.ts";

/**
 * Steps for one object. One step is about the cost of reading one value of a policy; all of them take some ten milliseconds, during which
 * no other request is answered, and the owner of a namespace decides how many policies it has. A hundred policies of ordinary size take
 * less than half.
 */
export const MAX_STEPS = 65_536;

/** Looking at a policy, and writing or reporting one value of it. */
export const STEPS_TO_REPORT = 24;

/** How many values a value holds, itself included: the steps to read it. */
export function valuesIn(value: Json | undefined): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const inner of Object.values(value)) count += valuesIn(inner);
  return count;
}

/**
 * The work on one object, counted in steps and not by a clock, so that the result is the same every time. Once exceeded it stays
 * exceeded: policies are applied in their order up to the first that does not fit.
 */
export class WorkBudget {
  #left: number;
  readonly #counter: StepCounter | undefined;

  constructor(steps: number = MAX_STEPS, counter?: StepCounter) {
    this.#left = steps;
    this.#counter = counter;
  }

  /** Counts work that is about to be done. False: it must not be. */
  spend(steps: number): boolean {
    if (this.exceeded) return false;
    this.#left -= steps;
    this.#counter?.add(steps);
    return this.#left >= 0;
  }

  get exceeded(): boolean {
    return this.#left < 0;
  }
}

/**
 * Cluster policies and namespaced ones have a budget each: the author of a namespace's policies can't use up what those of the cluster
 * need, whatever the priorities.
 */
export class WorkBudgets {
  readonly #steps: number;
  readonly #counter: StepCounter | undefined;
  #cluster: WorkBudget | undefined;
  #namespaced: WorkBudget | undefined;

  constructor(steps: number = MAX_STEPS, counter?: StepCounter) {
    this.#steps = steps;
    this.#counter = counter;
  }

  of({ namespace }: { readonly namespace?: string }): WorkBudget {
    if (namespace === undefined) {
      this.#cluster ??= new WorkBudget(this.#steps, this.#counter);
      return this.#cluster;
    }
    this.#namespaced ??= new WorkBudget(this.#steps, this.#counter);
    return this.#namespaced;
  }
}
