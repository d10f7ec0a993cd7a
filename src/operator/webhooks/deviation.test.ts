import { describe, expect, test } from "vitest";
import { type JsonObject, listAt, stringAt } from "../../core/json.ts";
import {
  entryDeviations,
  objectDeviations,
  webhookDeviations,
  withCloudExpressions,
  withInjectedBundle,
  withPublishedBundle,
  withStoredEntries,
} from "./deviation.ts";
import { openableEntries } from "./opened.ts";

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

const wanted = configuration([ENTRY], { annotations: { ours: "1" } });

describe("a webhook configuration", () => {
  test("is right with the API server's defaults, and with others' labels and annotations", () => {
    const live = configuration([{ ...ENTRY, objectSelector: {}, matchPolicy: "Equivalent" }], {
      labels: { a: "b", team: "cloud" },
      annotations: { ours: "1", note: "cloud" },
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
    [
      "an annotation of usher",
      configuration([ENTRY], { annotations: { ours: "2" } }),
      "metadata.annotations.ours",
    ],
    ["no annotation", configuration([ENTRY], { annotations: {} }), "metadata.annotations.ours"],
    ["a label of usher", configuration([ENTRY], { labels: {} }), "metadata.labels.a"],
  ])("is wrong with %s", (_, live, path) => {
    const metadata = { annotations: { ours: "1" }, ...(live["metadata"] as JsonObject) };
    expect(webhookDeviations(wanted, { ...live, metadata })).toEqual([path]);
  });

  test("keeps a cloud's additions to a namespace selector, and nothing else that narrows it", () => {
    const cloud = { key: "control-plane", operator: "DoesNotExist" };
    const edit = { key: "team", operator: "In", values: ["none"] };
    const live = configuration([{ ...ENTRY, namespaceSelector: { matchExpressions: [cloud, OURS, edit] } }]);
    const kept = withCloudExpressions(wanted, live);
    expect(kept).toEqual(
      configuration([{ ...ENTRY, namespaceSelector: { matchExpressions: [OURS, cloud] } }], {
        annotations: { ours: "1" },
      }),
    );
    expect(webhookDeviations(kept, kept)).toEqual([]);
    expect(withCloudExpressions(wanted, undefined)).toEqual(wanted);
    // Once corrected it stays right.
    expect(withCloudExpressions(wanted, kept)).toEqual(kept);
  });
});

describe("a bundle, if there is nothing new to trust", () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const published = (...bundles: string[]) =>
    configuration(
      bundles.map((bundle, i) => ({ name: `${i}`, clientConfig: bundle && { caBundle: base64(bundle) } })),
    );
  const plain = configuration([0, 1].map((i) => ({ name: `${i}`, clientConfig: { url: "u" } })));

  test.each<[string, string[], string | undefined, string[]]>([
    ["each with usher's CA stays", ["a own", "own b"], "own", ["a own", "own b"]],
    ["one without it is copied from one with it", ["own b", "a"], "own", ["own b", "own b"]],
    ["a new entry is copied from the others", ["own b"], "own", ["own b", "own b"]],
    ["if none has it, it is usher's", ["a", ""], "own", ["own", "own"]],
    ["without a CA of usher all stay", ["a", "b"], undefined, ["a", "b"]],
    ["and there may be none", ["", ""], undefined, ["", ""]],
  ])("%s", (_, live, own, expected) => {
    const { webhooks } = withPublishedBundle(plain, published(...live), own);
    const found = (webhooks as JsonObject[]).map(
      (entry) => stringAt(entry, "clientConfig", "caBundle") ?? "",
    );
    expect(found).toEqual(expected.map(base64));
  });
});

test("a CRD is right as long as it has all of usher's fields, whatever else it has", () => {
  const crd = (spec: JsonObject) => ({ metadata: { name: "c", labels: { a: "b" } }, spec });
  const spec = { scope: "Cluster", versions: [{ name: "v1", served: true }] };
  expect(objectDeviations(crd(spec), crd({ ...spec, conversion: { strategy: "None" } }))).toEqual([]);
  expect(objectDeviations(crd(spec), crd({ ...spec, versions: [{ name: "v1", served: false }] }))).toEqual([
    "spec.versions[0].served",
  ]);
  expect(objectDeviations(crd(spec), crd({ ...spec, versions: [] }))).toEqual(["spec.versions"]);
  const noted = (annotations: JsonObject) => ({ ...crd(spec), metadata: { annotations } });
  expect(objectDeviations(noted({ a: "1" }), noted({ a: "1", b: "2" }))).toEqual([]);
  expect(objectDeviations(noted({ a: "1" }), noted({ b: "2" }))).toEqual(["metadata.annotations.a"]);
});

describe("a bundle that an injector writes", () => {
  const entry = (name: string, failurePolicy: string, caBundle?: string): JsonObject => ({
    name,
    failurePolicy,
    clientConfig: { service: { path: `/${name}` }, ...(caBundle === undefined ? {} : { caBundle }) },
  });
  const injected = (last?: string) => ({ last, accepts: (caBundle: string) => caBundle === "good" });
  const wanted = { webhooks: [entry("a", "Fail"), entry("b", "Ignore")] };
  const made = (live: JsonObject | undefined, last?: string) =>
    listAt(withInjectedBundle(wanted, live, injected(last)), "webhooks");

  test.each<[string, JsonObject | undefined, string | undefined, JsonObject]>([
    ["nothing is published: fail-open, without a bundle", undefined, undefined, entry("a", "Ignore")],
    ["it was deleted: fail-closed, with the last bundle", undefined, "good", entry("a", "Fail", "good")],
    ["the injector has not run", { webhooks: [entry("a", "Ignore", "")] }, undefined, entry("a", "Ignore")],
    [
      "it has: fail-closed",
      { webhooks: [entry("a", "Ignore", "good")] },
      undefined,
      entry("a", "Fail", "good"),
    ],
    [
      "it does not trust usher yet",
      { webhooks: [entry("a", "Ignore", "bad")] },
      undefined,
      entry("a", "Ignore", "bad"),
    ],
    [
      "fail-closed, and the bundle replaced: stays",
      { webhooks: [entry("a", "Fail", "bad")] },
      "good",
      entry("a", "Fail", "bad"),
    ],
    [
      "a new entry has its neighbour's",
      { webhooks: [entry("b", "Ignore", "good")] },
      undefined,
      entry("a", "Fail", "good"),
    ],
  ])("%s", (_, live, last, expected) => {
    expect(made(live, last)[0]).toEqual(expected);
  });
});

test("a configuration of another client is compared except for bundle, path token and order", () => {
  const entry = (name: string, more: JsonObject = {}): JsonObject => ({
    name,
    clientConfig: { service: { name: "usher", path: `/mutate/${name}` } },
    ...more,
  });
  const theirs = (name: string): JsonObject => ({
    name,
    clientConfig: { service: { name: "usher", path: `/${"0".repeat(40)}/mutate/${name}` }, caBundle: "x" },
  });
  const wanted = { webhooks: [entry("a"), entry("b")] };
  expect(entryDeviations(wanted, { webhooks: [theirs("b"), theirs("a")] })).toEqual([]);
  expect(entryDeviations(wanted, { webhooks: [theirs("a")] })).toEqual(["webhooks"]);
  expect(
    entryDeviations(wanted, { webhooks: [theirs("a"), { ...theirs("b"), failurePolicy: "Ignore" }] }),
  ).toEqual(["webhooks[1].failurePolicy"]);
});

describe("while no replica is ready", () => {
  const TOKEN = "0".repeat(40);
  const OPEN = { failurePolicy: "Ignore" };
  const entry = (
    hooks: string,
    more: JsonObject = {},
    path = `/${TOKEN}/mutate/${hooks.replaceAll(".", "/")}`,
  ) => ({
    name: `${hooks}.usher.dev`,
    clientConfig: { caBundle: "bmV3", service: { name: "usher", namespace: "hall", path, port: 443 } },
    failurePolicy: "Fail",
    ...more,
  });
  const old = (hooks: string, more: JsonObject = {}) => ({
    ...entry(hooks, more, `/${"f".repeat(40)}/mutate/${hooks.replaceAll(".", "/")}`),
    ...more,
  });

  test.each<[string, JsonObject[], JsonObject[], JsonObject[]]>([
    ["an entry is called by the current path and bundle", [old("a")], [entry("a")], [entry("a")]],
    [
      "an open entry stays open",
      [old("a", { failurePolicy: "Ignore" })],
      [entry("a")],
      [entry("a", { failurePolicy: "Ignore" })],
    ],
    [
      "a closed entry is opened if what is wanted of it is open",
      [old("a.b"), old("c.d")],
      [entry("a"), entry("b", OPEN), entry("c", OPEN), entry("d", OPEN)],
      [entry("a.b"), entry("c.d", OPEN)],
    ],
    [
      "an entry covers no more than before",
      [old("a", { namespaceSelector: { matchLabels: { team: "a" } } })],
      [entry("a", { namespaceSelector: {} })],
      [entry("a", { namespaceSelector: { matchLabels: { team: "a" } } })],
    ],
    [
      "an entry that is split stays whole, and closed",
      [old("a.b")],
      [entry("a"), entry("b")],
      [entry("a.b")],
    ],
    ["no entry is added", [old("a")], [entry("a"), entry("b")], [entry("a")]],
    ["a hook that nothing wants is withdrawn", [old("a"), old("b")], [entry("b")], [entry("b")]],
    [
      "a hook that nothing wants is withdrawn from an entry with others",
      [old("a.b")],
      [entry("b")],
      [entry("a.b", {}, `/${TOKEN}/mutate/b`)],
    ],
    [
      "an entry of others is removed",
      [old("a"), old("other", { name: "x.example.com" })],
      [entry("a")],
      [entry("a")],
    ],
    ["without any hook, no entry stays", [old("a")], [], []],
    [
      "another address is reverted, also of hooks that are grouped otherwise now",
      [
        old("a", { clientConfig: { url: "https://example.com/x" } }),
        old("b.c", { clientConfig: { url: "https://x" } }),
      ],
      [entry("a"), entry("b"), entry("c")],
      [entry("a"), entry("b.c")],
    ],
  ])("%s", (_, live, desired, expected) => {
    const result = withStoredEntries(configuration(desired), configuration(live));
    expect(result["webhooks"]).toEqual(expected);
  });

  test.each([
    ["an entry stays openable", ["a"], ["a"], "a", "a"],
    [
      "an entry whose hooks are grouped otherwise is openable if all of them are",
      ["a.b"],
      ["a", "b"],
      "a,b",
      "a.b",
    ],
    ["an entry with a hook that is to stay closed is not openable", ["a.b"], ["a", "b"], "a", ""],
    ["an entry that is not wanted is not openable", ["a", "b"], ["b"], "b", "b"],
  ])("%s", (_, live, desired, marked, expected) => {
    const mark = (names: string) =>
      ["", ...names.split(",")].flatMap((one) => (one === "" ? [] : [`${one}.usher.dev`])).join(",");
    const annotations = { "usher.dev/openable": mark(marked), ours: "1" };
    const result = withStoredEntries(
      configuration(
        desired.map((one) => entry(one)),
        { annotations },
      ),
      configuration(live.map((one) => old(one))),
    );
    expect(result["metadata"]).toMatchObject({
      annotations: { "usher.dev/openable": mark(expected), ours: "1" },
    });
    expect(openableEntries(result)).toEqual(expected === "" ? [] : [mark(expected)]);
  });

  test("a standby stays as it is", () => {
    const live = configuration([], { labels: { "usher.dev/standby": "active" } });
    const desired = configuration([], { labels: { a: "b", "usher.dev/standby": "ready" } });
    expect(withStoredEntries(desired, live)["metadata"]).toMatchObject({
      labels: { a: "b", "usher.dev/standby": "active" },
    });
  });
});
