import { resourceName } from "../../core/evaluate/request.ts";
import { POD, type WorkloadKind, type WorkloadTable } from "../../core/kubernetes/workloads.ts";
import { didYouMean } from "../../core/policy/suggest.ts";
import { CallError } from "../exit.ts";

/** One workload to renew. */
export interface Chosen {
  readonly workload: WorkloadKind;
  readonly namespace: string;
  readonly name: string;
}

/** As kubectl has them. */
const SHORT: Readonly<Record<string, string>> = {
  po: "pods",
  rc: "replicationcontrollers",
  rs: "replicasets",
  deploy: "deployments",
  sts: "statefulsets",
  ds: "daemonsets",
  cj: "cronjobs",
};

/** The workload that `KIND/NAME` names, the kind as kubectl takes it: `deployment`, `deployments.apps`, `deploy`. */
export function chosenFrom(text: string, namespace: string, table: WorkloadTable): Chosen {
  const [, kind = "", name = ""] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (name === "") throw new CallError(`${text}: write it as KIND/NAME, such as deployment/web`);
  const wanted = SHORT[kind.toLowerCase()] ?? kind.toLowerCase();
  const workload = table.all.find((one) => spellings(one).includes(wanted));
  if (workload === undefined) {
    const kinds = table.all.map((one) => one.kind.toLowerCase());
    const hint = didYouMean(wanted, kinds) ?? `there are: ${kinds.join(", ")}`;
    throw new CallError(`${text}: usher knows no workloads of the kind ${kind}; ${hint}`);
  }
  return { workload, namespace, name };
}

function spellings(workload: WorkloadKind): string[] {
  const { kind, resource, group } = workload;
  const plain = [kind.toLowerCase(), resource, resourceName(workload)];
  return group === POD.group ? plain : [...plain, `${kind.toLowerCase()}.${group}`];
}
