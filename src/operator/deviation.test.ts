import { describe, expect, test } from "vitest";
import type { JsonObject } from "../core/json.ts";
import { crdDeviations, webhookDeviations, withCloudExpressions } from "./deviation.ts";

const OURS = { key: "kubernetes.io/metadata.name", operator: "NotIn", values: ["kube-system"] };
const ENTRY = {
  name: "a.usher.dev",
  clientConfig: {
    caBundle: "eA==",
    service: { name: "usher", namespace: "hall", path: "/mutate/a", port: 443 },
  },
  failurePolicy: "Ignore",
  namespaceSelector: { matchExpressions: [OURS] },
  timeoutSeconds: 2,
};

function configuration(entries: readonly JsonObject[], metadata: JsonObject = {}): JsonObject {
  return {
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "usher", labels: { a: "b" }, ...metadata },
    webhooks: entries,
  };
}

const wanted = configuration([ENTRY]);

describe("a webhook configuration", () => {
  test("is right with the API server's defaults, and with others' labels and annotations", () => {
    const live = configuration([{ ...ENTRY, objectSelector: {}, matchPolicy: "Equivalent" }], {
      labels: { a: "b", team: "cloud" },
      annotations: { note: "cloud" },
      uid: "u",
    });
    expect(webhookDeviations(wanted, live)).toEqual([]);
  });

  test.each<[string, JsonObject, string]>([
    ["a field", configuration([{ ...ENTRY, failurePolicy: "Fail" }]), "webhooks[0].failurePolicy"],
    [
      "a bundle",
      configuration([{ ...ENTRY, clientConfig: { ...ENTRY.clientConfig, caBundle: "eQ==" } }]),
      "webhooks[0].clientConfig.caBundle",
    ],
    [
      "an object selector",
      configuration([{ ...ENTRY, objectSelector: { matchLabels: { a: "b" } } }]),
      "webhooks[0].objectSelector.matchLabels",
    ],
    [
      "a condition",
      configuration([{ ...ENTRY, matchConditions: [{ name: "off", expression: "false" }] }]),
      "webhooks[0].matchConditions",
    ],
    ["another entry", configuration([ENTRY, { ...ENTRY, name: "b" }]), "webhooks"],
    ["none", configuration([]), "webhooks"],
    ["a label of ours", configuration([ENTRY], { labels: {} }), "metadata.labels.a"],
  ])("is wrong with %s", (_, live, path) => {
    expect(webhookDeviations(wanted, live)).toEqual([path]);
  });

  test("keeps what a cloud puts into a namespace selector, and nothing else that narrows it", () => {
    const cloud = { key: "control-plane", operator: "DoesNotExist" };
    const edit = { key: "team", operator: "In", values: ["none"] };
    const live = configuration([{ ...ENTRY, namespaceSelector: { matchExpressions: [cloud, OURS, edit] } }]);
    const kept = withCloudExpressions(wanted, live);
    expect(kept).toEqual(
      configuration([{ ...ENTRY, namespaceSelector: { matchExpressions: [OURS, cloud] } }]),
    );
    expect(webhookDeviations(kept, kept)).toEqual([]);
    expect(withCloudExpressions(wanted, undefined)).toEqual(wanted);
    // Once set right it stays right.
    expect(withCloudExpressions(wanted, kept)).toEqual(kept);
  });
});

test("a CRD is right as long as it has all of ours, whatever else it has", () => {
  const crd = (spec: JsonObject) => ({ metadata: { name: "c", labels: { a: "b" } }, spec });
  const spec = { scope: "Cluster", versions: [{ name: "v1", served: true }] };
  expect(crdDeviations(crd(spec), crd({ ...spec, conversion: { strategy: "None" } }))).toEqual([]);
  expect(crdDeviations(crd(spec), crd({ ...spec, versions: [{ name: "v1", served: false }] }))).toEqual([
    "spec.versions[0].served",
  ]);
  expect(crdDeviations(crd(spec), crd({ ...spec, versions: [] }))).toEqual(["spec.versions"]);
});
