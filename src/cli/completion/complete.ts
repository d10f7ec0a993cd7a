import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { Argument, Command, Option } from "commander";
import { isObject, type Json, listAt, stringAt } from "../../core/json.ts";
import { codesOf } from "../../core/module/codes.ts";
import { loadModules } from "../../core/module/declaration.ts";
import { readText } from "../../files/reader/bytes.ts";
import { readManifests } from "../../files/reader/read-documents.ts";
import { scanAll } from "../../files/source/tree.ts";
import type { Io } from "../io.ts";
import { program } from "../program.ts";
import { writtenKinds } from "../schema/json-schemas.ts";

/**
 * The words that may follow on a command line, in the protocol of kubectl's own completion: a candidate a line, a tab and its description, and at
 * the end `:4`, or `:0` where files fit as well. Never fails and never calls a cluster: a shell waits for each key.
 */
export async function complete(words: readonly string[], io: Io): Promise<void> {
  const { candidates, files } = await candidatesFor(words, io).catch(() => ({ candidates: [], files: true }));
  for (const [value, description] of candidates)
    io.stdout.write(`${value}${description === "" ? "" : `\t${description}`}\n`);
  io.stdout.write(files ? ":0\n" : ":4\n");
}

type Candidate = readonly [value: string, description: string];

interface Candidates {
  readonly candidates: readonly Candidate[];
  readonly files: boolean;
}

const NOTHING: Candidates = { candidates: [], files: false };

/** The command line so far: words that are whole, and the one that is being written. */
interface Line {
  readonly command: Command;
  /** The positional arguments of the command. */
  readonly args: readonly string[];
  /** Values of --source, to look into. */
  readonly sources: readonly string[];
}

async function candidatesFor(given: readonly string[], io: Io): Promise<Candidates> {
  // A shell may split --flag=value at the sign.
  const words = given.flatMap((word) =>
    word === "=" ? [] : word.startsWith("--") ? word.split(/=(.*)/s, 2) : [word],
  );
  const current = given.at(-1) === "=" ? "" : (words.pop() ?? "");
  const root = program(io, { code: 0 });
  const { line, pending } = lineOf(root, words);
  const found =
    pending !== undefined
      ? await valuesOf(pending, line, io)
      : current.startsWith("-")
        ? { candidates: flagsOf(line.command), files: false }
        : await argumentsOf(line, root, io);
  return { ...found, candidates: found.candidates.filter(([value]) => value.startsWith(current)) };
}

/** Walks the words; `pending` is a flag whose value is being written. */
function lineOf(root: Command, words: readonly string[]): { line: Line; pending: Option | undefined } {
  let command = root;
  let pending: Option | undefined;
  const args: string[] = [];
  const sources: string[] = [];
  for (const word of words) {
    if (pending !== undefined) {
      if (pending.long === "--source") sources.push(word);
      pending = undefined;
    } else if (word.startsWith("-")) {
      const option = command.options.find(({ long, short }) => long === word || short === word);
      pending = option?.required ? option : undefined;
    } else {
      const inner = command.commands.find((one) => one.name() === word);
      if (inner === undefined || args.length > 0) args.push(word);
      else command = inner;
    }
  }
  return { line: { command, args, sources }, pending };
}

function flagsOf(command: Command): Candidate[] {
  return command.options.flatMap(({ long, description }) =>
    long ? [[long, oneLine(description)] as const] : [],
  );
}

async function valuesOf(option: Option, line: Line, io: Io): Promise<Candidates> {
  if (option.argChoices !== undefined) return words(option.argChoices);
  switch (option.attributeName()) {
    case "context":
      return words(await contexts(io));
    case "namespace":
      return words(
        await named(line, ({ kind, namespace, name }) =>
          kind === "Namespace" ? [name] : namespace === "" ? [] : [namespace],
        ),
      );
    case "policy":
      return words(await policies(line, io));
    case "remove":
      return words(
        await named(line, ({ kind, namespace, name }) => [
          [kind.toLowerCase(), namespace, name].filter((part) => part !== "").join("/"),
        ]),
      );
    case "operator":
      return words(io.modules.map(({ name }) => name));
    default:
      return { candidates: [], files: /<(file|dir|path)>/.test(option.flags) };
  }
}

async function argumentsOf({ command, args, sources }: Line, root: Command, io: Io): Promise<Candidates> {
  const commands = command.commands.filter((one) => !one.name().startsWith("_"));
  if (commands.length > 0 && args.length === 0)
    return { candidates: commands.map((one) => [one.name(), one.summary()] as const), files: false };
  const declared = command.registeredArguments;
  const argument: Argument | undefined = declared[args.length] ?? declared.find(({ variadic }) => variadic);
  switch (argument?.name()) {
    case undefined:
      return NOTHING;
    case "kind":
      return words((await writtenKinds(io.modules)).map(({ kind }) => kind));
    case "topic": {
      const codes = codesOf(await loadModules(io.modules));
      const topics = root.commands.map((one) => [one.name(), one.summary()] as const);
      return {
        candidates: [...topics, ...codes.map(({ code, title }) => [code, title] as const)],
        files: false,
      };
    }
    case "shell":
      return words(argument?.argChoices ?? []);
    case "module":
      return words(io.modules.map(({ name }) => name));
    case "policy":
      return words(await policies({ command, args, sources }, io));
    default:
      return { candidates: [], files: true };
  }
}

function words(values: readonly string[]): Candidates {
  return { candidates: [...new Set(values)].sort().map((value) => [value, ""] as const), files: false };
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}

/** Contexts of the kubeconfig. */
async function contexts({ env }: Io): Promise<string[]> {
  const files = (env["KUBECONFIG"] ?? join(env["HOME"] ?? homedir(), ".kube", "config")).split(delimiter);
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  return texts.flatMap((text) =>
    readManifests(text).manifests.flatMap(({ value }) =>
      listAt(value, "contexts").flatMap((one) => stringAt(one, "name") ?? []),
    ),
  );
}

interface Named {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

async function policies(line: Line, io: Io): Promise<string[]> {
  const kinds = new Set((await writtenKinds(io.modules)).map(({ kind }) => kind));
  return named(line, ({ kind, namespace, name }) =>
    kinds.has(kind) && name !== "" ? [namespace === "" ? name : `${namespace}/${name}`] : [],
  );
}

/** Objects of the files that --source names. */
async function named({ sources }: Line, wanted: (one: Named) => readonly string[]): Promise<string[]> {
  if (sources.length === 0) return [];
  const { files } = await scanAll(sources);
  const objects: Json[] = [];
  for (const { path } of files)
    objects.push(...readManifests((await readText(path)).text).manifests.map(({ value }) => value));
  return objects.filter(isObject).flatMap((object) =>
    wanted({
      kind: stringAt(object, "kind") ?? "",
      namespace: stringAt(object, "metadata", "namespace") ?? "",
      name: stringAt(object, "metadata", "name") ?? "",
    }),
  );
}
