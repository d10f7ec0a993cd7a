// Random requests, with the verdicts of webhook and fallback for each.

import type { AdmissionRequest } from "../../../src/core/decision/request.ts";
import { evaluate } from "../../../src/core/evaluate/evaluate.ts";
import { Gates } from "../../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../src/core/installation/installation.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { labelsOf, nameOf } from "../../../src/core/kubernetes/object.ts";
import { compileSelector, matches } from "../../../src/core/kubernetes/selectors/label-selector.ts";
import { Assembly } from "../../../src/core/module/assembly.ts";
import type { Change } from "../../../src/core/view/view.ts";
import { nodeGuard } from "../../../src/modules/node-guard/index.ts";
import { callOf } from "../../builders/evaluation.ts";
import { outside } from "../../builders/outside.ts";
import { requestFor } from "../../builders/request.ts";

export const NOW = Date.parse("2026-11-16T12:00:00Z");
export const INSTALLATION: Installation = {
  ...DEFAULT_INSTALLATION,
  settings: { "node-guard": { builtIn: "None", fallback: true } },
};
const GATE = { name: "OpenShiftNodeSchedulingPolicy", stage: "alpha", default: true, summary: "" } as const;

/** Namespaces by their entries in the lists. */
export interface Names {
  readonly label: string;
  readonly listed: string;
  readonly exact: string;
  readonly tenant: string;
  /** Begins with `prefix`. */
  readonly prefixed: string;
  readonly prefix: string;
  readonly nodes: { readonly guarded: readonly string[]; readonly free: string };
}

export function policyOf({ label, listed, exact, prefix }: Names, scope: "Namespace" | "Exact"): JsonObject {
  return {
    apiVersion: "scheduling.openshift.io/v1alpha1",
    kind: "NodeSchedulingPolicy",
    metadata: { name: "cluster" },
    spec: {
      groups: [
        {
          name: label,
          labelSelector: { matchExpressions: [{ key: label, operator: "Exists" }] },
          mode: "Enable",
          authorizedUsers: ["system:kube-scheduler", `${listed}/default`, `${prefix}*/default`],
          exactUsers: ["corp/alice"],
          authorizedGroups: ["sre", `system:serviceaccounts:${exact}`],
          assigners: [`${exact}/assigner`],
          workloads: [`${exact}/default`],
          emergencyUsers: ["root-of-all"],
          emergencyGroups: ["breakglass"],
          serviceAccountScope: scope,
          // Only assigning entries are compared.
          earlyRefusal: "Warn",
        },
      ],
    },
  };
}

export function nodeObjects({ label, nodes }: Names): JsonObject[] {
  const node = (name: string, labels: JsonObject) => ({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels },
  });
  return [
    ...nodes.guarded.map((name, i) => node(name, { [label]: i === 0 ? "" : "true" })),
    node(nodes.free, {}),
  ];
}

export function guardAssembly(objects: readonly JsonObject[], installation = INSTALLATION): Assembly {
  const assembly = new Assembly([nodeGuard], installation, new Gates([GATE]));
  const resources: Readonly<Record<string, string>> = {
    Node: "nodes",
    NodeSchedulingPolicy: "nodeschedulingpolicies.scheduling.openshift.io",
  };
  assembly.apply(
    objects.map((object): Change => {
      const resource = resources[stringAt(object, "kind") ?? ""] ?? "";
      return { resource, namespace: "", name: nameOf(object), object };
    }),
  );
  return assembly;
}

/** The same numbers for the same seed. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** One request of any of the subjects about any pod. */
export function randomRequest(random: () => number, names: Names, id: number): AdmissionRequest {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const namespace = pick([names.listed, names.exact, names.tenant, names.prefixed]);
  const node = pick([...names.nodes.guarded, names.nodes.free, `unknown-${id % 7}`]);
  const [username, ...groups] = pick([
    ["system:kube-scheduler"],
    ["mallory"],
    ["corp/alice"],
    ["root-of-all"],
    ["dora", "breakglass"],
    ["bob", "sre"],
    ["admin", "system:masters"],
    [`system:node:${node}`, "system:nodes"],
    [`system:node:${node}`],
    [`system:node:${names.nodes.guarded[1]}`, "system:nodes"],
    [`system:serviceaccount:${names.listed}:default`, `system:serviceaccounts:${names.listed}`],
    [`system:serviceaccount:${names.exact}:assigner`, "system:serviceaccounts"],
    [`system:serviceaccount:${names.exact}:other`, `system:serviceaccounts:${names.exact}`],
    [`system:serviceaccount:${names.prefixed}:default`],
    [`system:serviceaccount:${names.prefixed}:other`],
    [`system:serviceaccount:${names.tenant}:default`],
  ] as const);
  const userInfo = { username, groups: [...groups, "system:authenticated"] };
  if (random() < 0.4) {
    const object = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name: "bound", namespace },
      target: { apiVersion: "v1", kind: "Node", name: node },
    };
    const subresource = { resource: { group: "", version: "v1", resource: "pods" }, subResource: "binding" };
    return requestFor(object, { userInfo, namespace, ...(random() < 0.5 ? subresource : {}) });
  }
  const mirror = random() < 0.3 ? { annotations: { "kubernetes.io/config.mirror": "x" } } : {};
  const object = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `p-${id}`, namespace, ...mirror },
    spec: {
      ...(random() < 0.85 ? { nodeName: node } : {}),
      serviceAccountName: pick(["default", "assigner"]),
      automountServiceAccountToken: false,
      containers: [{ name: "c", image: "app:1" }],
    },
  };
  return requestFor(object, { userInfo, namespace });
}

