import type { ModuleDeclaration } from "../../core/module/declaration.ts";

export const declaration: ModuleDeclaration = {
  name: "pod-os",
  summary: "knows the OS of a pod at admission, and judges Pod Security by it",
  load: async () => (await import("./index.ts")).podOS,
};
