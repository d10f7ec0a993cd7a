import {
  DRIFT_STATES,
  type DriftState,
  type InjectedField,
  type Injection,
} from "../../core/drift/injections.ts";
import { equal, type Json } from "../../core/json.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { shortName } from "./policy-name.ts";
import type { WorkloadStatus } from "./read.ts";

/** A value that is longer says no more in a table. */
const LONGEST_VALUE = 40;

/** `Deployment shop/web` */
export function workloadName({ kind, namespace, name }: WorkloadStatus["object"]): string {
  return printable(`${kind} ${namespace}/${name}`);
}

/** One workload and policy a row, further fields on lines of their own. */
export function printStatus(workloads: readonly WorkloadStatus[], { out }: Terminal): void {
  if (workloads.length === 0) return;
  const rows = workloads.flatMap(({ object, carries, refused }) => [
    ...carries.flatMap((carried, i) =>
      carried.parts.map((part, j) => [
        i === 0 && j === 0 ? workloadName(object) : "",
        j === 0 ? carried.state : "",
        j === 0 ? policyCell(carried) : "",
        partText(carried.state, part),
      ]),
    ),
    ...(refused === undefined ? [] : [["", "", "", `! can't be renewed: ${printable(refused)}`]]),
  ]);
  for (const line of table(["WORKLOAD", "STATE", "POLICY", "FIELDS"], rows)) out(line);
}

function policyCell({ policy, gone }: Injection & { readonly gone?: true }): string {
  return printable(`${shortName(policy)}${gone === true ? " (gone)" : ""}`);
}

/** `nodeSelector.pool=etcd`, `+ tolerations: 1 element`, `~ nodeSelector.pool etcd -> nvme` */
function partText(state: DriftState, { field, has, wants }: InjectedField): string {
  const where = short(field);
  if (has !== undefined && wants !== undefined) {
    if (state === "current" || equal(has, wants)) return `${where}${said(wants)}`;
    return Array.isArray(has) && Array.isArray(wants) && has.length === wants.length
      ? `~ ${where}: ${elements(has.length)}, other than now wanted`
      : `~ ${where} ${bare(has)} -> ${bare(wants)}`;
  }
  return has === undefined ? `+ ${where}${said(wants ?? null)}` : `- ${where}${said(has)}`;
}

/** Kubernetes' longest field names, of which the beginning says all. */
function short(field: string): string {
  return printable(field.replace(/(required|preferred)DuringSchedulingIgnoredDuringExecution/, "$1"));
}

function said(value: Json): string {
  return Array.isArray(value) ? `: ${elements(value.length)}` : `=${bare(value)}`;
}

function bare(value: Json): string {
  if (Array.isArray(value)) return elements(value.length);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return printable(text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text);
}

function elements(n: number): string {
  return n === 1 ? "1 element" : `${n} elements`;
}

/** `3 workloads, by policy: 2 current, 2 stale`: one workload may carry something of several. */
export function countsText(total: number, counts: Readonly<Record<DriftState, number>>): string {
  if (total === 0) return "no workload here carries, or lacks, anything of a policy";
  const parts = DRIFT_STATES.filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${state}`);
  return `${total} ${total === 1 ? "workload" : "workloads"}, by policy: ${parts.join(", ")}`;
}
