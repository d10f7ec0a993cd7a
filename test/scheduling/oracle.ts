// The filters of kube-scheduler itself, called with lines of JSON: see ../cluster/build/scheduler-oracle.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { JsonObject } from "../../src/core/json.ts";
import type { SchedulingWorld } from "../../src/core/scheduling/world.ts";

export interface OracleVerdict {
  /** Absent in a verdict on all nodes. */
  readonly node?: string;
  /** `Success`, `Unschedulable`, `UnschedulableAndUnresolvable` or `Error`. */
  readonly code: string;
  readonly plugin?: string;
  readonly reasons?: readonly string[];
}

export interface OracleAnswer {
  readonly pods: readonly { readonly all?: OracleVerdict; readonly nodes?: readonly OracleVerdict[] }[];
  readonly verdicts: number;
  readonly cpuSeconds: number;
  readonly error?: string;
}

export class Oracle {
  readonly #process: ChildProcess;
  readonly #waiting: ((line: string | undefined) => void)[] = [];
  #said = "";

  constructor(path: string) {
    this.#process = spawn(path, [], { stdio: ["pipe", "pipe", "pipe"] });
    const { stdout, stderr } = this.#process;
    if (stdout !== null)
      createInterface({ input: stdout, crlfDelay: Number.POSITIVE_INFINITY }).on("line", (line) =>
        this.#waiting.shift()?.(line),
      );
    stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#said = (this.#said + text).slice(-4000);
    });
    this.#process.on("close", () => {
      for (const answer of this.#waiting.splice(0)) answer(undefined);
    });
  }

  async judge(
    candidates: readonly JsonObject[],
    world: SchedulingWorld,
    brief = false,
  ): Promise<OracleAnswer> {
    const line = await new Promise<string | undefined>((resolve) => {
      this.#waiting.push(resolve);
      this.#process.stdin?.write(`${JSON.stringify({ ...world, candidates, brief })}\n`);
    });
    if (line === undefined) throw new Error(`the oracle ended: ${this.#said}`);
    const answer = JSON.parse(line) as OracleAnswer;
    if (answer.error !== undefined) throw new Error(`the oracle failed: ${answer.error}`);
    return answer;
  }

  close(): void {
    this.#process.stdin?.end();
  }
}
