import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../../test/builders/evaluation.ts";
import {
  limits,
  limitsCame,
  MODERN,
  project,
  projectCame,
  projects,
  versionOf,
} from "../../../../test/builders/project-limit.ts";
import { Facts } from "../../../core/decision/need.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import { at, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import type { Change } from "../../../core/view/view.ts";
import { projectLimit } from "../index.ts";
import { LIMITS, limitsIn } from "../kinds.ts";
import { limitReconciler } from "../reconciler.ts";
import { MOST_NAMED, usageFigures } from "../usage/metrics.ts";
import { type SubjectUsage, subjectUsages } from "../usage/subject-usage.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");

function reconciled(
  object: JsonObject,
  changes: readonly Change[] = [],
  { installation = MODERN, served = true }: { installation?: Installation; served?: boolean } = {},
) {
  const name = String(at(object, "metadata", "name"));
  const came = { resource: LIMITS, namespace: "", name, object };
  const assembly = assemblyOf([projectLimit], [came, ...changes], installation);
  if (served) assembly.serve("users.user.openshift.io");
  const facts = new Facts();
  facts.set({ get: { resource: LIMITS, name }, live: true }, { found: object, complete: true });
  const state = limitReconciler.initialState();
  const result = limitReconciler.reconcile({ kind: "status", name }, state, {
    view: assembly.view,
    facts,
    now: NOW,
  });
  if (!("writes" in result)) throw new Error("needs more");
  const [write] = result.writes;
  const status = write !== undefined && "status" in write ? write.status : undefined;
  const conditions = Object.fromEntries(
    listAt(status, "conditions").map((one) => [at(one, "type"), `${at(one, "status")} ${at(one, "reason")}`]),
  );
  return { result, status, conditions };
}

describe("the status", () => {
  test("reports differences from OpenShift 3.11, and that extensions: Disabled removes them", () => {
    const on = reconciled(limits({ limits: [{ maxProjects: 2 }] }));
    expect(on.conditions).toMatchObject({ Extended: "True On" });
    const extended = listAt(on.status, "conditions").find((one) => at(one, "type") === "Extended");
    expect(at(extended, "message")).toMatch(/extensions: Disabled.*group system:masters.*counted exactly/);
    const off = reconciled(limits({ limits: [{ maxProjects: 2 }], extensions: "Disabled" }));
    expect(off.conditions).toMatchObject({ Extended: "False Off", BestEffort: "True Configured" });
  });

  test("reports all observations, with the generation", () => {
    const { status, conditions, result } = reconciled(
      limits({ limits: [{ maxProjects: 2 }], namespaces: {} }),
      [...projects("bob", 2)],
      { served: false },
    );
    expect(status).toMatchObject({ observedGeneration: 1, users: { below: 0, last: 0, full: 1, over: 0 } });
    expect(conditions).toMatchObject({
      Valid: "True Usable",
      Ignored: "False NamedCluster",
      Enforced: "True Judged",
      UserAPIMissing: "True NotServed",
      NamespacesOpen: "False Closed",
      BestEffort: "False Exact",
    });
    expect(result.requeueAfter).toBe(30);
  });

  test.each<[string, JsonObject, { served: boolean }, string]>([
    ["without ProjectRequests and without namespaces", {}, { served: false }, "False NothingToJudge"],
    ["without ProjectRequests, with namespaces", { namespaces: {} }, { served: false }, "True Judged"],
    ["on OpenShift without namespaces", {}, { served: true }, "True Judged"],
  ])("reports whether anything is enforced: %s", (_, spec, options, expected) => {
    const object = limits({ limits: [{ maxProjects: 2 }], ...spec });
    const { conditions, status } = reconciled(object, projects("bob", 3), options);
    expect(conditions).toMatchObject({ Enforced: expected });
    const valid = at(status, "conditions", 0, "message");
    expect(valid).toMatch(
      expected.startsWith("False") ? /nothing is limited: .* add spec\.namespaces/ : /in use/,
    );
  });

  test("is written only when it changes", () => {
    const object = limits({ limits: [{ maxProjects: 2 }] });
    const { status } = reconciled(object);
    expect(reconciled({ ...object, status: status ?? null }).result.writes).toEqual([]);
  });

  test("keeps the operator's fields, in their order", () => {
    const available = {
      type: "Available",
      status: "True",
      reason: "Ready",
      message: "",
      lastTransitionTime: "2025-01-01T00:00:00Z",
    };
    const object = { ...limits({}), status: { ready: 3, configHash: "abc", conditions: [available] } };
    const { status } = reconciled(object);
    expect(status).toMatchObject({ ready: 3, configHash: "abc", observedGeneration: 1 });
    expect(listAt(status, "conditions")).toHaveLength(8);
    expect(at(status, "conditions", 0)).toEqual(available);
    expect(reconciled({ ...object, status: status ?? null }).result.writes).toEqual([]);
  });

  test("reports that users can be read", () => {
    expect(reconciled(limits({})).conditions).toMatchObject({ UserAPIMissing: "False Served" });
  });

  test.each([
    [MODERN, {}, "False Closed"],
    [MODERN, { failurePolicy: "Ignore" }, "True FailurePolicyIgnore"],
    [{ ...DEFAULT_INSTALLATION, ...versionOf("v1.27.0") }, {}, "True NoMatchConditions"],
  ])("reports whether namespaces are fail-open", (installation, spec, result) => {
    const { conditions } = reconciled(limits({ namespaces: {}, ...spec }), [], { installation });
    expect(conditions).toMatchObject({ NamespacesOpen: result });
  });

  test("reports subjects counted by best effort", () => {
    const spec = { limits: [{ maxProjects: 9_000 }] };
    expect(reconciled(limits(spec), projects("bob", 5_000)).conditions).toMatchObject({
      BestEffort: "True TooManyProjects",
    });
    expect(reconciled(limits({ count: "BestEffort" })).conditions).toMatchObject({
      BestEffort: "True Configured",
    });
  });

  test("names invalid and shadowed rules", () => {
    expect(reconciled(limits({ limits: [{ maxProjects: -1 }] })).conditions).toMatchObject({
      Valid: "False Invalid",
    });
    expect(reconciled(limits({ limits: [{}, {}] })).conditions).toMatchObject({
      Valid: "True ValidWithWarnings",
    });
  });
});

