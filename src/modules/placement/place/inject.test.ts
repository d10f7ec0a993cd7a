import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { outside, outsideWith } from "../../../../test/builders/outside.ts";
import { placedWith, SHOP } from "../../../../test/builders/placed.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import {
  asking,
  injecting,
  nodeAffinity,
  OTHER,
  POOL,
  policy,
  stored,
  templateOf,
  update,
  zone,
} from "../../../../test/builders/updates.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";

describe("Inject: the current policy", () => {
  test("of a policy that is new to the object", () => {
    const result = update(
      [injecting({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })],
      deployment(),
      deployment(),
    );
    expect(templateOf(result)).toMatchObject({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] });
    expect(provenanceOf(result.object)).toMatchObject([{ policy: "ClusterPodSchedulingPolicy/p" }]);
  });

  test("its new value replaces the old one, and provenance records it", () => {
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

  test("required terms are exchanged inside the pod's own", () => {
    const own = { matchExpressions: [{ key: "arch", operator: "Exists" }] };
    const sent = deployment({ spec: { containers: [], affinity: nodeAffinity(own) } });
    const old = stored([injecting({ affinity: nodeAffinity(zone("a"), zone("b")) })], sent);
    const result = update([injecting({ affinity: nodeAffinity(zone("c")) }, "p", 2)], again(old), old);
    expect(at(templateOf(result), "affinity")).toEqual(
      nodeAffinity({ matchExpressions: [...own.matchExpressions, ...zone("c").matchExpressions] }),
    );
  });

  test("an unchanged policy changes nothing, wherever its parts are", () => {
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
    // Only the provenance annotation follows the policy's generation, which rolls nothing out.
    for (const { path } of result.answer.patch) expect(path).toMatch(/^\/metadata\/annotations/);
    expect(result.answer.warnings).toEqual([]);
  });

  test("a policy that restores gets nothing new beside it", () => {
    const known = [
      injecting({ nodeSelector: { disk: "ssd" } }),
      policy({ nodeSelector: { zone: "a" } }, "q"),
    ];
    expect(at(templateOf(update(known, deployment(), deployment())), "nodeSelector")).toEqual({
      disk: "ssd",
    });
  });

  test("the user's own values stay", () => {
    const now = deployment({ spec: { containers: [], nodeSelector: { disk: "own" } } });
    const { nodeSelector, answer } = update(
      [injecting({ nodeSelector: { disk: "ssd" } })],
      now,
      deployment(),
    );
    expect(nodeSelector).toEqual({ disk: "own" });
    expect(answer.warnings[0]).toContain("USHER-P01");
  });

  test("a policy that no longer selects the object counts as deleted", () => {
    const old = stored([injecting({ nodeSelector: { disk: "ssd" } })], deployment());
    const narrowed = clusterPolicy("p", {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: "other" } },
      nodeSelector: { disk: "nvme" },
      onUpdate: "Inject",
    });
    expect(update([narrowed], deployment(), old).nodeSelector).toEqual({ disk: "ssd" });
  });

  test("an unreadable one is reported, and refuses if it fails closed", () => {
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
    ["that can't be evaluated and fails closed", { tolerations: "nonsense", failurePolicy: "Fail" }],
  ])("one %s does not block updates that leave the template unchanged", (_what, criteria) => {
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

  test("a namespace is only fetched if such a policy depends on it", async () => {
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
