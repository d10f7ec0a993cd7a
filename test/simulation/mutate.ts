/** Loaded before the simulation, with `--import`: changes one text of the product while it is read. */
import { registerHooks } from "node:module";
import { MUTANTS } from "./mutants.ts";

const wanted = process.env["USHER_MUTANT"];
const mutant = MUTANTS.find(({ name }) => name === wanted);
if (mutant === undefined) throw new Error(`there is no mutant ${wanted}`);
const url = new URL(`../../${mutant.file}`, import.meta.url).href;
registerHooks({
  load: (loaded, context, nextLoad) => {
    const result = nextLoad(loaded, context);
    if (loaded !== url) return result;
    const source = String(result.source);
    if (source.split(mutant.text).length !== 2)
      throw new Error(`${mutant.name}: ${mutant.file} does not have the text once`);
    return { ...result, source: source.replace(mutant.text, () => mutant.by) };
  },
});
