import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import type { JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { type CompiledPolicy, compileResult, notCompiled } from "../../core/module/compile.ts";
import type { Module } from "../../core/module/module.ts";
import { type PolicyRef, policyName } from "../../core/policy/policy-ref.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import { STATIC_PATHS, staticFiles } from "../../core/registration/static-manifests.ts";
import { CallError, EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { emitText } from "../review/emit.ts";
import { isLive, type OpenOptions, openRead } from "../source/open.ts";
import { assembleFor } from "../source/source.ts";

export interface CompileOptions extends OpenOptions {
  readonly filename?: readonly string[];
  readonly report?: boolean;
  /** A folder for the files of an API server. */
  readonly static?: string;
  /** Of that folder on control-plane nodes. */
  readonly staticPath?: string;
  readonly output?: "yaml" | "json" | "table";
  readonly quiet?: boolean;
}

interface Row extends CompiledPolicy {
  readonly module: string;
}

/** Prints policies as objects that the API server evaluates by itself, and what is left out; returns the exit code. */
export async function compile(given: CompileOptions, io: Io): Promise<number> {
  const named = [...(given.source ?? []), ...(given.filename ?? [])];
  const options: CompileOptions = named.length === 0 ? given : { ...given, source: named };
  checkStatic(options);
  const screen = terminal(io, options);
  const live = isLive(options) ? { note: screen.note, forbidden: "ask" as const } : undefined;
  const assembly = await assembleFor(options, io, { live });
  const opened = await openRead(options, assembly, screen);
  try {
    const compiled = compiledBy(assembly, Date.now(), options.static !== undefined);
    const rows = options.static === undefined ? compiled : compiled.map(forFiles);
    if (options.static === undefined) print(rows, options, screen);
    else if (opened.faulty) screen.note("no file was written, because the source has errors");
    else await writeFiles(rows, options.static, options.staticPath, screen);
    if (opened.faulty) return EXIT.wrong;
    return rows.every((row) => compileResult(row) === "whole") ? EXIT.fine : EXIT.found;
  } finally {
    await opened.stop();
  }
}

function checkStatic({ static: folder, staticPath, report, output }: CompileOptions): void {
  if (folder === undefined) {
    if (staticPath !== undefined)
      throw new CallError("--static-path belongs to --static: name its folder, too");
    return;
  }
  if (report === true || output !== undefined)
    throw new CallError("--static writes files and prints the report: leave out -o and --report");
  if (staticPath !== undefined && !posix.isAbsolute(staticPath))
    throw new CallError(`--static-path ${staticPath}: must be an absolute path on control-plane nodes`);
}

/** Without the objects that files can't have. */
function forFiles(row: Row): Row {
  const { refused } = staticFiles(row.objects);
  if (refused.length === 0) return row;
  const names = new Set(refused.map(({ what }) => what));
  const objects = row.objects.filter((object) => !names.has(`${object["kind"]} ${nameOf(object)}`));
  return { ...row, objects, leftOut: [...row.leftOut, ...refused] };
}

/**
 * Writes the files of an API server, each complete from one moment to the next: it may be reading them. Files of an
 * earlier call that have no content any more are removed, and their folders stay, because the API server needs them.
 */
async function writeFiles(
  rows: readonly Row[],
  folder: string,
  path: string | undefined,
  screen: Terminal,
): Promise<void> {
  const { files } = staticFiles(
    rows.flatMap(({ objects }) => objects),
    path,
  );
  try {
    for (const old of STATIC_PATHS)
      if (!files.some((one) => one.path === old)) await rm(join(folder, old), { force: true });
    for (const { path: name, documents } of files) {
      const file = join(folder, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(`${file}.new`, emitText(documents, "yaml"));
      await rename(`${file}.new`, file);
      screen.out(`wrote ${file}`);
    }
  } catch (error) {
    throw new CallError(`--static ${folder}: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (files.length === 0) screen.note("nothing can be a file of an API server, so no file was written");
  printTable(rows, screen.note, undefined);
}

function compiledBy(assembly: Assembly, now: number, files: boolean): Row[] {
  return assembly.modules.flatMap((module) =>
    compiledOf(module, assembly, now, files).map((one) => ({ module: module.name, ...one })),
  );
}

function compiledOf(
  module: Module,
  assembly: Assembly,
  now: number,
  files: boolean,
): readonly CompiledPolicy[] {
  const { view, installation, gates } = assembly;
  const standing = [...assembly.policies(module.name)];
  const policies = standing.flatMap(({ policy }) => (policy === undefined ? [] : [policy]));
  const inert = standing
    .filter(({ policy }) => policy === undefined)
    .map(({ ref, problems: [first] }) =>
      notCompiled(ref, "the policy", first === undefined ? "it selects nothing" : describeProblem(first)),
    );
  const compiled =
    module.compile?.({ policies, view, installation, gates, now, ...(files && { files }) }) ??
    standing
      .filter(({ policy }) => policy !== undefined)
      .map(({ ref }) => notCompiled(ref, "the policy", `the API server has nothing like ${module.name}`));
  return [...compiled, ...inert];
}

function print(
  rows: readonly Row[],
  { report = false, output = report ? "table" : "yaml" }: CompileOptions,
  screen: Terminal,
): void {
  const objects = rows.flatMap((row) => row.objects);
  if (output === "table") {
    printTable(rows, screen.out, screen.width);
    return;
  }
  if (report) {
    const data = versioned("Compile", dataOf(rows));
    screen.out(output === "json" ? JSON.stringify(data, null, 2) : yamlText(data));
    return;
  }
  if (objects.length > 0 || output === "json") screen.out(emitText(objects, output));
  printTable(rows, screen.note, undefined);
}

function printTable(rows: readonly Row[], out: (text: string) => void, width: number | undefined): void {
  const lines = rows.flatMap((row): string[][] => {
    const [first, ...more] = row.leftOut.map(({ what, why }) => `${what}: ${why}`);
    return [
      [row.module, described(row.policy), compileResult(row), first ?? "-"],
      ...more.map((text) => ["", "", "", text]),
    ];
  });
  const safe = lines.map((line) => line.map(printable));
  if (rows.length > 0)
    for (const line of table(["MODULE", "POLICY", "COMPILED", "LEFT OUT"], safe, width)) out(line);
  out(`${rows.length === 0 ? "" : "\n"}${summaryOf(rows)}`);
}

function described(ref: PolicyRef): string {
  return `${ref.kind} ${policyName(ref)}`;
}

function countsOf(rows: readonly Row[]) {
  const count = (result: string) => rows.filter((row) => compileResult(row) === result).length;
  return { policies: rows.length, whole: count("whole"), inPart: count("in part"), not: count("not") };
}

function summaryOf(rows: readonly Row[]): string {
  const { policies, whole, inPart, not } = countsOf(rows);
  if (policies === 0) return "no policies: there is nothing to compile";
  return `${policies === 1 ? "1 policy" : `${policies} policies`}: ${whole} compiled whole, ${inPart} in part, ${not} not`;
}

function dataOf(rows: readonly Row[]): JsonObject {
  return {
    policies: rows.map(({ module, policy, objects, leftOut, cost, ...row }) => ({
      module,
      kind: policy.kind,
      ...(policy.namespace === undefined ? {} : { namespace: policy.namespace }),
      name: policy.name,
      result: compileResult({ policy, objects, leftOut, ...row }),
      objects: objects.map((object) => ({ kind: String(object["kind"]), name: nameOf(object) })),
      leftOut: leftOut.map(({ what, why }) => ({ what, why })),
      ...(cost === undefined ? {} : { cost }),
    })),
    summary: countsOf(rows),
  };
}
