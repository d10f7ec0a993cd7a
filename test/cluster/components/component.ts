import { type Program, Running } from "../processes/process.ts";
import type { Watchdog } from "../processes/watchdog.ts";
import { waitHealthy } from "./health.ts";

/** How long a component gets for a graceful stop, if a test wants one. */
const GRACE_MS = 60_000;

/** One component of the control plane. A test that owns its cluster may stop and restart it. */
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

  /** Starts the component and waits until it is healthy. */
  async start(): Promise<void> {
    const running = new Running(this.#program, this.#watchdog);
    this.#running = running;
    this.#wanted = true;
    let started = false;
    void running.ended.then(() => {
      // Before that, the function that waits for the start reports it.
      if (started && this.#wanted)
        process.stderr.write(`The test control plane lost a part: ${running.obituary()}\n`);
    });
    if (this.#healthUrl !== undefined) await waitHealthy(running, this.#healthUrl, this.#ca);
    started = true;
  }

  /** Stops the component and waits until it is gone: gracefully, or with SIGKILL. */
  async stop(how: "gracefully" | "at once" = "gracefully"): Promise<void> {
    this.#wanted = false;
    await this.#running?.end(how === "gracefully" ? GRACE_MS : 0);
  }

  /** Freezes the component without ending it: connections stay open and nothing answers. */
  freeze(): void {
    this.#running?.signal("SIGSTOP");
  }

  thaw(): void {
    this.#running?.signal("SIGCONT");
  }
}
