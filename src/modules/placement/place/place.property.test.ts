import fc from "fast-check";
import { expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { placedWith, SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, pod, workload } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { at, canonical, equal, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";
const TERMS = ["affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"];

const value = fc.constantFrom("a", "b");
const requirement = fc.record({
  key: fc.constantFrom("zone", "disk"),
  operator: fc.constant("In"),
  // One spelling each: of two with the same meaning, one is left out and can't be found again.
  values: fc.constantFrom(["a"], ["b"], ["a", "b"]),
});
const term = fc
  .array(requirement, { minLength: 1, maxLength: 2 })
  .map((matchExpressions) => ({ matchExpressions }));
const podTerm = fc.record({ topologyKey: fc.constantFrom("host", "zone") });
const toleration = fc.oneof(
  fc.record({ key: value, operator: fc.constant("Exists") }),
  fc.record({ key: value, value }),
  fc.constant({ operator: "Exists" }),
);

/** Some of the fields of a pod's spec, by which a pod or a policy says where to run. */
const said: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      nodeSelector: fc.dictionary(fc.constantFrom("zone", "disk"), value, { minKeys: 1, maxKeys: 2 }),
      required: fc.array(term, { minLength: 1, maxLength: 2 }),
      preferred: fc.array(fc.record({ weight: fc.constant(1), preference: term }), {
        minLength: 1,
        maxLength: 1,
      }),
      anti: fc.array(podTerm, { minLength: 1, maxLength: 2 }),
      tolerations: fc.array(toleration, { minLength: 1, maxLength: 2 }),
      schedulerName: value,
      priorityClassName: value,
      runtimeClassName: value,
      topologySpreadConstraints: fc
        .record({
          maxSkew: fc.constant(1),
          topologyKey: value,
          whenUnsatisfiable: fc.constant("DoNotSchedule"),
        })
        .map((one) => [one]),
      schedulingGates: value.map((name) => [{ name }]),
    },
    { requiredKeys: [] },
  )
  .map(({ required, preferred, anti, ...rest }): JsonObject => {
    const nodeAffinity = {
      ...(required === undefined ? {} : { [REQUIRED]: { nodeSelectorTerms: required } }),
      ...(preferred === undefined ? {} : { [PREFERRED]: preferred }),
    };
    const affinity = {
      ...(required === undefined && preferred === undefined ? {} : { nodeAffinity }),
      ...(anti === undefined ? {} : { podAntiAffinity: { [REQUIRED]: anti } }),
    };
    return again({ ...rest, ...(Object.keys(affinity).length === 0 ? {} : { affinity }) } as JsonObject);
  });

const policies = fc.array(
  fc.record({
    said,
    nodeName: fc.constantFrom(undefined, undefined, "n1"),
    onUpdate: fc.constantFrom("Restore", "Inject"),
    targets: fc.constantFrom("Both", "Pods", "Templates"),
    failurePolicy: fc.constantFrom("Ignore", "Ignore", "Fail"),
    onConflict: fc.constantFrom("Skip", "Skip", "Refuse"),
  }),
  { maxLength: 3 },
);
const made = (
  list: readonly { said: JsonObject; nodeName: string | undefined }[],
  generation = 1,
): JsonObject[] =>
  list.map(({ said: criteria, nodeName, ...manner }, i) =>
    clusterPolicy(
      `p${i}`,
      {
        namespaceSelector: {},
        podSelector: {},
        ...criteria,
        ...manner,
        ...(nodeName === undefined ? {} : { nodeName }),
      },
      { generation },
    ),
  );

const DEPLOYMENT = controlledBy("apps/v1", "Deployment", "x");
const OWNERS: Readonly<Record<string, JsonObject>> = {
  ReplicaSet: DEPLOYMENT,
  DaemonSetPod: controlledBy("apps/v1", "DaemonSet", "x"),
};
const KINDS = [
  "Pod",
  "Pod",
  "Pod",
  "Deployment",
  "DaemonSet",
  "Job",
  "Job",
  "CronJob",
  "ReplicaSet",
] as const;