test("an object of another name is ignored, with an event, once", () => {
  const other = limits({}, "other");
  const { status, conditions, result } = reconciled(other);
  expect(conditions).toEqual({ Ignored: "True NotNamedCluster" });
  expect(result.events).toMatchObject([
    {
      type: "Warning",
      reason: "Ignored",
      regarding: { kind: "ProjectRequestLimit", name: "other", uid: "uid-of-other" },
    },
  ]);
  const changed = {
    ...other,
    status: status ?? null,
    metadata: { ...(other["metadata"] as JsonObject), generation: 2 },
  };
  expect(reconciled(changed).result).toMatchObject({ writes: [{}], events: [] });
  expect(reconciled({ ...other, status: status ?? null }).result.writes).toEqual([]);
});

describe("usage of all users", () => {
  const usagesOf = (spec: JsonObject, changes: readonly Change[]) => {
    const { view } = assemblyOf([projectLimit], [limitsCame(spec), ...changes], MODERN);
    return subjectUsages(view, limitsIn(view));
  };

  test("by state", () => {
    const four = ["below", "last", "full", "over"].flatMap((user, i) =>
      Array.from({ length: i + 1 }, (_, j) => projectCame(project(`${user}-${j}`, user))),
    );
    const usages = usagesOf({ limits: [{ maxProjects: 3 }] }, four);
    expect(usages.map(({ subject, state }) => [subject, state])).toEqual(
      ["below", "full", "last", "over"].map((state) => [state, state]),
    );
    expect(usageFigures(usages)).toEqual([
      ...["below", "last", "full", "over"].map((state) => ({
        metric: "usher_project_limit_users",
        labels: { state },
        value: 1,
      })),
      { metric: "usher_project_limit_user_projects", labels: { user: "over" }, value: 4 },
      { metric: "usher_project_limit_user_projects", labels: { user: "full" }, value: 3 },
    ]);
  });

  test("unlimited and exempt users have no state, and groups are not guessed", () => {
    const changes = ["bob", "root", "system:serviceaccount:kube-system:x"].map((user, i) =>
      projectCame(project(`p${i}`, user)),
    );
    const spec = {
      limits: [{ groups: ["a"], maxProjects: 1 }],
      exempt: { users: ["root"] },
      maxProjectsForServiceAccounts: 0,
    };
    expect(usagesOf(spec, changes).map(({ subject, max }) => [subject, max])).toEqual([
      ["bob", "unknown"],
      ["root", "unlimited"],
      ["system:serviceaccount:kube-system:x", "unlimited"],
    ]);
  });

  test("the limit of all authenticated users is that of each, unless another group may come first", () => {
    const changes = [projectCame(project("p", "bob"))];
    const everyone = { groups: ["system:authenticated"], maxProjects: 3 };
    const of = (limits: Json) => usagesOf({ limits }, changes).map(({ max, rule }) => [max, rule]);
    expect(of([everyone])).toEqual([[3, "limits[0]"]]);
    expect(of([{ groups: ["leads"], maxProjects: 9 }, everyone])).toEqual([["unknown", undefined]]);
  });

  test("a group-dependent limit is known from the rule of the last admission", () => {
    const ledger = {
      apiVersion: "usher.dev/v1alpha1",
      kind: "ProjectUsage",
      metadata: { name: "u-bob" },
      spec: { subject: "bob", rule: "limits[0]", entries: [] },
    };
    const spec = { limits: [{ groups: ["a"], maxProjects: 2 }, { maxProjects: 1 }] };
    const changes = [
      projectCame(project("p", "bob")),
      { resource: "projectusages.usher.dev", namespace: "", name: "u-bob", object: ledger },
    ];
    expect(usagesOf(spec, changes)).toMatchObject([{ max: 2, rule: "limits[0]", state: "last" }]);
  });

  test("names at most 100, those furthest over first", () => {
    const usages: SubjectUsage[] = Array.from({ length: 300 }, (_, i) => ({
      subject: `user-${i}`,
      count: i,
      names: [],
      max: 1,
      state: "over",
    }));
    const named = usageFigures(usages).filter(({ labels }) => "user" in labels);
    expect(named).toHaveLength(MOST_NAMED);
    expect(named[0]?.labels).toEqual({ user: "user-299" });
  });
});
