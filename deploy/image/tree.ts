// A root file system in memory: the content of a layer. Independent of the machine that builds it.

export type Entry =
  | { readonly type: "directory"; readonly mode: number }
  | { readonly type: "file"; readonly mode: number; readonly content: Buffer }
  | { readonly type: "symlink"; readonly target: string };

/** Debian's merged /usr: older packages still ship files in folders that are links now. */
const MERGED = /^(?:bin|sbin|lib|lib64)\//;

export class Tree {
  readonly #entries = new Map<string, Entry>();

  file(path: string, content: string | Buffer, mode = 0o644): this {
    return this.#set(path, { type: "file", mode, content: Buffer.from(content) });
  }

  symlink(path: string, target: string): this {
    return this.#set(path, { type: "symlink", target });
  }

  directory(path: string, mode = 0o755): this {
    return this.#set(path, { type: "directory", mode });
  }

  get(path: string): Entry | undefined {
    return this.#entries.get(merged(path));
  }

  /** Every entry, in a fixed order with folders before their contents. */
  sorted(): readonly (readonly [string, Entry])[] {
    return [...this.#entries].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  #set(given: string, entry: Entry): this {
    if (given.startsWith("/") || given.split("/").includes(".."))
      throw new Error(`${given} is not a path inside the image`);
    const path = merged(given);
    const parent = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (parent !== "" && !this.#entries.has(parent)) this.directory(parent);
    this.#entries.set(path, entry);
    return this;
  }
}

function merged(path: string): string {
  return MERGED.test(path) ? `usr/${path}` : path;
}