interface Situation {
  readonly kind: (typeof KINDS)[number];
  readonly apart: "" | "deleting" | "mirror" | "owned";
  readonly suspend: boolean;
  readonly started: boolean;
  readonly bound: boolean;
}
const situation: fc.Arbitrary<Situation> = fc.record({
  kind: fc.constantFrom(...KINDS),
  apart: fc.constantFrom("", "", "", "deleting", "mirror", "owned"),
  suspend: fc.boolean(),
  started: fc.boolean(),
  bound: fc.boolean(),
});

const specAt = (kind: string): readonly string[] =>
  kind === "Pod"
    ? ["spec"]
    : kind === "CronJob"
      ? ["spec", "jobTemplate", "spec", "template", "spec"]
      : ["spec", "template", "spec"];

/** An object as a client sends it. */
function objectOf({ kind, apart, suspend, started }: Situation, spec: JsonObject): JsonObject {
  const owner = kind === "Pod" ? OWNERS["DaemonSetPod"] : DEPLOYMENT;
  const parts = {
    spec: { containers: [{ name: "c", image: "i" }], ...again(spec) },
    ...(apart === "owned" && owner !== undefined ? { owner } : {}),
    ...(apart === "mirror" ? { annotations: { "kubernetes.io/config.mirror": "x" } } : {}),
    ...(apart === "deleting" ? { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } } : {}),
  };
  if (kind === "Pod") return pod(parts);
  const group = kind === "Job" || kind === "CronJob" ? "batch/v1" : "apps/v1";
  const object = workload(group, kind, parts);
  if (kind !== "Job") return object;
  const job = { ...(object["spec"] as JsonObject), suspend };
  return { ...object, spec: job, status: started ? { startTime: "2026-01-01T00:00:00Z" } : {} };
}

/** Whether it must stay unchanged. */
function untouchable({ kind, apart }: Situation): boolean {
  if (apart === "deleting") return true;
  if (apart === "mirror") return kind === "Pod";
  return apart === "owned";
}

/** All elements of a list are in another, in any order. */
function within(part: Json | undefined, whole: Json | undefined): boolean {
  const texts = new Set((Array.isArray(whole) ? whole : []).map(canonical));
  return (Array.isArray(part) ? part : []).every((one) => texts.has(canonical(one)));
}

const IMMUTABLE = [
  "schedulerName",
  "priorityClassName",
  "runtimeClassName",
  "topologySpreadConstraints",
  "nodeName",
];

/** The rules of the API server, as measured: its refusals of a change from one spec to another. */
function refusedBy(kind: string, old: JsonObject, now: JsonObject): boolean {
  const before = at(old, ...specAt(kind));
  const after = at(now, ...specAt(kind));
  const same = (...path: string[]) => equal(orNothing(at(before, ...path)), orNothing(at(after, ...path)));
  const fixed = IMMUTABLE.every((field) => same(field)) && same("affinity", "podAntiAffinity");
  if (kind === "Job") {
    const suspended = at(old, "spec", "suspend") === true && at(old, "status", "startTime") === undefined;
    return suspended ? !fixed : !equal(before, after);
  }
  if (kind !== "Pod") return false;
  if (!within(listAt(after, "schedulingGates"), at(before, "schedulingGates"))) return true;
  if (!fixed || !within(at(before, "tolerations"), at(after, "tolerations"))) return true;
  if (listAt(before, "schedulingGates").length === 0 || (stringAt(before, "nodeName") ?? "") !== "")
    return !same("nodeSelector") || !same("affinity");
  const selector = (at(before, "nodeSelector") ?? {}) as JsonObject;
  if (Object.keys(selector).some((key) => selector[key] !== at(after, "nodeSelector", key))) return true;
  const terms = listAt(before, ...TERMS);
  const then = listAt(after, ...TERMS);
  if (terms.length === 0) return false;
  return (
    terms.length !== then.length ||
    terms.some((one, i) => {
      const own = listAt(one, "matchExpressions");
      return !equal(own, listAt(then[i], "matchExpressions").slice(0, own.length));
    })
  );
}

