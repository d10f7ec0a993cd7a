import { equal, type Json } from "../../json.ts";
import {
  DRIFT_STATES,
  type InjectedField,
  type Injection,
  type InjectionState,
} from "../compare-injections.ts";
import { shortName } from "./policy-argument.ts";
import type { WorkloadStatus } from "./scan-workloads.ts";

/** Longer values are cut, so that the columns stay readable. */
const MAX_VALUE_LENGTH = 40;

export const STATUS_COLUMNS = ["WORKLOAD", "STATE", "POLICY", "FIELDS"];

/** `Deployment shop/web` */
export function workloadName({ kind, namespace, name }: WorkloadStatus["object"]): string {
  return `${kind} ${namespace}/${name}`;
}

/** One row per workload and policy, further fields on separate rows. */
export function statusRows(workloads: readonly WorkloadStatus[]): string[][] {
  return workloads.flatMap(({ object, carries, refused }) => [
    ...carries.flatMap((injection, i) =>
      injection.parts.map((field, j) => [
        i === 0 && j === 0 ? workloadName(object) : "",
        j === 0 ? injection.state : "",
        j === 0 ? policyCell(injection) : "",
        fieldCell(injection.state, field),
      ]),
    ),
    ...(refused === undefined ? [] : [["", "", "", `! can't be reapplied: ${refused}`]]),
  ]);
}

function policyCell({ policy, gone }: Injection & { readonly gone?: true }): string {
  return `${shortName(policy)}${gone === true ? " (gone)" : ""}`;
}

/** The fields of one injection. */
export function fieldCells({ state, parts }: Injection): string[] {
  return parts.map((field) => fieldCell(state, field));
}

/** `nodeSelector.pool=etcd`, `+ tolerations: 1 element`, `~ nodeSelector.pool etcd -> nvme` */
function fieldCell(state: InjectionState, { field, has, wants }: InjectedField): string {
  const where = abbreviate(field);
  if (has !== undefined && wants !== undefined) {
    if (state === "current" || equal(has, wants)) return `${where}${assignment(wants)}`;
    return Array.isArray(has) && Array.isArray(wants) && has.length === wants.length
      ? `~ ${where}: ${elements(has.length)} outdated`
      : `~ ${where} ${valueText(has)} -> ${valueText(wants)}`;
  }
  return has === undefined ? `+ ${where}${assignment(wants ?? null)}` : `- ${where}${assignment(has)}`;
}

function abbreviate(field: string): string {
  return field.replace(/(required|preferred)DuringSchedulingIgnoredDuringExecution/, "$1");
}

function assignment(value: Json): string {
  return Array.isArray(value) ? `: ${elements(value.length)}` : `=${valueText(value)}`;
}

function valueText(value: Json): string {
  if (Array.isArray(value)) return elements(value.length);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}

function elements(n: number): string {
  return n === 1 ? "1 element" : `${n} elements`;
}

/** `3 workloads, by policy: 2 current, 2 stale`: one workload may have injections of several policies. */
export function countsText(total: number, counts: Readonly<Record<InjectionState, number>>): string {
  if (total === 0) return "no workloads are affected by a policy";
  const parts = DRIFT_STATES.filter((state) => counts[state] > 0).map((state) => `${counts[state]} ${state}`);
  return `${total} ${total === 1 ? "workload" : "workloads"}, by policy: ${parts.join(", ")}`;
}
