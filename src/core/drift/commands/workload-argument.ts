import { resourceName } from "../../decision/request.ts";
import { POD, type WorkloadKind, type WorkloadTable } from "../../kubernetes/workloads.ts";
import { didYouMean } from "../../suggest.ts";

export interface NamedWorkload {
  readonly workload: WorkloadKind;
  readonly name: string;
}

/** kubectl's short names. */
const SHORT: Readonly<Record<string, string>> = {
  po: "pods",
  rc: "replicationcontrollers",
  rs: "replicasets",
  deploy: "deployments",
  sts: "statefulsets",
  ds: "daemonsets",
  cj: "cronjobs",
};

/** The workload that `KIND/NAME` names, the kind as kubectl accepts it: `deployment`, `deployments.apps`, `deploy`. */
export function parseWorkload(
  text: string,
  table: WorkloadTable,
): NamedWorkload | { readonly wrong: string } {
  const [, kind = "", name = ""] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (name === "") return { wrong: `${text}: must be KIND/NAME, such as deployment/web` };
  const wanted = SHORT[kind.toLowerCase()] ?? kind.toLowerCase();
  const workload = table.all.find((one) => spellings(one).includes(wanted));
  if (workload !== undefined) return { workload, name };
  const kinds = table.all.map((one) => one.kind.toLowerCase());
  const hint = didYouMean(wanted, kinds) ?? `known kinds: ${kinds.join(", ")}`;
  return { wrong: `${text}: unknown workload kind ${kind}; ${hint}` };
}

function spellings(workload: WorkloadKind): string[] {
  const { kind, resource, group } = workload;
  const plain = [kind.toLowerCase(), resource, resourceName(workload)];
  return group === POD.group ? plain : [...plain, `${kind.toLowerCase()}.${group}`];
}
