import { StatusError } from "../../cluster/client/api-response.ts";
import { equal, type JsonObject } from "../../core/json.ts";
import type { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject, type Objects } from "../install/apply.ts";
import { sameDesiredFields } from "../webhooks/deviation.ts";

/** Writes desired objects, and detects futile writes: fields that an API server drops, it drops again. */
export class Repairs {
  readonly #objects: Objects;
  readonly #deduplicated: DeduplicatedLog;
  /** The last write of each object, and its result. */
  readonly #written = new Map<string, { readonly wanted: JsonObject; readonly result: JsonObject }>();

  constructor(objects: Objects, deduplicated: DeduplicatedLog) {
    this.#objects = objects;
    this.#deduplicated = deduplicated;
  }

  clear(): void {
    this.#written.clear();
  }

  /** Whether an object is unchanged since the last write, and that write would be the same now. */
  isInVain(wanted: JsonObject, live: JsonObject | undefined): boolean {
    const last = this.#written.get(describeObject(wanted));
    if (last === undefined || live === undefined) return false;
    const ours = (object: JsonObject) =>
      Object.fromEntries(Object.entries(object).filter(([field]) => Object.hasOwn(wanted, field)));
    // A field that was never written, such as the holder of a Lease, belongs to another client.
    return equal(last.wanted, wanted) && sameDesiredFields(ours(last.result), ours(live));
  }

  async write(
    wanted: JsonObject,
    live: JsonObject | undefined,
    deviationsOf: (wanted: JsonObject, live: JsonObject) => string[],
  ): Promise<void> {
    let result = await this.#applied(wanted, live);
    // With server-side apply, fields that another manager added stay; in webhooks and policies they can disable usher.
    const field = exactField(wanted);
    if (field !== undefined && deviationsOf(wanted, result).length > 0)
      result = await this.#objects.replace(wanted, field, result);
    const object = describeObject(wanted);
    this.#written.set(object, { wanted, result });
    const lost = deviationsOf(wanted, result);
    if (lost.length > 0)
      this.#deduplicated.once(
        `${object} ${lost.join()}`,
        { object, lost },
        "the API server does not store all fields; it may be too old, or another system changes them",
      );
  }

  /** Fields that others added can make the object invalid, such as a `url` beside the Service: then they are replaced first. */
  async #applied(wanted: JsonObject, live: JsonObject | undefined): Promise<JsonObject> {
    try {
      return await this.#objects.apply(wanted, live);
    } catch (error) {
      const invalid = error instanceof StatusError && error.status === 422;
      const field = exactField(wanted);
      if (!invalid || live === undefined || field === undefined) throw error;
      return this.#objects.replace(wanted, field, live);
    }
  }
}

/** The field of an object that usher owns completely. */
function exactField(wanted: JsonObject): "webhooks" | "spec" | undefined {
  if (wanted["webhooks"] !== undefined) return "webhooks";
  return /^(?:Validating|Mutating)AdmissionPolicy/.test(String(wanted["kind"])) ? "spec" : undefined;
}
