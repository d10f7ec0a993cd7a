import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCriteria, anySpec } from "../../../../test/builders/criteria.ts";
import { again } from "../../../../test/builders/json.ts";
import { carried, merged, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import { pod } from "../../../../test/builders/pod.ts";
import { update } from "../../../../test/builders/updates.ts";
import { canonical, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import {
  annotationText,
  PROVENANCE,
  provenanceOf,
  readProvenance,
} from "../../../core/provenance/annotation.ts";
import { Unchanged } from "../../../core/provenance/provenance.ts";
import type { PlacementRequest } from "../criteria/context.ts";
import { REQUIRED_TERMS } from "../criteria/node-term.ts";
import { termsMeaning } from "../criteria/required-node-affinity.ts";
import { ALL_STALE } from "./injections.ts";

const requests: fc.Arbitrary<PlacementRequest[]> = fc
  .array(anyCriteria, { minLength: 1, maxLength: 3 })
  .map((list) => list.map((criteria, i) => placementRequest(criteria, { name: `p${i}` })));

/** An object as the version before wrote it: without values from before, and without terms that were left out. */
function inOldForm(object: JsonObject): JsonObject {
  const has = new Unchanged(object, object);
  const text = annotationText({
    origins: provenanceOf(object).map((origin) => ({
      ...origin,
      added: Object.fromEntries(
        Object.entries(origin.added).map(([list, all]) => [
          list,
          all.filter((one) => has.hasElement(list, one)),
        ]),
      ),
    })),
    was: new Map(),
    reappliedFrom: undefined,
  });
  const metadata = object["metadata"] as JsonObject;
  return {
    ...object,
    metadata: { ...metadata, annotations: text === undefined ? {} : { [PROVENANCE]: text } },
  };
}

describe("for any policies and any pod", () => {
  test("removing all injections restores the sent pod, whatever pod and policies share", () => {
    fc.assert(
      fc.property(anySpec, requests, (spec, list) => {
        const stored = merged(pod({ spec }), list).object;
        const { spec: left } = carried(stored, stored, { stalePart: ALL_STALE });
        const own = again(spec) as Record<string, Json>;
        // The API server derives these from a class, and fills the default scheduler in.
        for (const field of ["priority", "preemptionPolicy"]) delete own[field];
        if (own["schedulerName"] === "default-scheduler" && left["schedulerName"] === undefined)
          delete own["schedulerName"];
        expect(canonical({ ...left, priority: undefined, preemptionPolicy: undefined })).toBe(canonical(own));
      }),
      { numRuns: 200 },
    );
  });

  test("removing one of two policies leaves the meaning of the other alone", () => {
    const terms = fc.array(fc.constantFrom("zone=a", "zone=b", "disk=ssd", "cpu", "!gpu"), {
      minLength: 1,
      maxLength: 2,
    });
    const wanting = (texts: readonly string[], name: string) =>
      placementRequest({ requiredNodeAffinity: texts.map((text) => term(text)) }, { name });
    fc.assert(
      fc.property(terms, terms, terms, (own, first, second) => {
        const sent = pod({ spec: requiring(...own.map((text) => term(text))) });
        const [a, b] = [wanting(first, "a"), wanting(second, "b")];
        const both = merged(sent, [a, b]);
        // A contradicting policy was left out, and added nothing.
        fc.pre(both.findings.every(({ outcome }) => outcome === "applied"));
        const alone = merged(sent, [b]);
        const left = carried(both.object, both.object, {
          stalePart: ({ origin, value }) => (origin.policy.endsWith("/a") ? value : undefined),
        });
        expect(termsMeaning(listAt(left.spec, ...REQUIRED_TERMS))).toBe(
          termsMeaning(listAt(alone.spec, ...REQUIRED_TERMS)),
        );
      }),
      { numRuns: 200 },
    );
  });

  test("an annotation of the version before restores the same, and is brought up to date by the next merge", () => {
    fc.assert(
      fc.property(requests, (list) => {
        const sent = pod({ spec: { containers: [] } });
        const stored = merged(sent, list);
        const old = inOldForm(stored.object);
        expect(carried(old, old).patch).toEqual([]);
        expect(canonical(carried(sent, old).spec)).toBe(canonical(stored.spec));
        const renewed = carried(old, old, { stalePart: ALL_STALE, wanting: list });
        expect(renewed.spec).toEqual(stored.spec);
        expect(readProvenance(renewed.object)).toEqual(readProvenance(stored.object));
      }),
      { numRuns: 100 },
    );
  });
});

describe("an alternative that a policy excluded", () => {
  const own = requiring(term("zone=a"), term("zone=b"));
  const stored = merged(pod({ spec: own }), [placementRequest({ requiredNodeAffinity: [term("zone=a")] })]);

  test("is restored when the policy is removed", () => {
    expect(stored.spec).toEqual(requiring(term("zone=a")));
    expect(carried(stored.object, stored.object, { stalePart: ALL_STALE }).spec).toEqual(own);
  });

  test("stays out if others changed the terms since: the value from before is unknown", () => {
    const changed = { ...stored.object, spec: requiring(term("zone=a", "disk=ssd")) };
    expect(carried(changed, changed, { stalePart: ALL_STALE }).spec).toEqual(requiring(term("disk=ssd")));
  });
});

test("a term that the user adds to injected ones is the user's, and the injected ones are still removed", () => {
  const policy = placementRequest({ requiredNodeAffinity: [term("zone=a"), term("zone=b")] });
  const stored = merged(pod({ spec: {} }), [policy]).object;
  const now = { ...stored, spec: requiring(term("zone=a"), term("zone=b"), term("disk=ssd")) };
  expect(carried(now, stored, { stalePart: ALL_STALE }).spec).toEqual(requiring(term("disk=ssd")));
});

test("an annotation that only the request has changes nothing but itself", () => {
  const places = fc.constantFrom("/spec/nodeSelector/zone", "/spec/schedulerName", "/spec/tolerations");
  fc.assert(
    fc.property(anySpec, fc.array(places), fc.boolean(), (spec, set, asks) => {
      const forged = {
        placement: [
          { policy: "ClusterPodSchedulingPolicy/p", set, added: { "/spec/tolerations": [{ key: "k" }] } },
        ],
        was: { "/spec/tolerations": { value: [{ key: "forged" }], now: "x" } },
      };
      const reapply = asks ? { "usher.dev/reapply": "now" } : {};
      const sent = (annotations: JsonObject) => pod({ spec, annotations: { ...annotations, ...reapply } });
      const old = pod({ spec });
      const honest = update([], sent({}), old).object["spec"];
      expect(update([], sent({ [PROVENANCE]: JSON.stringify(forged) }), old).object["spec"]).toEqual(honest);
    }),
    { numRuns: 100 },
  );
});
