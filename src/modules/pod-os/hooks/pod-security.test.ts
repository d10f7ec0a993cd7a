import { expect, test } from "vitest";
import { pod } from "../../../../test/builders/pod.ts";
import { asked, podSecurityWith } from "../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../test/builders/request.ts";

const PLAIN = { containers: [{ name: "c", image: "i" }] };

test("the hooks are fail-closed, with a timeout of 5 s, and have fail-open shadow hooks for the control plane's namespaces", () => {
  const hooks = podSecurityWith({ settings: { podSecurity: { mode: "Replace" } } }).hooks.filter(({ name }) =>
    name.startsWith("pod-security"),
  );
  const expected = [
    ["pod-security", ["pods"], ["CREATE"], undefined],
    [
      "pod-security-pod-updates",
      ["pods", "pods/ephemeralcontainers"],
      ["UPDATE"],
      "object.spec.initContainers",
    ],
    ["pod-security-namespaces", ["namespaces"], ["CREATE", "UPDATE"], "object.metadata.labels"],
  ] as const;
  for (const [name, resources, operations, condition] of expected) {
    const [closed, open] = hooks.filter((hook) => hook.name === name || hook.name === `${name}-opened`);
    const common = {
      askedAs: "pod-security",
      timeoutSeconds: 5,
      rules: [{ resources: [...resources], operations: [...operations] }],
    };
    expect(closed).toMatchObject({
      ...common,
      failure: "closed",
      namespaces: { except: ["kube-node-lease", "kube-public", "kube-system", "usher-system"] },
    });
    expect(open).toMatchObject({
      ...common,
      failure: "open",
      namespaces: { only: ["kube-node-lease", "kube-public", "kube-system"] },
    });
    expect(closed?.conditions?.[0]?.expression.includes(condition ?? "")).toBe(
      condition === undefined ? undefined : true,
    );
  }
  expect(hooks.find(({ name }) => name === "pod-security-templates")).toMatchObject({
    failure: "open",
    namespaces: { except: ["usher-system"] },
  });
});

test("in Complement no hook is fail-closed, with any other settings", () => {
  const os = { contradictions: "Deny", write: true, harden: ["shop"], nodeMismatch: "Deny" };
  for (const settings of [{}, { podSecurity: { templates: "Deny" }, os }])
    for (const gate of [true, false])
      expect(podSecurityWith({ settings, gate }).hooks.filter(({ failure }) => failure !== "open")).toEqual(
        [],
      );
});

test("in Complement there is no hook for pods, and nothing changes", async () => {
  const assembly = podSecurityWith({ labels: { enforce: "restricted" } });
  expect(assembly.hooks.map(({ name }) => name)).not.toContain("pod-security");
  const response = await asked(assembly, requestFor(pod({ spec: PLAIN })));
  expect(response).toMatchObject({ allowed: true, patch: [], warnings: [], audit: {}, counts: [] });
});
