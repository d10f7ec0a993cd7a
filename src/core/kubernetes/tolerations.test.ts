import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../json.ts";
import type { Taint } from "./taints.ts";
import {
  CoveringTolerations,
  checkToleration,
  covers,
  tolerates,
  toleratesAll,
  tolerationMeaning,
  untolerated,
} from "./tolerations.ts";

const taint: Taint = { key: "dedicated", value: "gpu", effect: "NoSchedule" };
const number = (value: string): Taint => ({ key: "sla", value, effect: "NoExecute" });

test.each<[Json, Taint, boolean]>([
  [{ key: "dedicated", operator: "Equal", value: "gpu", effect: "NoSchedule" }, taint, true],
  [{ key: "dedicated", value: "gpu" }, taint, true],
  [{ key: "dedicated", operator: "", value: "gpu", effect: "" }, taint, true],
  [{ key: "dedicated", operator: null, value: "gpu", effect: null }, taint, true],
  [{ key: "dedicated", value: "cpu" }, taint, false],
  [{ key: "dedicated" }, taint, false],
  [{ key: "dedicated" }, { key: "dedicated", effect: "NoSchedule" }, true],
  [{ key: "dedicated", operator: "Exists" }, taint, true],
  [{ key: "other", operator: "Exists" }, taint, false],
  [{ key: "dedicated", operator: "Exists", effect: "NoExecute" }, taint, false],
  [{ operator: "Exists" }, taint, true],
  [{ operator: "Exists", effect: "NoSchedule" }, taint, true],
  [{ operator: "Exists", effect: "NoExecute" }, taint, false],
  [{ key: "dedicated", operator: "exists" }, taint, false],
  [{ key: "dedicated", operator: "In", value: "gpu" }, taint, false],
  [{ key: "sla", operator: "Gt", value: "950" }, number("951"), true],
  [{ key: "sla", operator: "Gt", value: "950" }, number("950"), false],
  [{ key: "sla", operator: "Gt", value: "950" }, number("1000"), true],
  [{ key: "sla", operator: "Lt", value: "950" }, number("949"), true],
  [{ key: "sla", operator: "Lt", value: "950" }, number("950"), false],
  [{ key: "sla", operator: "Lt", value: "0" }, number("-1"), true],
  [{ key: "sla", operator: "Gt", value: "950" }, number("high"), false],
  [{ key: "sla", operator: "Lt", value: "high" }, number("1"), false],
  [{ key: "sla", operator: "Lt" }, number("1"), false],
  [{ key: "sla", operator: "Gt", value: "1" }, { key: "sla", effect: "NoExecute" }, false],
  [{ key: "sla", operator: "Gt", value: "9007199254740992" }, number("9007199254740993"), true],
  [{ key: "sla", operator: "Gt", value: "1" }, number("9223372036854775808"), false],
  // Kubernetes 1.37 reads canonical decimals only, on either side.
  [{ key: "sla", operator: "Gt", value: "6" }, number("007"), false],
  [{ key: "sla", operator: "Gt", value: "006" }, number("7"), false],
  [{ key: "sla", operator: "Lt", value: "8" }, number("+7"), false],
  [{ key: "sla", operator: "Lt", value: "1" }, number("-0"), false],
  [{ key: 1, operator: "Exists" }, taint, false],
  [{ operator: "Exists", effect: 1 }, taint, false],
  [null, taint, false],
  ["dedicated=gpu", taint, false],
  [JSON.parse('{"__proto__":{"operator":"Exists"}}'), taint, false],
])("%j tolerates %j: %s", (toleration, on, expected) => {
  expect(tolerates(toleration, on)).toBe(expected);
});

describe("all taints of a node", () => {
  const taints: Taint[] = [
    { key: "a", value: "", effect: "NoSchedule" },
    { key: "b", value: "", effect: "PreferNoSchedule" },
    { key: "c", value: "", effect: "NoExecute" },
  ];
  const bears = (...keys: string[]): Json[] => keys.map((key) => ({ key, operator: "Exists" }));

  test("a PreferNoSchedule taint keeps no pod away", () => {
    expect(toleratesAll(bears("a", "c"), taints)).toBe(true);
    expect(toleratesAll(bears("a"), taints)).toBe(false);
    expect(untolerated(bears("a"), taints)).toEqual([taints[2]]);
    expect(toleratesAll([], [])).toBe(true);
  });

  test("checks only the given effects", () => {
    expect(untolerated([], taints, ["PreferNoSchedule"])).toEqual([taints[1]]);
    expect(untolerated([], taints, ["NoSchedule", "PreferNoSchedule", "NoExecute"])).toEqual(taints);
    expect(toleratesAll(bears("a"), taints, ["NoSchedule"])).toBe(true);
    expect(toleratesAll([], taints, [])).toBe(true);
  });

  test("an invalid toleration tolerates nothing", () => {
    expect(untolerated([null, "x", 1, [], { key: 1 }], taints)).toEqual([taints[0], taints[2]]);
  });
});

