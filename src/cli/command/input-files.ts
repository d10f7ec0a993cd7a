import { stat } from "node:fs/promises";
import type { InputDocuments, InputText, Value } from "../../core/module/command.ts";
import { reasonOf, Unreadable } from "../../files/reader/bytes.ts";
import { located, readManifests } from "../../files/reader/read-documents.ts";
import { scanDirectory } from "../../files/source/tree.ts";
import { CallError } from "../exit.ts";
import { readStream, readWhole } from "../review/input.ts";
import { describeProblems } from "../review/problems.ts";

/** Reads the files of a call, `-` being standard input. An unreadable file ends the command. */
export class InputFiles {
  readonly #stdin: AsyncIterable<Uint8Array | string>;
  #stdinRead = false;

  constructor(stdin: AsyncIterable<Uint8Array | string>) {
    this.#stdin = stdin;
  }

  async read(name: string, format: NonNullable<Value["file"]>): Promise<InputText | InputDocuments> {
    const label = name === "-" ? "stdin" : name;
    const { text, problems } = await this.#bytes(name).catch((error: unknown) => {
      throw error instanceof Unreadable ? new CallError(`${label}: ${error.message}`) : error;
    });
    const input = { label, text };
    const fail = (found: readonly ReturnType<typeof located>[]) => {
      throw new CallError(describeProblems(found.map((one) => ({ input, located: one }))).join("\n"));
    };
    if (problems.length > 0) fail(problems.map((one) => located(text, one)));
    if (format === "text") return { name: label, text };
    const read = readManifests(text);
    if (read.problems.length > 0) fail(read.problems);
    return { name: label, documents: read.manifests.map(({ value }) => value) };
  }

  /** A directory as its files, in their order; any other name is itself. */
  async expand(name: string): Promise<readonly string[]> {
    const found = name === "-" ? undefined : await stat(name).catch(() => undefined);
    if (found?.isDirectory() !== true) return [name];
    const { files } = await scanDirectory(name);
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
