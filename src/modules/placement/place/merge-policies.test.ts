import { describe, expect, test } from "vitest";
import { mergedSpec, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import type { Fields } from "../../../../test/builders/wants.ts";
import type { JsonObject } from "../../../core/json.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

const preference = (key: string, weight = 100) => ({ weight, preference: term(`${key}=x`) });
const toleration = (key: string) => ({
  key,
  operator: "Equal",
  value: `${key}Value`,
  effect: "PreferNoSchedule",
});

describe("a policy that refuses", () => {
  test.each<[string, own: JsonObject, Fields, code: string]>([
    [
      "a nodeSelector key",
      { nodeSelector: { zone: "b" } },
      {
        nodeSelector: [
          ["disk", "ssd"],
          ["zone", "a"],
        ],
      },
      "USHER-P01",
    ],
    ["a name", { schedulerName: "mine" }, { schedulerName: "theirs" }, "USHER-P10"],
    ["a contradiction", requiring(term("zone=b")), { requiredNodeAffinity: [term("zone=a")] }, "USHER-P11"],
    [
      "a nodeSelector key against the affinity",
      requiring(term("zone=b")),
      { nodeSelector: [["zone", "a"]] },
      "USHER-P11",
    ],
    [
      "a toleration for another time",
      { tolerations: [{ key: "a", effect: "NoExecute" }] },
      { tolerations: [{ key: "b" }, { key: "a", effect: "NoExecute", tolerationSeconds: 1 }] },
      "USHER-P14",
    ],
  ])("%s", (_what, own, criteria, code) => {
    const refusing = mergedSpec(own, [placementRequest(criteria, { onConflict: "Refuse" })]);
    expect(refusing.patch).toEqual([]);
    expect(refusing.findings).toMatchObject([{ outcome: "violated", code }]);
    expect(refusing.findings[0]?.warn).toBeUndefined();
    const skipping = mergedSpec(own, [placementRequest(criteria)]);
    expect(skipping.findings.at(-1)).toMatchObject({ outcome: "skipped", code, warn: 60 });
    // Nothing is refused for a restore.
    const back = mergedSpec(own, [placementRequest(criteria, { onConflict: "Refuse", restoring: true })]);
    expect(back.findings.some(({ outcome }) => outcome === "violated")).toBe(false);
  });

  test("writes its other fields", () => {
    const asked = placementRequest(
      { schedulerName: "x", nodeSelector: [["zone", "a"]] },
      { onConflict: "Refuse" },
    );
    expect(mergedSpec({ schedulerName: "mine" }, [asked]).spec).toEqual({
      schedulerName: "mine",
      nodeSelector: { zone: "a" },
    });
  });
});

test("unknown fields survive, byte for byte", () => {
  const own = {
    initContainers: [{ name: "sidecar", restartPolicy: "Always", invented: [null, { x: 1 }] }],
    schedulingGates: [{ name: "wait", since: 3 }],
    affinity: {
      invented: { deep: [1] },
      nodeAffinity: {
        newer: true,
        [REQUIRED]: { nodeSelectorTerms: [{ ...term("zone=a"), future: { y: [] } }], sibling: 1 },
        [PREFERRED]: [{ ...preference("old"), newer: "z" }],
      },
    },
    tolerations: [{ key: "k", operator: "Exists", future: 1 }],
  };
  const { spec } = mergedSpec(own, [
    placementRequest({
      requiredNodeAffinity: [term("disk=ssd")],
      preferredNodeAffinity: [preference("new")],
      tolerations: [toleration("new")],
      nodeSelector: [["a", "b"]],
    }),
  ]);
  expect(JSON.stringify(spec)).toBe(
    JSON.stringify({
      ...own,
      affinity: {
        ...own.affinity,
        nodeAffinity: {
          newer: true,
          [REQUIRED]: {
            nodeSelectorTerms: [{ ...term("zone=a", "disk=ssd"), future: { y: [] } }],
            sibling: 1,
          },
          [PREFERRED]: [{ ...preference("old"), newer: "z" }, preference("new")],
        },
      },
      tolerations: [...own.tolerations, toleration("new")],
      nodeSelector: { a: "b" },
    }),
  );
});

test("a policy with the same name in a namespace is another one", () => {
  const shop = { ref: { kind: "PodSchedulingPolicy", namespace: "shop", name: "p" } };
  const { findings } = mergedSpec({}, [
    placementRequest({ schedulerName: "x" }),
    placementRequest({ schedulerName: "y" }, shop),
  ]);
  expect(findings.at(-1)?.message).toBe("schedulerName: kept policy p's value x; policy shop/p wants y");
});
