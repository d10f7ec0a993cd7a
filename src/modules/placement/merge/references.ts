import type { Finding, PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import { type Fact, failureOf, type Need } from "../../../core/evaluate/need.ts";
import { at, isObject, type Json } from "../../../core/json.ts";
import type { Access, Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import type { Criteria, FieldLimits } from "../criteria/criteria.ts";

/** Fields that name another object. Where that is missing the API server refuses the pod, or the pod is deleted and made again for ever. */
const NAMING = {
  nodeName: { what: "Node", resource: "nodes" },
  priorityClassName: { what: "PriorityClass", resource: "priorityclasses.scheduling.k8s.io" },
  runtimeClassName: { what: "RuntimeClass", resource: "runtimeclasses.node.k8s.io" },
} as const;

type Naming = keyof typeof NAMING;

const FIELDS: readonly Naming[] = ["nodeName", "priorityClassName", "runtimeClassName"];

/** Asked for by name, and only where a policy that wants an object names one. */
export const NAMED_ACCESS: readonly Access[] = [
  { group: "", resource: "nodes", verbs: ["get"] },
  { group: "scheduling.k8s.io", resource: "priorityclasses", verbs: ["get"] },
  { group: "node.k8s.io", resource: "runtimeclasses", verbs: ["get"] },
];

interface Asking {
  readonly ref: PolicyRef;
  readonly failure: "Ignore" | "Fail";
  readonly criteria: Criteria;
}

/** The criteria of a policy without what names something that is not there; or what must be asked first. */
export function existing(
  asking: Asking,
  limits: FieldLimits,
  { object: draft, view, facts }: Context,
  spec: Path,
  nodeSelector: () => ReadonlyMap<string, string>,
  findings: Finding[],
): Criteria | { readonly need: readonly Need[] } {
  const { criteria } = asking;
  let left = criteria;
  const needs: Need[] = [];
  for (const field of FIELDS) {
    const name = criteria[field];
    // What is not written anyway need not exist.
    if (name === undefined || limits[field] !== undefined) continue;
    const present = draft.get(...spec, field);
    if (present !== undefined && present !== null && present !== "") continue;
    const { resource } = NAMING[field];
    const need: Need = { get: { resource, name } };
    const known = view.get(resource, "", name);
    const fact: Fact | undefined = known === undefined ? facts.of(need) : { found: known, complete: true };
    if (fact === undefined) needs.push(need);
    else {
      const wrong = wrongWith(field, name, fact, nodeSelector);
      if (wrong === undefined) continue;
      left = { ...left, [field]: undefined };
      findings.push(told(asking, field, wrong, [...spec, field]));
    }
  }
  return needs.length > 0 ? { need: needs } : left;
}

interface Wrong {
  readonly outcome: "skipped" | "failed";
  readonly code: string;
  readonly why: string;
}

function wrongWith(
  field: Naming,
  name: string,
  fact: Fact,
  nodeSelector: () => ReadonlyMap<string, string>,
): Wrong | undefined {
  const { what } = NAMING[field];
  const failure = failureOf(fact);
  if (failure !== undefined) {
    return {
      outcome: "failed",
      code: "USHER-P20",
      why: `it can't be known whether there is a ${what} ${name}: ${failure}`,
    };
  }
  if (!("found" in fact)) {
    return { outcome: "skipped", code: "USHER-P20", why: `there is no ${what} ${name}` };
  }
  if (field !== "runtimeClassName") return undefined;
  const key = contradicted(at(fact.found, "scheduling", "nodeSelector"), nodeSelector());
  if (key === undefined) return undefined;
  return {
    outcome: "skipped",
    code: "USHER-P23",
    why: `RuntimeClass ${name} wants another value for nodeSelector ${key} than the pod gets`,
  };
}

/** The first key of a RuntimeClass' nodeSelector that the pod gets with another value: the API server would refuse the pod. */
function contradicted(wanted: Json | undefined, selector: ReadonlyMap<string, string>): string | undefined {
  if (!isObject(wanted)) return undefined;
  return Object.keys(wanted)
    .sort()
    .find((key) => selector.has(key) && selector.get(key) !== wanted[key]);
}

/** The nodeSelector that an object will have: its own keys, then those of the policies, the first of which counts. */
export function nodeSelectorToBe(
  own: Json | undefined,
  policies: readonly { readonly criteria: Criteria }[],
): ReadonlyMap<string, string> {
  const selector = new Map<string, string>();
  if (isObject(own)) for (const key of Object.keys(own)) selector.set(key, String(own[key]));
  for (const { criteria } of policies) {
    for (const [key, value] of criteria.nodeSelector) if (!selector.has(key)) selector.set(key, value);
  }
  return selector;
}

function told({ ref, failure }: Asking, field: Naming, { outcome, code, why }: Wrong, path: Path): Finding {
  const name = policyName(ref);
  const common = { policy: ref, rule: field, code, path };
  return failure === "Fail"
    ? { ...common, outcome: "violated", message: `policy ${name} refuses this object: ${why}` }
    : { ...common, outcome, message: `policy ${name}: ${field} was left out, ${why}`, warn: 70 };
}
