import { createReadStream, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import type { Problem } from "../../core/policy/problem.ts";
import { isSuite } from "../../core/suite/suite.ts";
import { decode, MAX_FILE_BYTES, readText, reasonOf, Unreadable } from "../../files/reader/bytes.ts";
import { type Located, located, readManifests } from "../../files/reader/read-documents.ts";
import { scanDirectory } from "../../files/source/tree.ts";
import type { TextProblem } from "../../files/text/yaml.ts";
import { CallError } from "../exit.ts";
import type { Shape } from "./shape.ts";

/** A text that was read, and its name for messages. */
export interface InputText {
  readonly label: string;
  readonly text: string;
}

/** Where an object is defined; lines and columns are found by document and path. */
export interface Place {
  readonly input: InputText;
  readonly document: number;
  readonly path: Path;
}

/** One object as it is written. */
export interface Manifest {
  readonly object: JsonObject;
  readonly place: Place;
  /** Where it begins, from one. */
  readonly line: () => number;
}

/** What could not be used. The rest is evaluated nevertheless. */
export type InputProblem =
  | { readonly place: Place; readonly problem: Problem }
  | { readonly input: InputText; readonly located: Located }
  | { readonly label: string; readonly message: string };

export interface Input {
  readonly manifests: readonly Manifest[];
  readonly problems: readonly InputProblem[];
}

/** Reads files, directories and standard input (`-`), in the order of the arguments. */
export class InputReader {
  readonly #stdin: AsyncIterable<Uint8Array | string>;
  readonly #shape: Shape;
  readonly #note: (text: string) => void;
  #stdinRead = false;

  constructor(stdin: AsyncIterable<Uint8Array | string>, shape: Shape, note: (text: string) => void) {
    this.#stdin = stdin;
    this.#shape = shape;
    this.#note = note;
  }

  async read(names: readonly string[]): Promise<Input> {
    const manifests: Manifest[] = [];
    const problems: InputProblem[] = [];
    for (const name of names) await this.#named(name, manifests, problems);
    if (manifests.length === 0 && problems.length === 0) {
      throw new CallError(
        `${names.map((name) => (name === "-" ? "stdin" : name)).join(", ")}: no objects found`,
      );
    }
    return { manifests, problems };
  }

  async #named(name: string, manifests: Manifest[], problems: InputProblem[]): Promise<void> {
    if (name === "-") {
      if (this.#stdinRead) throw new CallError("standard input can be read only once");
      this.#stdinRead = true;
      await this.#take("stdin", () => readStream(this.#stdin), manifests, problems);
      return;
    }
    const found = await stat(name).catch((error: unknown) => reasonOf(error));
    if (typeof found === "string") {
      problems.push({ label: name, message: found });
      return;
    }
    if (!found.isDirectory()) {
      await this.#take(name, () => readWhole(name, found), manifests, problems);
      return;
    }
    const { files, hidden } = await scanDirectory(name);
    const root = name.replace(/\/+$/, "");
    for (const one of hidden) problems.push({ label: `${root}/${one.name}`, message: one.reason });
    if (files.length === 0 && hidden.length === 0) {
      problems.push({ label: name, message: "no .yaml, .yml or .json files found" });
    }
    const chart = files.find((one) => /(^|\/)Chart\.yaml$/.test(one.name));
    if (chart !== undefined) {
      const folder = `${root}/${chart.name}`.replace(/\/Chart\.yaml$/, "");
      problems.push({
        label: `${root}/${chart.name}`,
        message: `${folder} is a Helm chart, not manifests: use helm template ${folder} | usher review -`,
      });
      return;
    }
    for (const file of files.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const read = async () => readWhole(file.path, await stat(file.path));
      await this.#take(`${root}/${file.name}`, read, manifests, problems);
    }
  }

  async #take(
    label: string,
    read: () => ReturnType<typeof readStream>,
    manifests: Manifest[],
    problems: InputProblem[],
  ): Promise<void> {
    let found: Awaited<ReturnType<typeof readStream>>;
    try {
      found = await read();
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      problems.push({ label, message: error.message });
      return;
    }
    const input = { label, text: found.text };
    // Binary content is not parsed: every line would be one more problem.
    if (found.problems.length > 0) {
      for (const one of found.problems) problems.push({ input, located: located(found.text, one) });
      return;
    }
    const parsed = readManifests(found.text);
    for (const one of parsed.problems) problems.push({ input, located: one });
    for (const { value, document, path, line } of parsed.manifests) {
      if (isKustomization(value)) {
        this.#note(
          `${label}: not reviewed: kustomize build ${label.replace(/\/?[^/]*$/, "") || "."} | usher review - reviews what it makes`,
        );
        continue;
      }
      if (isSuite(value)) {
        this.#note(`${label}: not reviewed: usher test ${label} runs the suite`);
        continue;
      }
      const place = { input, document, path };
      const wrong = this.#shape.problems(value);
      for (const problem of wrong) problems.push({ place, problem });
      if (wrong.length === 0 && isObject(value)) manifests.push({ object: value, place, line });
    }
  }
}

/** What kustomize reads beside manifests: no API server has such a kind. */
function isKustomization(value: Json): boolean {
  return stringAt(value, "apiVersion")?.startsWith("kustomize.config.k8s.io/") === true;
}

interface Read {
  readonly text: string;
  readonly problems: readonly TextProblem[];
}

/** A file, or a pipe such as `<(helm template shop)`. */
export async function readWhole(path: string, found: Stats): Promise<Read> {
  if (found.isFile()) return readText(path);
  if (!found.isFIFO() && !found.isCharacterDevice()) throw new Unreadable("is not a regular file");
  return readStream(createReadStream(path));
}

/** A stream to its end, up to the maximum size of a file. */
export async function readStream(stream: AsyncIterable<Uint8Array | string>): Promise<Read> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of stream) {
      const chunk = typeof part === "string" ? Buffer.from(part) : part;
      bytes += chunk.length;
      if (bytes > MAX_FILE_BYTES) {
        throw new Unreadable(`is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB; split it`);
      }
      parts.push(chunk);
    }
  } catch (error) {
    throw error instanceof Unreadable ? error : new Unreadable(reasonOf(error));
  }
  return decode(Buffer.concat(parts));
}
