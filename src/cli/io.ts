import type { ModuleDeclaration } from "../core/module/declaration.ts";
import type { Operand } from "../core/module/operand.ts";

/** An output stream. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  /** Of a terminal. */
  readonly columns?: number | undefined;
}

/** The parts of a process that a command uses, so that tests can run commands in their own. */
export interface Io {
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The typed name: `usher`, `kubectl usher` for the plugin, or the name of an operand. */
  readonly name: string;
  /** The modules that commands run with. */
  readonly modules: readonly ModuleDeclaration[];
}

/** kubectl finds plugins by file name; users type a space where the file has a hyphen. An operand is called by its own name. */
export function nameFrom(path: string, modules: readonly ModuleDeclaration[] = []): string {
  if (/(?:^|[\\/])kubectl[-_]usher(?:\.\w+)?$/.test(path)) return "kubectl usher";
  const operand = operandCalled(/[^\\/]*$/.exec(path)?.[0] ?? "", modules);
  return operand?.name ?? "usher";
}

/** The operand of this name, if it is one. */
export function operandCalled(name: string, modules: readonly ModuleDeclaration[]): Operand | undefined {
  return modules.find(({ operand }) => operand?.name === name)?.operand;
}
