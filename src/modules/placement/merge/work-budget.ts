import type { Json } from "../../../core/json.ts";

/**
 * What usher does for one object at most, in steps: one is about what it takes to read one value of a policy, and all of them together take
 * some ten milliseconds. Nobody else gets an answer meanwhile, and how many policies there are in a namespace is for its owner to say.
 * A hundred policies of ordinary size take less than half of it.
 */
export const MOST_STEPS = 65_536;

/** By all together, so that who does much in turn can see when to let others have theirs. */
let done = 0;

export function stepsDone(): number {
  return done;
}

/** To look at a policy, and to write or tell one thing of it. */
export const STEPS_TO_TELL = 24;

/** How many values a value holds, itself among them: that many steps it takes to read it. */
export function valuesIn(value: Json | undefined): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = 1;
  for (const inner of Object.values(value)) count += valuesIn(inner);
  return count;
}

/**
 * The work on one object, counted in steps and not by a clock: so the answer is the same every time. What is over stays over: what comes
 * first in the order of policies is done, and nothing behind the first that has no room.
 */
export class WorkBudget {
  #left: number;

  constructor(steps: number = MOST_STEPS) {
    this.#left = steps;
  }

  /** Counts work that is about to be done. False: it must not be. */
  spend(steps: number): boolean {
    if (this.over) return false;
    this.#left -= steps;
    done += steps;
    return this.#left >= 0;
  }

  get over(): boolean {
    return this.#left < 0;
  }
}

/**
 * Policies of the cluster and those of namespaces have a share each: who may write policies in his namespace can't use up what those of
 * the cluster need, whatever priority he gives his own.
 */
export class WorkBudgets {
  readonly #steps: number | undefined;
  #cluster: WorkBudget | undefined;
  #namespaces: WorkBudget | undefined;

  constructor(steps?: number) {
    this.#steps = steps;
  }

  of({ namespace }: { readonly namespace?: string }): WorkBudget {
    if (namespace === undefined) {
      this.#cluster ??= new WorkBudget(this.#steps);
      return this.#cluster;
    }
    this.#namespaces ??= new WorkBudget(this.#steps);
    return this.#namespaces;
  }
}
