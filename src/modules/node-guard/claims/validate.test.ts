import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  askGuard,
  binding,
  type Cluster,
  creating,
  GROUP,
  MALLORY,
  podOf,
  SCHEDULER,
  updating,
  user,
} from "../../../../test/builders/guard.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { Json, JsonObject } from "../../../core/json.ts";

const ON = { nodeName: "cp-0" };
const SELECTING = { nodeSelector: { "kubernetes.io/hostname": "cp-0" } };
const INFORM: Cluster = { groups: [{ ...GROUP, mode: "Inform" }] };
const failing = { fact: () => ({ failed: "nodes cp-0: 500", status: 500 }) };

describe("a node that can't be read", () => {
  test("is refused in Enable so that the client retries", async () => {
    const asked = await askGuard(creating(ON), failing);
    expect(asked).toMatchObject({
      allowed: false,
      code: 503,
      audit: { "node-guard.unread": "nodes cp-0: 500" },
    });
    expect((await askGuard(binding("cp-9"), failing)).code).toBe(503);
  });

  test("passes in Inform, with a warning", async () => {
    const asked = await askGuard(creating(ON), { ...INFORM, ...failing });
    expect(asked).toMatchObject({ allowed: true, warnings: [expect.stringContaining("USHER-G11")] });
  });

  test("does not matter if both sides are authorised in every group", async () => {
    const request = creating(ON, user("sre"), { namespace: "kube-system" });
    expect((await askGuard(request, failing)).allowed).toBe(true);
  });

  test("is not a reason to refuse a selection", async () => {
    const pinned = {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              { matchFields: [{ key: "metadata.name", operator: "In", values: ["gone"] }] },
            ],
          },
        },
      },
    };
    expect((await askGuard(creating(pinned), failing)).allowed).toBe(true);
  });
});

describe("messages", () => {
  test("name the failed part, the group, the node and the fix, and never the authorised subjects", async () => {
    const { message } = await askGuard(creating(ON));
    expect(message).toBe(
      'pod team-a/web may not be assigned to node cp-0 of protected group "ControlPlane": user "mallory" and namespace "team-a" are not authorised. Remove spec.nodeName, or ask a cluster administrator to authorise the user (assigners) and the pod\'s service account (workloads) in group ControlPlane (USHER-G01)',
    );
    expect((await askGuard(binding("cp-0"))).message).toContain(
      'namespace "team-a" is not authorised (user "system:kube-scheduler" is)',
    );
  });

  test("are the same at every retry, although generated names differ", async () => {
    const metadata = (name: string) => ({ name, generateName: "web-" });
    const [first, second] = await Promise.all(
      ["web-a", "web-b"].map((name) => askGuard(creating(ON, MALLORY, metadata(name)))),
    );
    expect(first?.message).toBe(second?.message);
    expect(first?.message).toContain("pod team-a/web-*");
  });
});

describe("events", () => {
  test("for a refused pod are on its owner, else its namespace", async () => {
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "u-1" };
    const owned = await askGuard(
      creating(ON, MALLORY, { ownerReferences: [{ ...owner, controller: true }] }),
    );
    expect(owned.events).toMatchObject([
      { regarding: { ...owner, namespace: "team-a" }, reason: "NodeGuardDenied" },
    ]);
    const alone = await askGuard(creating(ON));
    expect(alone.events).toMatchObject([
      { regarding: { kind: "Namespace", name: "team-a", namespace: "team-a" } },
    ]);
  });

  test("for an admitted pod, a bind and an update are on the pod, by uid", async () => {
    const admitted = await askGuard(creating(ON, MALLORY, { uid: "u" }), INFORM);
    expect(admitted.events).toMatchObject([
      { regarding: { kind: "Pod", uid: "u" }, reason: "NodeGuardWouldDeny" },
    ]);
    const bound = await askGuard(binding("cp-0"), INFORM);
    expect(bound.events).toMatchObject([
      { regarding: { kind: "Pod", name: "web", namespace: "team-a", uid: "uid-of-web" } },
    ]);
    const pods = [podOf({}, { uid: "read" })];
    const unnamed = await askGuard(binding("cp-0", SCHEDULER, { uid: null }), { pods });
    expect(unnamed.events).toMatchObject([{ regarding: { kind: "Pod", uid: "read" } }]);
    const update = await askGuard(
      updating({ schedulingGates: [{ name: "g" }] }, { nodeSelector: { "kubernetes.io/hostname": "cp-0" } }),
    );
    expect(update.events).toMatchObject([{ regarding: { kind: "Pod", uid: "uid-of-web" } }]);
  });

  test("refer to the NodeSchedulingPolicy that counts, and to nothing if there is none", async () => {
    const policy = (name: string) => ({
      apiVersion: "scheduling.openshift.io/v1alpha1",
      kind: "NodeSchedulingPolicy",
      metadata: { name, uid: `uid-of-${name}` },
      spec: { groups: [] },
    });
    const of = async (...objects: JsonObject[]) =>
      (await askGuard(creating(ON), { objects })).events.map((event) => event["policy"]);
    expect(await of()).toEqual([undefined]);
    expect(await of(policy("other"))).toEqual([undefined]);
    const ref = { kind: "NodeSchedulingPolicy", name: "cluster", uid: "uid-of-cluster" };
    expect(await of(policy("other"), policy("cluster"))).toEqual([ref]);
  });
});

