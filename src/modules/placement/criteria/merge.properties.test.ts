import fc from "fast-check";
import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import { ALL_NODES, anyCriteria, anySpec, asPolicySpec } from "../../../../test/builders/criteria.ts";
import { again } from "../../../../test/builders/json.ts";
import { merged, placementRequest } from "../../../../test/builders/merged.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, matchesPodPlacement, pod } from "../../../../test/builders/pod.ts";
import { clusterPolicy, namespacedPolicy } from "../../../../test/builders/policy.ts";
import type { Json } from "../../../core/json.ts";
import type { PlacementRequest } from "./context.ts";

const requests: fc.Arbitrary<PlacementRequest[]> = fc
  .array(anyCriteria, { minLength: 1, maxLength: 4 })
  .map((list) => list.map((criteria, i) => placementRequest(criteria, { name: `p${i}` })));

/** A pod or the template of a Deployment, with the path of its spec. */
const target = fc
  .tuple(anySpec, fc.boolean())
  .map(([spec, template]) =>
    template
      ? { object: deployment({ spec }), merging: { spec: ["spec", "template", "spec"] } }
      : { object: pod({ spec }), merging: { spec: ["spec"] } },
  );

describe("for any requests and any object", () => {
  test("applying one to five times gives the same bytes", () => {
    fc.assert(
      fc.property(target, requests, ({ object, merging }, list) => {
        const first = merged(object, list, merging);
        let last = first;
        for (let times = 2; times <= 5; times++) {
          last = merged(last.object, list, merging);
          expect(last.patch).toEqual([]);
        }
        expect(JSON.stringify(last.object)).toBe(JSON.stringify(first.object));
      }),
      { numRuns: 300 },
    );
  });

  test("the patch gives the object, and everything else is unchanged", () => {
    fc.assert(
      fc.property(target, requests, ({ object, merging }, list) => {
        const { object: after, patch } = merged(object, list, merging);
        const patched = again(object);
        const operations = again(patch as unknown as Json) as unknown as Operation[];
        for (const error of applyPatch(patched, operations)) expect(error).toBeNull();
        expect(patched).toEqual(after);
      }),
      { numRuns: 300 },
    );
  });

  test("no further node is allowed, and if some could match some still can", () => {
    let narrowed = 0;
    fc.assert(
      fc.property(anySpec, requests, (spec, list) => {
        const after = merged(pod({ spec }), list).spec;
        const allowed = (of: Json) => ALL_NODES.filter((node) => matchesPodPlacement(of, node));
        const before = new Set(allowed(spec));
        const now = allowed(after);
        for (const node of now) expect(before.has(node)).toBe(true);
        // The universe has a node for each way in which such terms can be met.
        if (before.size > 0) expect(now.length).toBeGreaterThan(0);
        if (now.length < before.size) narrowed++;
      }),
      { numRuns: 300 },
    );
    expect(narrowed).toBeGreaterThan(50);
  });

  test("with Refuse either all is as with Skip, or it is refused", () => {
    fc.assert(
      fc.property(target, requests, ({ object, merging }, list) => {
        const skipping = merged(object, list, merging);
        const refusing = merged(
          object,
          list.map((one) => ({ ...one, onConflict: "Refuse" as const })),
          merging,
        );
        const refused = refusing.findings.some(({ outcome }) => outcome === "violated");
        const conflicts = ["USHER-P01", "USHER-P10", "USHER-P14"];
        if (!refused) {
          expect(refusing.object).toEqual(skipping.object);
          expect(skipping.findings.some(({ code }) => code !== undefined && conflicts.includes(code))).toBe(
            false,
          );
        }
      }),
      { numRuns: 200 },
    );
  });
});

test("any order of policies gives the same bytes, through the whole module", () => {
  const policies = fc
    .array(fc.tuple(anyCriteria, fc.constantFrom(undefined, 1, -1), fc.boolean()), {
      minLength: 2,
      maxLength: 4,
    })
    .map((list) =>
      list.map(([criteria, priority, cluster], i) => {
        const spec = {
          podSelector: {},
          ...asPolicySpec(criteria),
          ...(priority === undefined ? {} : { priority }),
        };
        // Twins by name, one for the cluster and one for the namespace, are two policies.
        const name = `p${i >> 1}${i % 2 === 0 || cluster ? "" : "x"}`;
        return i % 2 === 0
          ? clusterPolicy(name, { ...spec, namespaceSelector: {} })
          : namespacedPolicy("shop", name, spec);
      }),
    );
  const shuffled = policies.chain((list) =>
    fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
  );
  fc.assert(
    fc.property(shuffled, anySpec, ([list, other], spec) => {
      // None of these names an object that would have to be looked up.
      const bare = (one: (typeof list)[number]) =>
        ({ ...one, spec: { ...(one["spec"] as object), nodeName: null } }) as typeof one;
      const first = placed([SHOP, ...list.map(bare)], deployment({ spec }));
      const second = placed([SHOP, ...other.map(bare)], deployment({ spec }));
      expect(JSON.stringify(second.object)).toBe(JSON.stringify(first.object));
      expect(second.answer).toEqual(first.answer);
    }),
    { numRuns: 100 },
  );
});
