import { expect, test, vi } from "vitest";
import { answerOf } from "../../../test/support/cluster/api-server.ts";
import {
  ANCHOR_OWNER,
  FOLLOWING,
  type Running,
  rounds,
  running,
} from "../../../test/support/operator/controller.ts";
import { at, type JsonObject } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";

const API = "/apis/admissionregistration.k8s.io/v1";
const POLICIES = `${API}/validatingadmissionpolicies`;
const POLICY = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy" };
const LABELS = { "app.kubernetes.io/managed-by": "usher", "usher.dev/module": "seating" };

function wanted(name: string, expression: string): JsonObject {
  return { ...POLICY, metadata: { name }, spec: { validations: [{ expression }] } };
}

/** One policy for each seating, and one always. */
const MANAGING: Module = {
  ...FOLLOWING,
  managed: {
    why: "",
    resources: [
      {
        group: "admissionregistration.k8s.io",
        version: "v1",
        resource: "validatingadmissionpolicies",
        kind: "ValidatingAdmissionPolicy",
        scope: "Cluster",
      },
    ],
    desired: (view) => [
      wanted("usher-always", "true"),
      ...[...view.list("seatings.test.usher.dev")].map((one) =>
        wanted(`usher-seat-${at(one, "metadata", "name")}`, String(at(one, "spec", "row"))),
      ),
    ],
  },
};

function managing(
  more: Parameters<typeof running>[0] = {},
  installation: Parameters<typeof running>[2] = {},
): Running {
  const run = running(more, [MANAGING], installation);
  const usual = run.server.fault;
  run.server.fault = async (method, path, options) => {
    const answer = await usual(method, path, options);
    if (method !== "GET" || path !== API || answer === undefined || answer instanceof Error) return answer;
    const resources = at(answer.body, "resources") as JsonObject[];
    const name = "validatingadmissionpolicies";
    return answerOf(200, { resources: [...resources, { name, kind: POLICY.kind, namespaced: false }] });
  };
  return run;
}

function seat(run: Running, name: string, row: string | undefined): void {
  const object = row === undefined ? undefined : { metadata: { name }, spec: { row } };
  run.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name, object }]);
  run.controller.changed();
}

const specOf = (run: Running, name: string) => at(run.server.objects.get(`${POLICIES}/${name}`), "spec");

test("objects that modules declare are created, and follow the view", async () => {
  const run = managing();
  run.controller.start();
  await vi.waitFor(() => expect(specOf(run, "usher-always")).toBeDefined());
  expect(at(run.server.objects.get(`${POLICIES}/usher-always`), "metadata", "labels")).toMatchObject(LABELS);
  seat(run, "a", "false");
  await vi.waitFor(() =>
    expect(specOf(run, "usher-seat-a")).toEqual({ validations: [{ expression: "false" }] }),
  );
  seat(run, "a", undefined);
  await vi.waitFor(() => expect(specOf(run, "usher-seat-a")).toBeUndefined());
  expect(specOf(run, "usher-always")).toBeDefined();
});

test("a change of the view that affects no managed object sends no request", async () => {
  const run = managing({ resyncMs: 3_600_000 });
  seat(run, "a", "true");
  run.controller.start();
  await vi.waitFor(() => expect(specOf(run, "usher-seat-a")).toBeDefined());
  const before = run.server.asked.filter((one) => one.includes("validatingadmissionpolicies")).length;
  seat(run, "a", "true");
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(run.server.asked.filter((one) => one.includes("validatingadmissionpolicies")).length).toBe(before);
});

test("the anchor owns them, and they are deleted with it", async () => {
  const run = managing();
  run.controller.start();
  await vi.waitFor(() =>
    expect(at(run.server.objects.get(`${POLICIES}/usher-always`), "metadata", "ownerReferences")).toEqual([
      ANCHOR_OWNER,
    ]),
  );
});

test("an edited or deleted object is repaired", async () => {
  const run = managing();
  run.controller.start();
  await vi.waitFor(() => expect(specOf(run, "usher-always")).toBeDefined());
  const path = `${POLICIES}/usher-always`;
  const edited = { validations: [{ expression: "false" }] };
  run.server.put(path, { ...run.server.objects.get(path), spec: edited });
  await vi.waitFor(() => expect(specOf(run, "usher-always")).not.toEqual(edited));
  run.server.objects.delete(path);
  await vi.waitFor(() => expect(specOf(run, "usher-always")).toBeDefined());
});

test("a field that another manager added to a policy is removed, and defaults of the API server stay", async () => {
  const run = managing();
  run.controller.start();
  await vi.waitFor(() => expect(specOf(run, "usher-always")).toBeDefined());
  const path = `${POLICIES}/usher-always`;
  const defaulted = {
    validations: [{ expression: "true" }],
    matchConstraints: { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} },
  };
  run.server.put(path, { ...run.server.objects.get(path), spec: defaulted });
  await rounds(run, 3);
  expect(specOf(run, "usher-always")).toEqual(defaulted);
  const exempt = { resources: ["*"], operations: ["*"], apiGroups: ["*"], apiVersions: ["*"] };
  run.server.put(path, {
    ...run.server.objects.get(path),
    spec: {
      ...defaulted,
      matchConstraints: { ...defaulted.matchConstraints, excludeResourceRules: [exempt] },
    },
  });
  await vi.waitFor(() =>
    expect(JSON.stringify(specOf(run, "usher-always"))).not.toContain("excludeResourceRules"),
  );
});

