import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { outside, outsideWith } from "../../../../test/builders/outside.ts";
import { type Placed, placed, placedWith, SHOP } from "../../../../test/builders/placed.ts";
import {
  controlledBy,
  deployment,
  pod,
  type WorkloadParts,
  workload,
} from "../../../../test/builders/pod.ts";
import { clusterPolicy, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { effectsOf } from "../../../core/evaluate/effects.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { PROVENANCE, provenanceOf } from "../../../core/provenance/origin.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const zone = (...values: string[]) => ({ matchExpressions: [{ key: "zone", operator: "In", values }] });
const nodeAffinity = (...terms: JsonObject[]) => ({
  nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: terms } },
});
const ANTI_TERM = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "x" } } };
const ANTI = { podAntiAffinity: { [REQUIRED]: [ANTI_TERM] } };
const POOL = { key: "pool", operator: "Equal", value: "etcd", effect: "NoSchedule" };
const OTHER = { key: "other", operator: "Exists" };

const policy = (criteria: JsonObject, name = "p", generation = 1) =>
  clusterPolicy(name, { namespaceSelector: {}, podSelector: {}, ...criteria }, { generation });
const injecting = (criteria: JsonObject, name = "p", generation = 1) =>
  policy({ onUpdate: "Inject", ...criteria }, name, generation);

const update = (
  known: readonly JsonObject[],
  now: JsonObject,
  old: JsonObject,
  change: Parameters<typeof requestFor>[1] = {},
): Placed =>
  placed([SHOP, ...known], requestFor(now, { operation: "UPDATE", oldObject: again(old), ...change }));

/** As it is stored, once made under these policies. */
const stored = (known: readonly JsonObject[], made: JsonObject): JsonObject =>
  again(placed([SHOP, ...known], made).object);

const templateOf = ({ object }: Placed) => at(object, "spec", "template", "spec");
const noPatch = { allowed: true, patch: [], warnings: [] };

const withAnnotations = (object: JsonObject, annotations: JsonObject): JsonObject => {
  const metadata = object["metadata"] as JsonObject;
  const present = at(metadata, "annotations") as JsonObject | undefined;
  return { ...object, metadata: { ...metadata, annotations: { ...present, ...annotations } } };
};
const asking = (object: JsonObject) => withAnnotations(object, { "usher.dev/reapply": "now" });

const EVERYTHING: JsonObject = {
  nodeSelector: { disk: "ssd" },
  affinity: { ...nodeAffinity(zone("a"), zone("b")), ...ANTI },
  tolerations: [POOL],
  schedulerName: "mine",
  topologySpreadConstraints: [{ ...ANTI_TERM, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }],
};

describe("Restore: nothing new, nothing lost", () => {
  test("everything that a policy gave comes back after a re-apply took it out, to the byte", () => {
    const known = [policy(EVERYTHING)];
    const old = stored(known, deployment());
    const result = update(known, withAnnotations(deployment(), noteOf(old)), old);
    expect(result.object).toEqual(old);
    expect(result.answer.warnings).toEqual([]);
  });

  test("also when the policy is gone, with its note", () => {
    const old = stored([policy(EVERYTHING)], deployment());
    const { object } = update([], deployment(), old);
    expect(object).toEqual(old);
  });

  test("what is as it was is not touched", () => {
    const known = [policy(EVERYTHING)];
    const old = stored(known, deployment());
    expect(update(known, again(old), old).answer).toMatchObject(noPatch);
  });

  test.each<[string, JsonObject]>([
    ["a policy that is new", policy(EVERYTHING, "new")],
    ["the policy with other criteria", policy({ nodeSelector: { disk: "nvme", more: "1" } }, "p", 2)],
  ])("nothing of %s", (_what, now) => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" } })], deployment());
    expect(update([now], again(old), old).answer).toMatchObject(noPatch);
  });
});

function noteOf(object: JsonObject): JsonObject {
  return { [PROVENANCE]: at(object, "metadata", "annotations", PROVENANCE) ?? "" };
}

