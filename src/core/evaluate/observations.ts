import { at, canonical, isObject, type Json, type JsonObject } from "../json.ts";
import { fairShare } from "./fair-share.ts";

/**
 * Observations of decisions, kept over restarts and replicas: each combination of fields once, with count and times. A
 * module reports it with a finding, and its commands read it. Merging is commutative, so that replicas need no order.
 */
export interface Observation {
  /** Chosen by the module. With a field `namespace`, no namespace can evict all others. */
  readonly fields: Readonly<Record<string, string>>;
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly first: number;
  readonly last: number;
}

/** Kept per module. With fields of common lengths 300 KB, of the 1 MiB that an object may have. */
export const MOST_OBSERVATIONS = 1_000;

/** Usernames may be emails or DNs; longer ones are not stored: cut short they would name another user. */
const MOST_FIELD_LENGTH = 512;

/** Of the 1 MiB of a ConfigMap, minus metadata and JSON escapes. */
const MOST_BYTES = 700_000;

/** Whether these fields are short enough to be remembered. */
export function isObservable(fields: Observation["fields"]): boolean {
  return Object.values(fields).every((value) => value.length <= MOST_FIELD_LENGTH);
}

/** Merged, the latest first; beyond the limit the older ones of the namespace with the most are dropped. */
export function mergeObservations(...all: readonly Iterable<Observation>[]): Observation[] {
  const merged = new Map<string, Observation>();
  for (const some of all) {
    for (const one of some) {
      const key = canonical(one.fields as JsonObject);
      const before = merged.get(key);
      merged.set(key, before === undefined ? one : sum(before, one));
    }
  }
  const sorted = [...merged].sort(([a, one], [b, other]) => other.last - one.last || (a < b ? -1 : 1));
  return fairShare(
    sorted.map(([, one]) => one),
    ({ fields }) => `${fields["namespace"] ?? ""}/`,
    MOST_OBSERVATIONS,
  );
}

function sum(a: Observation, b: Observation): Observation {
  return {
    fields: a.fields,
    count: a.count + b.count,
    first: Math.min(a.first, b.first),
    last: Math.max(a.last, b.last),
  };
}

/** As many as fit, one a line. */
export function encodeObservations(observations: readonly Observation[]): string {
  const lines: string[] = [];
  let bytes = 0;
  for (const { fields, count, first, last } of observations) {
    const line = JSON.stringify([fields, count, first, last]);
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > MOST_BYTES) break;
    lines.push(line);
  }
  return lines.join("\n");
}

/** Skips undecodable entries: a later version may write another format. */
export function decodeObservations(text: string): Observation[] {
  return text.split("\n").flatMap((line) => observationOf(line));
}

function observationOf(line: string): Observation[] {
  let parsed: Json;
  try {
    parsed = JSON.parse(line) as Json;
  } catch {
    return [];
  }
  const [fields, count, first, last] = [0, 1, 2, 3].map((i) => at(parsed, i));
  if (!isObject(fields) || !Object.values(fields).every((value) => typeof value === "string")) return [];
  if (!isCount(count) || !isCount(first) || !isCount(last)) return [];
  return [{ fields: fields as Observation["fields"], count, first, last }];
}

function isCount(value: Json | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** The ConfigMap with the observations of a module, in usher's namespace, and its key. */
export const OBSERVATIONS = {
  label: "usher.dev/observations",
  entry: "observations",
  name: (module: string): string => `usher-observations-${module}`,
} as const;
