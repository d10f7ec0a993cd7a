import { type CommandGroup, defineCommand } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";
import type { GrantFlags, RevokeArgs } from "./commands/flags.ts";

const name = "node-guard";

const SOURCE = { files: true } as const;

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
  judges: true,
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

const grant = defineCommand<object, GrantFlags>({
  name: "grant",
  summary: "weaken the mode of a group for a time",
  description:
    "Creates a NodeGuardOverride that begins now and ends by itself, after 24 hours at most. The right to create it is the emergency right. It does not help while usher is away.",
  flags: {
    group: { value: "group", description: "the group, such as ControlPlane" },
    mode: { value: "mode", choices: ["Inform", "Disable"], description: "the mode meanwhile" },
    for: { value: "duration", description: "how long, such as 30m or 2h; at most 24h" },
    reason: { value: "text", description: "why, for the audit log" },
  },
  examples: ['--group ControlPlane --mode Inform --for 30m --reason "replace cp-0"'],
  exitCodes: { fine: "granted", found: "the override could not be written" },
  formats: ["table", "json"],
  source: { files: false },
  writes: { switch: "dry-run", noun: "override", done: "granted" },
  load: async () => (await import("./commands/override.ts")).grantCode,
});

const overrideList = defineCommand({
  name: "list",
  summary: "list overrides: active, pending and expired",
  description: "Lists NodeGuardOverrides with who granted them, why and until when.",
  examples: ["", "-o json"],
  exitCodes: { fine: "no override is active", found: "an override is active" },
  formats: ["table", "json", "yaml"],
  source: { files: true },
  load: async () => (await import("./commands/override.ts")).listCode,
});

const revoke = defineCommand<RevokeArgs>({
  name: "revoke",
  summary: "end an override now",
  description: "Deletes a NodeGuardOverride: the group's own mode counts again at once.",
  args: { name: { description: "the override" } },
  examples: ["controlplane-2026-11-16t21-00-00z"],
  exitCodes: { fine: "revoked", found: "the override could not be deleted" },
  formats: ["table", "json"],
  source: { files: false },
  writes: { switch: "dry-run", noun: "override", done: "revoked" },
  load: async () => (await import("./commands/override.ts")).revokeCode,
});

const overrideCommands: CommandGroup = {
  name: "override",
  summary: "weaken the mode of a group for a time, in an emergency",
  description: "Grants, lists and revokes NodeGuardOverrides.",
  commands: [grant, overrideList, revoke],
};

const compileCommand = defineCommand({
  name: "compile",
  summary: "print the fallback as ValidatingAdmissionPolicies",
  description:
    "Prints the ValidatingAdmissionPolicies and bindings that usher keeps with spec.modules.node-guard.fallback, for groups with the mode Enable.",
  examples: ["--source policies/", "--cluster -o json"],
  exitCodes: { fine: "printed", found: "never" },
  formats: ["yaml", "json"],
  source: { files: true },
  load: async () => (await import("./commands/compile.ts")).compileCode,
});

const reapply = defineCommand({
  name: "reapply",
  summary: "steer existing DaemonSets away from protected nodes",
  description:
    "Steers DaemonSets that exist as new ones are steered: by a required node affinity, or by tolerations that are dropped. Their controller then deletes the pods on the excluded nodes: the output names them. Without --apply nothing is written.",
  examples: ["-A", "-n shop --apply"],
  exitCodes: { fine: "done, or nothing to do", found: "some DaemonSets could not be written" },
  formats: ["table", "json"],
  source: { files: false },
  namespaced: true,
  writes: { switch: "apply", noun: "DaemonSet", done: "steered" },
  load: async () => (await import("./commands/reapply.ts")).reapplyCode,
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
      commands: [list, learn, inventory, reach, overrideCommands, compileCommand, reapply],
    },
  ],
  load: async () => (await import("./index.ts")).nodeGuard,
};
