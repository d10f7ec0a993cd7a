import { at, isObject, type Json, type JsonObject, own } from "../../../../core/json.ts";
import { typeName } from "../../../../core/kubernetes/field-error.ts";
import type { Path } from "../../../../core/path.ts";
import { idle, PROBLEM, type Problem, problem } from "../../../../core/policy/problem.ts";

/** What the API server would refuse in one element of a list. */
export type ElementCheck = (
  value: Json,
  path: Path,
) => readonly { readonly path: Path; readonly message: string }[];

/** The elements that a policy's spec has at a path; none of what can't be read, which is a problem. */
export function parseList(
  spec: JsonObject,
  path: Path,
  check: ElementCheck,
  problems: Problem[],
): readonly JsonObject[] | undefined {
  const value = at(spec, ...path);
  if (value === undefined || value === null) return undefined;
  const place = ["spec", ...path];
  if (!Array.isArray(value)) {
    problems.push(problem(place, `must be a list, got ${typeName(value)}`));
    return undefined;
  }
  for (const [i, item] of value.entries()) {
    for (const found of check(item, [...place, i])) problems.push(problem(found.path, found.message));
  }
  return storedForm(value);
}

/** Elements that agree in what the API server takes once. */
export function repeated(list: readonly JsonObject[], path: Path, unique: readonly string[]): Problem[] {
  const seen = new Set<string>();
  return list.flatMap((item, i) => {
    const key = JSON.stringify(unique.map((name) => own(item, name) ?? null));
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [problem([...path, i], `duplicate ${unique.join(" and ")}: a pod may have it once`)];
  });
}

/** Elements that mean the same as one before them. */
export function duplicates(
  list: readonly JsonObject[],
  path: Path,
  meaning: (element: Json) => string,
): Problem[] {
  const first = new Map<string, number>();
  return list.flatMap((item, i) => {
    const text = meaning(item);
    const other = first.get(text);
    if (other === undefined) first.set(text, i);
    return other === undefined
      ? []
      : [
          {
            ...idle(PROBLEM.noEffect, [...path, i], `means the same as [${other}] and is applied once`),
            fix: { remove: true } as const,
          },
        ];
  });
}

/**
 * The objects of a list as an API server stores them: without nulls, members sorted. So a policy from a file and the same one from a
 * cluster give the same bytes. From a cluster it is the list itself, which the policy holds anyway.
 */
export function storedForm(list: readonly Json[]): readonly JsonObject[] | undefined {
  const objects = list.map(stored).filter(isObject);
  if (objects.length === 0) return undefined;
  const same = objects.length === list.length && objects.every((object, i) => object === list[i]);
  return same ? (list as readonly JsonObject[]) : objects;
}

function stored(value: Json): Json {
  if (Array.isArray(value)) {
    const items = value.map(stored);
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  const members = names.toSorted().flatMap((name): [string, Json][] => {
    const member = value[name];
    return member === undefined || member === null ? [] : [[name, stored(member)]];
  });
  const same =
    members.length === names.length &&
    members.every(([name, member], i) => name === names[i] && member === value[name]);
  return same ? value : Object.fromEntries(members);
}