const sameToleration = (a: Json, b: Json): boolean => tolerationMeaning(a) === tolerationMeaning(b);

test.each<[Json, Json, boolean]>([
  [{ key: "a" }, { key: "a", operator: "Equal", value: "", effect: "" }, true],
  [{ key: "a", value: null }, { key: "a" }, true],
  [{ key: "a", operator: "Exists", value: "x" }, { key: "a", operator: "Exists" }, true],
  [{ key: "a", operator: "Exists" }, { key: "a" }, false],
  [{ key: "a", effect: "NoExecute" }, { key: "a" }, false],
  [{ key: "a", value: "x" }, { key: "a", value: "y" }, false],
  [{ key: "a" }, { key: "b" }, false],
  [{ key: "a", effect: "NoExecute", tolerationSeconds: 0 }, { key: "a", effect: "NoExecute" }, false],
  [
    { key: "a", effect: "NoExecute", tolerationSeconds: 5 },
    { key: "a", effect: "NoExecute", tolerationSeconds: 6 },
    false,
  ],
  [
    { key: "a", effect: "NoExecute", tolerationSeconds: -5 },
    { key: "a", effect: "NoExecute", tolerationSeconds: 0 },
    true,
  ],
  [{ key: "a", operator: "Gt", value: "5" }, { key: "a", operator: "Gt", value: "+05" }, false],
  [{ key: "a", operator: "Gt", value: "5" }, { key: "a", operator: "Gt", value: "6" }, false],
  [{ key: "a", operator: "Gt", value: "x" }, { key: "a", operator: "Gt", value: "y" }, false],
  [{ key: "a", value: "5" }, { key: "a", value: "05" }, false],
  [{ key: "a", future: { x: 1 } }, { key: "a", future: { x: 1 } }, true],
  [{ key: "a", future: 1 }, { key: "a", future: 2 }, false],
  [{ key: "a", future: 1 }, { key: "a" }, false],
  [{ key: "a", future: null }, { key: "a" }, true],
  [{ key: 1 }, { key: 1 }, true],
  [{ key: 1 }, { key: "1" }, false],
])("%j is the same as %j: %s", (a, b, expected) => {
  expect(sameToleration(a, b)).toBe(expected);
  expect(sameToleration(b, a)).toBe(expected);
});

const keys = fc.constantFrom("", "a", "b");
const operators = fc.constantFrom("", "Equal", "Exists", "Gt", "Lt", "Bad");
const values = fc.constantFrom("", "x", "1", "2", "02", "3", "9223372036854775807", "-9223372036854775808");
const effects = fc.constantFrom("", "NoSchedule", "PreferNoSchedule", "NoExecute");
const tolerations = fc.record(
  {
    key: keys,
    operator: operators,
    value: values,
    effect: effects,
    tolerationSeconds: fc.constantFrom(-1, 0, 5, 9),
  },
  { requiredKeys: [] },
);

/** Every taint that could distinguish two of those tolerations. */
const ALL_TAINTS: readonly Taint[] = ["a", "b", "c"].flatMap((key) =>
  [
    "",
    "x",
    "y",
    "0",
    "1",
    "01",
    "2",
    "02",
    "3",
    "03",
    "4",
    "9223372036854775806",
    "9223372036854775807",
    "+9223372036854775807",
    "-9223372036854775808",
    "-9223372036854775807",
  ].flatMap((value) =>
    ["NoSchedule", "PreferNoSchedule", "NoExecute"].map((effect) => ({ key, value, effect })),
  ),
);

