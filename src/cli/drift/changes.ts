import { canonical, equal, isObject, type Json } from "../../core/json.ts";
import { fieldPath, type Path } from "../../core/path.ts";

/** A value that is longer says no more in a table. */
const LONGEST_VALUE = 100;

/** What differs between two states of an object: `+ nodeSelector.pool=etcd`, `~ schedulerName a -> b`, `- tolerations {…}`. */
export function changesBetween(before: Json | undefined, after: Json | undefined, path: Path = []): string[] {
  if (equal(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return keys.flatMap((key) => changesBetween(before[key], after[key], [...path, key]));
  }
  if (isObject(after) && before === undefined) return changesBetween({}, after, path);
  if (isObject(before) && after === undefined) return changesBetween(before, {}, path);
  if (isList(before) && isList(after)) return elementsBetween(before ?? [], after ?? [], path);
  const where = fieldPath(path);
  if (before === undefined) return [`+ ${where}=${shown(after)}`];
  if (after === undefined) return [`- ${where}=${shown(before)}`];
  return [`~ ${where} ${shown(before)} -> ${shown(after)}`];
}

function isList(value: Json | undefined): value is readonly Json[] | undefined {
  return value === undefined || Array.isArray(value);
}

/** What went and what came; an index would only say that others moved. */
function elementsBetween(before: readonly Json[], after: readonly Json[], path: Path): string[] {
  const had = new Set(before.map(canonical));
  const has = new Set(after.map(canonical));
  const where = fieldPath(path);
  const changes = [
    ...before.filter((one) => !has.has(canonical(one))).map((one) => `- ${where} ${shown(one)}`),
    ...after.filter((one) => !had.has(canonical(one))).map((one) => `+ ${where} ${shown(one)}`),
  ];
  return changes.length === 0 ? [`~ ${where}: in another order`] : changes;
}

function shown(value: Json | undefined): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
}
