import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const src = join(import.meta.dirname, "..", "src");
const code = readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
  (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
);

/** A file that needs more has a second idea in it. */
const MAX_LINES = 250;

/** A file of a longer listing is not found from the listing alone. */
const MAX_FILES = 20;

test(`no file of code exceeds ${MAX_LINES} lines`, () => {
  const long = code
    .map((file) => ({ file, lines: readFileSync(join(src, file), "utf8").trimEnd().split("\n").length }))
    .filter(({ lines }) => lines > MAX_LINES);
  expect(long).toEqual([]);
});

test(`no folder holds more than ${MAX_FILES} files of code`, () => {
  const folders = Map.groupBy(code, (file) => dirname(file));
  const large = [...folders].filter(([, files]) => files.length > MAX_FILES).map(([folder]) => folder);
  expect(code.length).toBeGreaterThan(100);
  expect(large).toEqual([]);
});
