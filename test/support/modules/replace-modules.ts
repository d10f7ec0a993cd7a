import { registerHooks } from "node:module";

/** Loaded by `node --import` before usher: runs the real program with the modules of USHER_TEST_MODULES in place of its own. */
const list = new URL("../../../src/modules/index.ts", import.meta.url).href;
const replacement = process.env["USHER_TEST_MODULES"];

registerHooks({
  resolve: (specifier, context, next) => {
    const resolved = next(specifier, context);
    return resolved.url === list && replacement !== undefined ? { ...resolved, url: replacement } : resolved;
  },
});
