import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { isObject, type Json } from "../../core/json.ts";
import type { InputText } from "../../core/module/command.ts";
import type { Path } from "../../core/path.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import { isSuite, readSuite, type Suite } from "../../core/suite/suite.ts";
import { reasonOf, Unreadable } from "../../files/reader/bytes.ts";
import { linesOf, located, readManifests } from "../../files/reader/read-documents.ts";
import { scanDirectory } from "../../files/source/tree.ts";
import { CallError } from "../exit.ts";
import type { InputProblem, Place } from "../input/input.ts";
import { readWhole } from "../input/input.ts";

/** A suite and its position. */
export interface SuiteFile {
  readonly suite: Suite;
  readonly path: string;
  readonly input: InputText;
  readonly document: number;
  /** The place of a field, for problems. */
  readonly place: (path: Path) => Place;
  /** The line of a field, from one. */
  readonly line: (path: Path) => number;
}

/** One object of a file that a suite names. */
export interface NamedObject {
  readonly value: Json;
  readonly place: Place;
}

/** Reads the suites of files and directories. In a directory, documents that are not suites are left alone. */
export async function readSuites(
  names: readonly string[],
  options: { readonly recording: boolean },
): Promise<{ readonly suites: readonly SuiteFile[]; readonly problems: readonly InputProblem[] }> {
  const suites: SuiteFile[] = [];
  const problems: InputProblem[] = [];
  for (const name of names) {
    const found = await stat(name).catch((error: unknown) => {
      throw new CallError(`${name}: ${reasonOf(error)}`);
    });
    const before = suites.length + problems.length;
    const paths = found.isDirectory() ? await filesOf(name) : [name];
    for (const path of paths) {
      const read = await readText(path);
      if ("problem" in read) {
        problems.push(read.problem);
        continue;
      }
      const { input } = read;
      // Other files of a directory may be templates or tests of another program.
      if (found.isDirectory() && !input.text.includes("TestSuite")) continue;
      const { manifests, problems: wrong } = readManifests(input.text);
      const lines = linesOf(input.text);
      for (const one of wrong) problems.push({ input, located: one });
      for (const { value, document, path: inside } of manifests) {
        if (!isSuite(value) || !isObject(value)) continue;
        const result = readSuite(value, options);
        const place = (field: Path): Place => ({ input, document, path: [...inside, ...field] });
        if ("problems" in result)
          for (const one of result.problems) problems.push({ place: place([]), problem: one });
        else
          suites.push({
            suite: result.suite,
            path,
            input,
            document,
            place,
            line: (field) => lines(document, [...inside, ...field]),
          });
      }
    }
    if (suites.length + problems.length === before)
      throw new CallError(`${name}: no TestSuite found (apiVersion: usher.dev/v1alpha1, kind: TestSuite)`);
  }
  return { suites, problems };
}

async function filesOf(directory: string): Promise<string[]> {
  const { files } = await scanDirectory(directory);
  return files.map(({ path }) => path).sort();
}

async function readText(
  path: string,
): Promise<{ readonly input: InputText } | { readonly problem: InputProblem }> {
  try {
    const { text, problems } = await readWhole(path, await stat(path));
    const input = { name: shownPath(path), text };
    const [wrong] = problems;
    return wrong === undefined ? { input } : { problem: { input, located: located(text, wrong) } };
  } catch (error) {
    const message = error instanceof Unreadable ? error.message : reasonOf(error);
    return { problem: { name: shownPath(path), message } };
  }
}

/** As the user would type it. */
export function shownPath(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" || near.startsWith("..") || isAbsolute(near) ? path : near;
}

/**
 * The file that a suite names. A suite may come with a pull request, and problems print lines of their files: only
 * files of usher's working directory are read, or for a suite elsewhere, those beside the suite's directory.
 */
export async function fileOf({ path }: SuiteFile, name: string): Promise<string | Problem> {
  if (isAbsolute(name)) return problem([], `${name} must be relative to the suite`);
  const own = await realpath(path);
  const here = await realpath(process.cwd());
  const root = isInside(own, here) ? here : dirname(dirname(own));
  const named = resolve(dirname(own), name);
  const real = await realpath(named).catch((error: unknown) => problem([], `${name}: ${reasonOf(error)}`));
  if (typeof real !== "string") return real;
  if (isInside(real, root)) return join(dirname(path), name);
  return problem([], `${name} is outside of ${root}`, "run usher in a directory that contains both");
}

function isInside(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

/** The objects of a file, read once for all cases that name it. */
export class NamedFiles {
  readonly #read = new Map<string, Promise<readonly NamedObject[] | InputProblem>>();

  objects(path: string): Promise<readonly NamedObject[] | InputProblem> {
    const known = this.#read.get(path) ?? this.#open(path);
    this.#read.set(path, known);
    return known;
  }

  async #open(path: string): Promise<readonly NamedObject[] | InputProblem> {
    const read = await readText(path);
    if ("problem" in read) return read.problem;
    const { input } = read;
    const { manifests, problems } = readManifests(input.text);
    const [wrong] = problems;
    if (wrong !== undefined) return { input, located: wrong };
    return manifests.map(({ value, document, path: inside }) => ({
      value,
      place: { input, document, path: inside },
    }));
  }
}
