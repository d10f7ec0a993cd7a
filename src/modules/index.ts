import type { ModuleDeclaration } from "../core/module/declaration.ts";
import { declaration as nodeGuard } from "./node-guard/declaration.ts";
import { declaration as nodeLabels } from "./node-labels/declaration.ts";
import { declaration as placement } from "./placement/declaration.ts";
import { declaration as podOS } from "./pod-os/declaration.ts";
import { declaration as projectLimit } from "./project-limit/declaration.ts";

/** All modules, in the order in which they run. A new module is a new folder and one line here. Importing this loads no module's code. */
export const declarations: readonly ModuleDeclaration[] = [
  placement,
  nodeLabels,
  nodeGuard,
  podOS,
  projectLimit,
];
