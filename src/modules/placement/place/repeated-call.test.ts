import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import type { Placed } from "../../../../test/builders/placed.ts";
import { deployment } from "../../../../test/builders/pod.ts";
import {
  asking,
  EVERYTHING,
  injecting,
  nodeAffinity,
  noPatch,
  OTHER,
  policy,
  stored,
  templateOf,
  update,
  withAnnotations,
  zone,
} from "../../../../test/builders/updates.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";

describe("called twice for one update, as if another webhook changed the object in between", () => {
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
    ["a deleted policy's injection stays out", [], asking(old)],
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

  test("the reapply mark has no meaning for the next update, and does not cause a change", () => {
    const renewed = versioned(again(update([], asking(old), old).object), "42");
    expect(templateOf({ object: renewed } as Placed)).toEqual(at(deployment(), "spec", "template", "spec"));
    expect(update([before], labelled(renewed), renewed).answer).toMatchObject(noPatch);
    const made = stored([before], deployment());
    const late = versioned(withAnnotations(made, { [PROVENANCE]: note(renewed) }), "43");
    expect(update([], late, versioned(made, "43")).object).toMatchObject({ spec: made["spec"] });
  });

  const note = (object: JsonObject) => at(object, "metadata", "annotations", PROVENANCE) ?? "";
});
