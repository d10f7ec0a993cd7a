import { describe, expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { at, type Json, stringAt } from "../json.ts";
import type { Hook, Rule } from "../module/hook.ts";
import { webhookConfigurations } from "./webhooks.ts";

const SERVICE = { endpoint: { service: { name: "usher", namespace: "usher-system", port: 8443 } } };

const PODS: Rule = { groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] };
const DEPLOYMENTS: Rule = {
  groups: ["apps"],
  versions: ["v1"],
  resources: ["deployments"],
  operations: ["UPDATE", "CREATE"],
};

function hook(name: string, more: Partial<Hook> = {}): Hook {
  return {
    name,
    module: name,
    phase: "mutate",
    rules: [PODS],
    failure: "open",
    tooLarge: "allow",
    timeoutSeconds: 5,
    sideEffects: "None",
    ...more,
  };
}

function entries(hooks: readonly Hook[], phase: "mutating" | "validating" = "mutating"): readonly Json[] {
  const list = at(webhookConfigurations(hooks, DEFAULT_INSTALLATION, SERVICE)[phase], "webhooks");
  return Array.isArray(list) ? list : [];
}

function names(hooks: readonly Hook[]): unknown[] {
  return entries(hooks).map((entry) => at(entry, "name"));
}

test("two hooks alike become one entry, whole", () => {
  const hooks = [
    hook("placement", { rules: [DEPLOYMENTS, PODS], namespaces: { except: ["kube-system", "a"] } }),
    hook("pod-os", { namespaces: { except: ["a", "kube-system"] } }),
  ];
  expect(webhookConfigurations(hooks, DEFAULT_INSTALLATION, { ...SERVICE, caBundle: "Q0E=" })).toEqual({
    mutating: {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "usher", annotations: { "usher.dev/openable": "" } },
      webhooks: [
        {
          name: "placement.pod-os.usher.dev",
          admissionReviewVersions: ["v1"],
          clientConfig: {
            service: {
              namespace: "usher-system",
              name: "usher",
              path: "/mutate/placement/pod-os",
              port: 8443,
            },
            caBundle: "Q0E=",
          },
          matchPolicy: "Equivalent",
          rules: [
            {
              apiGroups: [""],
              apiVersions: ["v1"],
              resources: ["pods"],
              operations: ["CREATE"],
              scope: "*",
            },
            {
              apiGroups: ["apps"],
              apiVersions: ["v1"],
              resources: ["deployments"],
              operations: ["CREATE", "UPDATE"],
              scope: "*",
            },
          ],
          namespaceSelector: {
            matchExpressions: [
              { key: "kubernetes.io/metadata.name", operator: "NotIn", values: ["a", "kube-system"] },
            ],
          },
          failurePolicy: "Ignore",
          timeoutSeconds: 5,
          sideEffects: "None",
          reinvocationPolicy: "Never",
        },
      ],
    },
    validating: {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: "usher", annotations: { "usher.dev/openable": "" } },
      webhooks: [],
    },
    notes: [],
  });
});

test("registers a fail-closed validating hook with all fields", () => {
  const conditions = [{ name: "not-mirror", expression: "!('x' in object.metadata.annotations)" }];
  const given = hook("guard", {
    phase: "validate",
    failure: "closed",
    rules: [{ ...PODS, resources: ["pods/binding"], scope: "Namespaced" }],
    namespaces: { only: ["shop"] },
    conditions,
    sideEffects: "NoneOnDryRun",
    reinvocation: "IfNeeded",
  });
  const options = { endpoint: { url: "https://localhost:8443/" } };
  expect(webhookConfigurations([given], DEFAULT_INSTALLATION, options).validating["webhooks"]).toEqual([
    {
      name: "guard.usher.dev",
      admissionReviewVersions: ["v1"],
      clientConfig: { url: "https://localhost:8443/validate/guard" },
      matchPolicy: "Equivalent",
      rules: [
        {
          apiGroups: [""],
          apiVersions: ["v1"],
          resources: ["pods/binding"],
          operations: ["CREATE"],
          scope: "Namespaced",
        },
      ],
      namespaceSelector: {
        matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values: ["shop"] }],
      },
      matchConditions: conditions,
      failurePolicy: "Fail",
      timeoutSeconds: 5,
      sideEffects: "NoneOnDryRun",
    },
  ]);
});

describe("hooks that differ stay apart, in their order", () => {
  const differences: [string, Partial<Hook>][] = [
    ["failure", { failure: "closed" }],
    ["timeout", { timeoutSeconds: 6 }],
    ["namespaces", { namespaces: { only: ["shop"] } }],
    ["conditions", { conditions: [{ name: "c", expression: "true" }] }],
    ["side effects", { sideEffects: "NoneOnDryRun" }],
    ["reinvocation", { reinvocation: "IfNeeded" }],
  ];
  test.each(differences)("%s", (_name, difference) => {
    expect(names([hook("a", difference), hook("b"), hook("c", difference)])).toEqual([
      "a.c.usher.dev",
      "b.usher.dev",
    ]);
  });
  test("by phase", () => {
    const hooks = [hook("a"), hook("b", { phase: "validate" })];
    expect(names(hooks)).toEqual(["a.usher.dev"]);
    expect(entries(hooks, "validating").map((entry) => at(entry, "name"))).toEqual(["b.usher.dev"]);
  });
});