/** The webhook's verdict, while it is up. */
export async function webhookRefuses(request: AdmissionRequest, assembly: Assembly): Promise<boolean> {
  const world = outside({
    fact: (need) => {
      const found = "get" in need ? assembly.view.get(need.get.resource, "", need.get.name) : undefined;
      return found === undefined ? { absent: "NotFound" } : { found, complete: true };
    },
  });
  const { denials } = await evaluate(callOf(assembly, request, { phase: "validate", now: NOW }), world);
  return denials.length > 0;
}

/** The policies' verdict, by their own expressions. */
export function fallbackRefuses(
  request: AdmissionRequest,
  compiled: readonly JsonObject[],
  nodes: readonly JsonObject[],
): boolean {
  const resource =
    request.subResource === ""
      ? request.resource.resource
      : `${request.resource.resource}/${request.subResource}`;
  const policies = compiled.filter((one) => one["kind"] === "ValidatingAdmissionPolicy");
  return policies.some((policy) => {
    const rules = listAt(policy, "spec", "matchConstraints", "resourceRules");
    if (!rules.some((rule) => listAt(rule, "resources").includes(resource))) return false;
    const binding = compiled.find(
      (one) => one["kind"] === "ValidatingAdmissionPolicyBinding" && nameOf(one) === nameOf(policy),
    );
    const excluded = listAt(
      binding,
      "spec",
      "matchResources",
      "namespaceSelector",
      "matchExpressions",
      0,
      "values",
    );
    if (binding === undefined || excluded.includes(request.namespace)) return false;
    if (!listAt(binding, "spec", "validationActions").includes("Deny")) return false;
    const { selector } = compileSelector(at(binding, "spec", "paramRef", "selector"), []);
    const params = nodes.filter((node) => matches(selector, labelsOf(node)));
    return params.some((node) => {
      const holds = (item: JsonObject) => celHolds(stringAt(item, "expression") ?? "", request, node);
      const conditions = listAt(policy, "spec", "matchConditions").filter(isObject);
      return conditions.every(holds) && !listAt(policy, "spec", "validations").filter(isObject).every(holds);
    });
  });
}

/** The small subset of CEL that the expressions use, as JavaScript: `in` of a list searches for an item. */
function celHolds(expression: string, request: AdmissionRequest, params: JsonObject): boolean {
  const script = expression
    .replaceAll(/([\w.]+)\.\?(\w+)\.orValue\(("[^"]*"|\[\]|\{\})\)/g, 'optional($1, "$2", $3)')
    .replaceAll(/\[("[^\]]*")\](?!\.)/g, (whole, items: string) =>
      items.includes("[") ? whole : `items([${items}])`,
    )
    .replaceAll(".exists(g, ", ".exists((g) => ")
    .replaceAll("request.userInfo.username.matches(", "matchesPattern(request.userInfo.username, ");
  const optional = (value: JsonObject, key: string, other: unknown): unknown => {
    const found = value[key] ?? other;
    return Array.isArray(found) ? items(found as string[]) : found;
  };
  const matchesPattern = (text: string, pattern: string) => new RegExp(pattern, "u").test(text);
  const judge = new Function(
    "request",
    "object",
    "params",
    "optional",
    "items",
    "matchesPattern",
    `return (${script});`,
  );
  return judge(request, request.object, params, optional, items, matchesPattern) === true;
}

function items(list: readonly string[]) {
  return new Proxy(
    { exists: (holds: (item: string) => boolean) => list.some(holds) },
    { has: (_target, key) => typeof key === "string" && list.includes(key) },
  );
}

/**
 * Requests that only the webhook refuses: an unknown node, and with the scope Exact a binding, which does not name the
 * pod's account.
 */
export function isDocumented(
  request: AdmissionRequest,
  nodes: readonly JsonObject[],
  exact: boolean,
): boolean {
  const target =
    stringAt(request.object, "target", "name") ?? stringAt(request.object, "spec", "nodeName") ?? "";
  const binding = stringAt(request.object, "kind") === "Binding";
  return !nodes.some((node) => nameOf(node) === target) || (exact && binding);
}
