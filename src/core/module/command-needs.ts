import { Facts, failureOf, MAX_ROUNDS, type Need } from "../decision/need.ts";
import { isObject, type JsonObject } from "../json.ts";
import type { CommandProgress, CommandSteps } from "./command.ts";

export interface PagedList {
  /** `deployments.apps`, for errors. */
  readonly what: string;
  readonly page: (token: string | undefined) => Need;
  readonly take: (objects: readonly JsonObject[]) => CommandSteps<void>;
  readonly progress: CommandProgress;
  /** The kind may not be served: then the list is empty. @default a failure */
  readonly optional?: boolean;
}

/** Reads a list page by page; returns why it could not be read to its end. */
export function* readPages({
  what,
  page,
  take,
  progress,
  optional,
}: PagedList): CommandSteps<string | undefined> {
  for (let token: string | undefined; ; ) {
    const [fact] = yield { need: [page(token)], progress };
    if (fact === undefined) return `${what}: not read`;
    if (!("found" in fact)) {
      if (optional && "absent" in fact && fact.absent === "NotServed") return undefined;
      const failure = failureOf(fact);
      return failure === undefined || "failed" in fact ? failure : `${what}: ${failure}`;
    }
    yield* take(Array.isArray(fact.found) ? fact.found.filter(isObject) : []);
    token = fact.next;
    if (token === undefined)
      return fact.complete
        ? undefined
        : `${what}: list is incomplete, timed out or with an object that is too large to be read`;
  }
}

/** Evaluates until nothing more is needed, like a request: after the last round an unmet need counts as failed. */
export function* withFacts<Result extends object>(
  evaluate: (facts: Facts) => Result | { readonly needs: readonly Need[] },
): CommandSteps<Result> {
  const facts = new Facts();
  for (let round = 1; ; round++) {
    const result = evaluate(facts);
    if (!("needs" in result)) return result;
    if (facts.closed) throw new Error("evaluation needs facts after the last round");
    if (round >= MAX_ROUNDS) facts.close("too many rounds of needs");
    const found = round >= MAX_ROUNDS ? [] : yield { need: result.needs };
    for (const [i, need] of result.needs.entries())
      facts.set(need, found[i] ?? { failed: "the source returned no fact" });
  }
}