function orNothing(found: Json | undefined): Json | undefined {
  const empty = Array.isArray(found) ? found.length === 0 : found === null || found === "";
  return empty ? undefined : found;
}

const missing = fc.constantFrom("none", "absent", "failed");
const world = (what: string) =>
  outside({
    fact: () =>
      what === "absent"
        ? { absent: "NotFound" }
        : what === "failed"
          ? { failed: "away" }
          : { found: {}, complete: true },
  });

test("a created object is never made invalid: no gate beside a node, no DaemonSet on one node, no change of an exempt one", async () => {
  await fc.assert(
    fc.asyncProperty(situation, said, policies, missing, async (where, spec, list, absent) => {
      const bound = where.kind === "Pod" && where.bound && spec["schedulingGates"] === undefined;
      const sent = objectOf(where, bound ? { ...spec, nodeName: "n9" } : spec);
      const { object, answer } = await placedWith(world(absent), [SHOP, ...made(list)], sent);
      if (untouchable(where) || bound) expect(answer.patch).toEqual([]);
      if (!answer.allowed) return;
      const result = at(object, ...specAt(where.kind));
      const node = stringAt(result, "nodeName") ?? "";
      if (listAt(result, "schedulingGates").length > 0) expect(node).toBe("");
      if (where.kind === "DaemonSet" || absent !== "none") expect(node).toBe(bound ? "n9" : "");
    }),
    { numRuns: 400 },
  );
});

test("an UPDATE that the API server would accept is never turned into one that it refuses", async () => {
  let changed = 0;
  await fc.assert(
    fc.asyncProperty(
      situation,
      said,
      policies,
      policies,
      fc.constantFrom("same", "stripped", "other"),
      said,
      fc.boolean(),
      missing,
      async (where, spec, first, then, how, otherwise, asks, absent) => {
        const free = { ...where, apart: "" as const };
        const begun = await placedWith(world("none"), [SHOP, ...made(first)], objectOf(free, spec));
        const old = again(begun.answer.allowed ? begun.object : objectOf(free, spec));
        const kept = at(old, ...specAt(where.kind)) as Record<string, Json>;
        if (
          where.kind === "Pod" &&
          where.bound &&
          kept["nodeName"] === undefined &&
          listAt(kept, "schedulingGates").length === 0
        )
          kept["nodeName"] = "n9";
        const now = how === "same" ? again(old) : objectOf(where, how === "stripped" ? spec : otherwise);
        const metadata = now["metadata"] as Record<string, Json>;
        if (where.apart === "deleting") metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
        const annotations = at(old, "metadata", "annotations") as JsonObject | undefined;
        metadata["annotations"] = { ...annotations, ...(metadata["annotations"] as JsonObject | undefined) };
        if (asks) (metadata["annotations"] as Record<string, Json>)["usher.dev/reapply"] = "now";
        if (how !== "same" && kept["nodeName"] !== undefined)
          (at(now, ...specAt(where.kind)) as Record<string, Json>)["nodeName"] = kept["nodeName"];
        const request = requestFor(now, { operation: "UPDATE", oldObject: old });
        const { object, answer } = await placedWith(world(absent), [SHOP, ...made(then, 2)], request);
        const apart = how === "same" && where.apart !== "deleting" ? "" : where.apart;
        if (untouchable({ ...where, apart })) {
          // The annotation of a pod that became a mirror pod is corrected, and nothing else.
          const changes = answer.patch.filter(
            ({ path }) => apart !== "mirror" || !path.includes("usher.dev"),
          );
          expect(changes).toEqual([]);
        }
        if (!answer.allowed || refusedBy(where.kind, old, now)) return;
        if (answer.patch.length > 0) changed++;
        expect(refusedBy(where.kind, old, object)).toBe(false);
      },
    ),
    { numRuns: 600 },
  );
  // Otherwise it would show nothing.
  expect(changed).toBeGreaterThan(40);
});

