import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkTable } from "./builders/check-table.ts";

test("docs/pod-security.md has the table generated from the checks", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "docs", "pod-security.md"), "utf8");
  const found = page.split("\n").filter((line) => line.startsWith("|"));
  expect(found.join("\n")).toBe(checkTable());
});
