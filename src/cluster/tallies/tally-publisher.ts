import type { JsonObject } from "../../core/json.ts";
import { errorMessage, responseMessage } from "../client/api-response.ts";
import { pathSegment } from "../client/path-segment.ts";
import { FIELD_MANAGER } from "../controller/planned-writes.ts";
import { encodeTallies } from "./tallies.ts";
import {
  collectionOf,
  ENTRY,
  HEARTBEAT_MS,
  LABEL,
  TALLY_INTERVAL_MS,
  type TallyOptions,
  tallyName,
} from "./tally-objects.ts";

/** Of the 1 MiB of a ConfigMap, minus metadata and JSON escapes. About 5,000 policies. */
const MOST_BYTES = 700_000;

/**
 * Publishes the tallies of this replica in a ConfigMap. With the pod as its owner, the garbage collector deletes it; otherwise `stop`
 * does, or finally the leader.
 */
export class TallyPublisher {
  readonly #options: TallyOptions & { readonly owner?: JsonObject };
  readonly #clock: () => number;
  #published = { changes: 0, at: Number.NEGATIVE_INFINITY };
  /** Whether a write was attempted: without a response it may have succeeded. */
  #attempted = false;
  #publishing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `owner` is an ownerReference: apiVersion, kind, name, uid. */
  constructor(options: TallyOptions & { readonly owner?: JsonObject }) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.publish(), TALLY_INTERVAL_MS).unref();
  }

  /** Deletes the ConfigMap: counts end with the replica. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // A write in flight would recreate it.
    await this.#publishing;
    if (!this.#attempted) return;
    await this.#request("DELETE", this.#path).catch(() => undefined);
  }

  /** Writes changes, or a heartbeat when due. One write at a time, so that an older one never comes last. */
  publish(): Promise<void> {
    this.#publishing ??= this.#publish().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  async #publish(): Promise<void> {
    const { changes } = this.#options.tallies;
    const isRecent = this.#clock() - this.#published.at < HEARTBEAT_MS;
    if (changes === 0 || (changes === this.#published.changes && isRecent)) return;
    this.#attempted = true;
    try {
      await this.#request("PATCH", `${this.#path}?fieldManager=${FIELD_MANAGER}&force=true`, this.#body());
      this.#published = { changes, at: this.#clock() };
    } catch (error) {
      this.#options.log.warn({ error: errorMessage("tallies", error) }, "failed to publish tallies");
    }
  }

  get #name(): string {
    return tallyName(this.#options.replica);
  }

  get #path(): string {
    return `${collectionOf(this.#options.namespace)}/${pathSegment("name", this.#name)}`;
  }

  #body(): JsonObject {
    const { namespace, tallies, owner } = this.#options;
    const { text, left } = encodeTallies(tallies.list(), MOST_BYTES);
    return {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: this.#name,
        namespace,
        labels: { [LABEL]: "true" },
        // Makes each write a change: an unchanged apply would not update the resourceVersion.
        annotations: { "usher.dev/tally": String(Math.round(this.#clock())) },
        ...(owner === undefined ? {} : { ownerReferences: [owner] }),
      },
      data: { [ENTRY]: text, left: String(left) },
    };
  }

  async #request(method: string, path: string, body?: JsonObject): Promise<void> {
    const contentType = "application/apply-patch+yaml";
    const response = await this.#options.client.request(
      method,
      path,
      body === undefined ? {} : { body, contentType },
    );
    if (response.status >= 300) throw new Error(responseMessage(`${method} ${this.#name}`, response));
  }
}
