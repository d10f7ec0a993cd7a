import { codesOf } from "../../core/module/codes.ts";
import type { ITEM_FORMATS, ReportItem } from "../../core/module/command.ts";
import type { Code } from "../../core/module/module.ts";
import { ITEM_PRINTERS } from "../output/formats.ts";
import type { OpenedWorld } from "./open-world.ts";
import type { PrintedEntry } from "./print.ts";

/** Objects whose decision differs, in a format of pipelines. */
export function itemsText(
  format: (typeof ITEM_FORMATS)[number],
  entries: readonly PrintedEntry[],
  command: string,
  { world }: OpenedWorld,
  summary = "",
): string {
  const codes = [...codesOf(world.assembly.modules), ...DIFFERENCES];
  return ITEM_PRINTERS[format](entries.flatMap(itemsOf), { command, summary, codes });
}

/** A refusal, or pods that fit nowhere, is an error; any other difference is a note. */
function itemsOf({ names, before, after, changes, style }: PrintedEntry): ReportItem[] {
  const level = style === "red" ? "error" : style === "yellow" ? "warning" : "note";
  const code = level === "error" ? "worse" : "differs";
  const found = (changes.length === 0 ? [[`${before} -> ${after}`, "-"] as const] : changes).map(
    ([message, by]) => ({
      level: message.startsWith("!") || changes.length < 2 ? level : "note",
      code: /\((USHER-[A-Z]\d+)\)$/.exec(message)?.[1] ?? code,
      message,
      ...(by === "-" ? {} : { by }),
    }),
  );
  return names.map((name) => {
    const [kind = "", rest = ""] = name.split(" ");
    const [first = "", second] = rest.split("/");
    const object = second === undefined ? { kind, name: first } : { kind, namespace: first, name: second };
    return { object, verdict: `${before} -> ${after}`, findings: found as ReportItem["findings"] };
  });
}

const DIFFERENCES: readonly Code[] = [
  {
    code: "worse",
    title: "The edit refuses an object, or leaves its pods no node",
    meaning: "The object was admitted, or had nodes to run on, and would not be after the edit.",
    remedy:
      "Narrow the edited policy, or exempt the object. `usher explain` says where its pods may run and why not elsewhere.",
  },
  {
    code: "differs",
    title: "The edit changes what happens to an object",
    meaning: "The object would be changed otherwise, or would run on other nodes, after the edit.",
    remedy: "Nothing, where that is the purpose of the edit.",
  },
];
