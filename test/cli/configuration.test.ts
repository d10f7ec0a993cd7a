import { join } from "node:path";
import { expect, test } from "vitest";
import { listAt } from "../../src/core/json.ts";
import { readManifests } from "../../src/files/reader/read-documents.ts";
import { folder, reviewed, reviewedOne, usher } from "./usher.ts";

const HEAD = "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\n";
const WORKLOADS = `${HEAD}spec:
  workloads:
    - { group: argoproj.io, version: v1alpha1, kind: Rollout, resource: rollouts, template: spec.template }
    - { group: zoo.example, version: v1, kind: Mouse, resource: mice, template: spec.nest.pod }
`;

const POLICY = `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: {name: all}
spec: {namespaceSelector: {}, podSelector: {matchLabels: {app: web}}, nodeSelector: {pool: web}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`;

const TEMPLATE = "{metadata: {labels: {app: web}}, spec: {containers: []}}";
const ROLLOUT = `apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: r, namespace: shop}\nspec: {template: ${TEMPLATE}}\n`;
const MOUSE = `apiVersion: zoo.example/v1\nkind: Mouse\nmetadata: {name: m, namespace: shop}\nspec: {nest: {pod: ${TEMPLATE}}}\n`;

function setting(config: string): string[] {
  const directory = folder({ "source/p.yaml": POLICY, "config.yaml": config });
  return ["--source", join(directory, "source"), "--config", join(directory, "config.yaml")];
}

test("configured workload kinds are evaluated like built-in ones", async () => {
  const { results } = await reviewed(["-", ...setting(WORKLOADS)], `${ROLLOUT}---\n${MOUSE}`);
  expect(results.map(({ changes }) => changes.map(({ path }) => path))).toEqual([
    ["spec.template.spec.nodeSelector.pool"],
    ["spec.nest.pod.spec.nodeSelector.pool"],
  ]);
  const without = await reviewed(["-", ...setting(HEAD)], ROLLOUT);
  expect(without.results[0]?.changes).toEqual([]);
});

test("the stored object of a configured kind is found in the source", async () => {
  const directory = folder({ "source/m.yaml": MOUSE, "config.yaml": WORKLOADS });
  const args = ["--source", join(directory, "source"), "--config", join(directory, "config.yaml")];
  const { object } = await reviewedOne(["-", ...args, "--operation", "UPDATE"], MOUSE);
  expect(object.name).toBe("m");
});

test("the webhook configuration includes configured kinds", async () => {
  const { out } = await usher(["manifests", "--webhooks", ...setting(WORKLOADS).slice(2)]);
  const webhooks = readManifests(out).manifests.flatMap(({ value }) => listAt(value, "webhooks"));
  const rules = webhooks.flatMap((webhook) => listAt(webhook, "rules"));
  const resources = rules.flatMap((rule) =>
    listAt(rule, "resources").map((one) => `${listAt(rule, "apiGroups")}/${one}`),
  );
  expect(resources).toContain("argoproj.io/rollouts");
  expect(resources).toContain("zoo.example/mice");
});

test("namespaces are exempt or not as configured", async () => {
  const pod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: kube-system, labels: {app: web}}\nspec: {}\n";
  const changed = async (config: string) =>
    (await reviewedOne(["-", ...setting(config)], pod)).patch.length > 0;
  expect(await changed(HEAD)).toBe(false);
  expect(await changed(`${HEAD}spec: {openNamespaces: [kube-system]}\n`)).toBe(true);
  // Naming another control plane namespace does not drop kube-system.
  expect(await changed(`${HEAD}spec: {controlPlaneNamespaces: [other]}\n`)).toBe(false);
});

test.each([
  [
    "an unknown field",
    `${HEAD}spec:\n  workload: []\n`,
    /config\.yaml:4:3: spec\.workload: .*\n(.*\n)*.*did you mean "workloads"\?/,
  ],
  [
    "a wrong template",
    WORKLOADS.replace("spec.template", "/spec/template"),
    /config\.yaml:5:\d+: spec\.workloads\[0\]\.template: /,
  ],
  [
    "another kind",
    "apiVersion: v1\nkind: Pod\n",
    /config\.yaml:2:\d+: kind: must be kind UsherConfiguration/,
  ],
  [
    "another version",
    HEAD.replace("v1alpha1", "v9"),
    /config\.yaml:1:\d+: apiVersion: .*usher\.dev\/v1alpha1/,
  ],
  [
    "a collector that is not a URL",
    `${HEAD}spec:\n  tracing:\n    endpoint: collector:4318\n`,
    /config\.yaml:5:\d+: spec\.tracing\.endpoint: must be a URL, such as http:/,
  ],
  [
    "a collector with a query",
    `${HEAD}spec:\n  tracing:\n    endpoint: https://collector/?token=x\n`,
    /config\.yaml:5:\d+: spec\.tracing\.endpoint: must be a URL/,
  ],
  [
    "a share above one",
    `${HEAD}spec:\n  tracing:\n    endpoint: http://collector:4318\n    sampling: 10\n`,
    /config\.yaml:6:\d+: spec\.tracing\.sampling: /,
  ],
  [
    "an invalid network",
    `${HEAD}spec:\n  networkPolicy:\n    enabled: true\n    webhookCidrs: [10.0.0.1]\n`,
    /config\.yaml:6:\d+: spec\.networkPolicy\.webhookCidrs\[0\]: must be a network, like 10\.0\.0\.0\/8/,
  ],
  [
    "networks without a NetworkPolicy",
    `${HEAD}spec: {networkPolicy: {webhookCidrs: [10.0.0.0/8]}}\n`,
    /spec\.networkPolicy\.webhookCidrs: needs enabled: true/,
  ],
  ["an invalid authority", `${HEAD}spec: {clientCa: rubbish}\n`, /spec\.clientCa: not a PEM certificate/],
  ["a syntax error", `${HEAD}spec: [\n`, /config\.yaml:\d+:\d+: /],
  ["two documents", `${HEAD}---\n${HEAD}`, /config\.yaml: must be one document/],
  ["nothing", "# nothing\n", /config\.yaml: must be one document/],
  [
    "an unknown gate",
    `${HEAD}spec: {featureGates: {Nothing: true}}\n`,
    /feature gate "Nothing" is not known/,
  ],
])("%s fails before anything is evaluated", async (_, config, message) => {
  const { code, out, err } = await usher(["review", "-", ...setting(config)], { stdin: ROLLOUT });
  expect(err).toMatch(/^usher: /);
  expect(err).toMatch(message);
  expect(out).toBe("");
  expect(code).toBe(2);
});

test("a missing configuration is an error", async () => {
  const [source = "", directory = ""] = setting(HEAD);
  const { code, err } = await usher(["review", "-", source, directory, "--config", "/none.yaml"], {
    stdin: ROLLOUT,
  });
  expect(err).toBe("usher: --config /none.yaml does not exist\n");
  expect(code).toBe(2);
});
