import { defineCommand } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";

const name = "node-guard";

const SOURCE = { files: true, cluster: "flag" } as const;

const list = defineCommand({
  name: "list",
  summary: "show groups, their modes and every entry with its origin",
  description:
    "Shows what all sources together come to: each group with its mode, the mode that counts and why, its nodes, and the entries of its lists with where each comes from.",
  examples: ["--source examples/node-guard", "--cluster -o json"],
  exitCodes: { fine: "listed", found: "not used" },
  formats: ["table", "json", "yaml"],
  source: SOURCE,
  load: async () => (await import("./commands/list-command.ts")).listCode,
});

const learn = defineCommand({
  name: "learn",
  summary: "propose entries for what was, or would be, refused",
  description:
    "Proposes the entries that would have admitted what was refused in Enable, or reported in Inform, with how often and when it was seen first and last. Reads what the serving replicas keep, or an audit log of the API server. Writes nothing.",
  flags: {
    auditLog: {
      description: "read an audit log of the API server: JSON lines, - for stdin",
      value: "file",
      file: "text",
    },
  },
  examples: ["--audit-log examples/node-guard/audit.log", "--cluster -o json"],
  exitCodes: { fine: "nothing to propose", found: "entries are proposed" },
  formats: ["table", "json", "yaml"],
  source: SOURCE,
  load: async () => (await import("./commands/learn/learn-command.ts")).learnCode,
});

const inventory = defineCommand({
  name: "inventory",
  summary: "list pods on protected nodes, and whether Enable would admit them",
  description:
    "Lists every pod on a protected node, with the entry that authorises it, if any, and whether its service account is in a list of reviewed ones.",
  flags: {
    reviewed: {
      description: "lines of namespace/serviceAccount that were reviewed, - for stdin",
      value: "file",
      file: "text",
    },
  },
  examples: ["--source examples/node-guard", "--cluster --reviewed reviewed.txt -o json"],
  exitCodes: { fine: "listed, and all reviewed", found: "a pod is not among the reviewed" },
  formats: ["table", "json", "yaml"],
  source: SOURCE,
  load: async () => (await import("./commands/inventory-command.ts")).inventoryCode,
});

const reach = defineCommand({
  name: "reach",
  summary: "list who may create pods in authorised namespaces, or bind",
  description:
    "Lists the subjects that RBAC allows to create pods, or workloads that create pods, in namespaces whose pods may run on protected nodes, and those that may bind pods. The namespace is the trust boundary: every subject that is listed can get pods there.",
  examples: ["--source examples/node-guard", "--cluster -o json"],
  exitCodes: { fine: "listed", found: "listed, but some objects could not be read" },
  formats: ["table", "json", "yaml"],
  source: SOURCE,
  load: async () => (await import("./commands/reach/reach-command.ts")).reachCode,
});

export const declaration: ModuleDeclaration = {
  name,
  summary: "keeps unauthorised workloads off protected nodes",
  commands: [
    {
      name,
      summary: "show who and what may use protected nodes",
      description:
        "Shows groups of protected nodes, what runs there, who could get pods there, and which entries their lists would need.",
      commands: [list, learn, inventory, reach],
    },
  ],
  load: async () => (await import("./index.ts")).nodeGuard,
};
