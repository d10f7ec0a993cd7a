import { describe, expect, test } from "vitest";
import {
  askGuard,
  byLabel,
  byName,
  type Cluster,
  CONTROL_PLANE_LABEL,
  controlPlaneNode,
  creating,
  DAEMON_SET_CONTROLLER,
  GROUP,
  MALLORY,
  NODES,
  required,
  TAINT,
  user,
  worker,
} from "../../../../test/builders/guard.ts";
import { clusterPolicy, namespace } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { at, type JsonObject, listAt } from "../../../core/json.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { placement } from "../../placement/index.ts";
import { nodeGuard } from "../index.ts";

const EXISTS = { tolerations: [{ operator: "Exists" }] };
const NAMED = { key: CONTROL_PLANE_LABEL, operator: "Exists", effect: "NoSchedule" };
const AWAY = byLabel(CONTROL_PLANE_LABEL, "DoesNotExist");
const owner = {
  ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "u", controller: true }],
};

function daemonSet(spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: "agent", namespace: "team-a", ...metadata },
    spec: { template: { metadata: { labels: { app: "agent" } }, spec } },
  };
}
const templateOf = (object: JsonObject) => at(object, "spec", "template", "spec") as JsonObject;
const updated = (before: JsonObject, after: JsonObject) =>
  requestFor(daemonSet(after), { operation: "UPDATE", oldObject: daemonSet(before), userInfo: MALLORY });

describe("pods", () => {
  test.each<[string, ReturnType<typeof creating>, boolean, Cluster?]>([
    ["that a protected node would accept", creating(EXISTS), true],
    ["that tolerate its taint by name", creating({ tolerations: [NAMED] }), true],
    ["that do not tolerate its taint", creating({}), false],
    ["if it has no taint", creating({}), true, { nodes: [controlPlaneNode("cp-0", {}, []), worker("w-0")] }],
    ["that are authorised", creating(EXISTS, MALLORY, { namespace: "kube-system" }), false],
    [
      "that are authorised, of a controller that need not be",
      creating(EXISTS, MALLORY, { namespace: "kube-system" }),
      false,
      { groups: [{ ...GROUP, checkRequesterOnSelection: true }] },
    ],
    ["with a node", creating({ ...EXISTS, nodeName: "w-0" }), false],
    [
      "of the DaemonSet controller",
      creating({ ...EXISTS, ...required(byName("cp-0")) }, DAEMON_SET_CONTROLLER, owner),
      false,
    ],
    [
      "of a DaemonSet if controllers share an identity",
      creating({ ...EXISTS, ...required(byName("cp-0")) }, user("system:kube-controller-manager"), owner),
      false,
    ],
    [
      "of others if controllers share an identity",
      creating(EXISTS, user("system:kube-controller-manager")),
      true,
    ],
    ["that select workers only", creating({ ...EXISTS, ...required(AWAY) }), false],
    [
      "that name a protected node and an unknown one",
      creating({ ...EXISTS, ...required(byName("cp-0"), byName("new")) }),
      true,
      { live: [...NODES, worker("new")] },
    ],
    ["that match no node", creating({ ...EXISTS, ...required({}) }), false],
    [
      "if the group does not steer",
      creating(EXISTS),
      false,
      { groups: [{ ...GROUP, steering: "Disabled" }] },
    ],
    ["in Inform", creating(EXISTS), false, { groups: [{ ...GROUP, mode: "Inform", steering: "Affinity" }] }],
  ])("%s", async (_what, request, steered, cluster) => {
    expect(await askGuard(request, cluster)).toMatchObject({ allowed: true, patched: steered });
  });

  test("all terms are narrowed, and a second time nothing changes", async () => {
    const spec = {
      ...EXISTS,
      ...required({}, byLabel("a", "In", "b"), byLabel(CONTROL_PLANE_LABEL, "DoesNotExist")),
    };
    const nodes = [controlPlaneNode("cp-0", { a: "b" }), worker("w-0", { a: "b" })];
    const once = await askGuard(creating(spec), { nodes });
    const steered = required(
      {},
      {
        matchExpressions: [
          { key: "a", operator: "In", values: ["b"] },
          { key: CONTROL_PLANE_LABEL, operator: "DoesNotExist" },
        ],
      },
      AWAY,
    );
    expect(once.object["spec"]).toMatchObject(steered);
    expect(await askGuard(requestFor(once.object, { userInfo: MALLORY }), { nodes })).toMatchObject({
      allowed: true,
      patched: false,
    });
  });
});

