import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../../test/builders/evaluation.ts";
import { came, clusterPolicy, namespace, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Hook } from "../../../core/module/hook.ts";
import { webhookConfigurations } from "../../../core/registration/webhooks.ts";
import { placement } from "../index.ts";

const RED = namespace("red", { team: "red" });
const BLUE = namespace("blue", { team: "blue" });
const SYSTEM = ["kube-system", "kube-public", "kube-node-lease", "usher-system"].map((name) =>
  namespace(name, { team: "red" }),
);
const CLOSED = { failurePolicy: "Fail", podSelector: {}, nodeSelector: { a: "b" } };
const ofRed = clusterPolicy("of-red", { ...CLOSED, namespaceSelector: { matchLabels: { team: "red" } } });

function hooksOf(known: readonly JsonObject[], installation: Installation = DEFAULT_INSTALLATION): Hook[] {
  return [...assemblyOf([placement], known.map(came), installation).declaredHooks];
}

/** The fail-closed hooks: their resources and namespaces. */
const closedIn = (known: readonly JsonObject[]) =>
  Object.fromEntries(
    hooksOf(known)
      .filter(({ failure }) => failure === "closed")
      .map(({ name, namespaces }) => [name, namespaces]),
  );
const both = (namespaces: object) => ({
  "placement-closed-pods": namespaces,
  "placement-closed-templates": namespaces,
});

describe("fail-closed policies", () => {
  const EXCEPT = { except: ["kube-node-lease", "kube-public", "kube-system", "usher-system"] };

  test.each<[string, readonly JsonObject[], object]>([
    ["no policy", [RED], {}],
    [
      "a fail-open one",
      [RED, clusterPolicy("p", { ...CLOSED, failurePolicy: "Ignore", namespaceSelector: {} })],
      {},
    ],
    ["one that selects some namespaces", [RED, BLUE, ...SYSTEM, ofRed], both({ only: ["red"] })],
    ["one that selects none now", [BLUE, ofRed], {}],
    ["one that selects all", [RED, clusterPolicy("p", { ...CLOSED, namespaceSelector: {} })], both(EXCEPT)],
    ["one of a namespace", [RED, namespacedPolicy("blue", "p", CLOSED)], both({ only: ["blue"] })],
    ["one of the control plane's", [namespacedPolicy("kube-system", "p", CLOSED)], {}],
    ["several", [RED, BLUE, ofRed, namespacedPolicy("blue", "p", CLOSED)], both({ only: ["blue", "red"] })],
    [
      "for pods alone",
      [namespacedPolicy("blue", "p", { ...CLOSED, targets: "Pods" })],
      { "placement-closed-pods": { only: ["blue"] } },
    ],
    [
      "for templates alone",
      [namespacedPolicy("blue", "p", { ...CLOSED, targets: "Templates" })],
      { "placement-closed-templates": { only: ["blue"] } },
    ],
    ["without a podSelector", [namespacedPolicy("blue", "p", { failurePolicy: "Fail" })], {}],
    [
      "with an unreadable one: the policy has no effect while usher answers either",
      [namespacedPolicy("blue", "p", { failurePolicy: "Fail", podSelector: "x" })],
      {},
    ],
    [
      "with a namespaceSelector that can't be read",
      [RED, clusterPolicy("p", { ...CLOSED, namespaceSelector: "x" })],
      {},
    ],
    ["an invalid spec", [{ ...clusterPolicy("p", {}), spec: "x" }], {}],
  ])("%s", (_what, known, expected) => {
    expect(closedIn(known)).toEqual(expected);
  });

  test("is served under the fail-open hook's name, before it, and the fail-open one is not called a second time", () => {
    const hooks = hooksOf([RED, BLUE, ofRed]);
    expect(hooks.map(({ name, askedAs }) => askedAs ?? name).slice(0, 3)).toEqual(Array(3).fill("placement"));
    const open = hooks.find(({ name }) => name === "placement");
    expect(open).toMatchObject({ failure: "open" });
    expect(open?.conditions?.map(({ expression }) => expression).join()).toContain(
      "request.namespace in ['red']",
    );
  });

  test("becomes one entry with the path that is always there", () => {
    const options = { endpoint: { url: "https://usher" } };
    const { mutating, notes } = webhookConfigurations(hooksOf([RED, ofRed]), DEFAULT_INSTALLATION, options);
    expect(notes).toEqual([]);
    expect(mutating["webhooks"]).toMatchObject([
      {
        name: "placement-closed-pods.placement-closed-templates.usher.dev",
        failurePolicy: "Fail",
        clientConfig: { url: "https://usher/mutate/placement" },
      },
      { name: "placement.usher.dev", failurePolicy: "Ignore" },
      { name: "placement-pod-updates.usher.dev", failurePolicy: "Ignore" },
    ]);
  });

  test("does not grow without end", () => {
    const many = Array.from({ length: 4_100 }, (_, i) =>
      namespace(`n${String(i).padStart(4, "0")}`, { team: "red" }),
    );
    const [closed, , open] = hooksOf([...many, ofRed]);
    expect(closed?.namespaces).toMatchObject({ only: { length: 4_000 } });
    // A second call is harmless as well, so the long list is not repeated.
    expect(open).toMatchObject({ name: "placement" });
    expect(open?.conditions).toBeUndefined();
  });
});