describe("a roll-back brings back all but the injection, and says so", () => {
  const known = [policy({ nodeSelector: { disk: "ssd" } })];
  const old = stored(known, deployment({ spec: { containers: [{ name: "c", image: "two" }] } }));
  const before = deployment({ spec: { containers: [{ name: "c", image: "one" }] } });
  // Of a patch the API server makes an update.
  const options = { kind: "UpdateOptions", apiVersion: "meta.k8s.io/v1" };
  const CONTROLLER = { username: "system:serviceaccount:etcd:druid", groups: [] };

  test.each<[string, JsonObject, Parameters<typeof requestFor>[1]]>([
    ["of a StatefulSet, by a person", withAnnotations(before, noteOf(old)), { options }],
    ["of a Deployment, with the old note", before, { options }],
    ["of a Deployment, by a program", before, { options, userInfo: CONTROLLER }],
  ])("%s", (_what, sent, change) => {
    const { object, answer } = update(known, sent, old, change);
    expect(at(object, "spec", "template", "spec")).toEqual({
      containers: [{ name: "c", image: "one" }],
      nodeSelector: { disk: "ssd" },
    });
    expect(answer.warnings).toHaveLength(1);
    expect(answer.warnings[0]).toMatch(/restored what policy p had added.*USHER-P21/);
  });

  test.each<[string, JsonObject, Parameters<typeof requestFor>[1]]>([
    ["an apply", before, { options: { ...options, fieldManager: "kubectl-client-side-apply" } }],
    ["a replace", before, { options: { ...options, fieldManager: "kubectl-replace" } }],
    ["a controller", withAnnotations(before, noteOf(old)), { options, userInfo: CONTROLLER }],
    ["nothing known", before, {}],
  ])("%s is reported nothing", (_what, sent, change) => {
    const { object, answer } = update(known, sent, old, change);
    expect(at(object, "spec", "template", "spec", "nodeSelector")).toEqual({ disk: "ssd" });
    expect(answer.warnings).toEqual([]);
  });

  test("nor is a patch that took nothing out", () => {
    expect(update(known, again(old), old, { options }).answer).toMatchObject(noPatch);
  });
});