/**
 * The same, about other nodes, and each alternative once: common parts of pod and policy, or duplicates of the pod,
 * can't be distinguished afterwards.
 */
const ownSaid = said.map((spec) => {
  const own = JSON.parse(
    JSON.stringify(spec).replaceAll(/"(zone|disk|host|a|b)"/g, '"own-$1"'),
  ) as JsonObject;
  const terms = at(own, ...TERMS) as Json[] | undefined;
  const keys = (one: Json) =>
    [...new Set(listAt(one, "matchExpressions").map((each) => stringAt(each, "key") ?? ""))].sort();
  if (terms?.[1] !== undefined && equal(keys(terms[0] ?? null), keys(terms[1]))) terms.pop();
  return own;
});
const templates = fc.constantFrom("Deployment", "CronJob") as fc.Arbitrary<Situation["kind"]>;
/** Policies that refuse nothing; some contradict themselves, and are not valid for it. */
const unchanged = (generation: number) =>
  policies.map((list) =>
    made(
      list.map((one) => ({
        ...one,
        nodeName: one.said["schedulingGates"] === undefined ? one.nodeName : undefined,
        failurePolicy: "Ignore",
        onConflict: "Skip",
      })),
      generation,
    ),
  );

/** Existing elements keep their position, so that a new order alone rolls nothing out. */
function unordered(found: Json | undefined): Json {
  if (Array.isArray(found))
    return found.map(unordered).sort((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
  if (typeof found !== "object" || found === null) return found ?? null;
  return Object.fromEntries(Object.entries(found).map(([key, inner]) => [key, unordered(inner)]));
}

test("after a reapply a workload is as if created now, except for the order of elements", async () => {
  await fc.assert(
    fc.asyncProperty(templates, ownSaid, unchanged(1), unchanged(2), async (kind, spec, first, then) => {
      const sent = objectOf({ kind, apart: "", suspend: false, started: false, bound: false }, spec);
      const old = again((await placedWith(world("none"), [SHOP, ...first], sent)).object);
      const now = again(old);
      const metadata = now["metadata"] as Record<string, Json>;
      metadata["annotations"] = {
        ...(metadata["annotations"] as JsonObject | undefined),
        "usher.dev/reapply": "now",
      };
      const request = requestFor(now, { operation: "UPDATE", oldObject: old });
      const { object: renewed, answer } = await placedWith(world("none"), [SHOP, ...then], request);
      // If a policy can't be read nothing is removed.
      fc.pre(!answer.warnings.join().includes("USHER-P22"));
      const fresh = (await placedWith(world("none"), [SHOP, ...then], sent)).object;
      expect(unordered(at(renewed, ...specAt(kind)))).toEqual(unordered(at(fresh, ...specAt(kind))));
      // The digest of a list follows its order.
      const recorded = (object: JsonObject) =>
        stringAt(object, "metadata", "annotations", PROVENANCE)?.replaceAll(/"now":"[0-9a-f]+"/g, '"now":""');
      expect(recorded(renewed)).toBe(recorded(fresh));
    }),
    { numRuns: 400 },
  );
});

test("an update without changes changes nothing, and one that injects does so once", async () => {
  await fc.assert(
    fc.asyncProperty(templates, ownSaid, unchanged(1), unchanged(2), async (kind, spec, first, then) => {
      const sent = objectOf({ kind, apart: "", suspend: false, started: false, bound: false }, spec);
      const old = again((await placedWith(world("none"), [SHOP, ...first], sent)).object);
      const update = (now: JsonObject, before: JsonObject, known: readonly JsonObject[]) =>
        placedWith(
          world("none"),
          [SHOP, ...known],
          requestFor(again(now), { operation: "UPDATE", oldObject: again(before) }),
        );
      expect((await update(old, old, first)).answer.patch).toEqual([]);
      const next = again((await update(old, old, then)).object);
      expect((await update(next, next, then)).answer.patch).toEqual([]);
    }),
    { numRuns: 400 },
  );
});
