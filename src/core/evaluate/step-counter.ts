/** Counts the work of evaluations, in steps. The caller makes it, hands it in with each call and reads it between two. */
export class StepCounter {
  #steps = 0;

  get steps(): number {
    return this.#steps;
  }

  add(steps: number): void {
    this.#steps += steps;
  }
}
