// A reporter of vitest: the slowest files, which determine the order in vitest.config.ts.
import { relative } from "node:path";
import { root } from "./setup.mjs";

const SHOWN = 10;

export default class LongestFiles {
  onTestRunEnd(modules) {
    const longest = modules
      .map((module) => ({ file: relative(root, module.moduleId), ms: module.diagnostic().duration }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, SHOWN);
    if (longest.length < SHOWN) return;
    console.log(`\nThe ${SHOWN} longest files, with their hooks:`);
    for (const { file, ms } of longest) console.log(`${(ms / 1000).toFixed(1).padStart(8)} s  ${file}`);
  }
}