test("an object that the API server refuses holds up no other, and is logged and counted until it is stored", async () => {
  const run = managing();
  const usual = run.server.fault;
  let refuses = true;
  run.server.fault = async (method, path, options) =>
    refuses && method === "PATCH" && path.startsWith(`${POLICIES}/usher-seat-b`)
      ? answerOf(422, { kind: "Status", message: "expression is too long", code: 422 })
      : usual(method, path, options);
  const stale = { ...LABELS, "app.kubernetes.io/name": "usher" };
  run.server.put(`${POLICIES}/stale`, { ...POLICY, metadata: { labels: stale }, spec: {} });
  for (const name of ["a", "b", "c"]) seat(run, name, "true");
  run.controller.start();
  await vi.waitFor(() => expect(specOf(run, "usher-seat-c")).toBeDefined());
  await vi.waitFor(() => expect(specOf(run, "stale")).toBeUndefined());
  await rounds(run, 3);
  expect([specOf(run, "usher-seat-a"), specOf(run, "usher-seat-b")]).toEqual([expect.anything(), undefined]);
  const figure = () => run.controller.drift.get("ValidatingAdmissionPolicy usher-seat-b");
  expect(figure()).toBe(1);
  const refused = run.logged.filter(({ message }) => message.startsWith("the API server refuses an object"));
  expect(refused).toHaveLength(1);
  expect(JSON.stringify(refused)).toContain("expression is too long");
  refuses = false;
  await vi.waitFor(() => expect(specOf(run, "usher-seat-b")).toBeDefined());
  await vi.waitFor(() => expect(figure()).toBeUndefined());
});

test("an object of another owner with that name is left, and the conflict logged once", async () => {
  const run = managing();
  const spec = { validations: [] };
  run.server.put(`${POLICIES}/usher-always`, { ...POLICY, spec });
  run.controller.start();
  await rounds(run, 3);
  expect(specOf(run, "usher-always")).toEqual(spec);
  const conflicts = run.logged.filter(({ message }) => message.startsWith("ownership conflict: managed"));
  expect(conflicts).toHaveLength(1);
});

test("objects that only share the labels of a module are deleted only if usher created them", async () => {
  const run = managing();
  const stale = (name: string, labels: JsonObject) =>
    run.server.put(`${POLICIES}/${name}`, { ...POLICY, metadata: { labels }, spec: {} });
  stale("stale", { ...LABELS, "app.kubernetes.io/name": "usher" });
  stale("other", LABELS);
  run.controller.start();
  await vi.waitFor(() => expect(specOf(run, "stale")).toBeUndefined());
  expect(specOf(run, "other")).toBeDefined();
});

test("a replica that is not synced, or does not lead, creates and deletes nothing", async () => {
  for (const options of [{ ready: () => false }, { leading: () => false }]) {
    const run = managing(options);
    run.server.put(`${POLICIES}/stale`, { ...POLICY, metadata: { labels: LABELS }, spec: {} });
    run.controller.start();
    await rounds(run, 3);
    expect([specOf(run, "usher-always"), specOf(run, "stale")]).toEqual([undefined, {}]);
  }
});

test("a replica that stops leading while it reads an object does not write it", async () => {
  let leads = true;
  const run = managing({ leading: () => leads });
  const usual = run.server.fault;
  run.server.fault = async (method, path, options) => {
    if (method === "GET" && path === `${POLICIES}/usher-always`) leads = false;
    return usual(method, path, options);
  };
  run.controller.start();
  await vi.waitFor(() => expect(leads).toBe(false));
  await rounds(run, 2);
  expect(specOf(run, "usher-always")).toBeUndefined();
});

test("with manageWebhooks: false none is written or deleted, and differences are counted by object", async () => {
  const run = managing({}, { manageWebhooks: false });
  const figure = (name: string) => run.controller.drift.get(`ValidatingAdmissionPolicy ${name}`);
  run.controller.start();
  seat(run, "a", "1");
  await vi.waitFor(() => expect([figure("usher-always"), figure("usher-seat-a")]).toEqual([1, 1]));

  // As an administrator applies them, with other labels; one differs.
  run.server.put(`${POLICIES}/usher-always`, { ...wanted("usher-always", "true"), metadata: { labels: {} } });
  run.server.put(`${POLICIES}/usher-seat-a`, wanted("usher-seat-a", "false"));
  run.server.put(`${POLICIES}/usher-seat-b`, {
    ...wanted("usher-seat-b", "1"),
    metadata: { labels: { ...LABELS, "app.kubernetes.io/name": "usher" } },
  });
  const figures = () => ["usher-always", "usher-seat-a", "usher-seat-b"].map(figure);
  await vi.waitFor(() => expect(figures()).toEqual([0, 1, 1]));
  const drift = run.logged.filter(({ message }) => message.startsWith("drift"));
  expect(JSON.stringify(drift)).toContain("spec.validations[0].expression");
  await rounds(run, 3);
  expect(
    run.server.asked.filter((one) => /^(PATCH|PUT|POST|DELETE) /.test(one) && one.includes(POLICIES)),
  ).toEqual([]);

  // Unwanted objects of others are not differences; those that usher created are deleted.
  seat(run, "a", undefined);
  run.server.objects.delete(`${POLICIES}/usher-seat-b`);
  await vi.waitFor(() => expect(figures()).toEqual([0, undefined, undefined]));
});
