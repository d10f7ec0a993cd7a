import { describe, expect, test } from "vitest";
import { deployment, pod } from "../../../test/builders/pod.ts";
import { namespace } from "../../../test/builders/policy.ts";
import { requestFor } from "../../../test/builders/request.ts";
import type { AdmissionRequest } from "../decision/request.ts";
import { type Hook, hookWants, type NamespaceScope, type Rule, resourceMatches } from "./hook.ts";

const RULE: Rule = { groups: ["*"], versions: ["*"], resources: ["*"], operations: ["CREATE"] };

function hook(rules: readonly Partial<Rule>[], namespaces?: NamespaceScope): Hook {
  return {
    name: "h",
    module: "m",
    phase: "mutate",
    failure: "open",
    tooLarge: "allow",
    timeoutSeconds: 1,
    sideEffects: "None",
    rules: rules.map((rule) => ({ ...RULE, ...rule })),
    ...(namespaces === undefined ? {} : { namespaces }),
  };
}

const POD = requestFor(pod());
const BINDING: AdmissionRequest = { ...POD, subResource: "binding" };
const DEPLOYMENT = requestFor(deployment());
const NODE = requestFor({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
/** As the API server sends it: the namespace of a Namespace is its own name. */
const NAMESPACE = requestFor(namespace("shop"), { namespace: "shop" });
const CUSTOM = requestFor({
  apiVersion: "x.io/v2",
  kind: "Namespace",
  metadata: { name: "n", namespace: "shop" },
});

test.each<[wanted: string, resource: string, sub: string, boolean]>([
  ["pods", "pods", "", true],
  ["pods", "pods", "status", false],
  ["pods", "podtemplates", "", false],
  ["pods/binding", "pods", "binding", true],
  ["pods/binding", "pods", "", false],
  ["pods/binding", "pods", "eviction", false],
  ["pods/*", "pods", "", true],
  ["pods/*", "pods", "binding", true],
  ["pods/*", "nodes", "binding", false],
  ["*", "pods", "", true],
  ["*", "pods", "status", false],
  ["*/*", "pods", "", true],
  ["*/*", "nodes", "proxy", true],
  ["*/scale", "deployments", "scale", true],
  ["*/scale", "deployments", "", false],
  ["", "pods", "", false],
])("rule %s, request %s %s: %s", (wanted, resource, sub, expected) => {
  expect(resourceMatches(wanted, resource, sub)).toBe(expected);
});

describe("rules", () => {
  test.each<[string, readonly Partial<Rule>[], AdmissionRequest, boolean]>([
    ["no rules", [], POD, false],
    ["everything", [{}], POD, true],
    ["another operation", [{ operations: ["UPDATE", "DELETE"] }], POD, false],
    ["one of several rules", [{ resources: ["nodes"] }, { resources: ["pods"] }], POD, true],
    ["the core group", [{ groups: [""] }], POD, true],
    ["the core group, for another", [{ groups: [""] }], DEPLOYMENT, false],
    ["another group", [{ groups: ["apps"] }], POD, false],
    ["the version", [{ versions: ["v1beta1"] }], POD, false],
    ["group and resource of different rules", [{ groups: ["apps"], resources: ["pods"] }], POD, false],
    ["an unlisted subresource", [{ resources: ["pods"] }], BINDING, false],
    ["a subresource", [{ resources: ["pods/binding"] }], BINDING, true],
  ])("compare a request with %s", (_what, rules, request, expected) => {
    expect(hookWants(hook(rules), request)).toBe(expected);
  });
});

describe("scope", () => {
  test.each<[string, AdmissionRequest, cluster: boolean, namespaced: boolean]>([
    ["a pod", POD, false, true],
    ["a node", NODE, true, false],
    ["a Namespace, which is not a namespaced object", NAMESPACE, true, false],
    ["another kind that is called so", CUSTOM, false, true],
  ])("decides for %s", (_what, request, cluster, namespaced) => {
    expect(hookWants(hook([{ scope: "Cluster" }]), request)).toBe(cluster);
    expect(hookWants(hook([{ scope: "Namespaced" }]), request)).toBe(namespaced);
    expect(hookWants(hook([{}]), request)).toBe(true);
  });
});

describe("namespaces", () => {
  test.each<[string, NamespaceScope, AdmissionRequest, boolean]>([
    ["excepted", { except: ["kube-system", "shop"] }, POD, false],
    ["not excepted", { except: ["kube-system"] }, POD, true],
    ["none excepted", { except: [] }, POD, true],
    ["among the only ones", { only: ["shop"] }, POD, true],
    ["not among the only ones", { only: ["other"] }, POD, false],
    ["none", { only: [] }, POD, false],
    ["an excepted Namespace itself", { except: ["shop"] }, NAMESPACE, false],
    ["a Namespace itself, among the only ones", { only: ["shop"] }, NAMESPACE, true],
    ["a Namespace itself, not among them", { only: ["other"] }, NAMESPACE, false],
    ["a cluster-scoped object is in no namespace, so none excludes it", { only: ["shop"] }, NODE, true],
    ["nor does an exception", { except: [""] }, NODE, true],
  ])("compare the namespace of a request: %s", (_what, namespaces, request, expected) => {
    expect(hookWants(hook([{}], namespaces), request)).toBe(expected);
  });
});
