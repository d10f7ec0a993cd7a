import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, deployment, workload } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { PROVENANCE, provenanceOf } from "../../../core/provenance/annotation.ts";

const POLICY = clusterPolicy("p", {
  namespaceSelector: {},
  podSelector: {},
  nodeSelector: { zone: "a", "disk.example/type": "ssd" },
});
const INJECTED = { zone: "a", "disk.example/type": "ssd" };

const manifest = (nodeSelector?: Json, further: JsonObject = {}) =>
  deployment({
    spec: { containers: [], ...(nodeSelector === undefined ? {} : { nodeSelector }) },
    ...further,
  });

/** As it is stored: once admitted with the policy. */
const STORED = placed([SHOP, POLICY], manifest()).object;
const NOTE = provenanceOf(STORED);

const update = (now: JsonObject, old: JsonObject = STORED, known: readonly JsonObject[] = [SHOP, POLICY]) =>
  placed(known, requestFor(now, { operation: "UPDATE", oldObject: again(old) }));

const noted = (note: Json): JsonObject => ({ annotations: { [PROVENANCE]: JSON.stringify(note) } });

describe("a stripped injection is restored", () => {
  test.each<[string, JsonObject]>([
    ["all of it, with the provenance", manifest()],
    ["the values only", manifest(undefined, { annotations: { [PROVENANCE]: JSON.stringify("kept") } })],
    ["one of two", manifest({ zone: "a" })],
    ["a nodeSelector that is null", manifest(null)],
    ["keys that are null", manifest({ zone: null })],
  ])("%s", (_what, now) => {
    const { nodeSelector, object, answer, evaluation } = update(now);
    expect(nodeSelector).toEqual(INJECTED);
    expect(provenanceOf(object)).toEqual(NOTE);
    expect(answer).toMatchObject({ allowed: true, warnings: [] });
    for (const { rule, outcome } of evaluation.findings)
      expect([rule, outcome]).toEqual(["restore", "applied"]);
  });

  test("and a complete one is unchanged", () => {
    expect(update(STORED).answer.patch).toEqual([]);
  });

  test("the result is as before, so nothing rolls", () => {
    const { object } = update(manifest());
    expect(object["spec"]).toEqual(STORED["spec"]);
  });

  test("also if the policy is deleted, has changed, or selects others now", () => {
    const other = clusterPolicy("p", { namespaceSelector: {}, podSelector: {}, nodeSelector: { zone: "b" } });
    for (const known of [[], [SHOP], [SHOP, other]]) {
      expect(update(manifest(), STORED, known).nodeSelector).toEqual(INJECTED);
    }
  });

  test("beside the user's own values", () => {
    const { nodeSelector } = update(manifest({ own: "1" }));
    expect(nodeSelector).toEqual({ own: "1", ...INJECTED });
  });

  test("of a CronJob and a Job as well", () => {
    for (const kind of ["CronJob", "Job"]) {
      const sent = () => workload("batch/v1", kind);
      const stored = placed([SHOP, POLICY], sent()).object;
      expect(update(sent(), stored).nodeSelector).toEqual(INJECTED);
    }
  });
});

describe("not restored", () => {
  test("a key that the user sets: the user's value stays, and is the user's", () => {
    const { nodeSelector, object } = update(manifest({ zone: "mine" }));
    expect(nodeSelector).toEqual({ zone: "mine", "disk.example/type": "ssd" });
    expect(provenanceOf(object)[0]?.set).toEqual(["/spec/template/spec/nodeSelector/disk.example~1type"]);
  });

  test("values that the stored object no longer has", () => {
    const old = again(STORED);
    (old as { spec: { template: { spec: { nodeSelector: unknown } } } }).spec.template.spec.nodeSelector = {
      zone: "a",
    };
    expect(update(manifest(), old).nodeSelector).toEqual({ zone: "a" });
  });

  test("values that only the incoming provenance claims", () => {
    const forged = noted({ placement: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector/zone"] }] });
    const old = manifest({ zone: "a" });
    const { nodeSelector, object } = update(manifest(undefined, forged), old);
    expect(nodeSelector).toBeUndefined();
    expect(provenanceOf(object)).toEqual([]);
  });

  test.each<[string, Json]>([
    ["another module's", { other: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector/zone"] }] }],
    [
      "another place",
      { placement: [{ policy: "K/p", set: ["/spec/template/spec/schedulerName", "/spec/replicas"] }] },
    ],
    [
      "the nodeSelector of another spec",
      { placement: [{ policy: "K/p", set: ["/spec/nodeSelector/zone"] }] },
    ],
    ["the whole nodeSelector", { placement: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector"] }] }],
    [
      "something deeper",
      { placement: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector/zone/x"] }] },
    ],
    ["__proto__", { placement: [{ policy: "K/p", set: ["/spec/template/spec/nodeSelector/__proto__"] }] }],
    ["nonsense", "{"],
  ])("provenance of %s", (_what, note) => {
    const old = manifest(
      { zone: "a" },
      typeof note === "string" ? { annotations: { [PROVENANCE]: note } } : noted(note),
    );
    expect(update(manifest(), old).nodeSelector).toBeUndefined();
  });

  test("into an object that is being deleted, or that a controller created", () => {
    const { finalizing, owned } = {
      finalizing: manifest(undefined, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }),
      owned: manifest(undefined, { owner: controlledBy("apps/v1", "DaemonSet", "x") }),
    };
    expect(update(finalizing).nodeSelector).toBeUndefined();
    expect(update(owned).nodeSelector).toBeUndefined();
  });
});

describe("nothing new on UPDATE", () => {
  test("of a new policy, for an object that was there before it", () => {
    const { answer } = update(manifest(), manifest());
    expect(answer).toMatchObject({ allowed: true, patch: [], warnings: [] });
  });

  test("of a policy with further keys", () => {
    const more = clusterPolicy("p", {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { ...INJECTED, more: "1" },
    });
    expect(update(manifest(), STORED, [SHOP, more]).nodeSelector).toEqual(INJECTED);
  });

  test("of a fail-closed policy with an unknown namespace", () => {
    const closed = clusterPolicy("c", {
      namespaceSelector: { matchLabels: { team: "red" } },
      podSelector: {},
      failurePolicy: "Fail",
    });
    expect(update(manifest(), manifest(), [closed]).answer.allowed).toBe(true);
  });
});

test.each<[string, JsonObject]>([
  ["no template", { ...manifest(), spec: {} }],
  ["a spec that is null", { ...manifest(), spec: null }],
  ["a nodeSelector that is a string", manifest("zone=a")],
])("hostile: %s", (_what, now) => {
  const { answer } = update(now);
  expect(answer.allowed).toBe(true);
  for (const { path } of answer.patch) expect(path).not.toContain("nodeSelector");
});

test("an UPDATE without the stored object restores nothing", () => {
  const { answer } = placed([SHOP, POLICY], requestFor(manifest(), { operation: "UPDATE" }));
  expect(answer).toMatchObject({ allowed: true, patch: [] });
});
