import { z } from "zod";
import { type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { timeOf } from "../../../core/policy/condition.ts";
import { groupsOf } from "../groups/groups.ts";
import { isActive, MOST_HOURS, readOverride } from "../groups/override.ts";
import { OVERRIDES } from "../groups/policy.ts";
import type { GrantFlags, RevokeArgs } from "./flags.ts";

const KIND = "NodeGuardOverride";
const DURATION = /^(\d{1,4})([smh])$/;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds of `30m`. */
function durationOf(text: string | undefined): number | undefined {
  const [, amount = "", unit = ""] = DURATION.exec(text ?? "") ?? [];
  const ms = Number(amount) * (UNITS[unit] ?? 0);
  return ms > 0 && ms <= MOST_HOURS * 3_600_000 ? ms : undefined;
}

/** Creates an override that begins now. */
export const grantCode: CommandCode<object, GrantFlags> = {
  check: ({ flags }) => {
    for (const name of ["group", "mode", "for", "reason"] as const)
      if ((flags[name] ?? "").trim() === "") return `--${name} is required`;
    return durationOf(flags.for) === undefined
      ? `--for ${flags.for}: must be such as 30m or 2h, at most ${MOST_HOURS}h`
      : undefined;
  },
  run: ({ flags, assembly: { view, installation }, now }) => {
    const groups = groupsOf(view, installation, undefined).map(({ name }) => name);
    const { group = "", mode = "", reason = "" } = flags;
    if (!groups.includes(group))
      return { wrong: `there is no group ${group}; there are: ${groups.join(", ") || "none"}` };
    const begin = Math.floor(now / 1_000) * 1_000;
    const name = `${group.toLowerCase().replaceAll(/[^a-z0-9-]/g, "-")}-${timeOf(begin).toLowerCase().replaceAll(":", "-")}`;
    const apply: JsonObject = {
      apiVersion: "usher.dev/v1alpha1",
      kind: KIND,
      metadata: { name },
      spec: { group, mode, from: timeOf(begin), until: timeOf(begin + (durationOf(flags.for) ?? 0)), reason },
    };
    return {
      changes: [
        {
          kind: KIND,
          of: { resource: OVERRIDES, name },
          plan: (stored) =>
            stored === undefined
              ? { apply, resourceVersion: undefined }
              : { failed: "an override was granted in the same second: try again" },
        },
      ],
    };
  },
};

export const listCode: CommandCode = {
  shape: z.strictObject({
    overrides: z.array(
      z.strictObject({
        name: z.string(),
        group: z.string(),
        mode: z.string(),
        from: z.string(),
        until: z.string(),
        grantedBy: z.string(),
        reason: z.string(),
        state: z.enum(["pending", "active", "expired"]),
      }),
    ),
  }),
  run: ({ assembly: { view }, now }) => {
    const overrides = [...view.list(OVERRIDES)]
      .flatMap((object) => readOverride(object) ?? [])
      .map(({ name, group, mode, from, until, reason, grantedBy }) => ({
        name,
        group,
        mode,
        from: timeOf(from),
        until: timeOf(until),
        grantedBy,
        reason,
        state: now < from ? "pending" : now < until ? "active" : "expired",
      }))
      .sort((a, b) => (a.from < b.from ? 1 : -1));
    const active = overrides.filter(({ state }) => state === "active").length;
    return {
      data: { overrides } as unknown as Json,
      table: {
        columns: ["NAME", "GROUP", "MODE", "STATE", "UNTIL", "GRANTED BY", "REASON"],
        rows: overrides.map((one) => [
          one.name,
          one.group,
          one.mode,
          one.state,
          one.until,
          one.grantedBy === "" ? "-" : one.grantedBy,
          one.reason,
        ]),
      },
      summary: `${overrides.length} ${overrides.length === 1 ? "override" : "overrides"}, ${active} active`,
      exit: active > 0 ? "found" : "fine",
    };
  },
};

/** Ends an override by deleting it. */
export const revokeCode: CommandCode<RevokeArgs> = {
  run: ({ args: { name }, assembly: { view }, now }) => {
    const found = view.get(OVERRIDES, "", name);
    if (found === undefined) return { wrong: `there is no ${KIND} ${name}` };
    const override = readOverride(found);
    const ended = override !== undefined && !isActive(override, now) && now >= override.until;
    return {
      notes: ended ? [`${name} had ended already`] : [],
      changes: [
        {
          kind: KIND,
          of: { resource: OVERRIDES, name },
          plan: (stored) =>
            stored === undefined
              ? "unchanged"
              : {
                  delete: { resource: OVERRIDES, name },
                  resourceVersion: stringAt(stored, "metadata", "resourceVersion") ?? "",
                },
        },
      ],
    };
  },
};
