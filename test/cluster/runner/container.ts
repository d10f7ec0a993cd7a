// One container as a local process: started, probed, restarted, ended.
import { setTimeout as sleep } from "node:timers/promises";
import { type Program, Running } from "../processes/process.ts";
import type { Watchdog } from "../processes/watchdog.ts";
import type { ContainerSpec } from "./pod-spec.ts";
import { type LocalPort, probeOnce, probeUntil } from "./probe.ts";
import type { ContainerReport, State } from "./status.ts";

/** A kubelet waits 10 s after the first failure and at most 5 min; tests can't wait that long. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

export interface ContainerOptions {
  readonly spec: ContainerSpec;
  readonly restart: "Always" | "OnFailure" | "Never";
  /** The program to start, or another command in its place; computed for each start, because its inputs may have changed. */
  readonly program: (command?: readonly string[]) => Promise<Program>;
  readonly localPort: LocalPort;
  readonly watchdog: Watchdog;
  readonly changed: () => void;
}

export class Container {
  readonly #options: ContainerOptions;
  readonly #stop = new AbortController();
  #running: Running | undefined;
  #state: State = { kind: "waiting", reason: "ContainerCreating" };
  #lastState: State | undefined;
  #ready = false;
  #started = false;
  #restarts = 0;
  #over = false;

  constructor(options: ContainerOptions) {
    this.#options = options;
  }

  report(): ContainerReport {
    const { name, image } = this.#options.spec;
    return {
      name,
      image,
      state: this.#state,
      lastState: this.#lastState,
      ready: this.#ready,
      started: this.#started,
      restartCount: this.#restarts,
      over: this.#over,
    };
  }

  /** Runs the container until it ended and may not be restarted, or `end` was called. */
  async run(): Promise<void> {
    for (
      let pauseMs = FIRST_PAUSE_MS;
      !this.#stop.signal.aborted;
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    ) {
      const done = await this.#runOnce();
      if (done || this.#stop.signal.aborted) break;
      await this.#pause(pauseMs);
    }
    this.#over = true;
    this.#options.changed();
  }

  /** Ends the container: the preStop hook, SIGTERM, and SIGKILL after the grace period. */
  async end(graceMs: number): Promise<void> {
    const since = Date.now();
    const running = this.#running;
    if (running !== undefined && graceMs > 0) await this.#preStop(graceMs);
    // Only now: until then probes go on, and a container that ends by itself just terminates.
    this.#stop.abort();
    await running?.end(Math.max(0, graceMs - (Date.now() - since)));
  }

  /** The process ends as by a crash; a normal restart follows. */
  kill(): void {
    this.#running?.signal("SIGKILL");
  }

  /** True if it will not be restarted. */
  async #runOnce(): Promise<boolean> {
    let program: Program;
    try {
      program = await this.#options.program();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#enter({ kind: "waiting", reason: "CreateContainerConfigError", message });
      return false;
    }
    if (this.#stop.signal.aborted) return true;
    const startedAt = new Date().toISOString();
    const running = new Running(program, this.#options.watchdog);
    this.#running = running;
    this.#started = this.#options.spec.startupProbe === undefined;
    this.#ready = this.#started && this.#options.spec.readinessProbe === undefined;
    this.#enter({ kind: "running", startedAt });
    const probing = new AbortController();
    void this.#probe(probing.signal, running);
    const { code, signal } = await running.ended;
    probing.abort();
    this.#ready = false;
    this.#started = false;
    const exitCode = code ?? (signal === "SIGKILL" ? 137 : 143);
    this.#enter({ kind: "terminated", exitCode, startedAt, finishedAt: new Date().toISOString() });
    const { restart } = this.#options;
    return restart === "Never" || (restart === "OnFailure" && exitCode === 0);
  }

  async #pause(pauseMs: number): Promise<void> {
    if (this.#state.kind === "terminated") {
      this.#lastState = this.#state;
      this.#restarts += 1;
      this.#enter({ kind: "waiting", reason: "CrashLoopBackOff", message: "will be started again shortly" });
    }
    await sleep(pauseMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  async #probe(signal: AbortSignal, running: Running): Promise<void> {
    const { startupProbe, readinessProbe, livenessProbe } = this.#options.spec;
    const { localPort } = this.#options;
    const execute = (command: readonly string[]): Promise<number> => this.#execute(command);
    if (startupProbe !== undefined) {
      const decided = new AbortController();
      const look = (): Promise<boolean> => probeOnce(startupProbe, localPort, execute);
      await probeUntil(AbortSignal.any([signal, decided.signal]), startupProbe, look, (well) => {
        if (!well) running.signal("SIGKILL");
        decided.abort();
      });
      if (signal.aborted) return;
      this.#started = true;
      this.#ready = readinessProbe === undefined;
      this.#options.changed();
    }
    if (readinessProbe !== undefined) {
      void probeUntil(
        signal,
        readinessProbe,
        () => probeOnce(readinessProbe, localPort, execute),
        (well) => {
          this.#ready = well;
          this.#options.changed();
        },
      );
    }
    if (livenessProbe !== undefined) {
      void probeUntil(
        signal,
        livenessProbe,
        () => probeOnce(livenessProbe, localPort, execute),
        (well) => {
          if (!well) running.signal("SIGTERM");
        },
      );
    }
  }

  /** A command beside the container's own, with its environment. */
  async #execute(command: readonly string[]): Promise<number> {
    const program = await this.#options.program(command);
    return (await new Running(program, this.#options.watchdog).ended).code ?? 1;
  }

  async #preStop(graceMs: number): Promise<void> {
    const hook = this.#options.spec.lifecycle?.preStop;
    const seconds = hook?.sleep?.seconds;
    if (seconds !== undefined) await sleep(Math.min(seconds * 1000, graceMs));
    if (hook?.exec !== undefined) await this.#execute(hook.exec.command);
  }

  #enter(state: State): void {
    this.#state = state;
    this.#options.changed();
  }
}
