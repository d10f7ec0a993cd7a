import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, inject, onTestFinished, TestRunner } from "vitest";
import { run } from "../../src/cli/run.ts";
import type { ModuleDeclaration } from "../../src/core/module/declaration.ts";
import type { ReviewResult, ReviewSummary } from "../../src/core/review/result.ts";
import { declarations } from "../../src/modules/index.ts";

/** The clone. */
export const ROOT = join(import.meta.dirname, "..", "..");
export const MAIN = join(ROOT, "src/cli/main.ts");
export const EXAMPLES = join(ROOT, "examples/cluster");

/** For `--import`: prints the files that are loaded, on stderr. */
export const RECORD = `
import { registerHooks } from "node:module";
registerHooks({
  load: (url, context, next) => {
    process.stderr.write("loaded " + url + "\\n");
    return next(url, context);
  },
});
`;

const cleanups: (() => void)[] = [];
afterAll(() => {
  for (const clean of cleanups.splice(0)) clean();
});

/** Cleans up after the test; after all tests of the file where a hook called for it. */
function afterwards(clean: () => void): void {
  if (TestRunner.getCurrentTest() === undefined) cleanups.push(clean);
  else onTestFinished(clean);
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process, which takes milliseconds instead of a start. */
export async function usher(
  args: readonly string[],
  options: {
    readonly stdin?: string | Buffer;
    readonly tty?: boolean;
    readonly columns?: number;
    readonly env?: Record<string, string>;
    readonly modules?: readonly ModuleDeclaration[];
    /** The program's name. */
    readonly name?: string;
  } = {},
): Promise<Ran> {
  let out = "";
  let err = "";
  const isTTY = options.tty === true;
  const code = await run(args, {
    stdin: once(options.stdin ?? ""),
    stdout: { write: (part) => (out += part), isTTY, columns: options.columns },
    stderr: { write: (part) => (err += part), isTTY },
    env: options.env ?? {},
    name: options.name ?? "usher",
    modules: options.modules ?? declarations,
  });
  return { code, out, err };
}

async function* once(input: string | Buffer): AsyncIterable<Uint8Array> {
  yield Buffer.from(input);
}

export interface ReviewJson {
  readonly results: readonly ReviewResult[];
  readonly summary: ReviewSummary;
}

/** Runs a review with JSON output and returns the parsed result. */
export async function reviewed(args: readonly string[], stdin = ""): Promise<Ran & ReviewJson> {
  const ran = await usher(["review", ...args, "-o", "json"], { stdin });
  return { ...ran, ...(JSON.parse(ran.out) as ReviewJson) };
}

/** The only result of a review. */
export async function reviewedOne(args: readonly string[], stdin = ""): Promise<ReviewResult> {
  const { results, err } = await reviewed(args, stdin);
  const [first, second] = results;
  if (first === undefined || second !== undefined)
    throw new Error(`not one result, but ${results.length}: ${err}`);
  return first;
}

/** Runs the real program to its end; beside a control plane its bundle, as the pods there do. */
export async function program(args: readonly string[], stdin = ""): Promise<Ran> {
  const child = start(process.execPath, [inject("usherBundle") ?? MAIN, ...args]);
  child.stdin?.end(stdin);
  return ended(child);
}

export function start(
  command: string,
  args: readonly string[],
  options: { cwd?: string; detached?: boolean; env?: NodeJS.ProcessEnv } = {},
) {
  const child = spawn(command, args, { cwd: ROOT, ...options, stdio: ["pipe", "pipe", "pipe"] });
  afterwards(() => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    // Ends the whole process group: npm would leave its child processes behind.
    process.kill(options.detached === true ? -child.pid : child.pid, "SIGKILL");
  });
  return child;
}

export async function ended(child: ChildProcess): Promise<Ran> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the output is not piped");
  const code = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err] = await Promise.all([text(stdout), text(stderr)]);
  return { code: await code, out, err };
}

/** A directory with these files, removed after the test. */
export function folder(files: Readonly<Record<string, string | Buffer>>): string {
  const directory = mkdtempSync(join(tmpdir(), "usher-cli-"));
  afterwards(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return directory;
}
