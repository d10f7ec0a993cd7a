// `npm run deploy`: writes every generated file. A test fails where one of them is stale.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { generatedFiles } from "./generated-files.ts";

const root = join(import.meta.dirname, "..", "..");
for (const { path, text } of await generatedFiles()) {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
