import { describe, expect, test } from "vitest";
import { again } from "../../../test/builders/json.ts";
import { controlledBy } from "../../../test/builders/pod.ts";
import { ETCD, finding, object, SHOP } from "../../../test/builders/provenance.ts";
import { Draft } from "../decision/draft.ts";
import type { JsonObject } from "../json.ts";
import { PROVENANCE, provenanceOf, readProvenance } from "./annotation.ts";
import { writeProvenance } from "./provenance.ts";
import { takeBack } from "./take-back.ts";

const LIST = ["spec", "list"];

/** An object after edits of policies of module `m`. */
function stored(spec: JsonObject, edit: (draft: Draft) => void): JsonObject {
  const draft = new Draft(object(undefined, again(spec)));
  draft.author = "m";
  edit(draft);
  writeProvenance(draft, [], undefined);
  return again(draft.object);
}

/** The spec after the module's edits of the stored object were taken back. */
function reverted(old: JsonObject, now: JsonObject = old, module = "m"): JsonObject {
  const draft = new Draft(again(now), old);
  takeBack(draft, module);
  writeProvenance(draft, [], old);
  return again(draft.object);
}

describe("the annotation", () => {
  test("has the value that the first of several policies replaced", () => {
    const old = stored({ list: [1] }, (draft) => {
      draft.set(LIST, [1, 2], finding(ETCD));
      draft.set(LIST, [1, 2, 3], finding(SHOP));
    });
    expect(readProvenance(old).was.get("/spec/list")).toMatchObject({ value: [1] });
    expect(provenanceOf(old).map(({ set }) => set)).toEqual([["/spec/list"], ["/spec/list"]]);
  });

  test("has no value for a scalar that was absent before", () => {
    const old = stored({}, (draft) => draft.set(["spec", "name"], "x", finding(ETCD)));
    expect(readProvenance(old).was.size).toBe(0);
  });

  test("keeps a list that a policy emptied, which the API server stores as absent", () => {
    const made = stored({ list: [1] }, (draft) => draft.set(LIST, [], finding(ETCD)));
    const old = { ...made, spec: {} };
    const draft = new Draft(again(old), old);
    writeProvenance(draft, [], old);
    expect(draft.edits).toEqual([]);
    draft.set(["spec", "other"], 1, undefined);
    writeProvenance(draft, [], old);
    expect(readProvenance(draft.object)).toEqual(readProvenance(made));
  });
});

describe("removing a module's changes", () => {
  test.each<[string, JsonObject, (draft: Draft) => void]>([
    ["a text", {}, (draft) => draft.set(["spec", "a", "b"], "x", finding(ETCD))],
    ["a scalar that replaced another", { a: "y" }, (draft) => draft.set(["spec", "a"], "x", finding(ETCD))],
    ["an object", {}, (draft) => draft.set(["spec", "os"], { name: "linux" }, finding(ETCD))],
    ["a list that was replaced", { list: [1, 2] }, (draft) => draft.set(LIST, [2], finding(ETCD))],
    ["a place in a list", { list: [{}] }, (draft) => draft.set([...LIST, 0, "a"], "x", finding(ETCD))],
    [
      "a place of several policies",
      { list: [1] },
      (draft) => {
        draft.set(LIST, [1, 2], finding(ETCD));
        draft.set(LIST, [1, 2, 3], finding(SHOP));
      },
    ],
  ])("restores the previous value: %s", (_what, spec, edit) => {
    const now = reverted(stored(spec, edit));
    expect(now["spec"]).toEqual(spec);
    expect(provenanceOf(now)).toEqual([]);
  });

  const OLD = stored({ list: [1] }, (draft) => draft.set(LIST, [2], finding(ETCD)));

  test.each<[string, JsonObject, JsonObject, string]>([
    ["a value that the update changes", OLD, { ...OLD, spec: { list: [3] } }, "m"],
    [
      "a value that was changed while usher was down",
      { ...OLD, spec: { list: [3] } },
      { ...OLD, spec: { list: [3] } },
      "m",
    ],
    ["a value of another module", OLD, OLD, "n"],
  ])("leaves %s", (_what, old, now, module) => {
    expect(reverted(old, now, module)["spec"]).toEqual(now["spec"]);
  });

  test("leaves a controller's copy", () => {
    const metadata = {
      ...(OLD["metadata"] as JsonObject),
      ownerReferences: [controlledBy("apps/v1", "Deployment", "web")],
    };
    const copy = { ...OLD, metadata };
    expect(reverted(copy)["spec"]).toEqual(OLD["spec"]);
  });

  test("believes the stored annotation only", () => {
    const forged = {
      m: [{ policy: "K/p", set: ["/spec/list"] }],
      was: { "/spec/list": { value: [9], now: "x" } },
    };
    const bare = object(undefined, { list: [1] });
    const now = object({ ...forged }, { list: [1] });
    expect(reverted(bare, now)["spec"]).toEqual({ list: [1] });
    const metadata = OLD["metadata"] as JsonObject;
    const annotations = { [PROVENANCE]: JSON.stringify(forged) };
    expect(reverted(OLD, { ...OLD, metadata: { ...metadata, annotations } })["spec"]).toEqual({ list: [1] });
  });
});
