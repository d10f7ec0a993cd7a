import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { placed, placedWith, SHOP } from "../../../../test/builders/placed.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import {
  ANTI,
  asking,
  EVERYTHING,
  OTHER,
  POOL,
  policy,
  stored,
  templateOf,
  update,
  withAnnotations,
} from "../../../../test/builders/updates.ts";
import { at } from "../../../core/json.ts";
import { PROVENANCE, provenanceOf } from "../../../core/provenance/annotation.ts";

describe("reapply: as if created now", () => {
  test("a deleted policy's injection is removed, and so is the annotation", () => {
    const old = stored([policy(EVERYTHING)], deployment());
    const result = update([], asking(again(old)), old);
    expect(result.object).toEqual(deployment({ annotations: {} }));
    expect(result.answer.warnings).toEqual([]);
  });

  test("a changed policy is applied, with any onUpdate", () => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })], deployment());
    const now = [
      policy({ nodeSelector: { zone: "a" }, affinity: ANTI }, "p", 2),
      policy({ tolerations: [OTHER] }, "q"),
    ];
    const result = update(now, asking(again(old)), old);
    const fresh = placed([SHOP, ...now], deployment()).object;
    expect(result.object).toEqual(fresh);
  });

  test("precedence counts again", () => {
    const low = policy({ nodeSelector: { disk: "ssd" } }, "low");
    const old = stored([low], deployment());
    const known = [low, policy({ nodeSelector: { disk: "nvme" }, priority: 5 }, "high")];
    const result = update(known, asking(again(old)), old);
    expect(result.nodeSelector).toEqual({ disk: "nvme" });
    expect(provenanceOf(result.object)).toMatchObject([{ policy: "ClusterPodSchedulingPolicy/high" }]);
  });

  test("an equal policy of another name takes over the provenance and nothing else", () => {
    const old = stored([policy(EVERYTHING, "before")], deployment());
    const result = update([policy(EVERYTHING, "after")], asking(again(old)), old);
    expect(templateOf(result)).toEqual(at(old, "spec", "template", "spec"));
    expect(provenanceOf(result.object).map((one) => one.policy)).toEqual([
      "ClusterPodSchedulingPolicy/after",
    ]);
    for (const { path } of result.answer.patch) expect(path).toMatch(/^\/metadata\/annotations/);
  });

  test("if everything is current only the annotation is removed", () => {
    const known = [policy(EVERYTHING)];
    const old = stored(known, deployment());
    const { answer } = update(known, asking(again(old)), old);
    expect(answer.patch).toEqual([{ op: "remove", path: "/metadata/annotations/usher.dev~1reapply" }]);
  });

  test("an object from before all policies gets the missing criteria", () => {
    const result = update([policy({ nodeSelector: { disk: "ssd" } })], asking(deployment()), deployment());
    expect(result.nodeSelector).toEqual({ disk: "ssd" });
    expect(at(result.object, "metadata", "annotations", "usher.dev/reapply")).toBeUndefined();
  });

  test("the stored provenance counts", () => {
    const forged = { placement: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector/own"] }] };
    const sent = deployment({ spec: { containers: [], nodeSelector: { own: "1" } } });
    const now = withAnnotations(asking(sent), { [PROVENANCE]: JSON.stringify(forged) });
    expect(update([], now, sent).nodeSelector).toEqual({ own: "1" });
  });

  test("an object created with the annotation does not keep it", () => {
    const { object } = placed([SHOP], asking(deployment()));
    expect(at(object, "metadata", "annotations")).toEqual({});
  });

  test("nothing is lost because a fact is unknown", async () => {
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

  test("nor because a policy can't be evaluated", () => {
    const known = policy({ nodeSelector: { disk: "ssd" } });
    const old = stored([known], deployment());
    const broken = policy({ nodeSelector: { disk: "ssd" }, tolerations: "nonsense" }, "p", 2);
    const { nodeSelector, answer } = update([broken], asking(again(old)), old);
    expect(nodeSelector).toEqual({ disk: "ssd" });
    expect(answer.warnings.join()).toContain("USHER-P22");
  });
});
