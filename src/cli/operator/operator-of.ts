import { loadModules } from "../../core/module/declaration.ts";
import type { Module } from "../../core/module/module.ts";
import type { Operator } from "../../core/module/operator.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";

/** A module and its operator, by the module's name. */
export async function operatorOf(
  name: string,
  { modules }: Io,
): Promise<{ readonly module: Module; readonly operator: Operator }> {
  const loaded = await loadModules(modules);
  const module = loaded.find((one) => one.name === name);
  if (module?.operator !== undefined) return { module, operator: module.operator };
  const names = loaded.filter(({ operator }) => operator !== undefined).map((one) => one.name);
  throw new CallError(`${name} has no operand to keep; these have: ${names.join(", ")}`);
}
