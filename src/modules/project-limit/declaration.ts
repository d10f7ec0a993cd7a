import { defineCommand, type InputDocuments, type InputText } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";
import { OPERAND } from "./operand-names.ts";

const name = "project-limit";

export interface ImportArgs {
  readonly file: InputDocuments;
}

export interface BackfillArgs {
  readonly file: InputText;
}

export interface UsageFlags {
  readonly atLimit?: boolean;
}

const usage = defineCommand<object, UsageFlags>({
  name: "usage",
  summary: "show how many projects each user has, and may have",
  description:
    "Counts the namespaces of each requester and compares them with the ProjectRequestLimit named cluster. Groups of users are known from requests alone: where a limit depends on them, it is that of the last admitted creation, or unknown.",
  flags: { atLimit: { description: "only users at or over their limit" } },
  examples: ["", "--at-limit -o json", "--source examples/project-limit"],
  exitCodes: { fine: "no user is over the limit", found: "some users are over their limit" },
  formats: ["table", "json", "yaml"],
  judges: true,
  source: { files: true, leaderReads: true },
  load: async () => (await import("./commands/usage-command.ts")).usageCode,
});

const importConfiguration = defineCommand<ImportArgs>({
  name: "import",
  summary: "convert the configuration of OpenShift's plugin to a ProjectRequestLimit",
  description:
    "Reads a ProjectRequestLimitConfig, as a document of its own or inside a master-config.yaml, and prints the custom resource. Nothing is changed.",
  args: { file: { file: "yaml", description: "the configuration, - for standard input" } },
  examples: ["examples/configurations/master-config.yaml", "limits.yaml -o json"],
  exitCodes: { fine: "converted", found: "never" },
  formats: ["table", "json", "yaml"],
  load: async () => (await import("./commands/import-command.ts")).importCode,
});

const backfill = defineCommand<BackfillArgs>({
  name: "backfill",
  summary: "set the requester of namespaces that exist already",
  description:
    "Sets the annotation openshift.io/requester of namespaces that have none, from a CSV file of namespace,user or from an audit log. Shows what would change; writes with --apply. Your user must be exempt or a trusted annotator of the ProjectRequestLimit.",
  args: {
    file: {
      file: "text",
      description: "lines of namespace,user, or an audit log in JSON, - for standard input",
    },
  },
  examples: ["owners.csv", "/var/log/kube-apiserver/audit.log --apply"],
  exitCodes: { fine: "done, or nothing to do", found: "some namespaces could not be written" },
  formats: ["table", "json"],
  source: { files: false },
  writes: { switch: "apply", noun: "namespace", done: "annotated" },
  load: async () => (await import("./commands/backfill-command.ts")).backfillCode,
});

export const declaration: ModuleDeclaration = {
  name,
  summary: "limits how many projects and namespaces a user may have",
  commands: [
    {
      name,
      summary: "show projects by user, import limits, set requesters",
      description: "Shows who has how many projects, and brings existing limits and namespaces along.",
      commands: [usage, importConfiguration, backfill],
    },
  ],
  load: async () => (await import("./index.ts")).projectLimit,
  operand: {
    ...OPERAND,
    summary: "Judges ProjectRequests by the limits of a file, for the operator of ProjectRequestLimit.",
    aggregated: {
      variable: OPERAND.transportVariable,
      group: OPERAND.apiGroup,
      version: OPERAND.apiVersion,
      resource: OPERAND.reviews,
    },
    load: async () => (await import("./operator/operand-module.ts")).operandModule,
  },
};
