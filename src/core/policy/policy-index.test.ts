import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PolicyIndex } from "./policy-index.ts";
import type { RequiredLabel } from "./selector-index.ts";

interface Policy {
  readonly ref: { readonly namespace?: string };
  readonly requiredLabels: readonly RequiredLabel[];
}

const policy = (namespace: string | undefined, ...values: string[]): Policy => ({
  ref: namespace === undefined ? {} : { namespace },
  requiredLabels: [
    ...values.map((value) => ({ of: "pod", key: "app", values: [value] })),
    ...(namespace === undefined ? [] : [{ of: "namespace", key: "name", values: [namespace] }]),
  ],
});
const many = (count: number, namespace: string, ...values: string[]) =>
  Array.from({ length: count }, () => policy(namespace, ...values));

describe("policies of a namespace", () => {
  test.each([1, 16, 17, 1_000])("are candidates for no other: %i of them", (count) => {
    const own = policy("shop", "web");
    const index = new PolicyIndex([...many(count, "other", "web"), own]);
    expect(index.candidates("shop", { pod: { app: "web" } }, true)).toEqual([own]);
    expect(index.candidates("other", { pod: { app: "web" } }, true)).toHaveLength(count);
    expect(index.candidates("shop", { pod: { app: "web" } }, false)).toEqual([own]);
  });

  test("are found by labels if there are many", () => {
    const index = new PolicyIndex([...many(100, "shop", "db"), policy("shop", "web")]);
    expect(index.candidates("shop", { pod: { app: "web" } }, true)).toHaveLength(1);
  });

  test("do not change by which label a policy of the cluster is found", () => {
    const pool: Policy = {
      ref: {},
      requiredLabels: [
        { of: "pod", key: "app", values: ["etcd"] },
        { of: "pod", key: "role", values: ["main"] },
      ],
    };
    const same = Array.from({ length: 50 }, () => policy(undefined, "etcd"));
    const rare = Array.from({ length: 500 }, (): Policy => ({ ...pool, ref: { namespace: "other" } }));
    const index = new PolicyIndex([...same, ...rare, pool]);
    expect(index.candidates("shop", { pod: { app: "etcd" } }, true)).toEqual(same);
    expect(index.candidates("shop", { pod: { app: "etcd", role: "main" } }, true)).toContain(pool);
  });
});

test("after any additions and removals it finds what a new one finds", () => {
  const anyPolicy = fc
    .record({
      namespace: fc.constantFrom(undefined, "shop", "other"),
      value: fc.constantFrom("web", "db", undefined),
    })
    .map(({ namespace, value }) => policy(namespace, ...(value === undefined ? [] : [value])));
  const list = fc.array(anyPolicy, { maxLength: 60 });
  fc.assert(
    fc.property(
      list,
      list,
      fc.array(fc.nat(), { maxLength: 60 }),
      fc.boolean(),
      (first, added, removed, known) => {
        const index = new PolicyIndex(first);
        const inside = new Set(first);
        for (const one of added) {
          index.add(one);
          inside.add(one);
        }
        for (const pick of removed) {
          const one = [...inside][pick % Math.max(1, inside.size)];
          if (one === undefined) continue;
          index.remove(one);
          index.remove(one);
          inside.delete(one);
        }
        expect(new Set(index.items)).toEqual(inside);
        const labels = { pod: { app: "web" }, namespace: { name: "shop" } };
        const found = index.candidates("shop", labels, known);
        expect(new Set(found).size).toBe(found.length);
        for (const one of inside) {
          const [selects] = one.requiredLabels.flatMap(({ key, values }) => (key === "app" ? values : []));
          if ((one.ref.namespace ?? "shop") === "shop" && (selects ?? "web") === "web")
            expect(found).toContain(one);
          if (one.ref.namespace === "other") expect(found).not.toContain(one);
        }
      },
    ),
    { numRuns: 100 },
  );
});
