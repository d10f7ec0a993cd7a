// Finds the programs that the test files of a run need, by their source text. The global setup builds them before the
// first test: a test's time limit is too short for a build, which would also slow the tests beside it.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { TOOLS, type ToolName } from "./recipes.ts";

const STARTS_CLUSTERS = join(import.meta.dirname, "..", "cluster.ts");
const IMPORTED = /\bfrom "(\.[^"]+\.ts)"/g;
/** The tests of `ensureTool` itself build with a stand-in. */
const ASKS_FOR_TOOLS = /\bensureTool\b[^;]*\/cluster\/binaries\.ts"/;

export interface Needed {
  readonly controlPlane: boolean;
  readonly tools: readonly ToolName[];
}

/** Follows relative imports. A file that imports `ensureTool` needs each tool that it names. */
export function neededBy(files: readonly string[]): Needed {
  const seen = new Set(files);
  const tools = new Set<ToolName>();
  for (const file of seen) {
    const text = readFileSync(file, "utf8");
    for (const [, path = ""] of text.matchAll(IMPORTED)) seen.add(join(dirname(file), path));
    if (!ASKS_FOR_TOOLS.test(text)) continue;
    for (const name of Object.keys(TOOLS) as ToolName[]) if (text.includes(`"${name}"`)) tools.add(name);
  }
  return { controlPlane: seen.has(STARTS_CLUSTERS), tools: [...tools] };
}
