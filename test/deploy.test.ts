import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedFiles } from "../deploy/generate/generated-files.ts";

const root = join(import.meta.dirname, "..");
const files = await generatedFiles();

test.each(files)("$path is as npm run deploy writes it", ({ path, text }) => {
  expect(existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined).toBe(text);
});
