import type { Module } from "../core/module/module.ts";
import { nodeLabels } from "./node-labels/index.ts";
import { placement } from "./placement/index.ts";

/** All modules, in the order in which they run. A new module is a new folder and one line here. */
export const modules: readonly Module[] = [placement, nodeLabels];
