// Processes of the benchmark: started, awaited until they are ready, and always ended.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A source of 10,000 policies takes seconds to read; on a busy machine more. Beyond this something is broken. */
const READY_WITHIN_MS = 120_000;
const END_WITHIN_MS = 5_000;
/** How much of a process's output goes into an error. */
const TAIL = 2_000;

/** Both servers print it when they listen. */
export interface Ready {
  readonly webhook: string;
  readonly ops?: string;
  readonly ca: string;
}

export interface Child {
  readonly pid: number;
  readonly ready: Ready;
  /** From the start of the process until it reported that it is ready, as a user at a prompt would see it. */
  readonly seconds: number;
  readonly stop: () => Promise<void>;
}

const running = new Set<ChildProcess>();
// The last resort: an error in the benchmark, or Ctrl-C, leaves no server behind.
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

/** Starts a server and waits for its line. */
export async function startServer(program: string, args: readonly string[]): Promise<Child> {
  const started = performance.now();
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  child.once("close", () => running.delete(child));
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-TAIL);
  });
  const ready = await new Promise<Ready>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${program} ${args.join(" ")}: ${why}\n${said}`));
    const late = setTimeout(() => fail(`not ready after ${READY_WITHIN_MS / 1_000} s`), READY_WITHIN_MS);
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => fail(`ended with code ${code}`));
    createInterface({ input: child.stdout }).once("line", (line) => {
      clearTimeout(late);
      resolve(JSON.parse(line) as Ready);
    });
  }).catch((error: unknown) => {
    child.kill("SIGKILL");
    throw error;
  });
  const seconds = (performance.now() - started) / 1_000;
  return { pid: child.pid ?? 0, ready, seconds, stop: () => stop(child) };
}

export interface Program {
  readonly pid: number;
  /** Throws with the end of its output if it has ended. */
  readonly check: () => void;
  /** The end of its output. */
  readonly said: () => string;
  readonly stop: () => Promise<void>;
}

/** Starts a program that does not say when it is ready. */
export function startProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Program {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  running.add(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-TAIL);
    });
  let ended: string | undefined;
  child.once("error", ({ message }) => {
    ended = message;
  });
  child.once("close", (code, signal) => {
    running.delete(child);
    ended ??= `ended with ${signal ?? `code ${code}`}`;
  });
  const check = () => {
    if (ended !== undefined) throw new Error(`${program} ${ended}: ${said}`);
  };
  return { pid: child.pid ?? 0, check, said: () => said, stop: () => stop(child) };
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const late = setTimeout(() => child.kill("SIGKILL"), END_WITHIN_MS);
    child.once("close", () => {
      clearTimeout(late);
      resolve();
    });
    child.kill("SIGTERM");
  });
}

/** Runs a program to its end and returns its stdout. */
export function output(program: string, args: readonly string[], within: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: within,
      killSignal: "SIGKILL",
    });
    running.add(child);
    const out: string[] = [];
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => out.push(text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-TAIL);
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      running.delete(child);
      if (code === 0) resolve(out.join(""));
      else reject(new Error(`${program} ended with ${signal ?? `code ${code}`}: ${said}`));
    });
  });
}
