import fc from "fast-check";
import { expect, test } from "vitest";
import { fairShare } from "./fair-share.ts";

const share = (items: readonly string[], most = 3) => fairShare(items, (item) => item, most);

test.each<[string, readonly string[], readonly string[]]>([
  ["few are all there", ["Pod a/1", "Pod a/2"], ["Pod a/1", "Pod a/2"]],
  ["one namespace gets all", ["Pod a/1", "Pod a/2", "Pod a/3", "Pod a/4"], ["Pod a/1", "Pod a/2", "Pod a/3"]],
  [
    "another namespace is not pushed out",
    ["Pod a/1", "Pod a/2", "Pod a/3", "Pod a/4", "Pod b/1"],
    ["Pod a/1", "Pod a/2", "Pod b/1"],
  ],
  [
    "objects of the cluster count as one namespace",
    ["Node 1", "Node 2", "Node 3", "missing Pod b/1", "Pod c/1"],
    ["Node 1", "missing Pod b/1", "Pod c/1"],
  ],
])("%s", (_what, items, expected) => {
  expect(share(items)).toEqual(expected);
});

test("cutting parts before cutting the whole changes nothing", () => {
  const item = fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.nat(30));
  const sorted = (items: readonly (readonly [string, number])[]) =>
    [...items].sort((x, y) => y[1] - x[1] || (x[0] < y[0] ? -1 : 1)).map(([ns, at]) => `Pod ${ns}/${at}`);
  const order = (items: readonly string[]) =>
    sorted(
      items.map((text) => {
        const [ns = "", at = ""] = text.slice(4).split("/");
        return [ns, Number(at)] as const;
      }),
    );
  const unique = fc.uniqueArray(item, { selector: ([ns, at]) => `${ns}${at}`, maxLength: 24 });
  fc.assert(
    fc.property(unique, fc.nat(24), (items, cut) => {
      const parts = [items.slice(0, cut), items.slice(cut)].map((part) => share(sorted(part)));
      expect(share(order(parts.flat()))).toEqual(share(sorted(items)));
    }),
    { numRuns: 500 },
  );
});
