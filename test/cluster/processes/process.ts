// A program with a log file, in its own process group.
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Watchdog } from "./watchdog.ts";

const TAIL_LINES = 25;

export interface Program {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly log: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The last lines of a log, for the error message of a failed program. */
export function logTail(path: string, lines = TAIL_LINES): string {
  try {
    return readFileSync(path, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  } catch {
    return "(no log)";
  }
}

export class Running {
  readonly program: Program;
  readonly ended: Promise<Ending>;
  ending: Ending | undefined;
  readonly #child: ChildProcess;

  constructor(program: Program, watchdog: Watchdog) {
    this.program = program;
    const log = openSync(program.log, "a");
    this.#child = spawn(program.command, program.args, {
      detached: true,
      stdio: ["ignore", log, log],
      env: program.env ?? process.env,
      cwd: program.cwd,
    });
    closeSync(log);
    const { pid } = this.#child;
    if (pid !== undefined) watchdog.add(pid);
    this.ended = new Promise((resolve) => {
      const end = (ending: Ending): void => {
        // Processes that it left behind end with it, as in a container.
        this.signal("SIGKILL");
        this.ending ??= ending;
        if (pid !== undefined) watchdog.drop(pid);
        resolve(this.ending);
      };
      // 127 is a shell's exit code for a command that can't be started.
      this.#child.once("error", () => end({ code: 127, signal: null }));
      this.#child.once("exit", (code, signal) => end({ code, signal }));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Sends a signal to the program and its child processes. */
  signal(signal: NodeJS.Signals): void {
    if (this.ending !== undefined || this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch {
      // It ended between the check and the kill.
    }
  }

  /** Asks it to end, kills it after `graceMs`, and waits until it is gone. */
  async end(graceMs: number): Promise<Ending> {
    if (graceMs > 0) {
      this.signal("SIGTERM");
      const waiting = new AbortController();
      const late = sleep(graceMs, "late", { signal: waiting.signal, ref: false }).catch(() => "late");
      const first = await Promise.race([this.ended, late]);
      waiting.abort();
      if (first !== "late") return this.ended;
    }
    this.signal("SIGKILL");
    return this.ended;
  }

  /** How it ended, with the end of its log. */
  obituary(): string {
    const how = this.ending?.signal ?? `code ${this.ending?.code ?? "?"}`;
    return `${this.program.name} ended with ${how}; its log (${this.program.log}) ends with:\n${logTail(this.program.log)}`;
  }
}