describe("rbac", () => {
  const groups = [{ ...GROUP, rbac: true }];
  const reviewed = (allowed: readonly string[]): Cluster => ({
    groups,
    pods: [podOf({ serviceAccountName: "app" }, { uid: "uid-of-web" })],
    fact: (need) => {
      if (!("access" in need)) return undefined;
      const { user: who, resourceAttributes } = need.access as {
        user: string;
        resourceAttributes: { verb: string; name: string };
      };
      const key = `${who} ${resourceAttributes.verb} ${resourceAttributes.name}`;
      return { found: { allowed: allowed.includes(key) }, complete: true };
    },
  });
  const both = ["mallory assign ControlPlane", "system:serviceaccount:team-a:app run-on ControlPlane"];

  test.each([
    ["both", both, true],
    ["the sender alone", both.slice(0, 1), false],
    ["the pod alone", both.slice(1), false],
  ])("authorises %s", async (_what, allowed, expected) => {
    expect((await askGuard(creating({ ...ON, serviceAccountName: "app" }), reviewed(allowed))).allowed).toBe(
      expected,
    );
    expect((await askGuard(binding("cp-0", MALLORY), reviewed(allowed))).allowed).toBe(expected);
  });

  const account = { serviceAccountName: "app" };
  // Steering, in the mutating phase, asks for the pod's rights alone.
  test.each([
    ["an assignment", creating({ ...ON, ...account }), false, [6]],
    ["a selection", creating({ ...SELECTING, ...account }), false, [3, 3]],
    ["a selection whose requester is checked", creating({ ...SELECTING, ...account }), true, [3, 6]],
    ["a binding", binding("cp-0", MALLORY), false, [6]],
  ])(
    "asks for the rights in three groups in one round per phase, for %s",
    async (_, request, both, sizes) => {
      const three = ["ControlPlane", "Second", "Third"].map((name) => ({
        ...GROUP,
        name,
        rbac: true,
        checkRequesterOnSelection: both,
      }));
      const { rounds } = await askGuard(request, { ...reviewed([]), groups: three });
      const reviews = rounds.map((needs) => needs.filter((need) => "access" in need).length);
      expect(reviews.filter((count) => count > 0)).toEqual(sizes);
    },
  );

  test("refuses if it can't be reviewed, and is off by default", async () => {
    expect(
      (
        await askGuard(creating(ON), {
          groups,
          fact: (need) => ("access" in need ? { failed: "no" } : undefined),
        })
      ).allowed,
    ).toBe(false);
    expect((await askGuard(creating(ON), { ...reviewed(both), groups: [GROUP] })).allowed).toBe(false);
  });
});

describe("hostile input", () => {
  const hostile = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>({ nodeSelectorTerms: "x" }, { __proto__: null }, [], [null], { key: {} }, 1e9),
  ) as fc.Arbitrary<Json>;

  test("is never thrown over, and only ever refused as malformed or by a rule", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          "nodeName",
          "nodeSelector",
          "affinity",
          "tolerations",
          "schedulingGates",
          "serviceAccountName",
        ),
        hostile,
        async (field, value) => {
          const asked = await askGuard(creating({ [field]: value }));
          expect(asked.audit["node-guard.fault"]).toBeUndefined();
          const update = await askGuard(updating({}, { [field]: value }));
          expect(update.audit["node-guard.fault"]).toBeUndefined();
        },
      ),
      { numRuns: 100 },
    );
    await fc.assert(
      fc.asyncProperty(hostile, async (target) => {
        const request = requestFor(
          { apiVersion: "v1", kind: "Binding", metadata: { name: "w", namespace: "team-a" }, target },
          { resource: { group: "", version: "v1", resource: "bindings" } },
        );
        expect((await askGuard(request)).allowed).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  test("a node that is not a string is refused in Enable only", async () => {
    expect(await askGuard(creating({ nodeName: 5 }))).toMatchObject({ allowed: false, code: 400 });
    expect(await askGuard(creating({ nodeName: 5 }), INFORM)).toMatchObject({ allowed: true });
  });
});
