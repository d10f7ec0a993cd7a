import type { CommandGroup } from "./command.ts";
import type { Module } from "./module.ts";
import type { Operand } from "./operand.ts";

/**
 * The part of a module that is known before its code is loaded. Declarations import no code of their module, so that
 * help is fast.
 */
export interface ModuleDeclaration {
  /** A DNS label, and the name of the module's folder. */
  readonly name: string;
  readonly summary: string;
  readonly commands?: readonly CommandGroup[];
  readonly load: () => Promise<Module>;
  /** @default none */
  readonly operand?: Operand;
}

/** Loads modules, in their order. */
export function loadModules(declarations: readonly ModuleDeclaration[]): Promise<Module[]> {
  return Promise.all(declarations.map(({ load }) => load()));
}