interface Written {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** According to the documentation; BigInt parses the numbers above, in canonical form only. */
function bruteForce(written: Written, on: Taint): boolean {
  const { key = "", operator = "", value = "", effect = "" } = written;
  const integer = (text: string) => (/^(0|-?[1-9]\d*)$/.test(text) ? BigInt(text) : undefined);
  if (![on.key, ""].includes(key) || ![on.effect, ""].includes(effect)) return false;
  const [mine, theirs] = [integer(value), integer(on.value ?? "")];
  const both = mine !== undefined && theirs !== undefined;
  if (operator === "Gt") return both && theirs > mine;
  if (operator === "Lt") return both && theirs < mine;
  return operator === "Exists" || (operator !== "Bad" && value === on.value);
}

/** How long a taint is tolerated: not at all, some seconds, or forever. */
function borne(written: Written, on: Taint): number {
  if (!bruteForce(written, on)) return -1;
  if (on.effect !== "NoExecute" || written.tolerationSeconds === undefined) return Number.POSITIVE_INFINITY;
  return Math.max(0, written.tolerationSeconds);
}

test("tolerates as documented", () => {
  fc.assert(
    fc.property(tolerations, fc.constantFrom(...ALL_TAINTS), (toleration, on) => {
      expect(tolerates(toleration as Json, on)).toBe(bruteForce(toleration as Written, on));
    }),
    { numRuns: 2000 },
  );
});

test("covers exactly if no taint distinguishes the two", () => {
  fc.assert(
    fc.property(tolerations, tolerations, (a, b) => {
      const expected = ALL_TAINTS.every((on) => borne(a as Written, on) >= borne(b as Written, on));
      expect(covers(a as Json, b as Json)).toBe(expected);
    }),
    { numRuns: 5000 },
  );
});

test("an index of tolerations finds the same covering tolerations as pairwise comparison", () => {
  fc.assert(
    fc.property(fc.array(tolerations, { maxLength: 5 }), tolerations, (own, narrow) => {
      const covering = own.filter((one) => covers(one as Json, narrow as Json));
      const found = new CoveringTolerations(own as Json[]).cover(narrow as Json);
      // Tolerations that tolerate nothing, and comparisons of different range, may be added needlessly; never the
      // reverse.
      if (found) expect(covering).not.toEqual([]);
      const plain = covering.filter(({ operator }) => operator === "Exists" || operator === "Equal");
      const bearsSome = ALL_TAINTS.some((on) => bruteForce(narrow as Written, on));
      if (plain.length > 0 && bearsSome) expect(found).toBe(true);
    }),
    { numRuns: 5000 },
  );
});

test("those that are the same cover each other", () => {
  fc.assert(
    fc.property(tolerations, tolerations, (a, b) => {
      expect(sameToleration(a as Json, a as Json)).toBe(true);
      if (sameToleration(a as Json, b as Json)) {
        expect([covers(a as Json, b as Json), covers(b as Json, a as Json)]).toEqual([true, true]);
      }
    }),
    { numRuns: 2000 },
  );
});

test("unreadable tolerations tolerate nothing", () => {
  expect(covers({ operator: "Exists" }, { key: 1 })).toBe(true);
  expect(covers({ key: 1 }, { key: "a" })).toBe(false);
  expect(covers(undefined, undefined)).toBe(true);
});

describe("checkToleration", () => {
  test.each<Json>([
    { operator: "Exists" },
    { key: "a" },
    { key: "example.com/a", operator: "Equal", value: "b", effect: "NoSchedule" },
    { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: -1 },
    { key: "a", operator: "Gt", value: "0" },
    { key: "a", operator: "Lt", value: "-5" },
    { key: "a", operator: "Exists", value: null, effect: null, tolerationSeconds: null },
  ])("accepts %j", (toleration) => {
    expect(checkToleration(toleration, [])).toEqual([]);
  });

  test.each<[Json, string[]]>([
    ["a=b", [""]],
    [null, [""]],
    [{}, ["operator"]],
    [{ key: "a b" }, ["key"]],
    [{ value: "x" }, ["operator"]],
    [{ key: "a", value: "x y" }, ["value"]],
    [{ key: "a", operator: "Exists", value: "x" }, ["value"]],
    [{ key: "a", operator: "In" }, ["operator"]],
    [{ key: "a", operator: "exists" }, ["operator"]],
    [{ key: "a", effect: "Evict" }, ["effect"]],
    [{ key: "a", tolerationSeconds: 5 }, ["effect"]],
    [{ key: "a", effect: "NoSchedule", tolerationSeconds: 5 }, ["effect"]],
    [{ key: "a", effect: "NoExecute", tolerationSeconds: 1.5 }, ["tolerationSeconds"]],
    [{ key: "a", effect: "NoExecute", tolerationSeconds: "5" }, ["tolerationSeconds"]],
    [{ key: "a", operator: "Gt" }, ["value"]],
    [{ key: "a", operator: "Gt", value: "05" }, ["value"]],
    [{ key: "a", operator: "Gt", value: "+5" }, ["value"]],
    [{ key: "a", operator: "Gt", value: "-0" }, ["value"]],
    [{ key: "a", operator: "Lt", value: "x" }, ["value"]],
    [{ key: "a", operator: "Lt", value: "9223372036854775808" }, ["value"]],
    [{ operator: "Gt", value: "5" }, ["operator"]],
    [{ key: 1, operator: true, value: [], effect: {} }, ["key", "operator", "value", "effect"]],
    [{ key: "a", seconds: 1 }, ["seconds"]],
  ])("refuses %j", (toleration, places) => {
    const problems = checkToleration(toleration, ["tolerations", 0]);
    expect(problems.map(({ path }) => path.slice(2).join("."))).toEqual(places);
    for (const { message } of problems) expect(message).toMatch(/\w+ \w+/);
  });
});

test("never throws for any JSON", () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.dictionary(
        fc.constantFrom("key", "operator", "value", "effect", "tolerationSeconds"),
        fc.jsonValue(),
      ),
      (a, b) => {
        for (const [left, right] of [
          [a, b],
          [b, a],
        ] as [Json, Json][]) {
          expect(typeof tolerates(left, taint)).toBe("boolean");
          expect(typeof sameToleration(left, right)).toBe("boolean");
          expect(typeof covers(left, right)).toBe("boolean");
          expect(Array.isArray(checkToleration(left, []))).toBe(true);
        }
      },
    ),
  );
});
