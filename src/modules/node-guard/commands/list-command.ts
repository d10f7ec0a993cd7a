import { z } from "zod";
import { at, isObject, type Json } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { withoutFallback } from "../fallback/in-force.ts";
import { missingEmergency } from "../groups/administrators.ts";
import type { Group } from "../groups/group.ts";
import { groupsOf } from "../groups/groups.ts";
import { builtInOf, GATE, isOn } from "../settings.ts";

/** Each group's result: its mode, why, its nodes, and every entry with its origin. */
export const listCode: CommandCode = {
  shape: z.strictObject({
    groups: z.array(
      z.strictObject({
        name: z.string(),
        mode: z.string(),
        effectiveMode: z.string(),
        because: z.string(),
        nodes: z.array(z.string()),
        entries: z.array(z.strictObject({ entry: z.string(), as: z.string(), origin: z.string() })),
      }),
    ),
  }),
  run: ({ assembly, now }) => {
    const { view, installation } = assembly;
    const found = groupsAt(assembly, now);
    const groups = found.map((group) => ({
      name: group.name,
      mode: group.mode,
      // Without the gate no group has an effect.
      effectiveMode: isOn(assembly.gates) ? group.effectiveMode : "Disable",
      because: isOn(assembly.gates) ? group.because : `feature gate ${GATE.name} is off`,
      nodes: nodesIn(assembly, group),
      entries: [...group.entries, ...group.emergency].map(({ entry, as, list, origin }) => ({
        entry,
        as: list.startsWith("emergency") ? "emergency" : as,
        origin,
      })),
    }));
    return {
      data: { groups } as unknown as Json,
      table: {
        columns: ["GROUP", "MODE", "EFFECTIVE", "NODES", "ENTRY", "AS", "ORIGIN"],
        rows: groups.flatMap(({ name, mode, effectiveMode, nodes, entries }) => {
          const head = [name, mode, effectiveMode, String(nodes.length)];
          if (entries.length === 0) return [[...head, "-", "-", "-"]];
          return entries.map(({ entry, as, origin }, i) => [
            ...(i === 0 ? head : ["", "", "", ""]),
            entry,
            as,
            origin,
          ]);
        }),
      },
      summary: groups.length === 0 ? "no groups" : groups.map(describe).join("; "),
      notes: [
        ...(isOn(assembly.gates)
          ? []
          : [`feature gate ${GATE.name} is off: no group is guarded, whatever its mode`]),
        ...found.flatMap((group) => {
          const missing = missingEmergency(group, builtInOf(installation, view));
          const unguarded = withoutFallback(group, installation);
          return [
            ...(missing === undefined ? [] : [`${group.name}: ${missing}`]),
            ...(unguarded === undefined
              ? []
              : [
                  `${group.name}: nodes that join the group while usher does not answer are not guarded: ${unguarded}`,
                ]),
          ];
        }),
      ],
      exit: "fine",
    };
  },
};

/** `ControlPlane: Inform, because …` */
function describe({
  name,
  effectiveMode,
  because,
}: {
  name: string;
  effectiveMode: string;
  because: string;
}) {
  return `${name}: ${effectiveMode}${because === "" ? "" : `, because ${because}`}`;
}

/** The groups as they count at a time. */
export function groupsAt({ view, installation }: Assembly, now: number): readonly Group[] {
  return groupsOf(view, installation, now);
}

/** The names of a group's nodes, in order. */
export function nodesIn({ view }: Assembly, { labelSelector }: Group): string[] {
  const nodes = [...view.list("nodes")].filter((node) => {
    const labels = at(node, "metadata", "labels");
    return matches(labelSelector, isObject(labels) ? labels : undefined);
  });
  return nodes.map(nameOf).sort();
}