describe("DropToleration", () => {
  const groups = [{ ...GROUP, steering: "DropToleration" }];
  const others = [
    { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
  ];

  test("drops those that name the taint's key, and no others", async () => {
    const { object } = await askGuard(
      creating({ tolerations: [NAMED, ...others, { ...NAMED, effect: "" }] }),
      { groups },
    );
    expect(at(object, "spec", "tolerations")).toEqual(others);
    expect(at(object, "spec", "affinity")).toBeUndefined();
  });

  test("one without a key stays, and affinity steers", async () => {
    const { object } = await askGuard(creating({ tolerations: [NAMED, { operator: "Exists" }] }), { groups });
    expect(object["spec"]).toMatchObject({ tolerations: [{ operator: "Exists" }], ...required(AWAY) });
  });

  test("of an updated DaemonSet, existing ones stay", async () => {
    const kept = await askGuard(
      updated({ tolerations: [NAMED] }, { tolerations: [NAMED], hostNetwork: true }),
      { groups },
    );
    expect(kept.patched).toBe(false);
    const again = await askGuard(updated({ tolerations: others }, { tolerations: [NAMED, ...others] }), {
      groups,
    });
    expect(templateOf(again.object)).toEqual({ tolerations: others });
  });
});

describe("DaemonSets", () => {
  test("are steered in their template when they are created", async () => {
    const { object, allowed, warnings } = await askGuard(
      requestFor(daemonSet(EXISTS), { userInfo: MALLORY }),
    );
    expect({ allowed, warnings }).toEqual({
      allowed: true,
      warnings: [
        expect.stringMatching(/required node affinity added.*protected group ControlPlane.*USHER-G14/),
      ],
    });
    expect(templateOf(object)).toMatchObject(required(AWAY));
  });

  test("that exist without are left alone, with a warning", async () => {
    const { patched, warnings } = await askGuard(updated(EXISTS, { ...EXISTS, hostNetwork: true }));
    expect(patched).toBe(false);
    expect(warnings).toEqual([expect.stringContaining("USHER-G07")]);
  });

  test("keep their steering when they are applied without it", async () => {
    const steered = { ...EXISTS, ...required(AWAY) };
    expect(templateOf((await askGuard(updated(steered, EXISTS))).object)).toEqual(steered);
    expect((await askGuard(updated(steered, steered))).patched).toBe(false);
  });

  test("placed and steered: ten applies change nothing after the first", async () => {
    const policy = clusterPolicy("pool", {
      namespaceSelector: {},
      podSelector: {},
      affinity: required(byLabel("pool", "In", "a"))["affinity"] as JsonObject,
      nodeSelector: { disk: "ssd" },
    });
    const labels = { pool: "a", disk: "ssd" };
    const cluster: Cluster = {
      modules: [placement, nodeGuard],
      objects: [policy, namespace("team-a")],
      nodes: [controlPlaneNode("cp-0", labels), worker("w-0", labels)],
    };
    const applied = { ...EXISTS, ...required(byLabel("zone", "NotIn", "x")) };
    let { object } = await askGuard(requestFor(daemonSet(applied), { userInfo: MALLORY }), cluster);
    expect(JSON.stringify(templateOf(object))).toContain("DoesNotExist");
    expect(JSON.stringify(templateOf(object))).toContain('"pool"');
    for (let i = 0; i < 10; i++) {
      // Alternately as a client that sends its complete manifest, and as one that sends the stored object.
      const sent = i % 2 === 0 ? daemonSet(applied) : structuredClone(object);
      const request = requestFor(sent, { operation: "UPDATE", oldObject: object, userInfo: MALLORY });
      const next = (await askGuard(request, cluster)).object;
      expect(JSON.stringify(next["spec"])).toBe(JSON.stringify(object["spec"]));
      object = next;
    }
  });
});

test("other kinds are not steered in their template", async () => {
  const deployment = { ...daemonSet({ tolerations: [TAINT] }), kind: "Deployment" };
  expect(await askGuard(requestFor(deployment, { userInfo: MALLORY }))).toMatchObject({
    patched: false,
    warnings: [],
  });
});

test("the provenance annotation names the group, also after another call and beside a placement", async () => {
  const cluster: Cluster = {
    modules: [placement, nodeGuard],
    objects: [
      namespace("team-a"),
      clusterPolicy("pool", {
        namespaceSelector: {},
        podSelector: {},
        affinity: required({ matchExpressions: [{ key: "pool", operator: "NotIn", values: ["web"] }] })[
          "affinity"
        ] as JsonObject,
      }),
    ],
  };
  const modules = (object: JsonObject) =>
    provenanceOf(object).map(({ module, policy }) => `${module} ${policy}`);
  const first = await askGuard(creating(EXISTS), cluster);
  const expected = ["node-guard NodeGroup/ControlPlane", "placement ClusterPodSchedulingPolicy/pool"];
  expect(modules(first.object)).toEqual(expected);
  const again = await askGuard(
    { ...creating(EXISTS), object: structuredClone(first.object) as JsonObject },
    cluster,
  );
  expect(modules(again.object)).toEqual(expected);
});

describe("the provenance annotation of a steered DaemonSet", () => {
  const GPU = { ...GROUP, name: "Gpu", labelSelector: { matchLabels: { gpu: "yes" } } };
  const gpuNode = worker("gpu-0", { gpu: "yes" });
  const nodes = [controlPlaneNode("cp-0"), worker("w-0"), gpuNode];
  const own = { ...EXISTS, ...required(byLabel("zone", "NotIn", "x")) };
  const reapplied = (object: JsonObject): JsonObject => {
    const metadata = object["metadata"] as JsonObject;
    const annotations = metadata["annotations"] as JsonObject;
    return {
      ...object,
      metadata: { ...metadata, annotations: { ...annotations, "usher.dev/reapply": "now" } },
    };
  };
  const reapply = async (object: JsonObject, groups: readonly JsonObject[]) =>
    await askGuard(
      requestFor(reapplied(structuredClone(object) as JsonObject), {
        operation: "UPDATE",
        oldObject: object,
        userInfo: MALLORY,
      }),
      { nodes, groups },
    );

  test("names every group that steers, and a reapply removes a removed group's values", async () => {
    const created = await askGuard(requestFor(daemonSet(own), { userInfo: MALLORY }), {
      nodes,
      groups: [GROUP, GPU],
    });
    expect(provenanceOf(created.object).map(({ policy }) => policy)).toEqual([
      "NodeGroup/ControlPlane",
      "NodeGroup/Gpu",
    ]);
    const fresh = await askGuard(requestFor(daemonSet(own), { userInfo: MALLORY }), {
      nodes,
      groups: [GROUP],
    });
    const one = await reapply(created.object, [GROUP]);
    expect(templateOf(one.object)).toEqual(templateOf(fresh.object));
    expect(provenanceOf(one.object).map(({ policy }) => policy)).toEqual(["NodeGroup/ControlPlane"]);
  });

  test("has the tolerations that were dropped, and a reapply brings them back", async () => {
    const dropping = { ...GROUP, steering: "DropToleration" };
    const created = await askGuard(requestFor(daemonSet({ tolerations: [NAMED] }), { userInfo: MALLORY }), {
      nodes,
      groups: [dropping, GPU],
    });
    expect(listAt(templateOf(created.object), "tolerations")).toEqual([]);
    expect(provenanceOf(created.object)[0]).toMatchObject({
      policy: "NodeGroup/ControlPlane",
      set: ["/spec/template/spec/tolerations"],
    });
    const back = await reapply(created.object, [GPU]);
    expect(templateOf(back.object)["tolerations"]).toEqual([NAMED]);
    const same = await reapply(created.object, [dropping, GPU]);
    expect(templateOf(same.object)).toEqual(templateOf(created.object));
  });
});
