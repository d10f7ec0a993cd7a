import { driftCommands } from "../../core/drift/commands/commands.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";

const name = "placement";

export const declaration: ModuleDeclaration = {
  name,
  summary: "writes scheduling criteria into pods and pod templates by policy",
  commands: [driftCommands(name)],
  load: async () => (await import("./index.ts")).placement,
};