test("an absent field is equivalent to its default", () => {
  const spoken = hook("b", { namespaces: { except: [] }, conditions: [], reinvocation: "Never" });
  expect(names([hook("a"), spoken])).toEqual(["a.b.usher.dev"]);
});

test("names of entries are unique, and an entry ends where its name would become too long", () => {
  expect(names([hook("a-b", { timeoutSeconds: 9 }), hook("a"), hook("b")])).toEqual([
    "a-b.usher.dev",
    "a.b.usher.dev",
  ]);
  const long = Array.from({ length: 5 }, (_, i) => hook(`${"x".repeat(62)}${i}`));
  expect(entries(long).map((entry) => at(entry, "clientConfig", "service", "path"))).toEqual([
    `/mutate/${long
      .slice(0, 3)
      .map(({ name }) => name)
      .join("/")}`,
    `/mutate/${long
      .slice(3)
      .map(({ name }) => name)
      .join("/")}`,
  ]);
});

test("unregistrable hooks are dropped or repaired, and reported", () => {
  const hooks = [
    hook("nothing", { rules: [{ ...PODS, operations: [] }] }),
    hook("nowhere", { namespaces: { only: [] } }),
    hook("slow", { timeoutSeconds: 90 }),
    hook("odd", { timeoutSeconds: Number.NaN }),
  ];
  const { mutating, notes } = webhookConfigurations(hooks, DEFAULT_INSTALLATION, SERVICE);
  expect(at(mutating, "webhooks", 0, "timeoutSeconds")).toBe(30);
  expect(at(mutating, "webhooks", 1, "timeoutSeconds")).toBe(1);
  expect(at(mutating, "webhooks", 2)).toBeUndefined();
  expect(notes).toEqual([
    "nothing: is left out, for it asks for nothing",
    "nowhere: is left out, for it asks for no namespace",
    "slow: waits 30 s instead of 90 s, for 1 to 30 are allowed",
    "odd: waits 1 s instead of NaN s, for 1 to 30 are allowed",
  ]);
});

test("the fail-open part of a fail-closed hook is an entry whose path names it", () => {
  const nodes = { ...PODS, resources: ["nodes"] };
  const found = entries([hook("guard", { failure: "closed", rules: [PODS, nodes] })]);
  expect(
    found.map((entry) => [at(entry, "clientConfig", "service", "path"), at(entry, "failurePolicy")]),
  ).toEqual([
    ["/mutate/guard", "Fail"],
    ["/mutate/guard-open", "Ignore"],
  ]);
});

test("a hook that is served as another is a separate entry with the other's path", () => {
  const hooks = [
    hook("shut", { askedAs: "open", failure: "closed", namespaces: { only: ["shop"] } }),
    hook("also-shut", { askedAs: "open", failure: "closed", namespaces: { only: ["shop"] } }),
    hook("open"),
  ];
  expect(names(hooks)).toEqual(["shut.also-shut.usher.dev", "open.usher.dev"]);
  const paths = entries(hooks).map((entry) => at(entry, "clientConfig", "service", "path"));
  expect(paths).toEqual(["/mutate/open", "/mutate/open"]);
});

test("a hook without rules is silently not registered", () => {
  const { mutating, notes } = webhookConfigurations(
    [hook("idle", { rules: [] })],
    DEFAULT_INSTALLATION,
    SERVICE,
  );
  expect(at(mutating, "webhooks")).toEqual([]);
  expect(notes).toEqual([]);
});

test("a path token is the first segment of every path, for a Service and for a URL", () => {
  const pathToken = "0123456789abcdef0123456789abcdef01234567";
  const service = { name: "usher", namespace: "usher-system", port: 443 };
  for (const endpoint of [{ service }, { url: "https://usher.example/" }]) {
    const { mutating } = webhookConfigurations([hook("a")], DEFAULT_INSTALLATION, { endpoint, pathToken });
    const config = at(mutating, "webhooks", 0, "clientConfig");
    const path = stringAt(config, "service", "path") ?? new URL(stringAt(config, "url") ?? "").pathname;
    expect(path).toBe(`/${pathToken}/mutate/a`);
  }
});

test("a configuration marks its openable fail-closed entries; hooks that differ in that are separate entries", () => {
  const closed = (name: string, more: Partial<Hook> = {}) => hook(name, { failure: "closed", ...more });
  const hooks = [
    hook("open"),
    closed("one"),
    closed("kept", { staysClosed: true }),
    closed("two"),
    closed("kept-too", { staysClosed: true }),
  ];
  const openable = (open: readonly string[]) => {
    const watchdog = { enabled: true, openAfterSeconds: 300, open };
    const { mutating } = webhookConfigurations(hooks, { ...DEFAULT_INSTALLATION, watchdog }, SERVICE);
    return at(mutating, "metadata", "annotations", "usher.dev/openable");
  };
  expect(names(hooks)).toEqual(["open.usher.dev", "one.two.usher.dev", "kept.kept-too.usher.dev"]);
  expect(openable([])).toBe("one.two.usher.dev");
  expect(openable(["kept"])).toBe("one.kept.two.usher.dev");
  expect(openable(["kept", "kept-too"])).toBe("one.kept.two.kept-too.usher.dev");
});
