import type { ModuleDeclaration } from "../core/module/declaration.ts";

/** Where text goes. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

/** Everything of a process that a command touches, so that a test can run commands without one. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What the user typed to call us: `usher`, or `kubectl usher` where we are kubectl's plugin. */
  readonly name: string;
  /** The modules that commands run with. */
  readonly modules: readonly ModuleDeclaration[];
}

/** kubectl finds its plugins by their file name, and whoever calls one types a space where the file has a hyphen. */
export function nameFrom(path: string): string {
  return /(?:^|[\\/])kubectl[-_]usher(?:\.\w+)?$/.test(path) ? "kubectl usher" : "usher";
}
