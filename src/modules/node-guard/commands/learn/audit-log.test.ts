import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonObject } from "../../../../core/json.ts";
import { readAuditLog } from "./audit-log.ts";
import { proposalsOf } from "./proposals.ts";

const HOOK = "node-guard-bind.usher.dev";

function event(annotations: Record<string, string>, more: JsonObject = {}): string {
  return JSON.stringify({
    kind: "Event",
    apiVersion: "audit.k8s.io/v1",
    level: "Metadata",
    stage: "ResponseComplete",
    user: { username: "system:serviceaccount:batch:scheduler" },
    objectRef: { resource: "pods", subresource: "binding", namespace: "shop", name: "web-1" },
    requestReceivedTimestamp: "2026-11-16T10:00:00.000000Z",
    annotations: Object.fromEntries(
      Object.entries(annotations).map(([key, value]) => [`${HOOK}/node-guard.${key}`, value]),
    ),
    ...more,
  });
}

const REFUSED = { verdict: "would-deny", group: "ControlPlane", "actor-ok": "false", "pod-ok": "false" };
const entriesOf = (...lines: string[]) =>
  proposalsOf(readAuditLog(lines.join("\n")).observations).map(
    ({ group, list, entry, count }) => `${group} ${list} ${entry} ${count}`,
  );

test("refusals, and would-be refusals, are counted once per request", () => {
  const request = event({ ...REFUSED, verdict: "deny" });
  const earlier = event(REFUSED, { stage: "RequestReceived" });
  expect(entriesOf(earlier, request, event(REFUSED))).toEqual([
    "ControlPlane assigners batch/scheduler 2",
    "ControlPlane workloads shop/default 2",
  ]);
});

test("only failed sides are proposed, and nothing of admitted requests", () => {
  expect(entriesOf(event({ ...REFUSED, "actor-ok": "true" }))).toEqual([
    "ControlPlane workloads shop/default 1",
  ]);
  expect(entriesOf(event({ ...REFUSED, "pod-ok": "true" }))).toEqual([
    "ControlPlane assigners batch/scheduler 1",
  ]);
  expect(entriesOf(event({ ...REFUSED, verdict: "allow" }), event({}))).toEqual([]);
});

const BY_POLICY = (sides: string, code = 403): string =>
  event(
    {},
    {
      responseStatus: {
        code,
        message: `pods "web-1" is forbidden: ValidatingAdmissionPolicy 'usher-node-guard-controlplane-bind' with binding 'usher-node-guard-controlplane-bind' denied request: node-guard: pod may not be bound to node cp-0 of protected group "Control\\"Plane":${sides} not authorised. Let the pod run on another node, or ask a cluster administrator to authorise it (USHER-G02)`,
      },
    },
  );

test.each([
  [
    " user u and namespace shop",
    ['Control"Plane assigners batch/scheduler 1', 'Control"Plane workloads shop/default 1'],
  ],
  [" user u", ['Control"Plane assigners batch/scheduler 1']],
  [" namespace shop", ['Control"Plane workloads shop/default 1']],
])("a refusal of the fallback is learned from its message: %s", (sides, entries) => {
  expect(entriesOf(BY_POLICY(sides))).toEqual(entries);
  expect(entriesOf(BY_POLICY(sides, 422))).toEqual([]);
});

test("the service account is known if the log has request bodies", () => {
  const spec = { nodeName: "cp-0", serviceAccountName: "web" };
  expect(entriesOf(event({ ...REFUSED, "actor-ok": "true" }, { requestObject: { spec } }))).toEqual([
    "ControlPlane workloads shop/web 1",
  ]);
});

test("the impersonated user counts", () => {
  const impersonated = { impersonatedUser: { username: "second-scheduler" } };
  expect(entriesOf(event({ ...REFUSED, "pod-ok": "true" }, impersonated))).toEqual([
    "ControlPlane assigners second-scheduler 1",
  ]);
});

test("several groups get the entries of all", () => {
  expect(entriesOf(event({ ...REFUSED, group: "ControlPlane; Gpu", "pod-ok": "true; false" }))).toHaveLength(
    4,
  );
});

test("other lines are counted and skipped, whatever their content", () => {
  expect(readAuditLog('{"kind":"Status"}\n\nnot json\n[]\n')).toMatchObject({ skipped: 3, requests: 0 });
  fc.assert(
    fc.property(fc.json(), (text) => {
      readAuditLog(text);
      readAuditLog(event(REFUSED, { objectRef: JSON.parse(text), user: JSON.parse(text) }));
    }),
  );
});

test("a hundred thousand lines take linear time", () => {
  const lines = Array.from({ length: 100_000 }, (_, i) =>
    event(REFUSED, { user: { username: `user-${i}` } }),
  ).join("\n");
  const { observations, requests } = readAuditLog(lines);
  expect([observations.length, requests]).toEqual([1_000, 100_000]);
}, 30_000);
