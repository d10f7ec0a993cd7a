import { isObject, type JsonObject, listAt, stringAt } from "../json.ts";
import { annotationsOf, labelsOf, nameOf } from "../kubernetes/object.ts";
import { describeTaint } from "../kubernetes/taints.ts";
import { fieldPath } from "../path.ts";
import type { ChangedLine } from "./compare.ts";
import type { World } from "./world.ts";

/** How a node, or a user, stands in two worlds. */
export interface StandingDifference {
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  readonly effect: "changed" | "new" | "gone" | "over its limit" | "within its limit";
  readonly lines: readonly ChangedLine[];
}

/** Nodes whose labels, annotations and taints differ between two reconciled worlds. */
export function nodeDifferences(before: World, after: World): StandingDifference[] {
  const names = new Set([...before.list("nodes"), ...after.list("nodes")].map(nameOf));
  return [...names].sort().flatMap((name): StandingDifference[] => {
    const [old, now] = [before.get("nodes", "", name), after.get("nodes", "", name)];
    const object = { kind: "Node", name };
    if (old === undefined) return [{ object, effect: "new", lines: [] }];
    if (now === undefined) return [{ object, effect: "gone", lines: [] }];
    const [had, has] = [valuesOf(old), valuesOf(now)];
    const lines = [...new Set([...had.keys(), ...has.keys()])].flatMap((key): ChangedLine[] => {
      const [from, to] = [had.get(key), has.get(key)];
      if (from === to) return [];
      return [
        ...(from === undefined ? [] : [{ sign: "-" as const, message: from, by: byOf(before, name, key) }]),
        ...(to === undefined ? [] : [{ sign: "+" as const, message: to, by: byOf(after, name, key) }]),
      ];
    });
    return lines.length === 0 ? [] : [{ object, effect: "changed", lines }];
  });
}

function byOf(world: World, node: string, path: string): string {
  return world.reason(node, path) ?? "-";
}

/** `label pool=edge` by the path of the value. Usher's own records are omitted: they follow from the rest. */
function valuesOf(node: JsonObject): Map<string, string> {
  const values = new Map<string, string>();
  const collect = (what: string, map: JsonObject | undefined) => {
    for (const [key, value] of Object.entries(map ?? {}))
      if (typeof value === "string" && !key.startsWith("usher.dev/"))
        values.set(
          fieldPath(["metadata", `${what}s`, key]),
          `${what} ${key}${value === "" ? "" : `=${value}`}`,
        );
  };
  collect("label", labelsOf(node));
  collect("annotation", annotationsOf(node));
  for (const taint of listAt(node, "spec", "taints")) {
    // Shown as cordoned.
    if (stringAt(taint, "key") === "node.kubernetes.io/unschedulable") continue;
    const [key = "", effect = ""] = [stringAt(taint, "key"), stringAt(taint, "effect")];
    const value = stringAt(taint, "value") ?? "";
    values.set(
      fieldPath(["spec", "taints", `${key}:${effect}`]),
      `taint ${describeTaint({ key, value, effect })}`,
    );
  }
  if (isObject(node["spec"]) && node["spec"]["unschedulable"] === true)
    values.set("spec.unschedulable", "cordoned");
  return values;
}

/** Users that are over their limit in one of two worlds. */
export function violationDifferences(before: World, after: World): StandingDifference[] {
  const [old, now] = [violationsIn(before), violationsIn(after)];
  return [...new Set([...old.keys(), ...now.keys()])].sort().flatMap((key): StandingDifference[] => {
    const [had, has] = [old.get(key), now.get(key)];
    const object = (has ?? had)?.object;
    if (object === undefined || had?.violation === has?.violation) return [];
    const line = (sign: "+" | "-", message: string) => ({ sign, message, by: (has ?? had)?.module ?? "" });
    return [
      {
        object,
        effect: has === undefined ? "within its limit" : "over its limit",
        lines: [
          ...(had === undefined ? [] : [line("-", had.violation)]),
          ...(has === undefined ? [] : [line("+", has.violation)]),
        ],
      },
    ];
  });
}

function violationsIn({ assembly }: World) {
  const found = new Map<
    string,
    { object: StandingDifference["object"]; violation: string; module: string }
  >();
  for (const { name, standing } of assembly.modules)
    for (const { object, violation } of standing?.(assembly) ?? [])
      if (violation !== undefined)
        found.set(`${object.kind} ${object.namespace ?? ""}/${object.name}`, {
          object,
          violation,
          module: name,
        });
  return found;
}
