import { expect, test } from "vitest";
import { assemblyOf, callOf } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import {
  limitsCame,
  MODERN,
  namespaceRequest,
  projectRequest,
  projects,
  userInfo,
} from "../../../../test/builders/project-limit.ts";
import type { Fact } from "../../../core/decision/need.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Module } from "../../../core/module/module.ts";
import type { Right } from "../../../core/module/rights.ts";
import { judgingRights } from "../../../core/registration/module-rights.ts";
import type { Change } from "../../../core/view/view.ts";
import { projectLimit } from "../index.ts";
import { USAGES } from "../ledger/project-usage.ts";
import { OPERAND } from "../operand-names.ts";
import { operandModule } from "./operand-module.ts";
import { operandRoles } from "./operand-rights.ts";

const BOB = userInfo("bob");

function configured(spec: JsonObject): Change {
  return {
    resource: "projectrequestlimits.project.openshift.io",
    namespace: "",
    name: "configuration",
    object: { metadata: { name: "configuration" }, spec },
  };
}

/** One ledger that all share, and users without labels. */
function world() {
  let ledger: JsonObject | undefined;
  let version = 0;
  const fact = (resource: string): Fact => {
    if (resource !== USAGES) return { found: { metadata: { labels: {} } }, complete: true };
    return ledger === undefined ? { absent: "NotFound" } : { found: ledger, complete: true };
  };
  return {
    entries: () => (ledger?.["spec"] as { entries: { name: string }[] } | undefined)?.entries ?? [],
    judge: async (module: Module, changes: readonly Change[], request: AdmissionRequest) =>
      responseOf(
        await evaluate(
          callOf(assemblyOf([module], changes, MODERN), request, { phase: "validate" }),
          outside({
            fact: (need) => ("get" in need ? fact(need.get.resource) : { absent: "NotFound" }),
            commit: ({ object, resourceVersion }) => {
              if (resourceVersion !== (ledger === undefined ? undefined : String(version))) return "conflict";
              version += 1;
              ledger = { ...object, metadata: { name: "u-bob", resourceVersion: String(version) } };
              return "done";
            },
          }),
        ),
      ),
  };
}

test("the operand evaluates ProjectRequests by its file, and by no object", async () => {
  const { judge } = world();
  const spec = { limits: [{ maxProjects: 1 }], namespaces: {} };
  const full = [configured(spec), ...projects("bob", 1)];
  expect((await judge(operandModule, full, projectRequest(BOB))).allowed).toBe(false);
  const objects = [limitsCame({ limits: [{ maxProjects: 0 }] }), ...projects("bob", 1)];
  expect((await judge(operandModule, objects, projectRequest(BOB))).allowed).toBe(true);
  // Namespaces belong to usher, whatever the file contains.
  expect((await judge(operandModule, full, namespaceRequest(BOB))).allowed).toBe(true);
  expect(
    assemblyOf([operandModule], full, MODERN).hooks.map(({ name, rules }) => [name, rules.length]),
  ).toEqual([["project-limit", 1]]);
});

test("a request that both receive has one place, in either order", async () => {
  for (const [first, second] of [
    [projectLimit, operandModule],
    [operandModule, projectLimit],
  ] as const) {
    const { judge, entries } = world();
    const spec = { limits: [{ maxProjects: 2 }] };
    const changes = [limitsCame(spec), configured(spec)];
    const ask = (module: Module, name: string, uid: string) =>
      judge(module, changes, projectRequest(BOB, name, { uid }));
    for (const name of ["a", "b"]) {
      expect((await ask(first, name, `${name}-1`)).allowed).toBe(true);
      expect((await ask(second, name, `${name}-2`)).allowed).toBe(true);
    }
    expect(entries().map(({ name }) => name)).toEqual(["a", "a", "b", "b"]);
    expect((await ask(first, "c", "c-1")).allowed).toBe(false);
    expect((await ask(second, "c", "c-2")).allowed).toBe(false);
  }
});

test("its role grants exactly the module's reads and writes, and its webhook", () => {
  const spelled = (rights: readonly Right[]) =>
    [
      ...new Set(
        rights.flatMap(({ group, resources, verbs }) =>
          resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${group}`)),
        ),
      ),
    ].sort();
  const [role] = operandRoles(false);
  const others = (role?.rights ?? []).filter(({ names }) => names?.[0] !== OPERAND.webhook);
  expect(spelled(others)).toEqual(spelled(judgingRights(operandModule)));
});
