import { expect, test } from "vitest";
import type { Hook } from "../../core/module/hook.ts";
import { DEFAULT_CALL_MS, REMEMBERED_ROUTES, Routes } from "./routes.ts";

function hook(name: string, phase: Hook["phase"], timeoutSeconds = 10): Hook {
  return { name, module: "m", phase, rules: [], failure: "open", timeoutSeconds, sideEffects: "None" };
}

const HOOKS = [hook("a", "mutate", 5), hook("b", "mutate", 3), hook("c", "validate", 7)];

function route(url: string, hooks = HOOKS) {
  const found = new Routes().find(url, hooks);
  if ("nowhere" in found) throw new Error(found.nowhere);
  return { phase: found.phase, hooks: found.hooks.map(({ name }) => name), waitsMs: found.waitsMs };
}

function nowhere(url: string): string {
  const found = new Routes().find(url, HOOKS);
  return "nowhere" in found ? found.nowhere : "found";
}

test("a phase alone means all its hooks, in order", () => {
  expect(route("/mutate")).toEqual({ phase: "mutate", hooks: ["a", "b"], waitsMs: 3_000 });
  expect(route("/validate/")).toEqual({ phase: "validate", hooks: ["c"], waitsMs: 7_000 });
});

test("listed hooks run in the listed order, each once", () => {
  expect(route("/mutate/b/a/b").hooks).toEqual(["b", "a"]);
});

test("the caller's timeout counts, up to what the API server allows", () => {
  expect(route("/mutate?timeout=500ms").waitsMs).toBe(500);
  expect(route("/mutate?x=1&timeout=1m30s").waitsMs).toBe(30_000);
  expect(route("/validate?timeout=250%C2%B5s").waitsMs).toBe(0.25);
});

test.each(["?timeout=soon", "?timeout=", "?timeout=0s", "?timeout=-1s", "?timeout=%", "?time=1s"])(
  "without a timeout that makes sense the hooks' own counts: %s",
  (query) => {
    expect(route(`/validate${query}`).waitsMs).toBe(7_000);
  },
);

test("no hooks at all: allowed to be asked, with the API server's default time", () => {
  expect(route("/mutate", [])).toEqual({ phase: "mutate", hooks: [], waitsMs: DEFAULT_CALL_MS });
});

test.each(["/", "/mutat", "/mutateX", "mutate", "", "//mutate", "https://usher/mutate", "/MUTATE", "*"])(
  "nothing at %j",
  (url) => {
    expect(nowhere(url)).toContain("/mutate or /validate");
  },
);

test("an unknown hook is answered with the known ones of its phase", () => {
  expect(nowhere("/mutate/a/nope")).toBe('no hook "nope" to mutate with; there are: a, b');
  expect(nowhere("/validate/a")).toBe('no hook "a" to validate with; there are: c');
  expect(nowhere("/mutate//a")).toBe("no hook to mutate with; there are: a, b");
  expect(nowhere("/mutate/%00%0a")).toBe("no hook to mutate with; there are: a, b");
  expect(nowhere("/mutate/__proto__")).toContain("no hook");
});

test("an address is parsed once, and again when the hooks have changed", () => {
  const routes = new Routes();
  const first = routes.find("/mutate", HOOKS);
  expect(routes.find("/mutate", HOOKS)).toBe(first);
  expect(routes.find("/mutate", [hook("z", "mutate")])).toMatchObject({ hooks: [{ name: "z" }] });
});

test("invented addresses do not pile up", () => {
  const routes = new Routes();
  const first = routes.find("/mutate?n=0", HOOKS);
  for (let n = 1; n <= REMEMBERED_ROUTES; n++) routes.find(`/mutate?n=${n}`, HOOKS);
  expect(routes.find("/mutate?n=0", HOOKS)).not.toBe(first);
});

test("one name may lead to several hooks that are one question", () => {
  const shut: Hook = { ...hook("shut", "mutate"), askedAs: "a", failure: "closed" };
  const all = [shut, ...HOOKS];
  expect(route("/mutate/a", all).hooks).toEqual(["shut", "a"]);
  expect(route("/mutate/shut", all).hooks).toEqual(["shut"]);
});
