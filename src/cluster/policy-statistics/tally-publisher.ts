import { errorMessage } from "../client/api-response.ts";
import { encodeTallies } from "./tallies.ts";
import {
  ENTRY,
  HEARTBEAT_MS,
  MOST_BYTES,
  TALLY_INTERVAL_MS,
  type TallyOptions,
  tallyName,
  writeTallies,
} from "./tally-objects.ts";

/** Publishes the tallies of this replica in a ConfigMap, which outlives the replica: the leader adds it to those of others. */
export class TallyPublisher {
  readonly #options: TallyOptions;
  readonly #clock: () => number;
  #published = { changes: 0, at: Number.NEGATIVE_INFINITY };
  #publishing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TallyOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.publish(), TALLY_INTERVAL_MS).unref();
  }

  /** Publishes the latest counts. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#publishing;
    await this.publish();
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
    const { replica, tallies } = this.#options;
    const { text, left } = encodeTallies(tallies.list(), MOST_BYTES);
    // Makes each write a change: an unchanged apply would not update the resourceVersion.
    const annotations = { "usher.dev/tally": String(Math.round(this.#clock())) };
    try {
      await writeTallies(
        this.#options,
        tallyName(replica),
        { [ENTRY]: text, left: String(left) },
        annotations,
      );
      this.#published = { changes, at: this.#clock() };
    } catch (error) {
      this.#options.log.warn({ error: errorMessage("tallies", error) }, "failed to publish tallies");
    }
  }
}
