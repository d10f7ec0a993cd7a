import { defineCommand, type InputDocuments } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";

export interface ScanArgs {
  readonly file: readonly InputDocuments[];
}

export interface ScanFlags {
  readonly policy: string;
  readonly against?: string;
  readonly fix?: boolean;
}

const scan = defineCommand<ScanArgs, ScanFlags>({
  name: "scan",
  summary: "show which workloads violate a level of the Pod Security Standards",
  description:
    "Judges the templates of all workloads and their pods, also of CronJobs and of workloads without replicas, and shows what would be refused, by the topmost owner. Without --source or --cluster, the named files are judged. With --against only what differs between both policies is shown: what an upgrade would change. Nothing is changed.",
  args: {
    file: { many: true, optional: true, file: "yaml", description: "manifests to judge; - for stdin" },
  },
  flags: {
    policy: {
      value: "level:version",
      default: "restricted:latest",
      description: "level and version, such as restricted:v1.37",
    },
    against: { value: "level:version", description: "show only what differs from this policy" },
    fix: { description: "print the manifests with the fixes applied" },
  },
  examples: [
    "--source examples/pod-os --policy restricted:v1.37",
    "deployment.yaml --fix",
    "--cluster -A --policy restricted:v1.37 --against restricted:v1.34",
  ],
  exitCodes: { fine: "no workload violates the policy", found: "some do" },
  formats: ["table", "json", "yaml"],
  judges: true,
  source: { files: true, objectsOnly: true },
  namespaced: "live",
  load: async () => (await import("./scan/scan-command.ts")).scanCode,
});

export const declaration: ModuleDeclaration = {
  name: "pod-os",
  summary: "knows the OS of a pod at admission, and judges Pod Security by it",
  commands: [
    {
      name: "pod-security",
      summary: "show which workloads a level of the Pod Security Standards would refuse",
      description:
        "Judges workloads by the Pod Security Standards, in files or in a cluster, before a namespace is labelled or a cluster is upgraded.",
      commands: [scan],
    },
  ],
  load: async () => (await import("./index.ts")).podOS,
};
