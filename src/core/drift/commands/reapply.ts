import { resourceName } from "../../decision/request.ts";
import { at, type JsonObject, stringAt } from "../../json.ts";
import { groupVersionOf } from "../../kubernetes/object.ts";
import { specPath, type WorkloadKind } from "../../kubernetes/workloads.ts";
import type { CommandCall, CommandCode, PlannedChange, WriteOutcome } from "../../module/command.ts";
import type { Module } from "../../module/module.ts";
import { changesBetween } from "../changes.ts";
import { compareInjections } from "../compare-injections.ts";
import { reapplyRequested, requestReapply, withdrawReapply } from "../drift-scan.ts";
import type { ReapplyArgs, ReapplyFlags } from "./commands.ts";
import { ofPolicy } from "./policy-argument.ts";
import { scanWorkloads } from "./scan-workloads.ts";
import { workloadName } from "./status-table.ts";
import { parseWorkload } from "./workload-argument.ts";

type Call = CommandCall<ReapplyArgs, ReapplyFlags>;

interface Chosen {
  readonly changes: readonly PlannedChange[];
  readonly notes?: readonly string[];
  readonly errors?: readonly string[];
}

/** Updates workloads, chosen by name, by policy or all that have drifted. */
export const reapplyCode: CommandCode<ReapplyArgs, ReapplyFlags> = {
  check: (call) => {
    const { policy, all } = call.flags;
    const { workload } = call.args;
    const ways = [workload.length > 0, policy !== undefined, all === true].filter(Boolean).length;
    if (ways === 0) return "specify workloads as KIND/NAME, --policy or --all";
    if (ways > 1) return "KIND/NAME, --policy and --all are mutually exclusive";
    if (workload.length > 0 && call.namespace === undefined)
      return "-A can't be combined with KIND/NAME; specify a namespace with -n";
    const named = byName(call);
    return "wrong" in named ? named.wrong : undefined;
  },
  // Named workloads can be updated without permission to read policies.
  needsView: ({ args }) => args.workload.length === 0,
  *run(call) {
    const chosen = call.args.workload.length > 0 ? byName(call) : yield* drifted(call);
    if ("wrong" in chosen) return chosen;
    return { ...chosen, parallel: call.flags.parallel, pauseSeconds: call.flags.pause };
  },
};

function byName({
  args,
  namespace = "default",
  assembly,
  module,
}: Call): Chosen | { readonly wrong: string } {
  const changes: PlannedChange[] = [];
  for (const text of args.workload) {
    const named = parseWorkload(text, assembly.installation.workloads);
    if ("wrong" in named) return named;
    changes.push(reapplyTo(module, named.workload, namespace, named.name));
  }
  return { changes };
}

/** Every workload that is not current, with one policy or with any. */
function* drifted(call: Call) {
  const { policy } = call.flags;
  const { workloads: all, unread } = yield* scanWorkloads(call);
  const workloads = policy === undefined ? all : ofPolicy(policy, all, call);
  if ("wrong" in workloads) return workloads;
  const behind = workloads.filter(({ carries }) => carries.some(({ state }) => state !== "current"));
  const table = call.assembly.installation.workloads;
  return {
    changes: behind
      .filter(({ refused }) => refused === undefined)
      .flatMap(({ object: { apiVersion, kind, namespace, name } }) => {
        const workload = table.byKind(groupVersionOf(apiVersion).group, kind);
        return workload === undefined ? [] : [reapplyTo(call.module, workload, namespace, name)];
      }),
    notes: behind.flatMap(({ object, refused }) =>
      refused === undefined ? [] : [`${workloadName(object)}: ${refused}`],
    ),
    errors: unread.map((reason) => `not scanned: ${reason}`),
  };
}

function reapplyTo(module: Module, workload: WorkloadKind, namespace: string, name: string): PlannedChange {
  const of = { resource: resourceName(workload), namespace, name };
  const annotation = module.driftScan?.annotation ?? "";
  return {
    kind: workload.kind,
    of,
    plan: (stored) =>
      stored === undefined
        ? { failed: "not found" }
        : { patch: requestReapply(stored, annotation, "cli"), of, resourceVersion: versionOf(stored) },
    outcome: (stored = {}, written = {}) => {
      if (!reapplyRequested(written, annotation)) return outcomeOf(module, workload, stored, written);
      // If left in place, the next update of the workload, by any client, would roll it out.
      const undo = { patch: withdrawReapply(annotation), of, resourceVersion: versionOf(written) };
      return {
        failed:
          "usher's webhook did not respond, nothing was changed: check that usher is running and its webhook is registered, and that the namespace is not exempt",
        undo,
      };
    },
  };
}

function outcomeOf(
  module: Module,
  workload: WorkloadKind,
  stored: JsonObject,
  written: JsonObject,
): WriteOutcome {
  const spec = specPath(workload);
  const changes = changesBetween(at(stored, ...spec), at(written, ...spec));
  if (changes.length > 0) return { changes };
  const orphaned = compareInjections(module.name, stored, written, spec).some(
    ({ state }) => state === "orphaned",
  );
  return { changes: orphaned ? ["! provenance annotation only"] : [] };
}

function versionOf(object: JsonObject): string {
  return stringAt(object, "metadata", "resourceVersion") ?? "";
}
