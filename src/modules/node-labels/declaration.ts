import { defineCommand } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";

const name = "node-labels";

const plan = defineCommand({
  name: "plan",
  summary: "show what would be added, changed and removed on nodes, and by which policy",
  description:
    "Compares nodes with what all policies together want, and prints what would change. Nothing is changed. Changes that are delayed, such as removals by a new policy, are included.",
  examples: ["--source examples/node-labels", "--cluster -o json"],
  exitCodes: { fine: "nodes match the policies", found: "nodes would change" },
  formats: ["table", "json", "yaml"],
  judges: true,
  source: { files: true, leaderReads: true },
  load: async () => (await import("./reconcile/plan-command.ts")).planCode,
});

export const declaration: ModuleDeclaration = {
  name,
  summary: "labels nodes by name at creation, and keeps the labels in place",
  commands: [
    {
      name,
      summary: "show what node-labels would change on nodes",
      description: "Shows what node-labels would change on existing nodes, before anything is changed.",
      commands: [plan],
    },
  ],
  load: async () => (await import("./index.ts")).nodeLabels,
};
