import type { ModuleDeclaration } from "../../core/module/declaration.ts";

export const declaration: ModuleDeclaration = {
  name: "project-limit",
  summary: "limits how many projects and namespaces a user may have",
  load: async () => (await import("./index.ts")).projectLimit,
};
