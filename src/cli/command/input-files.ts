import { stat } from "node:fs/promises";
import type { InputDocuments, InputText, InputText as TextInput, Value } from "../../core/module/command.ts";
import { reasonOf, Unreadable } from "../../files/reader/bytes.ts";
import { located, readManifests } from "../../files/reader/read-documents.ts";
import { scanDirectory } from "../../files/source/tree.ts";
import { CallError } from "../exit.ts";
import { type InputOptions, readStream, readWhole } from "../input/input.ts";
import { kustomized } from "../input/kustomize.ts";
import { describeProblems } from "../input/problems.ts";

/** Reads the files of a call, `-` being standard input. An unreadable file ends the command. */
export class InputFiles {
  readonly #stdin: AsyncIterable<Uint8Array | string>;
  readonly #options: InputOptions;
  #stdinRead = false;

  constructor(stdin: AsyncIterable<Uint8Array | string>, options: InputOptions = {}) {
    this.#stdin = stdin;
    this.#options = options;
  }

  async read(name: string, format: NonNullable<Value["file"]>): Promise<InputText | InputDocuments> {
    const label = name === "-" ? "stdin" : name;
    const { text, problems } = await this.#bytes(name).catch((error: unknown) => {
      throw error instanceof Unreadable ? new CallError(`${label}: ${error.message}`) : error;
    });
    const input = { name: label, text };
    if (problems.length > 0)
      fail(
        input,
        problems.map((one) => located(text, one)),
      );
    return format === "text" ? input : documentsOf(input);
  }

  /** The manifests that kustomize builds from the directories of -k. */
  async built(): Promise<readonly InputDocuments[]> {
    const built: InputDocuments[] = [];
    for (const label of this.#options.kustomize ?? [])
      built.push(documentsOf({ name: label, text: await kustomized(label) }));
    return built;
  }

  /** A directory as its files, in their order; any other name is itself. */
  async expand(name: string): Promise<readonly string[]> {
    const found = name === "-" ? undefined : await stat(name).catch(() => undefined);
    if (found?.isDirectory() !== true) return [name];
    const { files: all } = await scanDirectory(name);
    const files = this.#options.recursive === false ? all.filter((one) => !one.name.includes("/")) : all;
    if (files.length === 0) throw new CallError(`${name}: no .yaml, .yml or .json files found`);
    return files.map(({ path }) => path).sort();
  }

  async #bytes(name: string): ReturnType<typeof readStream> {
    if (name !== "-") {
      const found = await stat(name).catch((error: unknown) => {
        throw new Unreadable(reasonOf(error));
      });
      return readWhole(name, found);
    }
    if (this.#stdinRead) throw new CallError("standard input can be read only once");
    this.#stdinRead = true;
    return readStream(this.#stdin);
  }
}

function documentsOf(input: TextInput): InputDocuments {
  const { manifests, problems } = readManifests(input.text);
  if (problems.length > 0) fail(input, problems);
  return { name: input.name, documents: manifests.map(({ value }) => value) };
}

function fail(input: TextInput, found: readonly ReturnType<typeof located>[]): never {
  throw new CallError(describeProblems(found.map((one) => ({ input, located: one }))).join("\n"));
}
