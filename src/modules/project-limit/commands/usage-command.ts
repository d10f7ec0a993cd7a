import { z } from "zod";
import type { Json } from "../../../core/json.ts";
import type { CommandCode, ReportItem } from "../../../core/module/command.ts";
import type { UsageFlags } from "../declaration.ts";
import { limitsIn } from "../kinds.ts";
import { unenforcedBecause } from "../usage/enforced.ts";
import { STATES, type SubjectUsage, subjectUsages } from "../usage/subject-usage.ts";

/** Names in a row; `-o json` has them all. */
const MOST_NAMES = 5;

/** Every subject with a project, with its limit. */
export const usageCode: CommandCode<object, UsageFlags> = {
  shape: z.strictObject({
    users: z.array(
      z.strictObject({
        subject: z.string(),
        count: z.int(),
        names: z.array(z.string()),
        max: z.union([z.int(), z.enum(["unlimited", "unknown"])]),
        rule: z.string().optional().describe("Where in the spec the maximum is."),
        state: z.enum(STATES).optional(),
      }),
    ),
  }),
  run: ({ flags, assembly: { view }, changedOnly }) => {
    const limits = limitsIn(view);
    const all = subjectUsages(view, limits);
    const shown = flags.atLimit === true || changedOnly ? all.filter(isAtLimit) : all;
    const over = all.filter(({ state }) => state === "over").length;
    const unknown = shown.filter(({ max }) => max === "unknown").length;
    const unenforced = limits === undefined ? undefined : unenforcedBecause(limits, view);
    const notes = [
      ...(unenforced === undefined ? [] : [`ProjectRequestLimit cluster: ${unenforced}.`]),
      ...(limits === undefined ? ["There is no ProjectRequestLimit named cluster: no user is limited."] : []),
      ...(unknown > 0
        ? [
            `${unknown} ${unknown === 1 ? "limit depends" : "limits depend"} on groups, or on a User object that does not exist: unknown.`,
          ]
        : []),
    ];
    return {
      data: { users: shown as unknown as Json },
      table: { columns: ["USER", "PROJECTS", "LIMIT", "STATE", "RULE", "NAMES"], rows: shown.map(rowOf) },
      summary: `${all.length} ${all.length === 1 ? "user" : "users"} with projects, ${all.filter(isAtLimit).length} at or over the limit`,
      items: shown.map(itemOf),
      notes,
      exit: over > 0 ? "found" : "fine",
    };
  },
};

function isAtLimit({ state }: SubjectUsage): boolean {
  return state === "full" || state === "over";
}

function itemOf({ subject, count, max, state }: SubjectUsage): ReportItem {
  const found = { code: "USHER-Q01", message: `has ${count} projects of ${max}` };
  const level = state === "over" ? "error" : state === "full" ? "warning" : undefined;
  return {
    object: { kind: "User", name: subject },
    verdict: state ?? String(max),
    findings: level === undefined ? [] : [{ level, ...found }],
  };
}

function rowOf({ subject, count, max, state, rule, names }: SubjectUsage): string[] {
  const listed = names.slice(0, MOST_NAMES).join(", ");
  return [
    subject,
    String(count),
    String(max),
    state ?? "-",
    rule ?? "-",
    names.length > MOST_NAMES ? `${listed}, …` : listed,
  ];
}
