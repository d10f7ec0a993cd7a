import { type CommandGroup, defineCommand } from "../../module/command.ts";

export interface StatusArgs {
  readonly policy?: string;
}

export interface ReapplyArgs {
  readonly workload: readonly string[];
}

export interface ReapplyFlags {
  readonly policy?: string;
  readonly all?: boolean;
  readonly parallel: number;
  readonly pause: number;
}

const status = defineCommand<StatusArgs>({
  name: "status",
  summary: "show workloads by drift state and policy",
  description:
    "Compares each stored workload with the injections that usher would make now. Nothing is changed. current: matches the policy. stale: has an outdated injection. orphaned: has an injection of a policy that is gone or no longer selects it. missing: the policy selects it, and nothing was injected.",
  args: {
    policy: { optional: true, description: "show only this policy: NAME or NAMESPACE/NAME" },
  },
  examples: ["-A", "etcd-pool -A -o json", "-A --source examples/drift"],
  exitCodes: { fine: "all workloads are current", found: "some are not" },
  formats: ["table", "json", "yaml"],
  judges: true,
  source: { files: true },
  namespaced: true,
  load: async () => (await import("./status.ts")).statusCode,
});

const reapply = defineCommand<ReapplyArgs, ReapplyFlags>({
  name: "reapply",
  summary: "bring workloads up to date with current policies",
  description:
    "Determines the changes by a server-side dry run, then applies them workload by workload, with your own permissions, and prints the result of each: a patch adds an annotation, and usher's webhook removes it as it updates the workload. Changed templates roll out; reapply does not wait for rollouts. Current workloads are not changed.",
  args: {
    workload: { many: true, optional: true, description: "workloads as KIND/NAME, such as deployment/web" },
  },
  flags: {
    policy: {
      value: "name",
      description:
        "all workloads that are not current with this policy, even if it is deleted: NAME or NAMESPACE/NAME",
    },
    all: { description: "all workloads that are not current" },
    parallel: { value: "n", integer: [1, 99], default: 2, description: "workloads to update at once" },
    pause: {
      value: "seconds",
      integer: [0, 3_600],
      default: 0,
      description: "seconds to wait after each workload",
    },
  },
  examples: [
    "deployment/web statefulset/etcd -n shop",
    "--policy etcd-pool -A --dry-run",
    "--all -A --parallel 1 --pause 30",
  ],
  exitCodes: { fine: "done", found: "some workloads could not be updated" },
  formats: ["table", "json", "yaml"],
  source: {
    files: false,
    forbiddenHint: "ask an administrator, or name workloads: reapply KIND/NAME only needs to patch them",
  },
  namespaced: true,
  writes: { switch: "dry-run", noun: "workload", done: "renewed" },
  load: async () => (await import("./reapply.ts")).reapplyCode,
});

/** `usher MODULE status` and `usher MODULE reapply`, for a module with a drift scan. */
export function driftCommands(module: string): CommandGroup {
  return {
    name: module,
    summary: `show and reapply injections of ${module} into workloads`,
    description: `Stored workloads keep the injections of ${module} from their creation, also when the policy changes or is deleted. status shows the drift from current policies, reapply repairs it.`,
    commands: [status, reapply],
  };
}
