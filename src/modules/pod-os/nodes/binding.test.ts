import { describe, expect, test } from "vitest";
import { outside } from "../../../../test/builders/outside.ts";
import { controlledBy, pod } from "../../../../test/builders/pod.ts";
import { asksPodOS, osNode, podOSWith } from "../../../../test/builders/pod-os.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { Fact } from "../../../core/decision/need.ts";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { binding as part } from "../hooks/binding.ts";

const CONTAINERS = { containers: [{ name: "main", image: "registry.example/app:1" }] };
const WINDOWS = { ...CONTAINERS, os: { name: "windows" } };
const DENY = { nodeMismatch: "Deny", write: true };
const NODES = [
  osNode("lin", { label: "linux", reports: "linux" }),
  osNode("win", { label: "windows", reports: "windows" }),
  // The label was changed by another client; the kubelet reports the truth.
  osNode("drifted", { label: "windows", reports: "linux" }),
  osNode("silent", {}),
];

const bindingOf = (node: string, more: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "Binding",
  metadata: { name: "web-0", namespace: "shop", ...(more["metadata"] as JsonObject) },
  target: (more["target"] as JsonObject) ?? { kind: "Node", name: node },
});

interface World {
  readonly pod?: JsonObject | Fact;
  readonly nodes?: readonly JsonObject[];
  readonly settings?: JsonObject;
  readonly url?: "pods" | "bindings";
}

async function bound(
  object: JsonObject,
  { pod: stored = pod({ spec: WINDOWS }), nodes = NODES, settings = DENY, url = "pods" }: World = {},
) {
  const world = outside({
    fact: (need) => {
      if (!("get" in need)) return { failed: "not asked" };
      const { resource, name } = need.get;
      if (resource === "pods") return "kind" in stored ? { found: stored, complete: true } : (stored as Fact);
      const node = nodes.find((one) => (one["metadata"] as JsonObject)["name"] === name);
      return node === undefined ? { absent: "NotFound" } : { found: node, complete: true };
    },
  });
  const resource = { group: "", version: "v1", resource: url };
  const change =
    object["kind"] === "Binding" ? { resource, subResource: url === "pods" ? "binding" : "" } : {};
  const evaluation = await asksPodOS(
    podOSWith(nodes, settings),
    requestFor(object, change),
    "validate",
    world,
  );
  const own = evaluation.findings.filter(({ rule }) => rule === "node-mismatch");
  return { denials: evaluation.denials, findings: own, reads: world.fetches.flat() };
}

