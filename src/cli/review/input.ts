import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { type Located, locateProblems, readManifests } from "../../files/reading.ts";
import { CallError } from "../exit.ts";

/** One object as someone wrote it. */
export interface Manifest {
  /** The file, for messages. */
  readonly where: string;
  readonly object: JsonObject;
}

export interface Input {
  readonly manifests: readonly Manifest[];
  /** What could not be read, each with file, line, column and reason. The rest is judged all the same. */
  readonly problems: readonly string[];
}

/** Reads files, directories and standard input, in the order in which they were named. */
export async function readInput(names: readonly string[]): Promise<Input> {
  const manifests: Manifest[] = [];
  const problems: string[] = [];
  for (const name of names) {
    for (const file of await filesOf(name)) {
      const label = file === "-" ? "stdin" : file;
      read(label, file === "-" ? await textOf(process.stdin) : await contentOf(file), manifests, problems);
    }
  }
  return { manifests, problems };
}

async function filesOf(name: string): Promise<string[]> {
  if (name === "-") return [name];
  let directory: boolean;
  try {
    directory = (await stat(name)).isDirectory();
  } catch {
    throw new CallError(`${name}: there is no such file or directory`);
  }
  if (!directory) return [name];
  const entries = await readdir(name, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && /\.(ya?ml|json)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  if (files.length === 0)
    throw new CallError(`${name}: there is no .yaml, .yml or .json file in this directory`);
  return files.sort();
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CallError(`${file}: can't be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function read(label: string, text: string, manifests: Manifest[], problems: string[]): void {
  const found = readManifests(text);
  for (const problem of found.problems) problems.push(describe(label, problem));
  for (const { value, document, path } of found.manifests) {
    const wrong = shapeProblem(value);
    if (wrong === undefined && isObject(value)) {
      manifests.push({ where: label, object: value });
      continue;
    }
    const [place] = locateProblems(text, [{ document, path, message: wrong ?? "" }]);
    problems.push(place === undefined ? `${label}: ${wrong}` : describe(label, place));
  }
}

function describe(label: string, { line, column, message, frame }: Located): string {
  return `${label}:${line}:${column}: ${message}\n${frame}`;
}

/** What every object must have before anyone can judge it. */
function shapeProblem(value: Json): string | undefined {
  if (!isObject(value))
    return "is not a Kubernetes object: it must be a map with apiVersion, kind and metadata";
  for (const field of ["apiVersion", "kind"]) {
    if ((stringAt(value, field) ?? "") === "") return `has no ${field}: every object needs one`;
  }
  if (value["kind"] === "AdmissionReview") return undefined;
  const name = stringAt(value, "metadata", "name") ?? stringAt(value, "metadata", "generateName") ?? "";
  return name === "" ? "has no metadata.name: every object needs a name, or a generateName" : undefined;
}
