import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { table, tableRows } from "../../src/cli/output/table.ts";

const HEADER = ["OBJECT", "CHANGE", "BY"];
const ROWS = [
  [
    "Node edge-north-1",
    "+ annotation telco.example.com/contact=noc-north@example.com",
    "cluster-config/site-north",
  ],
  ["", "+ label a", "x"],
];

describe("a table", () => {
  test("of known width continues long cells below", () => {
    expect(table(HEADER, ROWS, 80)).toEqual([
      "OBJECT              CHANGE                             BY",
      "Node edge-north-1   + annotation                       cluster-config/site-north",
      "                      telco.example.com/contact=noc-",
      "                      north@example.com",
      "                    + label a                          x",
    ]);
  });

  test("takes room from sentences before it breaks words, and breaks a long word after a sign", () => {
    const rows = [
      ["ClusterPodSchedulingPolicy", "kupid.gardener.cloud/v1alpha1", "criteria for pods of namespaces"],
    ];
    expect(table(["KIND", "APIVERSION", "SUMMARY"], rows, 80)).toEqual([
      "KIND                         APIVERSION                      SUMMARY",
      "ClusterPodSchedulingPolicy   kupid.gardener.cloud/v1alpha1   criteria for pods",
      "                                                               of namespaces",
    ]);
    expect(table(["KIND", "APIVERSION", "SUMMARY"], rows, 66).slice(1)).toEqual([
      "ClusterPodScheduling   kupid.gardener.        criteria for pods of",
      "  Policy                 cloud/v1alpha1         namespaces",
    ]);
  });

  test("of unknown width is as wide as long names where most are long, and else lets one overflow", () => {
    const name = (end: string) => `Deployment ${"team-".repeat(12)}${end}`;
    const long = [name("a"), name("b"), name("c")].map((one) => [one, "changed"]);
    const starts = table(["OBJECT", "AFTER"], long).map((line) => line.search(/AFTER|changed/));
    expect(new Set(starts).size).toBe(1);
    expect(table(["OBJECT", "AFTER"], [...long.slice(0, 1), ["Pod a", "same"]])).toEqual([
      "OBJECT   AFTER",
      `${name("a")}   changed`,
      "Pod a    same",
    ]);
  });

  test("that fits is the same as without a width", () => {
    const short = [["a", "b", "c"]];
    expect(table(HEADER, short, 200)).toEqual(table(HEADER, short));
  });

  test("fits every terminal of 60 columns, one row each, and loses nothing", () => {
    const cell = fc
      .string({ unit: fc.constantFrom("a", "b", " ", "/"), maxLength: 120 })
      .map((one) => one.trim());
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell)), fc.integer({ min: 60, max: 200 }), (rows, width) => {
        const printed = tableRows(HEADER, rows, width);
        expect(printed).toHaveLength(rows.length + 1);
        const plain = (text: string) => text.replaceAll(" ", "").split("").sort().join("");
        for (const [i, lines] of printed.entries()) {
          for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
          expect(plain(lines.join(""))).toBe(plain([HEADER, ...rows][i]?.join("") ?? ""));
        }
      }),
    );
  });
});
