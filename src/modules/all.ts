import { loadModules } from "../core/module/declaration.ts";
import type { Module } from "../core/module/module.ts";
import { policyCheck } from "../core/module/policy-check.ts";
import { declarations } from "./index.ts";

/** All modules, loaded. */
export const modules: readonly Module[] = await loadModules(declarations);

/** All modules, and the check of policies themselves. */
export const allModules: readonly Module[] = [...modules, policyCheck(modules)];
