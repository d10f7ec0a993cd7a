import { writeFile } from "node:fs/promises";
import { at, equal, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { codesOf } from "../../core/module/codes.ts";
import type { InputText, ReportItem } from "../../core/module/command.ts";
import type { Module, WrittenPolicy } from "../../core/module/module.ts";
import { checkObject } from "../../core/policy/check.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { PROBLEM, type Problem, problem } from "../../core/policy/problem.ts";
import { Store } from "../../core/view/store.ts";
import { readManifests } from "../../files/reader/read-documents.ts";
import { type Candidate, candidateOf, checkCandidate } from "../../files/source/candidate.ts";
import { Catalog } from "../../files/source/catalog.ts";
import { describeObject, type Entry, writtenPath } from "../../files/source/entry.ts";
import { fileSlices } from "../../files/source/file-slices.ts";
import { fileProblem, problemsIn } from "../../files/source/file-state.ts";
import type { FileProblem } from "../../files/source/report.ts";
import { Resources } from "../../files/source/resources.ts";
import { CONFIGURATION, configure } from "../configuration/configuration.ts";
import { CallError, EXIT } from "../exit.ts";
import { type InputOptions, InputTexts } from "../input/input.ts";
import type { Io } from "../io.ts";
import type { ReviewFormat } from "../options.ts";
import { ITEM_PRINTERS } from "../output/formats.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { assembleFor } from "../source/source.ts";
import { fixText, type PlacedFix } from "./fix.ts";

export interface LintOptions extends InputOptions {
  readonly filename?: readonly string[];
  readonly fix?: boolean;
  readonly failOn?: "warning";
  readonly output: "text" | ReviewFormat;
  readonly changedOnly?: boolean;
  readonly quiet?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
  readonly kubernetesVersion?: string;
}

/** One text with its objects and problems. */
interface Linted {
  readonly file: string;
  readonly candidate: Candidate;
  /** Every object, also those with errors. */
  readonly entries: readonly Entry[];
}

/** Checks policies and configuration alone; returns the exit code. */
export async function lint(named: readonly string[], options: LintOptions, io: Io): Promise<number> {
  const names = [...named, ...(options.filename ?? [])];
  if (names.length === 0 && (options.kustomize ?? []).length === 0)
    throw new CallError("specify files or directories, - for standard input, or -k DIRECTORY");
  if (options.fix === true && (names.includes("-") || options.kustomize !== undefined))
    throw new CallError("--fix writes files: standard input and -k have none");
  const screen = terminal(io, options);
  const reader = new InputTexts(io.stdin, options);
  const [read, built] = [await reader.read(names), await reader.built()];
  const unreadable = read.problems.map((one) =>
    "message" in one ? fileProblem(one.name, one.message) : fileProblem("", ""),
  );
  let texts = [...read.texts, ...built.texts];
  let linted = await lintTexts(texts, options, io, screen);
  const fixes = fixesOf(linted);
  if (options.output === "diff") for (const line of diffOf(fixes)) screen.out(printable(line));
  let fixed = 0;
  if (options.fix === true && fixes.length > 0) {
    for (const one of fixes) {
      await writeFile(one.file, one.after);
      fixed += one.fixed;
    }
    screen.note(`fixed ${plural(fixed, "problem")} in ${plural(fixes.length, "file")}`);
    texts = texts.map((one) => ({
      ...one,
      text: fixes.find(({ file }) => file === one.name)?.after ?? one.text,
    }));
    linted = await lintTexts(texts, options, io, screen);
  }
  const files = linted.map(({ file, candidate }) => ({ file, problems: problemsIn(candidate, file) }));
  const problems = [...unreadable, ...files.flatMap((one) => one.problems)];
  const objects = linted.flatMap(({ entries }) => entries.filter(isLinted));
  if (objects.length === 0 && problems.length === 0)
    throw new CallError(`${names.join(", ")}: no policies and no configuration of usher found`);
  const modules = (await assembleFor(options, io)).modules;
  report({ problems, linted, fixed, fixable: fixes, modules }, options, screen);
  if (unreadable.length > 0) return EXIT.wrong;
  const serious =
    options.failOn === "warning" ? problems : problems.filter(({ severity }) => severity === "error");
  return serious.length > 0 ? EXIT.found : EXIT.fine;
}

/** Reads and checks texts together: an object of one text, such as a namespace, counts for all. */
async function lintTexts(
  texts: Awaited<ReturnType<InputTexts["read"]>>["texts"],
  options: LintOptions,
  io: Io,
  screen: Terminal,
): Promise<Linted[]> {
  const assembly = await assembleFor(configuredBy(texts, options), io).catch((error: unknown) => {
    // A problem of a configuration among the files is one of the files' problems.
    if (error instanceof CallError && options.config === undefined) return assembleFor(options, io);
    throw error;
  });
  const { modules, installation } = assembly;
  const resources = new Resources(modules, installation.workloads.all);
  const slices = fileSlices();
  const linted: Linted[] = [];
  for (const [i, { name: label, text, binary }] of texts.entries()) {
    screen.progress("reading", "files", i, texts.length);
    const candidate = await candidateOf(label, { text, problems: [...binary] }, resources, slices);
    leaveOthers(candidate, modules);
    const others = candidate.entries.filter(({ object }) => !isConfiguration(object));
    linted.push({ file: label, candidate, entries: [...others, ...configurationsOf(label, text)] });
  }
  const entries = linted.flatMap((one) => one.entries);
  for (const { kinds } of modules) for (const kind of kinds) assembly.serve(kindResource(kind));
  const catalog = new Catalog();
  assembly.apply(
    catalog.update(
      [],
      entries.filter(({ object }) => !isConfiguration(object)),
    ),
  );
  const now = Date.now();
  for (const [i, { candidate }] of linted.entries()) {
    screen.progress("checking", "files", i, linted.length);
    await checkCandidate(candidate, assembly.view, assembly, slices, now);
  }
  screen.endProgress();
  const report = (entry: Entry, found: Problem) =>
    linted.find(({ file }) => file === entry.place.file)?.candidate.pending.push({ entry, problem: found });
  for (const { candidate, entries: own } of linted)
    for (const entry of own.filter(({ object }) => isConfiguration(object)))
      for (const found of configurationProblems(entry.object, modules))
        candidate.pending.push({ entry, problem: found });
  for (const [first, ...rest] of catalog.duplicates())
    for (const entry of rest.filter(isPolicyEntry)) report(entry, duplicateOf(entry, first));
  for (const module of modules) for (const { entry, found } of between(module, entries)) report(entry, found);
  return linted;
}

/** The one configuration among the files counts for their policies, where no other is named. */
function configuredBy(texts: readonly InputText[], options: LintOptions): LintOptions {
  if (options.config !== undefined) return options;
  const found = texts.filter(({ text }) => {
    const { manifests } = text.includes(CONFIGURATION.kind) ? readManifests(text) : { manifests: [] };
    const [only, ...more] = manifests;
    return (
      only !== undefined &&
      more.length === 0 &&
      isConfiguration(only.value) &&
      checkObject(CONFIGURATION, only.value, new Store()).length === 0
    );
  });
  const [only, ...more] = found;
  return only === undefined || more.length > 0 || only.name === "stdin"
    ? options
    : { ...options, config: only.name };
}

/** Configurations of usher in a text: unlike an object they need no name. */
function configurationsOf(file: string, text: string): Entry[] {
  if (!text.includes(CONFIGURATION.kind)) return [];
  return readManifests(text).manifests.flatMap(({ value, document, path }) =>
    isConfiguration(value)
      ? [
          {
            place: { file, document, path, ordinal: 0 },
            resource: { name: kindResource(CONFIGURATION), scope: "Cluster", policy: undefined },
            namespace: "",
            name: stringAt(value, "metadata", "name") ?? "",
            object: value,
          },
        ]
      : [],
  );
}

/** Objects of other programs may be of any shape; only those that are meant for usher are looked at. */
function leaveOthers(candidate: Candidate, modules: readonly Module[]): void {
  if (candidate.pending.every(({ entry }) => entry.resource !== undefined)) return;
  const kinds = new Set(modules.flatMap((module) => module.kinds.map(({ kind }) => kind)));
  const { manifests } = readManifests(candidate.text);
  const meant = candidate.pending.filter(({ entry: { resource, place } }) => {
    if (resource !== undefined) return true;
    const found = manifests.find(
      ({ document, path }) => document === place.document && equal([...path], [...place.path]),
    );
    return found !== undefined && kinds.has(stringAt(found.value, "kind") ?? "");
  });
  candidate.pending.splice(0, candidate.pending.length, ...meant);
}

function isConfiguration(object: Json): object is JsonObject {
  return (
    stringAt(object, "kind") === CONFIGURATION.kind &&
    (stringAt(object, "apiVersion") ?? "").startsWith(`${CONFIGURATION.group}/`)
  );
}

function isPolicyEntry(entry: Entry): boolean {
  return entry.resource.policy !== undefined;
}

function isLinted(entry: Entry): boolean {
  return isPolicyEntry(entry) || isConfiguration(entry.object);
}

/** Checks by the schema, and those that need the modules and several fields. */
function configurationProblems(object: JsonObject, modules: readonly Module[]): Problem[] {
  const found = checkObject(CONFIGURATION, object, new Store());
  if (found.length > 0) return found.map((one) => ({ ...one, severity: "error" }));
  try {
    configure(modules, (at(object, "spec") ?? {}) as never, undefined);
    return [];
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return error.message.split("\n").map((line) => {
      const [, path = "", message = line] = /^(spec[\w.-]*): (.*)$/s.exec(line) ?? [];
      return problem(path === "" ? ["spec"] : path.split("."), message);
    });
  }
}

function duplicateOf(entry: Entry, first: Entry | undefined): Problem {
  return {
    ...problem(
      ["metadata", "name"],
      `${describeObject(entry.object)} is defined in ${first?.place.file ?? ""} already`,
      "remove one of them",
    ),
    code: PROBLEM.duplicate,
  };
}

/** Problems that a module finds between its policies. Of two definitions the first counts. */
function between({ kinds, lint: check }: Module, entries: readonly Entry[]) {
  if (check === undefined) return [];
  const seen = new Set<string>();
  const policies = entries.flatMap((entry): (WrittenPolicy & { readonly entry: Entry })[] => {
    const { resource, namespace, name, object } = entry;
    const kind = kinds.find((one) => one === resource.policy);
    const key = `${resource.name} ${namespace}/${name}`;
    if (kind === undefined || entry.invalid !== undefined || seen.has(key)) return [];
    seen.add(key);
    const ref = { kind: kind.kind, name, ...(kind.scope === "Namespaced" ? { namespace } : {}) };
    const { policy } = kind.prepare(object, ref);
    return policy === undefined ? [] : [{ object, policy, entry }];
  });
  return check(policies).flatMap(({ index, problem: found }) => {
    const entry = policies[index]?.entry;
    return entry === undefined ? [] : [{ entry, found }];
  });
}

interface FixedFile {
  readonly file: string;
  readonly before: string;
  readonly after: string;
  readonly fixed: number;
}

/** Files that can be corrected. */
function fixesOf(linted: readonly Linted[]): FixedFile[] {
  return linted.flatMap(({ file, candidate: { text, pending } }) => {
    const fixes = pending.flatMap(({ entry, problem: { path, fix } }): PlacedFix[] =>
      fix === undefined
        ? []
        : [{ document: entry.place.document, path: [...entry.place.path, ...writtenPath(entry, path)], fix }],
    );
    if (fixes.length === 0) return [];
    const { text: after, fixed } = fixText(text, fixes);
    return fixed === 0 ? [] : [{ file, before: text, after, fixed }];
  });
}

function diffOf(fixes: readonly FixedFile[]): string[] {
  return fixes.flatMap(({ file, before, after }) => [
    `--- ${file}`,
    `+++ ${file} (fixed)`,
    ...unifiedDiff(before, after),
  ]);
}

interface Found {
  readonly problems: readonly FileProblem[];
  readonly linted: readonly Linted[];
  readonly fixed: number;
  readonly fixable: readonly FixedFile[];
  readonly modules: readonly Module[];
}

function report(
  { problems, linted, fixed, fixable, modules }: Found,
  options: LintOptions,
  screen: Terminal,
): void {
  const errors = problems.filter(({ severity }) => severity === "error").length;
  const objects = linted.flatMap(({ entries }) => entries.filter(isLinted));
  const open = options.fix === true ? 0 : fixable.reduce((sum, one) => sum + one.fixed, 0);
  const summary = {
    files: linted.length,
    objects: objects.length,
    errors,
    warnings: problems.length - errors,
    fixable: open,
    fixed,
  };
  const { output } = options;
  const sentence = `${plural(linted.length, "file")} with ${plural(objects.length, "policy", "policies")}: ${plural(errors, "error")}, ${plural(summary.warnings, "warning")}`;
  if (output === "diff") return;
  if (output === "json" || output === "yaml") {
    const data = versioned("Lint", { problems: problems.map(dataOf), summary } as unknown as JsonObject);
    screen.out(output === "json" ? JSON.stringify(data, null, 2) : yamlText(data));
    return;
  }
  if (output === "junit" || output === "sarif" || output === "markdown" || output === "name") {
    const context = { command: "usher lint", summary: sentence, codes: codesOf(modules) };
    const changedOnly = output === "name" || options.changedOnly === true;
    const text = ITEM_PRINTERS[output](itemsOf(problems, linted, changedOnly), context);
    if (text !== "") screen.out(text);
    return;
  }
  if (output === "table" || output === "wide") printTable(problems, output === "wide", screen);
  else for (const one of problems) screen.out(framed(one, screen));
  screen.out(`${problems.length === 0 ? "" : "\n"}${sentence}`);
  if (open > 0) screen.note(`${plural(open, "problem")} can be fixed with --fix; -o diff shows how`);
  const [first] = problems;
  if (first !== undefined) screen.note(`Run "usher help ${first.code}" for an explanation.`);
}

function dataOf({ file, line, column, severity, code, message, hint, object }: FileProblem): Json {
  return {
    file,
    ...(line === 0 ? {} : { line, column }),
    severity,
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(object === undefined ? {} : { object }),
  };
}

/** `wide` has the object of each problem as well. */
function printTable(problems: readonly FileProblem[], wide: boolean, { out, width }: Terminal): void {
  if (problems.length === 0) return;
  const rows = problems.map(({ file, line, column, severity, code, message, hint, object = "-" }) =>
    [
      line === 0 ? file : `${file}:${line}:${column}`,
      severity,
      code,
      ...(wide ? [object] : []),
      hint === undefined ? message : `${message}; ${hint}`,
    ].map(printable),
  );
  const columns = ["PLACE", "SEVERITY", "CODE", ...(wide ? ["OBJECT"] : []), "PROBLEM"];
  for (const row of table(columns, rows, width)) out(row);
}

/** As a compiler prints it, with the lines around. */
function framed(
  { file, line, column, severity, code, message, frame, hint }: FileProblem,
  { paint }: Terminal,
): string {
  const where = printable(line === 0 ? file : `${file}:${line}:${column}`);
  const word = paint(severity === "error" ? "red" : "yellow", severity);
  const known = message.endsWith(`(${code})`) ? "" : ` (${code})`;
  const head = `${where}: ${word}: ${printable(message)}${known}`;
  if (frame !== "") return `${head}\n${frame}`;
  return hint === undefined ? head : `${head}; ${printable(hint)}`;
}

/** Objects with their problems, and files whose problems belong to no object. */
function itemsOf(
  problems: readonly FileProblem[],
  linted: readonly Linted[],
  changedOnly: boolean,
): ReportItem[] {
  const keyOf = (file: string, object: string | undefined) => JSON.stringify([file, object ?? ""]);
  const byObject = Map.groupBy(problems, ({ file, object }) => keyOf(file, object));
  const found = ({ line, column, severity, code, message, hint, file }: FileProblem) => ({
    level: severity,
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    at: { file, ...(line === 0 ? {} : { line, column }) },
  });
  const verdict = (list: readonly FileProblem[]) =>
    list.length === 0
      ? "valid"
      : list.some(({ severity }) => severity === "error")
        ? "invalid"
        : "questionable";
  const items = linted.flatMap(({ file, entries }) =>
    entries.filter(isLinted).map((entry): ReportItem => {
      const key = keyOf(file, describeObject(entry.object));
      const list = byObject.get(key) ?? [];
      byObject.delete(key);
      const kind = stringAt(entry.object, "kind") ?? "";
      const object = {
        kind,
        name: entry.name,
        ...(entry.namespace === "" ? {} : { namespace: entry.namespace }),
      };
      return { object, verdict: verdict(list), findings: list.map(found), at: { file } };
    }),
  );
  const rest = [...byObject.values()].map((list): ReportItem => {
    const { file = "" } = list[0] ?? {};
    return {
      object: { kind: "File", name: file },
      verdict: verdict(list),
      findings: list.map(found),
      at: { file },
    };
  });
  return [...items, ...rest].filter(({ findings }) => !changedOnly || findings.length > 0);
}

function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : many}`;
}
