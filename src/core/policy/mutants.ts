import { at, copyOf, equal, isObject, type Json, type JsonObject, setOwn } from "../json.ts";
import type { Path } from "../path.ts";
import { type Kind, kindResource } from "./kind.ts";

/** A policy with one field removed or weakened, as by a mistake. `usher test --mutate` checks whether a case notices. */
export interface Mutant {
  /** The field that differs; empty if the policy is removed. */
  readonly path: Path;
  /** `removed`, `Refuse becomes Warn` */
  readonly change: string;
  /** `undefined`: the policy is removed. */
  readonly object: JsonObject | undefined;
}

/** A value in place of another; `undefined` removes it. */
interface Replacement {
  readonly path: Path;
  readonly change: string;
  readonly value: Json | undefined;
}

/** The ways in which one field is weakened. `path`: the path of the value. */
export interface Weakening {
  (value: Json, path: Path): readonly Replacement[];
  /** The nested fields that are weakened in their own ways. */
  readonly fields?: Readonly<Record<string, Weakening>>;
}

const removal = (path: Path): Replacement => ({ path, change: "removed", value: undefined });

/** The field is removed, so that its default counts. */
export const remove: Weakening = (_, path) => [removal(path)];

/** Everything inside is removed, one by one: members of maps, elements of lists, and these within each other. */
export const removeParts: Weakening = (value, path) => {
  const steps = Array.isArray(value) ? [...value.keys()] : isObject(value) ? Object.keys(value) : [];
  return steps.flatMap((step) => {
    const member = at(value, step);
    return member === undefined || member === null ? [] : partsOf(member, [...path, step]);
  });
};

/**
 * A member, and everything inside it. A container with one member is not removed in addition to that member: both are
 * equivalent.
 */
function partsOf(value: Json, path: Path): Replacement[] {
  const size = Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : 0;
  return [...(size === 1 ? [] : [removal(path)]), ...removeParts(value, path)];
}

/** A criterion or a list of entries: everything inside, one by one, and with several the whole as well. */
export const removeAll: Weakening = (value, path) => partsOf(value, path);

/** A choice becomes the next weaker one. */
export function weaker(...fromStrongest: readonly string[]): Weakening {
  return (value, path) => {
    const next = fromStrongest[fromStrongest.indexOf(String(value)) + 1];
    if (!fromStrongest.includes(String(value)) || next === undefined) return [];
    return [{ path, change: `${String(value)} becomes ${next}`, value: next }];
  };
}

/** The field is removed, unless it equals its default. */
export function restoreDefault(standard: Json): Weakening {
  return (value, path) => (equal(value, standard) ? [] : [removal(path)]);
}

/** A boolean is negated. */
export const negate: Weakening = (value, path) =>
  typeof value === "boolean" ? [{ path, change: `${value} becomes ${!value}`, value: !value }] : [];

/** A limit is raised by one, and removed. */
export const raise: Weakening = (value, path) =>
  typeof value === "number"
    ? [{ path, change: `${value} becomes ${value + 1}`, value: value + 1 }, removal(path)]
    : [];

/** A date is a day later. */
export const postpone: Weakening = (value, path) => {
  const later = new Date(Date.parse(String(value)) + 86_400_000);
  if (Number.isNaN(later.getTime())) return [];
  const text = later.toISOString().replace(".000Z", "Z");
  return [{ path, change: `${String(value)} becomes ${text}`, value: text }];
};

/** The field is not weakened: the reason explains why no case could notice. */
export function ignore(_reason: string): Weakening {
  return () => [];
}

/** The value becomes another one. */
export function become(other: string): Weakening {
  return (value, path) =>
    value === other ? [] : [{ path, change: `${String(value)} becomes ${other}`, value: other }];
}

/** Each element of a list is removed, and weakened by its own fields. */
export function eachOf(fields: Readonly<Record<string, Weakening>>): Weakening {
  const weaken = membersOf(fields);
  const each = (value: Json, path: Path) =>
    (Array.isArray(value) ? (value as readonly Json[]) : []).flatMap((element, i) => [
      removal([...path, i]),
      ...weaken(element, [...path, i]),
    ]);
  return Object.assign(each, { fields });
}

/** Each field of a map is weakened in its own way. */
export function membersOf(fields: Readonly<Record<string, Weakening>>): Weakening {
  const members = (value: Json, path: Path) =>
    Object.entries(fields).flatMap(([name, weaken]) => {
      const member = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
      return member === undefined || member === null ? [] : weaken(member, [...path, name]);
    });
  return Object.assign(members, { fields });
}

/** How the objects of a resource are weakened. */
export interface Mutations {
  /** The group and plural: `namespaces`, `labels.node-labels.openshift.io` */
  readonly resource: string;
  /** Of a kind of policies: the ways of each field of the spec. A test demands that every field is named. */
  readonly spec?: Weakening;
  readonly mutants: (object: JsonObject) => readonly Mutant[];
}

/** A kind of policies: the policy is removed, and every field of its spec weakened in its own way. */
export function policyMutations(kind: Kind, fields: Readonly<Record<string, Weakening>>): Mutations {
  const spec = membersOf(fields);
  return {
    resource: kindResource(kind),
    spec,
    mutants: (object) =>
      [
        { path: [], change: "removed", object: undefined },
        ...spec(object["spec"] ?? {}, ["spec"]).map((one) => mutant(object, one)),
      ].filter((one) => !equal(one.object, object)),
  };
}

/** The mutants of the settings of a module, as its part of `spec.modules`. */
export function settingMutants(weaken: Weakening, settings: JsonObject, module: string): readonly Mutant[] {
  const place = ["spec", "modules", module];
  return weaken(settings, []).map((one) => {
    const { path, change, object } = mutant(settings, one);
    return { path: [...place, ...path], change, object };
  });
}

/** An object with one value replaced. */
export function mutant(object: JsonObject, { path, change, value }: Replacement): Mutant {
  return { path, change, object: replaced(copyOf(object), path, value) as JsonObject };
}

function replaced(here: Json | undefined, [step, ...rest]: Path, value: Json | undefined): Json {
  if (Array.isArray(here) && typeof step === "number") {
    const list = [...(here as readonly Json[])];
    if (rest.length > 0) list[step] = replaced(list[step], rest, value);
    else if (value === undefined) list.splice(step, 1);
    else list[step] = value;
    return list;
  }
  const copy: Record<string, Json | undefined> = { ...(isObject(here) ? here : {}) };
  const key = String(step);
  if (rest.length > 0) setOwn(copy, key, replaced(copy[key], rest, value));
  else if (value === undefined) delete copy[key];
  else setOwn(copy, key, value);
  return copy;
}