describe("Inject: what the policy wants now", () => {
  test("of a policy that is new to the object", () => {
    const result = update(
      [injecting({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })],
      deployment(),
      deployment(),
    );
    expect(templateOf(result)).toMatchObject({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] });
    expect(provenanceOf(result.object)).toMatchObject([{ policy: "ClusterPodSchedulingPolicy/p" }]);
  });

  test("its new value takes the place of its old one, and the note says so", () => {
    const old = stored(
      [injecting({ nodeSelector: { disk: "ssd", gone: "1" }, tolerations: [POOL] })],
      deployment(),
    );
    const now = [injecting({ nodeSelector: { disk: "nvme" }, tolerations: [OTHER] }, "p", 2)];
    const result = update(now, again(old), old);
    expect(at(templateOf(result), "nodeSelector")).toEqual({ disk: "nvme" });
    expect(at(templateOf(result), "tolerations")).toEqual([OTHER]);
    expect(provenanceOf(result.object)).toMatchObject([
      {
        generation: 2,
        set: ["/spec/template/spec/nodeSelector/disk"],
        added: { "/spec/template/spec/tolerations": [OTHER] },
      },
    ]);
    expect(result.answer.warnings).toEqual([]);
  });

  test("required terms are exchanged inside of the pod's own", () => {
    const own = { matchExpressions: [{ key: "arch", operator: "Exists" }] };
    const sent = deployment({ spec: { containers: [], affinity: nodeAffinity(own) } });
    const old = stored([injecting({ affinity: nodeAffinity(zone("a"), zone("b")) })], sent);
    const result = update([injecting({ affinity: nodeAffinity(zone("c")) }, "p", 2)], again(old), old);
    expect(at(templateOf(result), "affinity")).toEqual(
      nodeAffinity({ matchExpressions: [...own.matchExpressions, ...zone("c").matchExpressions] }),
    );
  });

  test("an unchanged policy changes nothing, wherever its parts stand", () => {
    const known = [injecting({ tolerations: [POOL], nodeSelector: { disk: "ssd" } })];
    const old = stored(known, deployment());
    const tolerations = [POOL, OTHER];
    const now = again(old) as { spec: { template: { spec: { tolerations: Json } } } };
    now.spec.template.spec.tolerations = tolerations;
    const result = update(
      [injecting({ tolerations: [POOL], nodeSelector: { disk: "ssd" }, priority: 3 }, "p", 2)],
      now,
      old,
    );
    expect(at(templateOf(result), "tolerations")).toEqual(tolerations);
    // Only the note follows the policy's generation, which rolls nothing out.
    for (const { path } of result.answer.patch) expect(path).toMatch(/^\/metadata\/annotations/);
    expect(result.answer.warnings).toEqual([]);
  });

  test("beside it a policy that restores gets nothing new", () => {
    const known = [
      injecting({ nodeSelector: { disk: "ssd" } }),
      policy({ nodeSelector: { zone: "a" } }, "q"),
    ];
    expect(at(templateOf(update(known, deployment(), deployment())), "nodeSelector")).toEqual({
      disk: "ssd",
    });
  });

  test("what the user sets himself stays his", () => {
    const now = deployment({ spec: { containers: [], nodeSelector: { disk: "own" } } });
    const { nodeSelector, answer } = update(
      [injecting({ nodeSelector: { disk: "ssd" } })],
      now,
      deployment(),
    );
    expect(nodeSelector).toEqual({ disk: "own" });
    expect(answer.warnings[0]).toContain("USHER-P01");
  });

  test("a policy that no longer selects the object is as one that is gone", () => {
    const old = stored([injecting({ nodeSelector: { disk: "ssd" } })], deployment());
    const narrowed = clusterPolicy("p", {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: "other" } },
      nodeSelector: { disk: "nvme" },
      onUpdate: "Inject",
    });
    expect(update([narrowed], deployment(), old).nodeSelector).toEqual({ disk: "ssd" });
  });

  test("one that can't be judged is reported of, and refuses where it fails closed", () => {
    const known = (failurePolicy: string) =>
      injecting({ nodeSelector: { disk: "ssd" }, tolerations: "nonsense", failurePolicy });
    expect(update([known("Ignore")], deployment(), deployment()).answer).toMatchObject({
      allowed: true,
      patch: [],
    });
    const other = deployment({ spec: { containers: [{ name: "main", image: "registry.example/app:2" }] } });
    expect(update([known("Fail")], other, deployment()).answer.allowed).toBe(false);
  });

  test.each<[string, JsonObject]>([
    ["that refuses conflicts", { nodeSelector: { disk: "ssd" }, onConflict: "Refuse" }],
    ["that can't be judged and fails closed", { tolerations: "nonsense", failurePolicy: "Fail" }],
  ])("one %s stops nobody who leaves the template as it is", (_what, criteria) => {
    const spec = { containers: [], nodeSelector: { disk: "hdd" } };
    const old = deployment({ spec });
    const judged = (now: JsonObject) => update([injecting(criteria)], now, old).answer;
    const labelled = judged(deployment({ spec, objectLabels: { revision: "2" } }));
    expect(labelled).toMatchObject({ allowed: true, patch: [] });
    expect(labelled.warnings).toHaveLength(1);
    expect(judged(deployment({ spec: { ...spec, hostNetwork: true } })).allowed).toBe(false);
    expect(judged(deployment({ spec, labels: { app: "new" } })).allowed).toBe(false);
    expect(judged(asking(old)).allowed).toBe(false);
  });

  test("a namespace is only asked for where such a policy hangs on it", async () => {
    const red = (onUpdate: string) =>
      clusterPolicy("p", {
        namespaceSelector: { matchLabels: { team: "red" } },
        podSelector: {},
        nodeSelector: { disk: "ssd" },
        onUpdate,
      });
    const request = requestFor(deployment(), { operation: "UPDATE", oldObject: deployment() });
    const unchanged = outside();
    await placedWith(unchanged, [red("Restore")], request);
    expect(unchanged.fetches).toEqual([]);
    const need = { get: { resource: "namespaces", name: "shop" } };
    const world = outsideWith([[need, { found: SHOP, complete: true }]]);
    expect((await placedWith(world, [red("Inject")], request)).nodeSelector).toEqual({ disk: "ssd" });
    expect(world.fetches).toEqual([[need]]);
  });
});

