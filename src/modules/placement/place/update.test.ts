import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import {
  asking,
  EVERYTHING,
  injecting,
  noPatch,
  noteOf,
  POOL,
  policy,
  stored,
  update,
  withAnnotations,
} from "../../../../test/builders/updates.ts";
import { effectsOf } from "../../../core/evaluate/effects.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";

describe("Restore: nothing new, nothing lost", () => {
  test("everything that a policy added is restored after a re-apply stripped it, to the byte", () => {
    const known = [policy(EVERYTHING)];
    const old = stored(known, deployment());
    const result = update(known, withAnnotations(deployment(), noteOf(old)), old);
    expect(result.object).toEqual(old);
    expect(result.answer.warnings).toEqual([]);
  });

  test("also when the policy is deleted, with its provenance", () => {
    const old = stored([policy(EVERYTHING)], deployment());
    const { object } = update([], deployment(), old);
    expect(object).toEqual(old);
  });

  test("an unchanged object is untouched", () => {
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

describe("a rollback restores everything except the injection, with a warning", () => {
  const known = [policy({ nodeSelector: { disk: "ssd" } })];
  const old = stored(known, deployment({ spec: { containers: [{ name: "c", image: "two" }] } }));
  const before = deployment({ spec: { containers: [{ name: "c", image: "one" }] } });
  // The API server turns a patch into an update.
  const options = { kind: "UpdateOptions", apiVersion: "meta.k8s.io/v1" };
  const CONTROLLER = { username: "system:serviceaccount:etcd:druid", groups: [] };

  test.each<[string, JsonObject, Parameters<typeof requestFor>[1]]>([
    ["of a StatefulSet, by a user", withAnnotations(before, noteOf(old)), { options }],
    ["of a Deployment, with the old provenance", before, { options }],
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
  ])("%s gets no warning", (_what, sent, change) => {
    const { object, answer } = update(known, sent, old, change);
    expect(at(object, "spec", "template", "spec", "nodeSelector")).toEqual({ disk: "ssd" });
    expect(answer.warnings).toEqual([]);
  });

  test("nor does a patch that stripped nothing", () => {
    expect(update(known, again(old), old, { options }).answer).toMatchObject(noPatch);
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
      "a ReplicaSet of a Deployment, with its Deployment's provenance",
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

describe("the trace explains", () => {
  const trace = (known: readonly JsonObject[], now: JsonObject, old: JsonObject) =>
    placed([SHOP, ...known], requestFor(now, { operation: "UPDATE", oldObject: again(old) }), { trace: true })
      .evaluation.trace;

  test("each policy, and deleted ones", () => {
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

  test("an object that accepts nothing new", () => {
    const [entry] = trace([injecting(EVERYTHING)], pod(), pod());
    expect(entry).toMatchObject({ applies: "not", why: expect.stringContaining("without scheduling gates") });
  });
});

test("a restore for a missing policy is not counted", () => {
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