describe("policies that enforce", () => {
  const enforcementHooks = (known: readonly JsonObject[]) =>
    hooksOf(known)
      .filter(({ phase }) => phase === "validate")
      .map(({ name, failure, namespaces, rules }) => ({ name, failure, namespaces, asks: rules.length > 0 }));
  const enforcing = (enforcement: string, failurePolicy = "Ignore") => ({
    podSelector: {},
    enforcement,
    failurePolicy,
  });
  const exempt = ["kube-system", "kube-public", "kube-node-lease", "usher-system"];

  test("nowhere: the hooks are there to be answered, and are not registered", () => {
    expect(enforcementHooks([RED, ofRed])).toEqual([
      { name: "placement-enforcement", failure: "open", namespaces: { only: [] }, asks: false },
      { name: "placement-enforcement-pod-updates", failure: "open", namespaces: { only: [] }, asks: false },
      { name: "placement-enforcement-scale", failure: "open", namespaces: { only: [] }, asks: false },
    ]);
    const { validating, notes } = webhookConfigurations(hooksOf([RED]), DEFAULT_INSTALLATION, {
      endpoint: { url: "https://usher" },
    });
    expect(validating["webhooks"]).toEqual([]);
    expect(notes).toEqual([]);
  });

  test.each<[string, JsonObject, object]>([
    ["in a namespace", namespacedPolicy("blue", "p", enforcing("Warn")), { only: ["blue"] }],
    [
      "in the cluster",
      clusterPolicy("p", { ...enforcing("Refuse"), namespaceSelector: {} }),
      { except: exempt },
    ],
  ])("%s", (_what, policy, namespaces) => {
    expect(enforcementHooks([policy])).toEqual(
      ["placement-enforcement", "placement-enforcement-pod-updates", "placement-enforcement-scale"].map(
        (name) => ({ name, failure: "open", namespaces, asks: true }),
      ),
    );
  });

  test("fail-closed, if the refusing policy is", () => {
    const policy = namespacedPolicy("blue", "p", enforcing("Refuse", "Fail"));
    expect(enforcementHooks([policy])).toMatchObject([
      { name: "placement-enforcement-closed", failure: "closed", namespaces: { only: ["blue"] } },
      { name: "placement-enforcement-pod-updates-closed", failure: "closed", namespaces: { only: ["blue"] } },
      { name: "placement-enforcement", failure: "open" },
      { name: "placement-enforcement-pod-updates", failure: "open" },
      { name: "placement-enforcement-scale", failure: "open" },
    ]);
    const byDefault = namespacedPolicy("blue", "p", { podSelector: {}, enforcement: "Refuse" });
    expect(hooksOf([byDefault])).toEqual(hooksOf([policy]));
    const warning = enforcementHooks([namespacedPolicy("blue", "p", enforcing("Warn", "Fail"))]);
    expect(warning.filter(({ failure }) => failure === "closed")).toEqual([]);
  });

  test("fail-open for pods that have their node, whose labels operators change at a failover", () => {
    const policy = namespacedPolicy("blue", "p", enforcing("Refuse", "Fail"));
    const updates = hooksOf([policy]).filter(({ name }) =>
      name.startsWith("placement-enforcement-pod-updates"),
    );
    expect(
      updates.map(({ failure, conditions }) => [failure, conditions?.[0]?.expression.includes("nodeName")]),
    ).toEqual([
      ["closed", true],
      ["open", false],
    ]);
  });

  test("fail-closed only for changes of a template, or of the labels or the spec of a pod", () => {
    const policy = namespacedPolicy("blue", "p", enforcing("Refuse", "Fail"));
    const closed = hooksOf([policy]).filter(
      ({ phase, failure }) => phase === "validate" && failure === "closed",
    );
    expect(closed.map(({ conditions }) => conditions?.[0]?.expression)).toEqual([
      expect.stringContaining("object.spec.template != oldObject.spec.template"),
      expect.stringContaining("object.metadata.labels != oldObject.metadata.labels"),
    ]);
  });
});

test("for any policies: the same hooks in any order, and none fail-closed in a protected namespace", () => {
  const policy = fc.record({
    where: fc.constantFrom("", "red", "blue", "kube-system"),
    selector: fc.constantFrom<JsonObject>(
      {},
      { matchLabels: { team: "red" } },
      { matchLabels: { team: "blue" } },
    ),
    failurePolicy: fc.constantFrom("Fail", "Ignore", null),
    enforcement: fc.constantFrom("None", "Warn", "Refuse"),
    targets: fc.constantFrom("Both", "Pods", "Templates"),
  });
  fc.assert(
    fc.property(fc.array(policy, { maxLength: 5 }), (list) => {
      const known = [
        ...list.map(({ where, selector, ...rest }, i) =>
          where === ""
            ? clusterPolicy(`p${i}`, { ...rest, podSelector: {}, namespaceSelector: selector })
            : namespacedPolicy(where, `p${i}`, { ...rest, podSelector: {} }),
        ),
        RED,
        BLUE,
        ...SYSTEM,
      ];
      const hooks = hooksOf(known);
      expect(hooksOf([...known].reverse())).toEqual(hooks);
      expect(new Set(hooks.map(({ name }) => name)).size).toBe(hooks.length);
      for (const { failure, namespaces } of hooks) {
        if (failure === "open") continue;
        const asked = ["kube-system", "kube-public", "kube-node-lease", "usher-system"].filter((name) =>
          namespaces !== undefined && "only" in namespaces
            ? namespaces.only.includes(name)
            : !namespaces?.except.includes(name),
        );
        expect(asked).toEqual([]);
      }
    }),
    { numRuns: 200 },
  );
});
