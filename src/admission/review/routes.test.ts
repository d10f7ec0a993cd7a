import { expect, test } from "vitest";
import type { Hook } from "../../core/module/hook.ts";
import { CACHED_ROUTES, DEFAULT_CALL_MS, Routes } from "./routes.ts";

function hook(name: string, phase: Hook["phase"], timeoutSeconds = 10): Hook {
  return {
    name,
    module: "m",
    phase,
    rules: [],
    failure: "open",
    tooLarge: "allow",
    timeoutSeconds,
    sideEffects: "None",
  };
}

const HOOKS = [hook("a", "mutate", 5), hook("b", "mutate", 3), hook("c", "validate", 7)];

function route(url: string, hooks = HOOKS) {
  const found = new Routes().find(url, hooks);
  if ("notFound" in found) throw new Error(found.notFound);
  return { phase: found.phase, hooks: found.hooks.map(({ name }) => name), timeoutMs: found.timeoutMs };
}

function notFound(url: string): string {
  const found = new Routes().find(url, HOOKS);
  return "notFound" in found ? found.notFound : "found";
}

test("a phase alone selects all its hooks, in order", () => {
  expect(route("/mutate")).toEqual({ phase: "mutate", hooks: ["a", "b"], timeoutMs: 3_000 });
  expect(route("/validate/")).toEqual({ phase: "validate", hooks: ["c"], timeoutMs: 7_000 });
});

test("listed hooks run in the listed order, each once", () => {
  expect(route("/mutate/b/a/b").hooks).toEqual(["b", "a"]);
});

test("the caller's timeout counts, up to the API server's limit", () => {
  expect(route("/mutate?timeout=500ms").timeoutMs).toBe(500);
  expect(route("/mutate?x=1&timeout=1m30s").timeoutMs).toBe(30_000);
  expect(route("/validate?timeout=250%C2%B5s").timeoutMs).toBe(0.25);
});

test.each(["?timeout=soon", "?timeout=", "?timeout=0s", "?timeout=-1s", "?timeout=%", "?time=1s"])(
  "without a valid timeout the hooks' own counts: %s",
  (query) => {
    expect(route(`/validate${query}`).timeoutMs).toBe(7_000);
  },
);

test("without any hooks uses the API server's default timeout", () => {
  expect(route("/mutate", [])).toEqual({ phase: "mutate", hooks: [], timeoutMs: DEFAULT_CALL_MS });
});

test.each(["/", "/mutat", "/mutateX", "mutate", "", "//mutate", "https://usher/mutate", "/MUTATE", "*"])(
  "has no route at %j",
  (url) => {
    expect(notFound(url)).toContain("use /mutate, /validate");
  },
);

test("an unknown hook is answered by the known ones of its phase", () => {
  expect(notFound("/mutate/a/nope")).toBe('no hook "nope" for mutate; hooks: a, b');
  expect(notFound("/validate/a")).toBe('no hook "a" for validate; hooks: c');
  expect(notFound("/mutate//a")).toBe("no hook for mutate; hooks: a, b");
  expect(notFound("/mutate/%00%0a")).toBe("no hook for mutate; hooks: a, b");
  expect(notFound("/mutate/__proto__")).toContain("no hook");
});

test("parses a URL once, and again when the hooks have changed", () => {
  const routes = new Routes();
  const first = routes.find("/mutate", HOOKS);
  expect(routes.find("/mutate", HOOKS)).toBe(first);
  expect(routes.find("/mutate", [hook("z", "mutate")])).toMatchObject({ hooks: [{ name: "z" }] });
});

test("bounds the cache of unknown URLs", () => {
  const routes = new Routes();
  const first = routes.find("/mutate?n=0", HOOKS);
  for (let n = 1; n <= CACHED_ROUTES; n++) routes.find(`/mutate?n=${n}`, HOOKS);
  expect(routes.find("/mutate?n=0", HOOKS)).not.toBe(first);
});

test("one name may select several hooks that are one question", () => {
  const shut: Hook = { ...hook("shut", "mutate"), askedAs: "a", failure: "closed" };
  const all = [shut, ...HOOKS];
  expect(route("/mutate/a", all).hooks).toEqual(["shut", "a"]);
  expect(route("/mutate/shut", all).hooks).toEqual(["shut"]);
});