describe("reapply: as if it were made now", () => {
  test("what a deleted policy put there goes, and so does the annotation", () => {
    const old = stored([policy(EVERYTHING)], deployment());
    const result = update([], asking(again(old)), old);
    expect(result.object).toEqual(deployment({ annotations: {} }));
    expect(result.answer.warnings).toEqual([]);
  });

  test("what a changed policy wants comes, whatever its onUpdate", () => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })], deployment());
    const now = [
      policy({ nodeSelector: { zone: "a" }, affinity: ANTI }, "p", 2),
      policy({ tolerations: [OTHER] }, "q"),
    ];
    const result = update(now, asking(again(old)), old);
    const fresh = placed([SHOP, ...now], deployment()).object;
    expect(result.object).toEqual(fresh);
  });

  test("who goes first counts again", () => {
    const low = policy({ nodeSelector: { disk: "ssd" } }, "low");
    const old = stored([low], deployment());
    const known = [low, policy({ nodeSelector: { disk: "nvme" }, priority: 5 }, "high")];
    const result = update(known, asking(again(old)), old);
    expect(result.nodeSelector).toEqual({ disk: "nvme" });
    expect(provenanceOf(result.object)).toMatchObject([{ policy: "ClusterPodSchedulingPolicy/high" }]);
  });

  test("a policy of another name that wants the same takes over the note and nothing else", () => {
    const old = stored([policy(EVERYTHING, "before")], deployment());
    const result = update([policy(EVERYTHING, "after")], asking(again(old)), old);
    expect(templateOf(result)).toEqual(at(old, "spec", "template", "spec"));
    expect(provenanceOf(result.object).map((one) => one.policy)).toEqual([
      "ClusterPodSchedulingPolicy/after",
    ]);
    for (const { path } of result.answer.patch) expect(path).toMatch(/^\/metadata\/annotations/);
  });

  test("where all is current only the annotation goes", () => {
    const known = [policy(EVERYTHING)];
    const old = stored(known, deployment());
    const { answer } = update(known, asking(again(old)), old);
    expect(answer.patch).toEqual([{ op: "remove", path: "/metadata/annotations/usher.dev~1reapply" }]);
  });

  test("an object from before all policies gets what it lacks", () => {
    const result = update([policy({ nodeSelector: { disk: "ssd" } })], asking(deployment()), deployment());
    expect(result.nodeSelector).toEqual({ disk: "ssd" });
    expect(at(result.object, "metadata", "annotations", "usher.dev/reapply")).toBeUndefined();
  });

  test("the note that counts is the stored one", () => {
    const forged = { placement: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector/own"] }] };
    const sent = deployment({ spec: { containers: [], nodeSelector: { own: "1" } } });
    const now = withAnnotations(asking(sent), { [PROVENANCE]: JSON.stringify(forged) });
    expect(update([], now, sent).nodeSelector).toEqual({ own: "1" });
  });

  test("what was made with the annotation does not keep it", () => {
    const { object } = placed([SHOP], asking(deployment()));
    expect(at(object, "metadata", "annotations")).toEqual({});
  });

  test("nothing is lost because something can't be known", async () => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" } })], deployment());
    const known = [
      SHOP,
      policy({ nodeSelector: { disk: "nvme" } }, "p", 2),
      policy({ priorityClassName: "high" }, "q"),
    ];
    const request = requestFor(asking(again(old)), { operation: "UPDATE", oldObject: old });
    const { nodeSelector, answer } = await placedWith(
      outside({ fact: () => ({ failed: "away" }) }),
      known,
      request,
    );
    expect(nodeSelector).toEqual({ disk: "ssd" });
    expect(answer.warnings.join()).toContain("USHER-P22");
  });

  test("nor because a policy can't be judged", () => {
    const known = policy({ nodeSelector: { disk: "ssd" } });
    const old = stored([known], deployment());
    const broken = policy({ nodeSelector: { disk: "ssd" }, tolerations: "nonsense" }, "p", 2);
    const { nodeSelector, answer } = update([broken], asking(again(old)), old);
    expect(nodeSelector).toEqual({ disk: "ssd" });
    expect(answer.warnings.join()).toContain("USHER-P22");
  });
});

