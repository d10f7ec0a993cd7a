import type { ModuleDeclaration } from "../core/module/declaration.ts";

/** Where text goes. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  /** Of a terminal. */
  readonly columns?: number | undefined;
}

/** What a command uses of its process, so that tests can run commands in theirs. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What the user types: `usher`, or `kubectl usher` for the plugin. */
  readonly name: string;
  /** The modules that commands run with. */
  readonly modules: readonly ModuleDeclaration[];
}

/** kubectl finds plugins by file name; users type a space where the file has a hyphen. */
export function nameFrom(path: string): string {
  return /(?:^|[\\/])kubectl[-_]usher(?:\.\w+)?$/.test(path) ? "kubectl usher" : "usher";
}
