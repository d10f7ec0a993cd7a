import { driftCommands } from "../../core/drift/commands/commands.ts";
import { type CommandGroup, defineCommand, type InputDocuments } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";

const name = "placement";

interface ImportArgs {
  readonly file: readonly InputDocuments[];
}

const IMPORT_EXITS = { fine: "all was converted", found: "something was not; stderr says what and why" };

const kyverno = defineCommand<ImportArgs>({
  name: "kyverno",
  summary: "convert policies of kyverno that add scheduling criteria",
  description:
    "Prints ClusterPodSchedulingPolicies for rules of kyverno that add tolerations, node selectors or node affinity. A rule is converted whole or not at all. What is not converted, and how answers differ, is on stderr. Nothing is applied.",
  args: { file: { many: true, file: "yaml", description: "policies of kyverno; - for standard input" } },
  examples: ["examples/import/add-tolerations.yaml", "policies/ > usher-policies.yaml"],
  exitCodes: IMPORT_EXITS,
  formats: ["yaml", "json"],
  load: async () => (await import("./import/kyverno.ts")).kyvernoCode,
});

const inTree = defineCommand<ImportArgs>({
  name: "in-tree",
  summary: "convert node selectors and tolerations of OpenShift and admission plugins",
  description:
    "Prints ClusterPodSchedulingPolicies for spec.defaultNodeSelector of OpenShift's Scheduler, for the namespace annotations of OpenShift and of the plugins PodNodeSelector and PodTolerationRestriction, and for the configuration of these plugins. What is not converted, and how answers differ, is on stderr. Nothing is applied.",
  args: {
    file: {
      many: true,
      file: "yaml",
      description: "Namespaces, the Scheduler, configuration; - for standard input",
    },
  },
  examples: ["examples/import/namespaces.yaml", "scheduler.yaml namespaces.yaml > usher-policies.yaml"],
  exitCodes: IMPORT_EXITS,
  formats: ["yaml", "json"],
  load: async () => (await import("./import/in-tree.ts")).inTreeCode,
});

const imports: CommandGroup = {
  name: "import",
  summary: "convert policies of other programs",
  description:
    "Converts policies of other programs to those of usher, where the meaning is the same, and names the rest with the reason.",
  commands: [kyverno, inTree],
};

export const declaration: ModuleDeclaration = {
  name,
  summary: "writes scheduling criteria into pods and pod templates by policy",
  commands: [driftCommands(name), imports],
  load: async () => (await import("./index.ts")).placement,
};
