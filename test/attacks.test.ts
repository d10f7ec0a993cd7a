// Checks that the table of attacks on protected nodes is complete, and that each row has the tests that it names.
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const PLACES = ["pure", "API server", "refused before admission", "stand-in"];

const TABLE = readFileSync("docs/node-guard-attacks.md", "utf8")
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, row = ""]) => /^\d+b?$/.test(row))
  .map(([, row = "", , , shown = ""]) => ({ row, shown: shown.split(", ") }));

/** The rows that tests refer to: in their titles, or as the first cell of a table. */
function rowsIn(pattern: string): Set<string> {
  const rows = new Set<string>();
  for (const file of globSync(pattern)) {
    const text = readFileSync(file, "utf8");
    for (const [, row = ""] of text.matchAll(/\[\s*"(\d+b?)",\s/g)) rows.add(row);
    for (const [, first = "", and, last = first] of text.matchAll(/\brows? (\d+b?)(?: (and|to) (\d+b?))?/g)) {
      rows.add(first);
      rows.add(last);
      if (and === "to") for (let row = Number(first); row <= Number(last); row++) rows.add(String(row));
    }
  }
  return rows;
}

test("there are 84 rows: 1 to 83 and 20b, each once and in order", () => {
  const numbers = Array.from({ length: 83 }, (_, i) => String(i + 1));
  expect(TABLE.map(({ row }) => row)).toEqual([...numbers.slice(0, 20), "20b", ...numbers.slice(20)]);
});

test("each row is covered by the tests that it names", () => {
  const pure = rowsIn("src/modules/node-guard/attacks/*.test.ts");
  const server = rowsIn("test/e2e/{node-guard-*.test.ts,guarding/*.ts}");
  const wrong = TABLE.filter(({ row, shown }) => {
    const known = shown.length > 0 && shown.every((place) => PLACES.includes(place));
    const inServer =
      shown.includes("API server") || (shown.includes("refused before admission") && !pure.has(row));
    const somewhere = shown.includes("pure") || inServer;
    return (
      !known || !somewhere || (shown.includes("pure") && !pure.has(row)) || (inServer && !server.has(row))
    );
  });
  expect(wrong).toEqual([]);
});
