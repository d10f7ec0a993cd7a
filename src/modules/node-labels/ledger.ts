import { type NeedMore, need } from "../../core/decision.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import type { Need } from "../../core/need.ts";
import type { Plan, PlanContext } from "../../core/plan.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";
import type { RuleBook } from "./book.ts";
import type { RuledTaint } from "./rule.ts";

/**
 * The taints that rules have set so far, in usher's own namespace. The note on a node can't be trusted for taints: a kubelet may write
 * annotations of its node but not take taints off it, and a forged note would make usher do that for it. So usher takes off only what
 * the note and the ledger both say.
 */
const NAME = "usher-node-labels";
const DATA = "taints";

/** As many as a ConfigMap holds with ease; the oldest go first, and what is forgotten stays on its nodes. */
const MOST = 2_000;

/** `dedicated=edge:NoSchedule` */
export function taintText({ key, value, effect }: RuledTaint): string {
  return `${key}=${value}:${effect}`;
}

export function ledgerNeed(namespace: string): Need {
  return { get: { resource: "configmaps", namespace, name: NAME }, live: true };
}

/** The taints of the ledger; `undefined` where it could not be read. */
export function ledgerIn(context: PlanContext, namespace: string): ReadonlySet<string> | undefined {
  const fact = context.facts.of(ledgerNeed(namespace));
  if (fact === undefined || "failed" in fact) return undefined;
  return new Set("found" in fact && isObject(fact.found) ? written(fact.found) : []);
}

function written(configMap: JsonObject): string[] {
  const text = stringAt(configMap, "data", DATA) ?? "";
  return text.split("\n").filter((line) => line !== "");
}

/** Writes down the taints of all rules before they are forgotten. */
export function planLedger(book: RuleBook, namespace: string, context: PlanContext): Plan | NeedMore {
  const taints = new Set<string>();
  for (const rule of book.rules) for (const taint of rule.taints) taints.add(taintText(taint));
  if (taints.size === 0) return { writes: [] };
  const asked = ledgerNeed(namespace);
  const fact = context.facts.of(asked);
  if (fact === undefined) return need(asked);
  const known = ledgerIn(context, namespace);
  if (known === undefined) throw new Error("the ledger of taints could not be read");
  if ([...taints].every((taint) => known.has(taint))) return { writes: [] };
  const all = [...[...known].filter((taint) => !taints.has(taint)), ...taints].slice(-MOST);
  const object: JsonObject = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: NAME, namespace, labels: OWN_LABELS },
    data: { [DATA]: all.join("\n") },
  };
  // What it holds was read, so it must not be written over what somebody wrote since.
  const before = "found" in fact ? fact.found : undefined;
  return { writes: [{ apply: object, resourceVersion: stringAt(before, "metadata", "resourceVersion") }] };
}
