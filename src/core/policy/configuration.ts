import type { z } from "zod";
import { isObject, type Json, type JsonObject, own, stringAt } from "../json.ts";
import { groupVersionOf } from "../kubernetes/object.ts";
import { fieldPath, type Path } from "../path.ts";
import { schemaProblems } from "./check-schema.ts";
import type { Kind } from "./kind.ts";
import { idle, PROBLEM, type Problem, problem, warningProblem } from "./problem.ts";

/**
 * How a configuration kind is written in a file: its fields are at the top level, without `metadata` and `spec`, in a
 * separate document or inside a wrapper, like component configuration of Kubernetes and OpenShift.
 */
export interface ConfigurationFormat {
  /** Every apiVersion in files, including legacy ones, and the kind's version that it maps to. */
  readonly apiVersions: Readonly<Record<string, string>>;
  /** Of these, spellings that should no longer be written, and what to write instead. @default none */
  readonly deprecated?: Readonly<Record<string, string>>;
  readonly wrappers?: readonly ConfigurationWrapper[];
}

/** A document of another component that contains configurations, such as an AdmissionConfiguration. */
export interface ConfigurationWrapper {
  readonly apiVersions: readonly string[];
  readonly kind: string;
  /** The paths of configurations, `*` for every key or item. Values of other kinds there are ignored. */
  readonly paths: readonly (readonly string[])[];
  /** Strict if all fields of the wrapper are known, loose otherwise. @default not checked */
  readonly schema?: z.ZodType;
}

/** A kind of configuration has one object at most, so all its files describe the object of this name. */
export const CONFIGURATION_NAME = "configuration";

/** A configuration in a document, as an object of its kind: the fields are its `spec`. */
export interface FoundConfiguration {
  readonly kind: Kind;
  /** Its path in the document. */
  readonly path: Path;
  readonly object: JsonObject;
}

export interface Configurations {
  readonly found: readonly FoundConfiguration[];
  /** Of the documents themselves; the fields are checked as those of every object are. */
  readonly problems: readonly Problem[];
}

/** The configurations in a document; `undefined` if it is neither a configuration of these kinds nor a wrapper of them. */
export function configurationsIn(document: JsonObject, kinds: readonly Kind[]): Configurations | undefined {
  const bare = configurationAt(document, [], kinds);
  if (bare !== undefined) return bare;
  const wrappers = kinds.flatMap((kind) =>
    (kind.configuration?.wrappers ?? [])
      .filter((wrapper) => wrapper.kind === stringAt(document, "kind"))
      .map((wrapper) => ({ kind, wrapper })),
  );
  const apiVersions = wrappers.flatMap(({ wrapper }) => wrapper.apiVersions);
  if (wrappers.length === 0 || isOfAnotherGroup(document, apiVersions)) return undefined;
  const unknown = checkApiVersion(document, apiVersions);
  if (unknown !== undefined) return { found: [], problems: [unknown] };
  const problems = new Map<string, Problem>();
  const found = new Map<string, FoundConfiguration>();
  const add = (one: Problem): unknown => problems.set(`${fieldPath(one.path)}: ${one.message}`, one);
  for (const { wrapper } of wrappers) {
    for (const one of wrapper.schema === undefined ? [] : schemaProblems(wrapper.schema, document))
      add({ ...one, path: one.path.slice(1) });
    for (const { path, value } of wrapper.paths.flatMap((steps) => valuesAt(document, steps))) {
      const inner = isObject(value) ? configurationAt(value, path, kinds) : undefined;
      inner?.problems.forEach(add);
      for (const one of inner?.found ?? []) found.set(fieldPath(one.path), one);
    }
  }
  if (found.size === 0 && problems.size === 0) add(emptyWrapper(wrappers));
  return { found: [...found.values()], problems: [...problems.values()] };
}

/** The path of a configuration object's field in its document, relative to the configuration. */
export function configurationPath(path: Path): Path {
  return path[0] === "spec" ? path.slice(1) : path;
}

function configurationAt(value: JsonObject, path: Path, kinds: readonly Kind[]): Configurations | undefined {
  const kind = kinds.find((one) => one.configuration !== undefined && one.kind === stringAt(value, "kind"));
  const apiVersions = kind?.configuration?.apiVersions ?? {};
  if (kind === undefined || isOfAnotherGroup(value, Object.keys(apiVersions))) return undefined;
  const unknown = checkApiVersion(value, Object.keys(apiVersions));
  if (unknown !== undefined)
    return { found: [], problems: [{ ...unknown, path: [...path, ...unknown.path] }] };
  const { apiVersion, kind: _kind, ...spec } = value;
  const version = apiVersions[String(apiVersion)] ?? "";
  const object = {
    apiVersion: kind.group === "" ? version : `${kind.group}/${version}`,
    kind: kind.kind,
    metadata: { name: CONFIGURATION_NAME },
    spec,
  };
  const instead = own(kind.configuration?.deprecated ?? {}, String(apiVersion));
  return {
    found: [{ kind, path, object }],
    problems: instead === undefined ? [] : [deprecatedVersion(path, String(instead))],
  };
}

function deprecatedVersion(path: Path, instead: string): Problem {
  return {
    ...warningProblem([...path, "apiVersion"], "is a deprecated spelling", `write ${instead}`),
    code: PROBLEM.deprecated,
    fix: { set: instead },
  };
}

/** An API object of another group may share the kind's name; it has metadata, as every API object does. */
function isOfAnotherGroup(document: JsonObject, apiVersions: readonly string[]): boolean {
  const { group } = groupVersionOf(stringAt(document, "apiVersion"));
  return (
    isObject(document["metadata"]) &&
    !apiVersions.some((apiVersion) => groupVersionOf(apiVersion).group === group)
  );
}

function checkApiVersion(document: JsonObject, apiVersions: readonly string[]): Problem | undefined {
  const written = own(document, "apiVersion");
  if (typeof written === "string" && apiVersions.includes(written)) return undefined;
  const kind = stringAt(document, "kind");
  const use = `use ${[...new Set(apiVersions)].join(" or ")}`;
  if (written === undefined || written === null) return problem(["apiVersion"], `is required: ${use}`);
  return problem(["apiVersion"], `${kind} has no version ${JSON.stringify(written).slice(0, 80)}; ${use}`);
}

function emptyWrapper(wrappers: readonly { readonly kind: Kind; readonly wrapper: ConfigurationWrapper }[]) {
  const places = wrappers.flatMap(({ kind, wrapper }) =>
    wrapper.paths.map((steps) => `${kind.kind} at ${steps.join(".")}`),
  );
  return idle(PROBLEM.noEffect, ["kind"], `holds no configuration that usher reads: ${places.join(", ")}`);
}

function valuesAt(value: Json | undefined, steps: readonly string[], path: Path = []): Place[] {
  const [step, ...rest] = steps;
  if (step === undefined) return value === undefined ? [] : [{ path, value }];
  if (step !== "*") return isObject(value) ? valuesAt(own(value, step), rest, [...path, step]) : [];
  if (Array.isArray(value)) return value.flatMap((item, i) => valuesAt(item, rest, [...path, i]));
  return isObject(value)
    ? Object.entries(value).flatMap(([key, item]) => valuesAt(item, rest, [...path, key]))
    : [];
}

interface Place {
  readonly path: Path;
  readonly value: Json;
}
