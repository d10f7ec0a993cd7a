import type { ModuleDeclaration } from "../../core/module/declaration.ts";

export const declaration: ModuleDeclaration = {
  name: "node-guard",
  summary: "keeps unauthorised workloads off protected nodes",
  load: async () => (await import("./index.ts")).nodeGuard,
};
