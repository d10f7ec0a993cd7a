import type { JsonObject } from "../../core/json.ts";
import { errorMessage, responseMessage } from "../client/api-response.ts";
import { pathSegment } from "../client/path-segment.ts";
import { FIELD_MANAGER } from "../controller/planned-writes.ts";
import { encodeTallies } from "./tallies.ts";
import {
  collectionOf,
  ENTRY,
  LABEL,
  SIGN_OF_LIFE_MS,
  TALLY_EVERY_MS,
  type TallyOptions,
  tallyName,
} from "./tally-objects.ts";

/** A ConfigMap holds 1 MiB; its metadata and what JSON escapes need some of it. About 5,000 policies. */
const MOST_BYTES = 700_000;

/**
 * Publishes the tallies of this replica in a ConfigMap of its own. With an owner, the pod, Kubernetes deletes it together with that; else
 * `stop` does, or at last the leader.
 */
export class TallyPublisher {
  readonly #options: TallyOptions & { readonly owner?: JsonObject };
  readonly #clock: () => number;
  #published = { changes: 0, at: Number.NEGATIVE_INFINITY };
  /** Whether it was ever tried: what was not answered may have been done. */
  #asked = false;
  #publishing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `owner` is an ownerReference: apiVersion, kind, name, uid. */
  constructor(options: TallyOptions & { readonly owner?: JsonObject }) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.publish(), TALLY_EVERY_MS).unref();
  }

  /** The counts go with the replica. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // What is under way would else be written after it was deleted.
    await this.#publishing;
    if (!this.#asked) return;
    await this.#ask("DELETE", this.#path).catch(() => undefined);
  }

  /** Writes where there is something new, or it is time for a sign of life. Once at a time, so that no older one comes last. */
  publish(): Promise<void> {
    this.#publishing ??= this.#publish().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  async #publish(): Promise<void> {
    const { changes } = this.#options.book;
    const quiet = this.#clock() - this.#published.at < SIGN_OF_LIFE_MS;
    if (changes === 0 || (changes === this.#published.changes && quiet)) return;
    this.#asked = true;
    try {
      await this.#ask("PATCH", `${this.#path}?fieldManager=${FIELD_MANAGER}&force=true`, this.#body());
      this.#published = { changes, at: this.#clock() };
    } catch (error) {
      this.#options.log.warn({ error: errorMessage("tallies", error) }, "the tallies could not be published");
    }
  }

  get #name(): string {
    return tallyName(this.#options.replica);
  }

  get #path(): string {
    return `${collectionOf(this.#options.namespace)}/${pathSegment("name", this.#name)}`;
  }

  #body(): JsonObject {
    const { namespace, book, owner } = this.#options;
    const { text, left } = encodeTallies(book.list(), MOST_BYTES);
    return {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: this.#name,
        namespace,
        labels: { [LABEL]: "true" },
        // Without it two writes of the same would be one, and no sign of life.
        annotations: { "usher.dev/tally": String(Math.round(this.#clock())) },
        ...(owner === undefined ? {} : { ownerReferences: [owner] }),
      },
      data: { [ENTRY]: text, left: String(left) },
    };
  }

  async #ask(method: string, path: string, body?: JsonObject): Promise<void> {
    const contentType = "application/apply-patch+yaml";
    const answer = await this.#options.client.request(
      method,
      path,
      body === undefined ? {} : { body, contentType },
    );
    if (answer.status >= 300) throw new Error(responseMessage(`${method} ${this.#name}`, answer));
  }
}
