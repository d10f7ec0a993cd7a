// The verdict of each hook of each module for a request that is too large to read, in every mode; compared with the
// table in docs/safety.md.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Facts } from "../src/core/decision/need.ts";
import { type AdmissionRequest, OPERATIONS } from "../src/core/decision/request.ts";
import { evaluateHooks } from "../src/core/evaluate/evaluate-hooks.ts";
import { responseOf } from "../src/core/evaluate/response.ts";
import type { Assembly } from "../src/core/module/assembly.ts";
import { type Hook, hookWants } from "../src/core/module/hook.ts";
import { PROTECTED_RESOURCES } from "../src/core/module/protected.ts";
import { assemblyIn, MODES } from "./builders/modes.ts";

/** A request for each resource and operation of a rule, in each kind of namespace. */
function requestsFor(hook: Hook): AdmissionRequest[] {
  return hook.rules.flatMap(({ groups, versions, resources, operations, scope }) =>
    groups.flatMap((group) =>
      resources.flatMap((name) =>
        operations.flatMap((operation) =>
          (scope === "Cluster" ? [""] : ["shop", "kube-system"]).map((place) => {
            const [resource = "", subResource = ""] = name.split("/");
            return request(
              { group, version: versions[0] ?? "v1", resource },
              { subResource, operation, namespace: place },
            );
          }),
        ),
      ),
    ),
  );
}

function request(resource: AdmissionRequest["resource"], more: Partial<AdmissionRequest>): AdmissionRequest {
  return {
    uid: "u",
    kind: { group: resource.group, version: resource.version, kind: "Some" },
    resource,
    subResource: "",
    name: "x",
    namespace: "",
    operation: "CREATE",
    userInfo: { username: "mallory", groups: [] },
    object: undefined,
    oldObject: undefined,
    dryRun: false,
    options: undefined,
    tooLarge: "the body has more than 5 bytes",
    ...more,
  };
}

function answered(assembly: Assembly, asked: AdmissionRequest, hooks: readonly Hook[]) {
  return (["mutate", "validate"] as const).flatMap((phase) => {
    const evaluation = evaluateHooks({ assembly, phase, hooks, request: asked, now: 0 }, new Facts());
    if ("needs" in evaluation) throw new Error("an unread request needs no facts");
    return evaluation.asked.length === 0 ? [] : [{ evaluation, response: responseOf(evaluation) }];
  });
}

/** The verdicts of each hook, with the modes in which it denied. */
function verdicts(): Map<string, { allowed: string[]; denied: string[] }> {
  const seen = new Map<string, { allowed: string[]; denied: string[] }>();
  for (const [mode, settings] of Object.entries(MODES)) {
    const assembly = assemblyIn(settings);
    for (const hook of assembly.hooks) {
      named.add(hook.name);
      const [first] = requestsFor(hook)
        .filter((one) => hookWants(hook, one))
        .map((one) => answered(assembly, one, [hook])[0]?.response);
      if (first === undefined) continue;
      const of = seen.get(hook.name) ?? { allowed: [], denied: [] };
      (first.allowed ? of.allowed : of.denied).push(mode);
      seen.set(hook.name, of);
    }
  }
  return seen;
}

const named = new Set<string>();

const ROWS = readFileSync("docs/safety.md", "utf8")
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, names = ""]) => names.startsWith("`"))
  .map(([, names = "", verdict = ""]) => ({
    names: [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    verdict,
  }))
  .filter(({ verdict }) => /^(denied|allowed)/.test(verdict));

test("the table in docs/safety.md has the verdict of every hook in every mode", () => {
  const expected = [...verdicts()].map(([name, { allowed, denied }]) => {
    const least = denied.filter((mode) => !denied.some((other) => mode.startsWith(`${other},`)));
    if (denied.length === 0) return `${name}: allowed`;
    return allowed.length === 0
      ? `${name}: denied`
      : `${name}: denied with ${least.map((mode) => `\`${mode}\``).join(" or ")}, else allowed`;
  });
  expect(ROWS.flatMap(({ names, verdict }) => names.map((name) => `${name}: ${verdict}`)).sort()).toEqual(
    expected.sort(),
  );
  expect([...named].filter((name) => !expected.some((line) => line.startsWith(`${name}:`)))).toEqual([]);
});

test.each(Object.keys(MODES))(
  "a hook that denies says what, why and what to do, and other hooks warn: %s",
  (mode) => {
    const assembly = assemblyIn(MODES[mode] ?? {});
    for (const hook of assembly.hooks)
      for (const asked of requestsFor(hook).filter((one) => hookWants(hook, one)))
        for (const { response, evaluation } of answered(assembly, asked, [hook])) {
          expect(response.allowed, hook.name).toBe(hook.tooLarge === "allow");
          const text = response.status?.message ?? response.warnings.join();
          expect(text).toMatch(
            / is too large for module [\w-]+ to read: the body has more than 5 bytes; .*smaller \(USHER-E05\)/,
          );
          expect([undefined, 413]).toContain(response.status?.code);
          expect(evaluation.findings).toMatchObject([{ rule: "size", code: "USHER-E05" }]);
        }
  },
);

test.each(Object.keys(MODES))(
  "requests that a cluster needs to recover are never denied for their size: %s",
  (mode) => {
    // An older API server evaluates no matchConditions, so heartbeats reach the webhook, too.
    for (const [server, heartbeats] of [
      ["v1.34.0", false],
      ["v1.26.0", true],
    ] as const) {
      const assembly = assemblyIn(MODES[mode] ?? {}, server);
      for (const { group, resource, scope } of PROTECTED_RESOURCES)
        for (const operation of OPERATIONS)
          for (const subResource of ["", "status"]) {
            const place = scope === "Cluster" ? "" : "kube-node-lease";
            const asked = request(
              { group, version: "v1", resource },
              { operation, subResource, namespace: place },
            );
            const conditional = resource === "nodes" && operation === "UPDATE" && !heartbeats;
            for (const { evaluation, response } of answered(assembly, asked, assembly.hooks)) {
              if (!conditional)
                expect(response.allowed, `${operation} ${resource}/${subResource}`).toBe(true);
              for (const { hook: name } of evaluation.denials) {
                const hook = assembly.hooks.find((one) => one.name === name);
                expect(hook?.conditions, name).toMatchObject([{ name: "labels-changed" }]);
              }
            }
          }
    }
  },
);
