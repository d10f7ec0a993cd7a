import type { Json } from "../../../core/json.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { labelledAll } from "../compile.ts";
import { compileAll } from "../fallback/compile.ts";

/** Prints the objects of `fallback: true`: the part of `usher compile` that is node-guard's, by its earlier name. */
export const compileCode: CommandCode = {
  run: ({ assembly: { view, installation }, now }) => {
    const items = labelledAll(compileAll(view, installation, now));
    return {
      data: { apiVersion: "v1", kind: "List", items } as Json,
      notes: [
        ...(items.length === 0 ? ["no group has the mode Enable, so there is nothing to refuse"] : []),
        "usher compile prints the policies of every module, and what is left out",
      ],
      exit: "fine",
    };
  },
};