describe("nodeMismatch: Deny", () => {
  test.each(["pods", "bindings"] as const)(
    "refuses a binding by way of %s, and names the selector",
    async (url) => {
      const { denials, findings, reads } = await bound(bindingOf("lin"), { url });
      expect(denials).toHaveLength(1);
      expect(denials[0]?.message).toBe(
        "pod shop/web-0 is for windows, node lin runs linux: add nodeSelector kubernetes.io/os: windows to the pod or its template (USHER-O04)",
      );
      expect(findings[0]?.event).toMatchObject({
        reason: "PodOSNotSupported",
        regarding: { kind: "Namespace", name: "shop" },
      });
      expect(reads).toHaveLength(2);
    },
  );

  test("the event is about the controlling owner", async () => {
    const owned = pod({ spec: WINDOWS, owner: controlledBy("apps/v1", "ReplicaSet", "web") });
    const { findings } = await bound(bindingOf("lin"), { pod: owned });
    expect(findings[0]?.event?.regarding).toMatchObject({
      kind: "ReplicaSet",
      name: "web",
      namespace: "shop",
    });
  });

  test("uses the kubelet's report, not the label", async () => {
    expect((await bound(bindingOf("drifted"))).denials).toHaveLength(1);
  });

  test("a virtual kubelet may write its OS with a capital", async () => {
    const nodes = [osNode("win", { label: "windows", reports: "Windows" })];
    expect((await bound(bindingOf("win"), { nodes })).denials).toEqual([]);
  });

  test("a pod that is created with a node", async () => {
    const { denials } = await bound(pod({ spec: { ...WINDOWS, nodeName: "lin" } }));
    expect(denials).toHaveLength(1);
    expect((await bound(pod({ spec: { ...WINDOWS, nodeName: "win" } }))).denials).toEqual([]);
    expect((await bound(pod({ spec: WINDOWS }))).reads).toEqual([]);
  });

  test("a binding whose label the kubelet would refuse", async () => {
    const object = bindingOf("win", { metadata: { labels: { "kubernetes.io/os": "linux" } } });
    const { denials } = await bound(object);
    expect(denials.map(({ message }) => message)).toEqual([
      "pod shop/web-0 has the label kubernetes.io/os: linux, node win runs windows, and its kubelet refuses the pod: remove the label, or add a nodeSelector of the same value (USHER-O04)",
    ]);
  });

  test.each<[string, JsonObject, World]>([
    ["bound", bindingOf("win"), { pod: pod({ spec: CONTAINERS, labels: { "kubernetes.io/os": "linux" } }) }],
    [
      "bound with the label of its Binding",
      bindingOf("win", { metadata: { labels: { "kubernetes.io/os": "linux" } } }),
      { pod: pod({ spec: CONTAINERS }) },
    ],
    [
      "created with its node",
      pod({ spec: { ...CONTAINERS, nodeName: "win" }, labels: { "kubernetes.io/os": "linux" } }),
      {},
    ],
  ])("warns of a pod whose label alone is wrong, and refuses it never: %s", async (_name, object, world) => {
    const { denials, findings } = await bound(object, world);
    expect(denials).toEqual([]);
    expect(findings).toMatchObject([
      {
        code: "USHER-O04",
        warn: 60,
        message: expect.stringContaining("has the label kubernetes.io/os: linux, node win runs windows"),
        event: { reason: "PodOSNotSupported" },
      },
    ]);
  });

  test("a label equal to the node's passes, with one read", async () => {
    const right = pod({ spec: CONTAINERS, labels: { "kubernetes.io/os": "linux" } });
    const { findings, reads } = await bound(bindingOf("lin"), { pod: right });
    expect([findings, reads.length]).toEqual([[], 1]);
  });

  test.each<[string, JsonObject, World, number]>([
    ["the right node, with one read", bindingOf("win"), {}, 1],
    ["no OS", bindingOf("lin"), { pod: pod({ spec: CONTAINERS }) }, 1],
    [
      "a mirror pod",
      bindingOf("lin"),
      { pod: pod({ spec: WINDOWS, annotations: { "kubernetes.io/config.mirror": "x" } }) },
      1,
    ],
    ["an earlier pod of that name", bindingOf("lin", { metadata: { uid: "other" } }), {}, 1],
    ["a deleted pod", bindingOf("lin"), { pod: { absent: "NotFound" } }, 1],
    ["a pod that can't be read", bindingOf("lin"), { pod: { failed: "timed out" } }, 1],
    ["another kind of target", bindingOf("x", { target: { kind: "Pod", name: "lin" } }), {}, 0],
    ["no target", bindingOf("x", { target: {} }), {}, 0],
  ])("passes: %s", async (_name, object, world, reads) => {
    const result = await bound(object, world);
    expect(result.denials).toEqual([]);
    expect(result.reads).toHaveLength(reads);
  });

  test("an unknown node, or one without an OS, passes with an event", async () => {
    for (const node of ["missing", "silent"]) {
      const { denials, findings, reads } = await bound(bindingOf(node));
      expect(denials).toEqual([]);
      expect(findings).toMatchObject([{ outcome: "skipped", event: { reason: "NodeOSUnknown" } }]);
      expect(reads).toHaveLength(2);
    }
  });
});

test("nodeMismatch: Warn lets it pass with a warning and an event", async () => {
  const { denials, findings } = await bound(bindingOf("lin"), { settings: {} });
  expect(denials).toEqual([]);
  expect(findings).toMatchObject([{ code: "USHER-O04", warn: 60, event: { reason: "PodOSNotSupported" } }]);
});

test("the hook is fail-open after a second, for both URLs and pods with a node", () => {
  const gates = new Gates([], new Map());
  const on = { enabled: () => true } as unknown as Gates;
  const [hook] = part.hooks(DEFAULT_INSTALLATION, on);
  expect(hook).toMatchObject({ failure: "open", timeoutSeconds: 1 });
  expect(hook?.rules).toMatchObject([
    { resources: ["pods/binding", "bindings", "pods"], operations: ["CREATE"] },
  ]);
  expect(part.hooks(DEFAULT_INSTALLATION, gates)[0]?.rules).toEqual([]);
});