describe("pods that exist", () => {
  const GATES = [{ name: "example.com/wait" }];
  const gated = (further: JsonObject = {}) =>
    pod({ spec: { containers: [], schedulingGates: GATES, ...further } });

  test("at a gate: Inject gives what such a pod takes, and says what it does not", () => {
    const { object, answer } = update([injecting(EVERYTHING)], gated(), gated());
    expect(at(object, "spec", "nodeSelector")).toEqual({ disk: "ssd" });
    expect(at(object, "spec", "tolerations")).toEqual([POOL]);
    expect(at(object, "spec", "affinity")).toEqual(nodeAffinity(zone("a"), zone("b")));
    expect(at(object, "spec", "schedulerName")).toBeUndefined();
    expect(at(object, "spec", "topologySpreadConstraints")).toBeUndefined();
    expect(answer.warnings).toHaveLength(3);
  });

  test("at a gate: what it has already is not complained about", () => {
    const known = [injecting(EVERYTHING)];
    const old = stored(known, gated());
    expect(update(known, again(old), old).answer).toMatchObject(noPatch);
  });

  test("at a gate: nothing is taken out, though the policy has changed", () => {
    const old = stored([injecting({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })], gated());
    const now = [injecting({ nodeSelector: { disk: "nvme", more: "1" }, tolerations: [OTHER] }, "p", 2)];
    const { object, answer } = update(now, again(old), old);
    expect(at(object, "spec", "nodeSelector")).toEqual({ disk: "ssd", more: "1" });
    expect(at(object, "spec", "tolerations")).toEqual([POOL, OTHER]);
    expect(answer.warnings.join()).toContain("USHER-P01");
  });

  test("the UPDATE that opens the last gate may still bring terms", () => {
    const result = update([injecting({ nodeSelector: { disk: "ssd" } })], pod(), gated());
    expect(result.nodeSelector).toEqual({ disk: "ssd" });
  });

  test("a gate that a policy put there and somebody opened stays open", () => {
    const known = [injecting({ schedulingGates: GATES, nodeSelector: { disk: "ssd" } })];
    const old = stored(known, pod());
    expect(at(old, "spec", "schedulingGates")).toEqual(GATES);
    const now = again(old) as { spec: { schedulingGates: Json } };
    now.spec.schedulingGates = [];
    for (const policies of [known, [], [policy({ schedulingGates: GATES })]]) {
      const { object, answer } = update(policies, now, old);
      expect(at(object, "spec", "schedulingGates")).toEqual([]);
      expect(answer.warnings).toEqual([]);
    }
  });

  test.each<[string, JsonObject]>([
    ["at no gate", pod()],
    ["on its node", pod({ spec: { containers: [], nodeName: "n1" } })],
  ])("%s: nothing new", (_what, sent) => {
    const known = [injecting({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })];
    expect(update(known, sent, sent).answer).toMatchObject(noPatch);
    const asked = update(known, asking(sent), sent).answer;
    expect(asked.patch).toEqual([{ op: "remove", path: "/metadata/annotations/usher.dev~1reapply" }]);
    expect(asked.warnings).toHaveLength(1);
    expect(asked.warnings[0]).toContain("USHER-P22");
  });

  test("on its node: a re-apply that strips the injection would be refused, so it is put back", () => {
    const old = stored([policy(EVERYTHING)], pod());
    (old["spec"] as Record<string, Json>)["nodeName"] = "n1";
    const now = pod({
      spec: { containers: [{ name: "main", image: "registry.example/app:2" }], nodeName: "n1" },
    });
    const { object } = update([], now, old);
    expect(at(object, "spec")).toEqual({
      ...(old["spec"] as JsonObject),
      ...(now["spec"] as { containers: Json }),
      nodeName: "n1",
    });
  });

  test("but not where the user changes placement himself: what is refused then is what he wrote", () => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })], pod());
    const now = pod({ spec: { containers: [], nodeSelector: { own: "1" } } });
    const { object } = update([], now, old);
    expect(at(object, "spec")).toEqual({ containers: [], nodeSelector: { own: "1" } });
  });
});

