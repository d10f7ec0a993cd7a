import { parseWorkload } from "../../core/drift/commands/workload-argument.ts";
import { resourceName } from "../../core/evaluate/request.ts";
import type { JsonObject } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { didYouMean } from "../../core/policy/suggest.ts";
import { CallError } from "../exit.ts";
import type { OpenedWorld } from "./open-world.ts";

/** Resources of the whole cluster that can be named, as kubectl spells them. */
const CLUSTER_KINDS: Readonly<Record<string, string>> = {
  node: "nodes",
  nodes: "nodes",
  no: "nodes",
  namespace: "namespaces",
  namespaces: "namespaces",
  ns: "namespaces",
};

/** The stored object that `KIND/NAME` names. */
export function findObject(text: string, namespace: string, { world }: OpenedWorld): JsonObject {
  const [kind = "", name = ""] = text.split("/");
  const whole = CLUSTER_KINDS[kind.toLowerCase()];
  if (whole !== undefined) {
    const found = world.get(whole, "", name);
    if (found !== undefined) return found;
    throw missing(text, name, world.list(whole).map(nameOf), "in the cluster");
  }
  const named = parseWorkload(text, world.assembly.installation.workloads);
  if ("wrong" in named) throw new CallError(`${named.wrong}, node, namespace`);
  const resource = resourceName(named.workload);
  const found = world.get(resource, namespace, name);
  if (found !== undefined) return found;
  const all = world.list(resource);
  const elsewhere = all.find((one) => nameOf(one) === name);
  if (elsewhere !== undefined)
    throw new CallError(
      `${text}: not in namespace ${namespace}, but in ${namespaceOf(elsewhere)}: add -n ${namespaceOf(elsewhere)}`,
    );
  throw missing(
    text,
    name,
    all.filter((one) => namespaceOf(one) === namespace).map(nameOf),
    `in namespace ${namespace}`,
  );
}

function missing(text: string, name: string, known: readonly string[], where: string): CallError {
  const hint = didYouMean(name, known);
  return new CallError(`${text}: there is no such object ${where}${hint === undefined ? "" : `; ${hint}`}`);
}
