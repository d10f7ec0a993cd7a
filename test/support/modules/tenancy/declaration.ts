import { defineCommand, type InputDocuments, type InputText } from "../../../../src/core/module/command.ts";
import type { ModuleDeclaration } from "../../../../src/core/module/declaration.ts";

export interface ImportArgs {
  readonly file: InputDocuments;
}

export interface BackfillArgs {
  readonly file: InputText;
}

export interface ReportFlags {
  readonly sort: "name" | "pods";
  readonly minPods: number;
  readonly owner: readonly string[];
  readonly unowned?: boolean;
}

export interface GrantFlags {
  readonly to?: string;
}

const TEXT = { summary: "made for a test", description: "Made for a test." };

const importConfiguration = defineCommand<ImportArgs>({
  ...TEXT,
  name: "import",
  args: { file: { file: "yaml", description: "the configuration to convert" } },
  examples: ["tenants.yaml"],
  exitCodes: { fine: "converted", found: "never" },
  formats: ["yaml", "json"],
  load: async () => (await import("./commands.ts")).importCode,
});

const backfill = defineCommand<BackfillArgs>({
  ...TEXT,
  name: "backfill",
  args: { file: { file: "text", description: "lines of namespace,user" } },
  examples: ["owners.csv", "owners.csv --apply"],
  exitCodes: { fine: "done", found: "some namespaces could not be written" },
  formats: ["table", "json"],
  source: { files: false },
  writes: { switch: "apply", noun: "namespace", done: "stamped" },
  load: async () => (await import("./commands.ts")).backfillCode,
});

const report = defineCommand<object, ReportFlags>({
  ...TEXT,
  name: "report",
  flags: {
    sort: { value: "key", choices: ["name", "pods"], default: "name", description: "order of the rows" },
    minPods: { value: "n", integer: [0, 1_000], default: 0, description: "leave out smaller namespaces" },
    owner: { value: "user", short: "u", many: true, description: "only namespaces of this user" },
    unowned: { description: "only namespaces without an owner" },
  },
  examples: ["--source cluster/ --sort pods", "--cluster"],
  exitCodes: { fine: "all namespaces have an owner", found: "some have none" },
  formats: ["table", "json", "yaml"],
  source: { files: true },
  load: async () => (await import("./commands.ts")).reportCode,
});

const grant = defineCommand<object, GrantFlags>({
  ...TEXT,
  name: "grant",
  flags: { to: { value: "user", description: "the new owner" } },
  examples: ["--to alice"],
  exitCodes: { fine: "granted", found: "could not be written" },
  formats: ["table"],
  source: { files: false },
  namespaced: true,
  writes: { switch: "dry-run", noun: "grant", done: "written" },
  load: async () => (await import("./commands.ts")).grantCode,
});

/** A module with commands of every form. */
export const declarations: readonly ModuleDeclaration[] = [
  {
    name: "tenancy",
    summary: "counts pods of tenants",
    commands: [
      {
        ...TEXT,
        name: "tenancy",
        commands: [importConfiguration, backfill, report, { ...TEXT, name: "override", commands: [grant] }],
      },
    ],
    load: async () => (await import("./module.ts")).tenancy,
  },
];