describe("Jobs that exist", () => {
  const job = (spec: JsonObject = {}, parts: WorkloadParts = {}): JsonObject => {
    const made = workload("batch/v1", "Job", parts);
    return { ...made, spec: { ...(made["spec"] as JsonObject), ...spec } };
  };
  const suspended = () => job({ suspend: true });

  test("suspended: Inject gives what such a Job takes, and says what it does not", () => {
    const result = update([injecting(EVERYTHING)], suspended(), suspended());
    expect(templateOf(result)).toMatchObject({
      nodeSelector: { disk: "ssd" },
      tolerations: [POOL],
      affinity: nodeAffinity(zone("a"), zone("b")),
    });
    expect(at(templateOf(result), "affinity", "podAntiAffinity")).toBeUndefined();
    expect(at(templateOf(result), "schedulerName")).toBeUndefined();
    expect(result.answer.warnings).toHaveLength(3);
  });

  test("suspended: a reapply changes what may change and leaves the rest", () => {
    const old = stored([policy(EVERYTHING)], suspended());
    const result = update([], asking(again(old)), old);
    expect(templateOf(result)).toEqual({
      containers: [{ name: "main", image: "registry.example/app:1" }],
      affinity: ANTI,
      schedulerName: "mine",
      topologySpreadConstraints: EVERYTHING["topologySpreadConstraints"],
    });
    expect(provenanceOf(result.object)).toMatchObject([{ policy: "ClusterPodSchedulingPolicy/p" }]);
  });

  test("resumed in the same UPDATE", () => {
    const result = update(
      [injecting({ nodeSelector: { disk: "ssd" } })],
      job({ suspend: false }),
      suspended(),
    );
    expect(result.nodeSelector).toEqual({ disk: "ssd" });
  });

  test.each<[string, JsonObject]>([
    ["a label", job({}, { objectLabels: { a: "1" } })],
    ["a finalizer less", job({}, { metadata: { finalizers: [] } })],
    ["suspended in the same UPDATE", suspended()],
  ])("running: nothing, %s", (_what, now) => {
    const running = job({}, { metadata: { finalizers: ["orphan"] } });
    expect(update([injecting(EVERYTHING)], now, running).answer).toMatchObject(noPatch);
  });

  test("running: what a re-apply stripped is put back whole", () => {
    const old = stored([policy(EVERYTHING)], job());
    const result = update([], withAnnotations(job(), noteOf(old)), old);
    expect(result.object).toEqual(old);
  });
});

describe("nothing at all", () => {
  const known = [injecting(EVERYTHING)];
  const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  const note = noteOf(stored(known, deployment()));

  test.each<[string, JsonObject]>([
    ["a Deployment being deleted", deployment({ metadata: DELETED })],
    ["a pod being deleted", pod({ metadata: DELETED })],
    ["a mirror pod", pod({ annotations: { "kubernetes.io/config.mirror": "x" } })],
    ["a pod of a DaemonSet", pod({ owner: controlledBy("apps/v1", "DaemonSet", "x") })],
    [
      "a ReplicaSet of a Deployment, with its Deployment's note",
      workload("apps/v1", "ReplicaSet", {
        owner: controlledBy("apps/v1", "Deployment", "x"),
        annotations: note,
      }),
    ],
  ])("%s", (_what, object) => {
    expect(update(known, object, object).answer).toMatchObject(noPatch);
    const asked = asking(object);
    expect(update(known, asked, object).answer.patch).toEqual([]);
  });
});

