import { type Program, Running } from "../processes/process.ts";
import type { Watchdog } from "../processes/watchdog.ts";
import { waitHealthy } from "./health.ts";

/** How long a component gets to end by itself where a test wants that. */
const GRACE_MS = 60_000;

/** One part of the control plane, that a test with a cluster of its own may stop and start again. */
export class Component {
  readonly #program: Program;
  readonly #watchdog: Watchdog;
  readonly #healthUrl: string | undefined;
  readonly #ca: string;
  #running: Running | undefined;
  #wanted = false;

  constructor(program: Program, watchdog: Watchdog, healthUrl: string | undefined, ca: string) {
    this.#program = program;
    this.#watchdog = watchdog;
    this.#healthUrl = healthUrl;
    this.#ca = ca;
  }

  get pid(): number | undefined {
    return this.#running?.ending === undefined ? this.#running?.pid : undefined;
  }

  get log(): string {
    return this.#program.log;
  }

  /** Starts it and waits until it is well. */
  async start(): Promise<void> {
    const running = new Running(this.#program, this.#watchdog);
    this.#running = running;
    this.#wanted = true;
    let started = false;
    void running.ended.then(() => {
      // Before it has started, the one who waits for it says so.
      if (started && this.#wanted)
        process.stderr.write(`The test control plane lost a part: ${running.obituary()}\n`);
    });
    if (this.#healthUrl !== undefined) await waitHealthy(running, this.#healthUrl, this.#ca);
    started = true;
  }

  /** Stops it and waits until it is gone: politely, or as by a power cut. */
  async stop(how: "gracefully" | "at once" = "gracefully"): Promise<void> {
    this.#wanted = false;
    await this.#running?.end(how === "gracefully" ? GRACE_MS : 0);
  }

  /** Stands still without ending: connections stay open and nothing answers. */
  freeze(): void {
    this.#running?.signal("SIGSTOP");
  }

  thaw(): void {
    this.#running?.signal("SIGCONT");
  }
}
