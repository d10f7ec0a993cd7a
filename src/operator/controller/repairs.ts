import { StatusError } from "../../cluster/client/api-response.ts";
import { equal, type JsonObject } from "../../core/json.ts";
import { describeObject, type Objects } from "../install/apply.ts";
import { sameEssence } from "../webhooks/deviation.ts";
import type { RepeatedLog } from "./repeated-log.ts";

/** Sets objects right, and knows where that is of no use: what an API server drops, it drops again. */
export class Repairs {
  readonly #objects: Objects;
  readonly #tellings: RepeatedLog;
  /** What was written last, and what came of it. */
  readonly #written = new Map<string, { readonly wanted: JsonObject; readonly result: JsonObject }>();

  constructor(objects: Objects, tellings: RepeatedLog) {
    this.#objects = objects;
    this.#tellings = tellings;
  }

  clear(): void {
    this.#written.clear();
  }

  /** Whether an object stands as the last write left it, and that write would be the same now. */
  isInVain(wanted: JsonObject, live: JsonObject | undefined): boolean {
    const last = this.#written.get(describeObject(wanted));
    if (last === undefined || live === undefined) return false;
    return equal(last.wanted, wanted) && sameEssence(last.result, live);
  }

  async write(
    wanted: JsonObject,
    live: JsonObject | undefined,
    deviationsOf: (wanted: JsonObject, live: JsonObject) => string[],
  ): Promise<void> {
    let result = await this.#applied(wanted, live);
    // What somebody put in beside our fields is his by the rules of apply; in webhooks it can switch usher off.
    if (wanted["webhooks"] !== undefined && deviationsOf(wanted, result).length > 0)
      result = await this.#objects.replace(wanted, "webhooks", result);
    const object = describeObject(wanted);
    this.#written.set(object, { wanted, result });
    const lost = deviationsOf(wanted, result);
    if (lost.length > 0)
      this.#tellings.once(
        `${object} ${lost.join()}`,
        { object, lost },
        "the API server does not keep all that usher writes; it may be too old, or another system changes it",
      );
  }

  /** What others put in beside our fields may be what the API server refuses, such as a `url` beside our Service: then it must go first. */
  async #applied(wanted: JsonObject, live: JsonObject | undefined): Promise<JsonObject> {
    try {
      return await this.#objects.apply(wanted, live);
    } catch (error) {
      const invalid = error instanceof StatusError && error.status === 422;
      if (!invalid || live === undefined || wanted["webhooks"] === undefined) throw error;
      return this.#objects.replace(wanted, "webhooks", live);
    }
  }
}
