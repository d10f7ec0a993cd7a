import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import type { Module } from "../../src/core/module/module.ts";
import { type FileSource, openFiles } from "../../src/files/source/file-source.ts";
import type { FileReport } from "../../src/files/source/report.ts";
import { GROUP, greeter } from "./modules.ts";

/** A source on its own directory, with everything that it reported. */
export class Directory {
  readonly path: string;
  readonly reports: FileReport[] = [];
  #sources: FileSource[] = [];

  constructor(path: string) {
    this.path = path;
  }

  static async make(files: Readonly<Record<string, string>> = {}): Promise<Directory> {
    const directory = new Directory(await mkdtemp(join(tmpdir(), "usher-files-")));
    for (const [name, text] of Object.entries(files)) await directory.write(name, text);
    return directory;
  }

  at(name: string): string {
    return join(this.path, name);
  }

  async write(name: string, text: string | Buffer): Promise<void> {
    await mkdir(dirname(this.at(name)), { recursive: true });
    await writeFile(this.at(name), text);
  }

  async open(
    options: { watch?: boolean; directory?: string; modules?: readonly Module[] } = {},
  ): Promise<FileSource> {
    const source = await openFiles({
      directory: options.directory ?? this.path,
      assembly: new Assembly(options.modules ?? [greeter], DEFAULT_INSTALLATION, new Gates([])),
      report: (report) => this.reports.push(report),
      watch: options.watch ?? false,
    });
    this.#sources.push(source);
    return source;
  }

  /** The reports since the last call, without the directory's path. */
  said(): string {
    const texts = this.reports.splice(0).map(({ text }) => text);
    return texts.join("\n").replaceAll(`${this.path}/`, "");
  }

  async end(): Promise<void> {
    for (const source of this.#sources) await source.stop();
    await rm(this.path, { recursive: true, force: true });
  }
}

export function greetingYaml(name: string, word: string, more = ""): string {
  return `apiVersion: ${GROUP}/v1\nkind: Greeting\nmetadata:\n  name: ${name}\nspec:\n  word: ${word}\n${more}`;
}

/** The words of the policies in force, by name. */
export function wordsOf(source: FileSource): Record<string, unknown> {
  const words: Record<string, unknown> = {};
  for (const { policy } of source.assembly.policies("greeter")) {
    const { name, word } = policy as { name: string; word: string };
    words[name] = word;
  }
  return words;
}

/** Waits until the condition holds. The test's own time limit bounds the wait. */
export async function until(what: () => boolean): Promise<void> {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 10));
}
