import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import { ask, assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { again } from "../../../test/builders/json.ts";
import { finding, moduleThat } from "../../../test/builders/module.ts";
import { outside } from "../../../test/builders/outside.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { allow, deny } from "../decision/decision.ts";
import type { Json } from "../json.ts";
import type { Context, Module } from "../module/module.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";
import { PROVENANCE, provenanceOf } from "../provenance/annotation.ts";
import { evaluate } from "./evaluate.ts";
import { draftOf } from "./evaluate-hooks.ts";
import { responseOf, reviewOf } from "./response.ts";

const LEFT: PolicyRef = { kind: "LeftPolicy", name: "l" };
const RIGHT: PolicyRef = { kind: "RightPolicy", namespace: "shop", name: "r" };
const TERMS = [
  "spec",
  "affinity",
  "nodeAffinity",
  "requiredDuringSchedulingIgnoredDuringExecution",
  "nodeSelectorTerms",
];

/** A module that writes into nodeSelector, affinity and annotations of a pod. */
function writer(name: string, policy: PolicyRef): Module {
  return moduleThat(name, {
    mutate: ({ draft }) => {
      const one = finding({ policy });
      draft.set(["spec", "nodeSelector", name], "1", one);
      draft.append(TERMS, { matchExpressions: [{ key: name, operator: "Exists" }] }, one);
      draft.set(["metadata", "annotations", `${name}.example/note`], "x", one);
      return allow();
    },
  });
}

describe("two modules that write into one pod", () => {
  const sent = pod({
    annotations: { mine: "stays" },
    spec: { nodeSelector: { own: "1" }, containers: [{ name: "c", invented: [1, { x: null }] }] },
  });

  test("both edits are in one patch, and provenance names both modules", () => {
    const original = again(sent);
    const request = requestFor(again(sent));
    const evaluation = atOnce(ask([writer("left", LEFT), writer("right", RIGHT)], request));
    const { patch } = responseOf(evaluation);
    const result = again(original);
    for (const error of applyPatch(result, again(patch as unknown as Json) as unknown as Operation[])) {
      expect(error).toBeNull();
    }
    expect(result).toEqual(evaluation.draft.object);
    expect(result).toMatchObject({
      metadata: { annotations: { mine: "stays", "left.example/note": "x", "right.example/note": "x" } },
      spec: {
        nodeSelector: { own: "1", left: "1", right: "1" },
        containers: [{ name: "c", invented: [1, { x: null }] }],
      },
    });
    expect(result).toHaveProperty(TERMS, [
      { matchExpressions: [{ key: "left", operator: "Exists" }] },
      { matchExpressions: [{ key: "right", operator: "Exists" }] },
    ]);
    expect(new Set(patch.map(({ path }) => path)).size).toBe(patch.length);
    const origins = provenanceOf(evaluation.draft.object);
    expect(origins.map(({ module, policy }) => `${module} ${policy}`)).toEqual([
      "left LeftPolicy/l",
      "right RightPolicy/shop/r",
    ]);
    for (const origin of origins) expect(Object.keys(origin.added)).toHaveLength(1);
    expect(evaluation.findings.map(({ module }) => module)).toEqual([
      "left",
      "left",
      "left",
      "right",
      "right",
      "right",
    ]);
  });

  test("each sees the earlier edits, in the order of the hooks", () => {
    const seen: Json[] = [];
    const look = (name: string) =>
      moduleThat(name, {
        mutate: ({ draft }) => {
          seen.push(again(draft.get("spec", "nodeSelector") ?? null));
          draft.set(["spec", "nodeSelector", name], "1", undefined);
          return allow();
        },
      });
    ask([look("first"), look("second")], requestFor(pod({ spec: {} })));
    expect(seen).toEqual([null, { first: "1" }]);
  });
});

test("validate sees the edits of mutate", () => {
  let seen: Json | undefined;
  const modules = [
    writer("left", LEFT),
    moduleThat("judge", {
      validate: ({ draft }) => {
        seen = draft.get("spec", "nodeSelector", "left");
        return allow();
      },
    }),
  ];
  const request = requestFor(pod());
  const mutated = atOnce(ask(modules, request));
  expect(mutated.asked.map(({ name }) => name)).toEqual(["left-mutate"]);
  const judged = atOnce(ask(modules, request, outside(), { phase: "validate", draft: mutated.draft }));
  expect(judged.asked.map(({ name }) => name)).toEqual(["judge-validate"]);
  expect(seen).toBe("1");
  expect(responseOf(judged).patch).toEqual([]);
});

test("without needs the result is synchronous", () => {
  const evaluation = ask([writer("left", LEFT)], requestFor(pod()));
  expect(evaluation).not.toBeInstanceOf(Promise);
});

test("a hook runs only for requests that it matches, in its phase, and if its module has an evaluator", () => {
  const asked: string[] = [];
  const named = (name: string, hook: object) =>
    moduleThat(name, {
      mutate: () => {
        asked.push(name);
        return allow();
      },
      hook,
    });
  const modules = [
    named("wants", {}),
    named("other-namespace", { namespaces: { except: ["shop"] } }),
    named("other-phase", { phase: "validate" }),
    named("other-module", { module: "nobody" }),
  ];
  const evaluation = atOnce(ask(modules, requestFor(pod())));
  expect(asked).toEqual(["wants"]);
  expect(evaluation.asked.map(({ module }) => module)).toEqual(["wants"]);
});

test("without a matching hook there are no edits, not even of forged provenance", () => {
  const forged = JSON.stringify({ left: [{ policy: "LeftPolicy/l", set: ["/spec"] }] });
  const request = requestFor(pod({ annotations: { [PROVENANCE]: forged } }));
  const evaluation = atOnce(ask([], request));
  expect(responseOf(evaluation)).toMatchObject({ allowed: true, patch: [], warnings: [] });
});

test("the context has the values of the call and the hook", () => {
  let seen: Context | undefined;
  const modules = [
    moduleThat("left", {
      mutate: (context) => {
        seen = context;
        return allow();
      },
    }),
  ];
  const assembly = assemblyOf(modules);
  const request = requestFor(pod());
  evaluate(callOf(assembly, request, { now: 17 }), outside());
  expect(seen).toMatchObject({ now: 17, hook: "left-mutate" });
  expect(seen?.request).toBe(request);
  expect(seen?.view).toBe(assembly.view);
  expect(seen?.installation).toBe(assembly.installation);
  expect(seen?.trace).toBeUndefined();
});

test("a hook whose edits cancel out has not patched", () => {
  const modules = [
    moduleThat("left", {
      mutate: ({ draft }) => {
        draft.set(["spec", "x"], 1, undefined);
        draft.remove(["spec", "x"], undefined);
        return allow();
      },
    }),
    writer("right", RIGHT),
  ];
  const { asked, patched } = atOnce(ask(modules, requestFor(pod())));
  expect(asked).toHaveLength(2);
  expect([...patched]).toEqual([asked[1]?.name]);
});

describe("requests without an object", () => {
  const bare = { object: undefined, operation: "DELETE" } as const;

  test("DELETE is evaluated by the stored object, and nothing is patched", () => {
    const old = pod({ labels: { a: "b" } });
    let seen: Json | undefined;
    const modules = [
      moduleThat("left", {
        mutate: ({ draft }) => {
          seen = draft.get("metadata", "labels", "a");
          draft.set(["spec", "x"], 1, finding({ policy: LEFT }));
          return allow();
        },
      }),
    ];
    const evaluation = atOnce(ask(modules, requestFor(old, { ...bare, oldObject: old })));
    expect(seen).toBe("b");
    expect(reviewOf(responseOf(evaluation))).toMatchObject({ response: { allowed: true } });
    expect(responseOf(evaluation).patch).toEqual([]);
  });

  test("requests without any object do not share edits", () => {
    const request = requestFor(pod(), { ...bare, operation: "CONNECT", oldObject: undefined });
    draftOf(request).set(["left"], "behind", undefined);
    expect(draftOf(request).object).toEqual({});
  });
});

describe("a module that breaks", () => {
  const endless = (): never => endless();
  const SECRET = "inner words at /usr/lib/usher";
  const breaking = (failure: "open" | "closed") =>
    moduleThat("fragile", {
      failure,
      mutate: ({ draft }) => {
        draft.set(["spec", "nodeSelector", "half"], "done", finding({ policy: LEFT }));
        throw new Error(SECRET);
      },
    });

  test("fail-open: allowed with a warning, its edits undone, the others continue", () => {
    const evaluation = atOnce(
      ask([writer("left", LEFT), breaking("open"), writer("right", RIGHT)], requestFor(pod({ spec: {} }))),
    );
    const answer = responseOf(evaluation);
    expect(answer.allowed).toBe(true);
    expect(evaluation.draft.get("spec", "nodeSelector")).toEqual({ left: "1", right: "1" });
    expect(answer.warnings).toEqual(["internal error in module fragile (USHER-E01)"]);
    expect(answer.audit).toEqual({ "fragile.fault": "internal error in module fragile (USHER-E01)" });
    expect(evaluation.findings.filter(({ module }) => module === "fragile")).toHaveLength(1);
    expect(provenanceOf(evaluation.draft.object).map(({ module }) => module)).toEqual(["left", "right"]);
  });

  test("fail-closed: refused with 500, and no detail of the error reaches the client or its audit log", () => {
    const evaluation = atOnce(ask([breaking("closed"), writer("right", RIGHT)], requestFor(pod())));
    const answer = responseOf(evaluation);
    expect(answer).toMatchObject({
      allowed: false,
      patch: [],
      status: { code: 500, reason: "InternalError" },
    });
    expect(JSON.stringify(reviewOf(answer))).not.toContain("inner words");
    expect(evaluation.findings.map(({ error }) => error)).toContainEqual(new Error(SECRET));
    expect(evaluation.findings.map(({ module }) => module)).toContain("right");
  });

  test.each<[string, () => never]>([
    [
      "a text",
      () => {
        throw "just a text";
      },
    ],
    [
      "nothing",
      () => {
        throw undefined;
      },
    ],
    ["that the stack ran over", endless],
  ])("it may throw %s", (_what, mutate) => {
    const evaluation = atOnce(ask([moduleThat("fragile", { mutate })], requestFor(pod())));
    expect(evaluation.findings).toMatchObject([{ outcome: "failed", code: "USHER-E01" }]);
    expect(evaluation.denials).toEqual([]);
  });

  test("an invalid decision is a fault as well", () => {
    const wrong = moduleThat("fragile", { mutate: () => undefined as unknown as ReturnType<typeof allow> });
    expect(atOnce(ask([wrong], requestFor(pod()))).findings).toMatchObject([{ code: "USHER-E01" }]);
  });
});

describe("denials", () => {
  const refuses = (name: string, code: number) =>
    moduleThat(name, { mutate: () => deny({ code, reason: "Forbidden", message: `${name} says no` }, []) });

  test("all are traced, nothing is patched, and no provenance is written", () => {
    const evaluation = atOnce(
      ask([refuses("one", 403), writer("left", LEFT), refuses("two", 422)], requestFor(pod())),
    );
    expect(evaluation.denials.map(({ module, hook }) => [module, hook])).toEqual([
      ["one", "one-mutate"],
      ["two", "two-mutate"],
    ]);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: false,
      patch: [],
      status: { code: 403, message: "one says no\ntwo says no" },
    });
    expect(provenanceOf(evaluation.draft.object)).toEqual([]);
  });
});

