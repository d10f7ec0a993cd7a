import { canonical, equal, isObject, type Json } from "../json.ts";
import { fieldPath, type Path } from "../path.ts";

/** Longer values are cut, so that the columns stay readable. */
const MAX_VALUE_LENGTH = 100;

/** The difference between two states of an object: `+ nodeSelector.pool=etcd`, `~ schedulerName a -> b`, `- tolerations {…}`. */
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
  if (before === undefined) return [`+ ${where}=${valueText(after)}`];
  if (after === undefined) return [`- ${where}=${valueText(before)}`];
  return [`~ ${where} ${valueText(before)} -> ${valueText(after)}`];
}

function isList(value: Json | undefined): value is readonly Json[] | undefined {
  return value === undefined || Array.isArray(value);
}

/** Elements removed and added; indexes would only show that others moved. */
function elementsBetween(before: readonly Json[], after: readonly Json[], path: Path): string[] {
  const had = new Set(before.map(canonical));
  const has = new Set(after.map(canonical));
  const where = fieldPath(path);
  const changes = [
    ...before.filter((one) => !has.has(canonical(one))).map((one) => `- ${where} ${valueText(one)}`),
    ...after.filter((one) => !had.has(canonical(one))).map((one) => `+ ${where} ${valueText(one)}`),
  ];
  return changes.length === 0 ? [`~ ${where}: reordered`] : changes;
}

function valueText(value: Json | undefined): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}
