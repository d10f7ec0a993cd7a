import type { Json } from "../../../core/json.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { MODULE_LABEL } from "../../../core/registration/managed-objects.ts";
import { labelled } from "../../../core/registration/names.ts";
import { compileAll } from "../fallback/compile.ts";
import { MODULE } from "../settings.ts";

/** Prints the objects of `fallback: true`. */
export const compileCode: CommandCode = {
  run: ({ assembly: { view, installation }, now }) => {
    const items = compileAll(view, installation, now).map((object) =>
      labelled(object, undefined, { [MODULE_LABEL]: MODULE }),
    );
    return {
      data: { apiVersion: "v1", kind: "List", items } as Json,
      notes: items.length === 0 ? ["no group has the mode Enable, so there is nothing to refuse"] : [],
      exit: "fine",
    };
  },
};