describe("who asks why is reported", () => {
  const trace = (known: readonly JsonObject[], now: JsonObject, old: JsonObject) =>
    placed([SHOP, ...known], requestFor(now, { operation: "UPDATE", oldObject: again(old) }), { trace: true })
      .evaluation.trace;

  test("of each policy, and of those that are gone", () => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" } }, "gone")], deployment());
    const known = [
      injecting({ tolerations: [POOL] }, "new"),
      policy({ nodeSelector: { zone: "a" } }, "unchanged"),
    ];
    const reported = Object.fromEntries(
      trace(known, again(old), old).map(({ policy: { name }, applies, why }) => [name, [applies, why]]),
    );
    expect(reported).toMatchObject({
      new: ["applies", "namespace shop, every template"],
      unchanged: ["not", expect.stringContaining("spec.onUpdate is Restore")],
      gone: ["applies", expect.stringContaining("it was deleted")],
    });
  });

  test("of an object that takes nothing new", () => {
    const [entry] = trace([injecting(EVERYTHING)], pod(), pod());
    expect(entry).toMatchObject({ applies: "not", why: expect.stringContaining("without scheduling gates") });
  });
});

describe("asked about one update twice, as where another webhook changed the object in between", () => {
  const versioned = (object: JsonObject, resourceVersion: string): JsonObject => ({
    ...object,
    metadata: { ...(object["metadata"] as JsonObject), resourceVersion },
  });
  const labelled = (object: JsonObject): JsonObject => ({
    ...object,
    metadata: { ...(object["metadata"] as JsonObject), labels: { another: "webhook" } },
  });
  const before = policy({ ...EVERYTHING, nodeSelector: { disk: "ssd", old: "1" } });
  const changed = {
    ...EVERYTHING,
    nodeSelector: { disk: "nvme" },
    affinity: nodeAffinity(zone("b")),
    tolerations: [OTHER],
  };
  const old = versioned(stored([before], deployment()), "41");

  test.each<[string, JsonObject[], JsonObject]>([
    ["what a policy that is gone had put there stays out", [], asking(old)],
    ["a changed policy's new value stays its own", [policy(changed, "p", 2)], asking(old)],
    ["an injecting policy's new value stays its own", [injecting(changed, "p", 2)], old],
    ["of a re-apply that strips it as well", [injecting(changed, "p", 2)], versioned(deployment(), "41")],
  ])("%s", (_what, known, now) => {
    const first = update(known, now, old);
    const second = update(known, labelled(again(first.object)), old);
    expect(at(second.object, "metadata", "annotations")).toEqual(at(first.object, "metadata", "annotations"));
    expect(second.answer).toMatchObject(noPatch);
    expect(templateOf(second)).toEqual(templateOf(first));
    expect(at(templateOf(first), "nodeSelector", "old")).toBeUndefined();
  });

  test("what shows that it was placed anew means nothing to the next update, and is no reason to change it", () => {
    const renewed = versioned(again(update([], asking(old), old).object), "42");
    expect(templateOf({ object: renewed } as Placed)).toEqual(at(deployment(), "spec", "template", "spec"));
    expect(update([before], labelled(renewed), renewed).answer).toMatchObject(noPatch);
    const made = stored([before], deployment());
    const late = versioned(withAnnotations(made, { [PROVENANCE]: note(renewed) }), "43");
    expect(update([], late, versioned(made, "43")).object).toMatchObject({ spec: made["spec"] });
  });

  const note = (object: JsonObject) => at(object, "metadata", "annotations", PROVENANCE) ?? "";
});

test("what is put back of a policy that is not there is counted for nobody", () => {
  const old = stored([policy(EVERYTHING)], deployment());
  const policies = (known: readonly JsonObject[]) =>
    effectsOf(update(known, deployment(), old).evaluation).tallies.map(({ policy: { name } }) => name);
  expect(policies([])).toEqual([]);
  expect(policies([policy(EVERYTHING)])).toEqual(["p"]);
  const note = {
    placement: [{ policy: "PodSchedulingPolicy/other/q", set: ["/spec/template/spec/nodeSelector/a"] }],
  };
  const forged = withAnnotations(deployment({ spec: { nodeSelector: { a: "b" } } }), {
    [PROVENANCE]: JSON.stringify(note),
  });
  const theirs = namespacedPolicy("other", "q", { podSelector: {}, nodeSelector: { a: "b" } });
  expect(effectsOf(update([theirs], deployment(), forged).evaluation).tallies).toEqual([]);
});
