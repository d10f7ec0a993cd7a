import { describe, expect, test } from "vitest";
import { Draft, type Origin } from "../decision/draft.ts";
import type { JsonObject } from "../json.ts";
import { PROVENANCE, provenanceOf } from "./annotation.ts";
import { writeProvenance } from "./provenance.ts";

const BEFORE: Origin = { module: "m", policy: "K/before", set: ["/spec/a"], added: { "/spec/list": [1, 2] } };
const AFTER = { policy: { kind: "K", name: "after" }, rule: "r", outcome: "applied", message: "" } as const;

const stored = (metadata: JsonObject = {}): JsonObject => {
  const note = { m: [{ policy: BEFORE.policy, set: BEFORE.set, added: BEFORE.added }] };
  const annotations = { [PROVENANCE]: JSON.stringify(note) };
  return { metadata: { ...metadata, annotations }, spec: { a: "x", list: [1, 2] } };
};

/** A draft in which another policy has rewritten a removed value. */
const rewritten = (takesBack: readonly Origin[]): { draft: Draft; old: JsonObject } => {
  const old = stored();
  const draft = new Draft(stored(), old);
  draft.author = "m";
  draft.remove(["spec", "list"], undefined, { takesBack });
  draft.append(["spec", "list"], 1, AFTER);
  draft.append(["spec", "list"], 2, AFTER);
  return { draft, old };
};

const policies = (draft: Draft) => provenanceOf(draft.object).map(({ policy }) => policy);

describe("an injection that was removed and rewritten", () => {
  test("belongs to the policy that wrote it last", () => {
    const { draft, old } = rewritten([BEFORE]);
    writeProvenance(draft, [], old);
    expect(provenanceOf(draft.object)).toEqual([
      { module: "m", policy: "K/after", set: [], added: { "/spec/list": [1, 2] } },
    ]);
  });

  test("keeps the part that was not removed", () => {
    const { draft, old } = rewritten([{ ...BEFORE, set: [], added: { "/spec/list": [2] } }]);
    writeProvenance(draft, [], old);
    expect(provenanceOf(draft.object).find(({ policy }) => policy === "K/before")).toMatchObject({
      set: ["/spec/a"],
      added: { "/spec/list": [1] },
    });
  });

  test.each<[string, Origin]>([
    ["another policy", { ...BEFORE, policy: "K/other" }],
    ["another module", { ...BEFORE, module: "n" }],
  ])("keeps its policy if that of %s was removed", (_what, origin) => {
    const { draft, old } = rewritten([origin]);
    writeProvenance(draft, [], old);
    expect(policies(draft)).toContain("K/before");
  });

  test("stays if the edit was undone", () => {
    const old = stored();
    const draft = new Draft(stored(), old);
    const start = draft.mark();
    draft.remove(["spec", "list"], undefined, { takesBack: [BEFORE] });
    draft.undo(start);
    expect(writeProvenance(draft, [], old)).toBe(true);
    expect(policies(draft)).toEqual(["K/before"]);
  });
});

test("the annotation of an object that is being deleted is left as it is", () => {
  const going = { deletionTimestamp: "2026-01-01T00:00:00Z" };
  const now = { ...stored(going), spec: {} };
  const draft = new Draft(now, stored(going));
  expect(writeProvenance(draft, [], stored(going))).toBe(true);
  expect(draft.edits).toEqual([]);
});
