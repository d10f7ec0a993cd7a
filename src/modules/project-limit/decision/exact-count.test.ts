// Reservations through the whole module: when and what is written, and the client's response if it can't be.
import { expect, test } from "vitest";
import { assemblyOf, callOf } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import {
  limitsCame,
  MODERN,
  namespaceRequest,
  project,
  projectCame,
  projectRequest,
  userInfo,
} from "../../../../test/builders/project-limit.ts";
import type { Fact } from "../../../core/decision/need.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { CommitResult } from "../../../core/evaluate/evaluate.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import type { Change } from "../../../core/view/view.ts";
import { projectLimit } from "../index.ts";
import { USAGES } from "../ledger/project-usage.ts";
import { USERS } from "../policy/limit.ts";

const SPEC = { limits: [{ groups: ["limited"], maxProjects: 2 }], namespaces: {} };
const ANN = userInfo("ann", ["limited"]);

interface Given {
  readonly spec?: JsonObject;
  readonly seen?: readonly Change[];
  readonly ledger?: Fact;
  readonly commit?: (attempt: number) => CommitResult;
  readonly phase?: "mutate" | "validate";
  readonly expired?: boolean;
}

async function asked(request: AdmissionRequest, given: Given = {}) {
  const { spec = SPEC, seen = [], ledger = { absent: "NotFound" }, phase = "validate" } = given;
  const assembly = assemblyOf([projectLimit], [limitsCame(spec), ...seen], MODERN);
  const here = outside({
    fact: () => ledger,
    commit: (_commit, attempt) => given.commit?.(attempt) ?? "done",
    expired: () => given.expired === true,
  });
  const evaluation = await evaluate(callOf(assembly, request, { phase }), here);
  const entries = here.commits.map(({ object }) => at(object, "spec", "entries"));
  return { response: responseOf(evaluation), evaluation, here, entries };
}

function stamped(name: string, uid?: string): JsonObject {
  const object = project(name, "ann");
  return uid === undefined ? object : { ...object, metadata: { ...(object["metadata"] as JsonObject), uid } };
}

test("of a Namespace name and uid are reserved, before it is allowed", async () => {
  const { response, here, entries, evaluation } = await asked(namespaceRequest(ANN, stamped("new", "7")));
  expect(response.allowed).toBe(true);
  // A user without a ledger has no reservations: that is known.
  expect(evaluation.unknown).toEqual([]);
  expect(here.commits).toMatchObject([{ resource: USAGES, name: "u-ann", resourceVersion: undefined }]);
  expect(entries).toEqual([[{ name: "new", uid: "7" }]]);
});

test("for a ProjectRequest records name and review, and the current namespace of that name", async () => {
  const { entries } = await asked(projectRequest(ANN, "new", { uid: "r" }));
  expect(entries).toEqual([[{ name: "new", request: "r" }]]);
  const old = projectCame({ ...project("new", "bob"), metadata: { name: "new", uid: "old" } });
  const again = await asked(projectRequest(ANN, "new", { uid: "r" }), { seen: [old] });
  expect(again.entries).toEqual([[{ name: "new", request: "r", replaces: "old" }]]);
});

test.each<[string, AdmissionRequest, Given]>([
  ["a dry run", namespaceRequest(ANN, stamped("new", "7"), { dryRun: true }), {}],
  ["when mutating", namespaceRequest(ANN, stamped("new", "7")), { phase: "mutate" }],
  ["of an unlimited user", projectRequest(userInfo("free")), {}],
  ["with count: BestEffort", projectRequest(ANN), { spec: { ...SPEC, count: "BestEffort" } }],
])("%s writes nothing", async (_, request, given) => {
  const { response, here } = await asked(request, given);
  expect(response.allowed).toBe(true);
  expect(here.commits).toEqual([]);
});

test("an unlimited user's ledger is not even read", async () => {
  expect((await asked(projectRequest(userInfo("free")))).here.fetches).toEqual([]);
});

test("the User and the ledger are read in one round", async () => {
  const spec = { limits: [{ selector: { level: "gold" }, maxProjects: 2 }] };
  const assembly = assemblyOf([projectLimit], [limitsCame(spec)], MODERN);
  const user = { metadata: { name: "ann", labels: { level: "gold" } } };
  const here = outside({
    fact: (need) =>
      "get" in need && need.get.resource === USERS ? { found: user, complete: true } : { absent: "NotFound" },
  });
  const evaluation = await evaluate(callOf(assembly, projectRequest(ANN), { phase: "validate" }), here);
  expect(responseOf(evaluation).allowed).toBe(true);
  expect(here.fetches).toMatchObject([
    [{ get: { resource: USERS, name: "ann" } }, { get: { resource: USAGES, name: "u-ann" } }],
  ]);
  expect(here.commits).toMatchObject([{ resource: USAGES, name: "u-ann" }]);
});

test.each<[string, Given]>([
  ["that can't be read", { ledger: { failed: "etcd is down" } }],
  ["that can't be written", { commit: () => ({ failed: "too large" }) }],
  ["that others write all the time", { commit: () => "conflict" }],
  ["for which there is no time", { expired: true }],
])("a ledger %s is 429, to be repeated after a second", async (_, given) => {
  const { response } = await asked(projectRequest(ANN), given);
  expect(response).toMatchObject({
    allowed: false,
    status: { code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 },
  });
  expect(response.status?.message).toContain("USHER-Q05");
});

test("reservations and conflicts are counted", async () => {
  const { evaluation } = await asked(projectRequest(ANN), {
    commit: (attempt) => (attempt < 4 ? "conflict" : "done"),
  });
  expect(evaluation.counts).toMatchObject([
    { metric: "usher_project_limit_conflicts_total", by: 3 },
    { metric: "usher_project_limit_reservations_total" },
  ]);
});

test("service accounts of a namespace share a ledger that no user has", async () => {
  const spec = { maxProjectsForServiceAccounts: 2, serviceAccountsPer: "Namespace" };
  const { here } = await asked(projectRequest(userInfo("system:serviceaccount:ci:bot")), { spec });
  expect(here.commits).toMatchObject([
    { name: "n-ci", object: { spec: { subject: "system:serviceaccounts:ci" } } },
  ]);
});
