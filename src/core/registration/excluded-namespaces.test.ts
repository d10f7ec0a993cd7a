import { describe, expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { at, listAt, stringAt } from "../json.ts";
import { type Hook, hookWants, type NamespaceScope } from "../module/hook.ts";
import { safeguard } from "../module/safeguard.ts";
import { webhookConfigurations } from "./webhooks.ts";

const INSTALLATION = { ...DEFAULT_INSTALLATION, excluded: ["vendor", "billing"] };

function hook(failure: Hook["failure"], namespaces?: NamespaceScope, more: Partial<Hook> = {}): Hook {
  return {
    name: "guard",
    module: "guard",
    phase: "validate",
    rules: [{ groups: [""], versions: ["v1"], resources: ["pods", "namespaces"], operations: ["CREATE"] }],
    failure,
    tooLarge: "deny",
    timeoutSeconds: 5,
    sideEffects: "None",
    ...(namespaces === undefined ? {} : { namespaces }),
    ...more,
  };
}

function wants(one: Hook, resource: string, namespace: string): boolean {
  const request = {
    operation: "CREATE",
    subResource: "",
    namespace,
    resource: { group: "", version: "v1", resource },
  };
  return hookWants(one, request as never);
}

describe.each<[string, Hook]>([
  ["a fail-open hook for all", hook("open")],
  ["a fail-closed hook for all", hook("closed")],
  ["a fail-closed hook with a fail-open shadow hook", hook("closed", undefined, { openShadow: true })],
  ["a fail-open hook that has exceptions", hook("open", { except: ["x"] })],
  ["a hook for some, excluded among them", hook("open", { only: ["vendor", "shop"] })],
])("%s", (_what, declared) => {
  const { hooks } = safeguard([declared], INSTALLATION);

  test("matches nothing in an excluded namespace, and as before elsewhere", () => {
    for (const resource of ["pods", "namespaces"]) {
      expect(hooks.some((one) => wants(one, resource, "vendor"))).toBe(false);
      expect(hooks.some((one) => wants(one, resource, "billing"))).toBe(false);
    }
    expect(hooks.some((one) => wants(one, "pods", "shop"))).toBe(true);
  });

  test("its webhooks select the namespaces by the name that the API server sets", () => {
    const made = webhookConfigurations([declared], INSTALLATION, { endpoint: { url: "https://u" } });
    const entries = listAt(made.validating, "webhooks");
    expect(entries.length).toBeGreaterThan(0);
    for (const entry of entries) {
      const expression = at(entry, "namespaceSelector", "matchExpressions", 0);
      const values = listAt(expression, "values");
      expect(stringAt(expression, "key")).toBe("kubernetes.io/metadata.name");
      if (stringAt(expression, "operator") === "In") expect(values).not.toContain("vendor");
      else expect(values).toEqual(expect.arrayContaining(["billing", "vendor"]));
    }
  });
});

test("a hook for excluded namespaces alone is not registered: an empty selector would match all", () => {
  const only = hook("open", { only: ["vendor"] });
  expect(safeguard([only], INSTALLATION).hooks.flatMap(({ rules }) => rules)).toEqual([]);
  const made = webhookConfigurations([only], INSTALLATION, { endpoint: { url: "https://u" } });
  expect(listAt(made.validating, "webhooks")).toEqual([]);
});

test("cluster-scoped objects are matched as before", () => {
  const nodes: Hook = {
    ...hook("open"),
    rules: [
      { groups: [""], versions: ["v1"], resources: ["nodes"], operations: ["CREATE"], scope: "Cluster" },
    ],
  };
  expect(safeguard([nodes], INSTALLATION).hooks.some((one) => wants(one, "nodes", ""))).toBe(true);
});