test("provenance that does not fit is omitted, with a warning", () => {
  const request = requestFor(pod({ annotations: { big: "x".repeat(262_100) } }));
  const evaluation = atOnce(ask([writer("left", LEFT)], request));
  const answer = responseOf(evaluation);
  expect(answer.allowed).toBe(true);
  expect(answer.warnings.join()).toContain("USHER-E02");
  expect(evaluation.draft.get("spec", "nodeSelector")).toEqual({ left: "1" });
});

describe("hooks that are one question", () => {
  /** The module with a fail-closed hook for one namespace before its own, which is the same question. */
  const withShut = (one: Module): Module => {
    const [open] = assemblyOf([one]).declaredHooks;
    if (open === undefined) throw new Error("no hook");
    const rules = [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] as const }];
    const shut = {
      ...open,
      rules,
      name: "shut",
      askedAs: open.name,
      failure: "closed" as const,
      namespaces: { only: ["shop"] },
    };
    return { ...one, hooks: () => [shut, open] };
  };

  const shadows = (namespace: string) => {
    let times = 0;
    const one = moduleThat("one", {
      mutate: ({ draft }) => {
        times += 1;
        draft.set(["spec", "times"], times, finding());
        return allow();
      },
    });
    const module = withShut(one);
    const { asked } = atOnce(ask([module], requestFor(pod({ namespace }))));
    return { times, asked: asked.map(({ name }) => name) };
  };

  test("run once, by the first that matches the request", () => {
    expect(shadows("shop")).toEqual({ times: 1, asked: ["shut"] });
    expect(shadows("other")).toEqual({ times: 1, asked: ["one-mutate"] });
  });

  test("fail like the one that ran", () => {
    const broken = moduleThat("one", {
      mutate: () => {
        throw new Error("lost");
      },
    });
    const module = withShut(broken);
    const allowed = (namespace: string) =>
      responseOf(atOnce(ask([module], requestFor(pod({ namespace }))))).allowed;
    expect([allowed("shop"), allowed("other")]).toEqual([false, true]);
  });
});
