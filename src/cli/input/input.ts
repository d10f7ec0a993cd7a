import { createReadStream, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { InputText } from "../../core/module/command.ts";
import { byText } from "../../core/order.ts";
import type { Path } from "../../core/path.ts";
import type { Problem } from "../../core/policy/problem.ts";
import { isSuite } from "../../core/suite/suite.ts";
import { decode, MAX_FILE_BYTES, readText, reasonOf, Unreadable } from "../../files/reader/bytes.ts";
import { type Located, located, readManifests } from "../../files/reader/read-documents.ts";
import { scanDirectory } from "../../files/source/tree.ts";
import type { TextProblem } from "../../files/text/yaml.ts";
import { CallError } from "../exit.ts";
import { kustomized } from "./kustomize.ts";
import type { Shape } from "./shape.ts";

/** The position of an object; lines and columns are found by document and path. */
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

/** Unusable input. The rest is still evaluated. */
export type InputProblem =
  | { readonly place: Place; readonly problem: Problem }
  | { readonly input: InputText; readonly located: Located }
  | { readonly name: string; readonly message: string };

export interface Input {
  readonly manifests: readonly Manifest[];
  readonly problems: readonly InputProblem[];
}

/** How directories are read. */
export interface InputOptions {
  /** Whether to descend into directories. @default true */
  readonly recursive?: boolean;
  /** Directories that kustomize builds first. */
  readonly kustomize?: readonly string[];
}

interface Texts {
  /** `binary`: why the bytes are not text. Such content is not parsed: every line would be another problem. */
  readonly texts: readonly (InputText & { readonly binary: readonly TextProblem[] })[];
  readonly problems: readonly InputProblem[];
}

/** Reads texts from files, directories and standard input (`-`), in the order of the arguments, and from kustomize. */
export class InputTexts {
  readonly #stdin: AsyncIterable<Uint8Array | string>;
  readonly #options: InputOptions;
  #stdinRead = false;

  constructor(stdin: AsyncIterable<Uint8Array | string>, options: InputOptions = {}) {
    this.#stdin = stdin;
    this.#options = options;
  }

  async read(names: readonly string[]): Promise<Texts> {
    const found = { texts: [], problems: [] };
    for (const name of names) await this.#named(name, found);
    return found;
  }

  /** The directories of -k. */
  get kustomized(): readonly string[] {
    return this.#options.kustomize ?? [];
  }

  /** The manifests that kustomize builds from them. */
  async built(): Promise<Texts> {
    const texts = [];
    for (const directory of this.kustomized)
      texts.push({ name: directory, text: await kustomized(directory), binary: [] });
    return { texts, problems: [] };
  }

  async #named(name: string, found: { texts: Texts["texts"][number][]; problems: InputProblem[] }) {
    const { problems } = found;
    if (name === "-") {
      if (this.#stdinRead) throw new CallError("standard input can be read only once");
      this.#stdinRead = true;
      await take("stdin", () => readStream(this.#stdin), found);
      return;
    }
    const stats = await stat(name).catch((error: unknown) => reasonOf(error));
    if (typeof stats === "string") {
      problems.push({ name, message: stats });
      return;
    }
    if (!stats.isDirectory()) {
      await take(name, () => readWhole(name, stats), found);
      const other = otherFormat(found.texts.at(-1), name);
      if (other !== undefined) {
        found.texts.pop();
        problems.push({ name, message: other });
      }
      return;
    }
    const { files: all, hidden } = await scanDirectory(name);
    const files = this.#options.recursive === false ? all.filter((one) => !one.name.includes("/")) : all;
    const root = name.replace(/\/+$/, "");
    for (const one of hidden) problems.push({ name: `${root}/${one.name}`, message: one.reason });
    if (files.length === 0 && hidden.length === 0) {
      problems.push({ name, message: "no .yaml, .yml or .json files found" });
    }
    const chart = files.find((one) => /(^|\/)Chart\.yaml$/.test(one.name));
    if (chart !== undefined) {
      const folder = `${root}/${chart.name}`.replace(/\/Chart\.yaml$/, "");
      problems.push({
        name: `${root}/${chart.name}`,
        message: `${folder} is a Helm chart, not manifests: use helm template ${folder} | usher review -`,
      });
      return;
    }
    for (const file of files.toSorted(byText(({ name }) => name))) {
      const read = async () => readWhole(file.path, await stat(file.path));
      await take(`${root}/${file.name}`, read, found);
    }
  }
}

/**
 * A document or a program that was named by mistake: one sentence in place of a list of its syntax errors. A manifest whose name has another
 * ending, or none, is read.
 */
function otherFormat(read: InputText | undefined, name: string): string | undefined {
  if (read?.name !== name || !/[^/]\.[^./]+$/.test(name) || /\.(?:ya?ml|json)$/i.test(name)) return undefined;
  const { manifests, problems } = readManifests(read.text);
  const [first] = problems;
  if (manifests.length > 0 || first === undefined) return undefined;
  return `not YAML or JSON (line ${first.line}: ${first.message}); specify .yaml, .yml or .json files`;
}

async function take(
  name: string,
  read: () => ReturnType<typeof readStream>,
  { texts, problems }: { texts: Texts["texts"][number][]; problems: InputProblem[] },
): Promise<void> {
  try {
    const { text, problems: binary } = await read();
    texts.push({ name, text, binary });
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    problems.push({ name, message: error.message });
  }
}

/** Reads the objects that a call names. */
export class InputReader {
  readonly #texts: InputTexts;
  readonly #shape: Shape;
  readonly #note: (text: string) => void;

  constructor(
    stdin: AsyncIterable<Uint8Array | string>,
    shape: Shape,
    note: (text: string) => void,
    options: InputOptions = {},
  ) {
    this.#texts = new InputTexts(stdin, options);
    this.#shape = shape;
    this.#note = note;
  }

  /** @param whole The input of the call, to which what kustomize builds belongs. */
  async read(names: readonly string[], whole = false): Promise<Input> {
    const manifests: Manifest[] = [];
    const problems: InputProblem[] = [];
    for (const read of [await this.#texts.read(names), ...(whole ? [await this.#texts.built()] : [])]) {
      problems.push(...read.problems);
      for (const text of read.texts) this.#parse(text, text.binary, manifests, problems);
    }
    if (manifests.length === 0 && problems.length === 0) {
      const all = [
        ...names.map((name) => (name === "-" ? "stdin" : name)),
        ...(whole ? this.#texts.kustomized : []),
      ];
      throw new CallError(`${all.join(", ")}: no objects found`);
    }
    return { manifests, problems };
  }

  #parse(
    { name, text }: InputText,
    binary: readonly TextProblem[],
    manifests: Manifest[],
    problems: InputProblem[],
  ): void {
    const input = { name, text };
    if (binary.length > 0) {
      for (const one of binary) problems.push({ input, located: located(text, one) });
      return;
    }
    const parsed = readManifests(text);
    for (const one of parsed.problems) problems.push({ input, located: one });
    for (const { value, document, path, line } of parsed.manifests) {
      if (isKustomization(value)) {
        const folder = name.replace(/\/?[^/]*$/, "") || ".";
        this.#note(`${name}: not read: use -k ${folder} to read what it makes`);
        continue;
      }
      if (isSuite(value)) {
        this.#note(`${name}: not reviewed: usher test ${name} runs the suite`);
        continue;
      }
      const place = { input, document, path };
      const wrong = this.#shape.problems(value);
      for (const problem of wrong) problems.push({ place, problem });
      if (wrong.length === 0 && isObject(value)) manifests.push({ object: value, place, line });
    }
  }
}

/** Files of kustomize beside manifests: no API server has such a kind. */
export function isKustomization(value: Json): boolean {
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
