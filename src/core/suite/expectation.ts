import type { EventToWrite } from "../decision/finding.ts";
import type { StatusCause } from "../decision/status.ts";
import { effectsOf } from "../evaluate/effects.ts";
import type { Evaluation } from "../evaluate/evaluate-hooks.ts";
import { responseOf } from "../evaluate/response.ts";
import { at, copyOf, equal, isObject, type Json, type JsonObject, setOwn } from "../json.ts";
import { type Path, parseFieldPath } from "../path.ts";
import { type Problem, problem } from "../policy/problem.ts";
import { PROVENANCE } from "../provenance/annotation.ts";
import type { ReviewResult } from "../review/result.ts";
import type { Expectation } from "./suite.ts";

/** All of a decision that an expectation can name. */
export interface ObservedDecision {
  readonly verdict: Expectation["verdict"];
  readonly pods: "allow" | "deny";
  /** The given object; a DELETE has none. */
  readonly given: JsonObject | undefined;
  /** The object in the result, with only usher's changes. Absent if the request is refused. */
  readonly object: JsonObject | undefined;
  readonly warnings: readonly string[];
  readonly codes: readonly string[];
  readonly events: readonly EventToWrite[];
  readonly causes: readonly StatusCause[];
}

/** The decision of an evaluated request. `changed`: the given object with usher's edits. */
export function decisionOf(
  result: ReviewResult,
  phases: readonly Evaluation[],
  given: JsonObject | undefined,
  changed: JsonObject | undefined,
): ObservedDecision {
  const isJudged = phases.some(({ asked }) => asked.length > 0);
  const findings = phases.flatMap((phase) => phase.findings);
  const codes = [...findings, ...result.violations].flatMap(({ code = "" }) => (code === "" ? [] : [code]));
  return {
    verdict: isJudged ? result.verdict : "unjudged",
    pods: (result.podViolations ?? []).length > 0 ? "deny" : "allow",
    given,
    object: result.verdict === "deny" || changed === undefined ? undefined : withoutProvenance(changed),
    warnings: result.warnings,
    codes: [...new Set(codes)].sort(),
    events: phases.flatMap((phase) => effectsOf(phase).events),
    causes: phases.flatMap((phase) => responseOf(phase).status?.causes ?? []),
  };
}

/** The decision of controllers about an object that exists. */
export function reconciledDecision(given: JsonObject, object: JsonObject): ObservedDecision {
  const verdict = equal(given, object) ? "allow" : "patch";
  return { verdict, pods: "allow", given, object, warnings: [], codes: [], events: [], causes: [] };
}

/** Provenance names generations, which files do not have. */
function withoutProvenance(object: JsonObject): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const { [PROVENANCE]: _provenance, ...annotations } = isObject(metadata["annotations"])
    ? metadata["annotations"]
    : {};
  if (_provenance === undefined) return object;
  const { annotations: _all, ...rest } = metadata;
  return { ...object, metadata: Object.keys(annotations).length === 0 ? rest : { ...rest, annotations } };
}

/** One part of an expectation that the decision does not meet. */
export interface Mismatch {
  /** In the expectation. */
  readonly path: Path;
  readonly expected: Json | undefined;
  readonly real: Json | undefined;
}

/** The differences between a decision and its expectation; empty if there are none. */
export function mismatches(expect: Expectation, real: ObservedDecision): Mismatch[] {
  const found: Mismatch[] = [];
  const compare = (
    path: Path,
    expected: Json | undefined,
    got: Json | undefined,
    isMet = equal(expected, got),
  ) => {
    if (!isMet) found.push({ path, expected, real: got });
  };
  compare(["verdict"], expect.verdict, real.verdict);
  compare(["pods"], expect.pods ?? "allow", real.pods);
  for (const [name, value] of Object.entries(expect.fields ?? {}))
    compare(["fields", name], value as Json, valueAt(real.object, name));
  for (const [i, name] of (expect.removed ?? []).entries())
    compare(["removed", i], undefined, valueAt(real.object, name));
  for (const [i, name] of (expect.untouched ?? []).entries())
    compare(["untouched", i], valueAt(real.given, name), valueAt(real.object, name));
  if (expect.object !== undefined) compare(["object"], expect.object as Json, real.object);
  const { warnings, codes, events, causes } = expect;
  if (warnings !== undefined)
    compare(
      ["warnings"],
      warnings,
      real.warnings,
      areMet(warnings, real.warnings, (part, one) => one.includes(part)),
    );
  if (codes !== undefined)
    compare(["codes"], codes, real.codes, equal([...new Set(codes)].sort(), real.codes));
  if (events !== undefined)
    compare(
      ["events"],
      plain(events),
      recordedEvents(real),
      areMet(
        events,
        real.events,
        (wanted, one) =>
          wanted.reason === one.reason &&
          (wanted.type ?? one.type) === one.type &&
          one.message.includes(wanted.message ?? ""),
      ),
    );
  if (causes !== undefined)
    compare(
      ["causes"],
      plain(causes),
      plain(real.causes),
      areMet(
        causes,
        real.causes,
        (wanted, one) =>
          (wanted.reason ?? one.reason) === one.reason &&
          (wanted.field ?? one.field) === one.field &&
          one.message.includes(wanted.message ?? ""),
      ),
    );
  return found;
}

/** Whether each expected part matches a different actual one, and none is left. */
function areMet<Part, Real>(
  wanted: readonly Part[],
  real: readonly Real[],
  meets: (part: Part, one: Real) => boolean,
): boolean {
  if (wanted.length !== real.length) return false;
  // Alternating paths: a part that two actual ones match must not take the only match of another part.
  const holders = new Map<Real, Part>();
  const place = (part: Part, seen: Set<Real>): boolean =>
    real.some((one) => {
      if (seen.has(one) || !meets(part, one)) return false;
      seen.add(one);
      const holder = holders.get(one);
      if (holder !== undefined && !place(holder, seen)) return false;
      holders.set(one, part);
      return true;
    });
  return wanted.every((part) => place(part, new Set()));
}

/** Parts of an expectation that hold without any policy, and so can't fail. `changed`: fields that any case of the suite changes. */
export function withoutEffect(
  expect: Expectation,
  real: ObservedDecision,
  changed: Pick<ReadonlySet<string>, "has">,
): Problem[] {
  const problems: Problem[] = [];
  for (const [name, value] of Object.entries(expect.fields ?? {}))
    if (equal(valueAt(real.given, name), value as Json))
      problems.push(
        problem(
          ["fields", name],
          "has no effect: the object has this value already",
          "list the path under untouched",
        ),
      );
  for (const [i, name] of (expect.removed ?? []).entries())
    if (valueAt(real.given, name) === undefined)
      problems.push(problem(["removed", i], `has no effect: the object does not have ${name}`));
  for (const [i, name] of (expect.untouched ?? []).entries())
    if (valueAt(real.given, name) === undefined && !changed.has(name))
      problems.push(
        problem(
          ["untouched", i],
          `has no effect: neither the object has ${name}, nor does a policy set it in another case`,
        ),
      );
  if (expect.object !== undefined && equal(expect.object as Json, real.given))
    problems.push(
      problem(
        ["object"],
        "has no effect: it is the object as it was given",
        "write verdict: allow in its place",
      ),
    );
  return problems;
}

/** The fields that a decision changes: leaves, and the maps and lists around them. */
function changedFields({ given, object }: ObservedDecision): Set<string> {
  const changed = new Set<string>();
  const walk = (before: Json | undefined, after: Json | undefined, path: Path): void => {
    if (equal(before, after)) return;
    if (path.length > 0) changed.add(textOfPath(path));
    const keys = new Set([...keysOf(before), ...keysOf(after)]);
    for (const key of keys) walk(at(before, key), at(after, key), [...path, key]);
  };
  if (object !== undefined) walk(given, object, []);
  return changed;
}

function keysOf(value: Json | undefined): (string | number)[] {
  if (Array.isArray(value)) return [...value.keys()];
  return isObject(value) ? Object.keys(value) : [];
}

/** In the form of `fieldPath`, so that a path in a suite is found in any spelling. */
function textOfPath(path: Path): string {
  return JSON.stringify(path.map(String));
}

/** Whether a field that a suite names is among those that are changed. */
export class ChangedFields {
  readonly #paths = new Set<string>();

  add(decision: ObservedDecision): void {
    for (const path of changedFields(decision)) this.#paths.add(path);
  }

  has(name: string): boolean {
    return this.#paths.has(textOfPath(parseFieldPath(name) ?? []));
  }
}

function valueAt(object: JsonObject | undefined, name: string): Json | undefined {
  return at(object, ...(parseFieldPath(name) ?? []));
}

/** The manifest that an expectation describes: the real one, with the expected fields in place of the real ones. */
export function expectedObject(
  expect: Expectation,
  { given, object }: ObservedDecision,
): JsonObject | undefined {
  if (expect.object !== undefined) return expect.object as JsonObject;
  if (expect.verdict === "deny" || expect.verdict === "unjudged") return undefined;
  let expected: Json = expect.verdict === "allow" ? (given ?? {}) : (object ?? given ?? {});
  for (const [name, value] of Object.entries(expect.fields ?? {}))
    expected = withValue(expected, name, value as Json);
  for (const name of expect.removed ?? []) expected = withValue(expected, name, undefined);
  for (const name of expect.untouched ?? []) expected = withValue(expected, name, valueAt(given, name));
  return isObject(expected) ? expected : undefined;
}

function withValue(object: Json, name: string, value: Json | undefined): Json {
  const set = (here: Json | undefined, [step, ...rest]: Path): Json => {
    if (step === undefined) return value ?? null;
    if (Array.isArray(here) && typeof step === "number") {
      const list = [...here];
      if (rest.length === 0 && value === undefined) list.splice(step, 1);
      else list[step] = set(list[step], rest);
      return list;
    }
    const copy: Record<string, Json | undefined> = { ...(isObject(here) ? here : {}) };
    if (rest.length === 0 && value === undefined) delete copy[String(step)];
    else setOwn(copy, String(step), set(copy[String(step)], rest));
    return copy;
  };
  const path = parseFieldPath(name) ?? [];
  if (value === undefined && at(object, ...path) === undefined) return object;
  return set(copyOf(object), path);
}

/** The expectation that a decision meets: written by `--update` and `--record`. */
export function expectationOf(real: ObservedDecision, whole = false): Expectation {
  const { given, object } = real;
  const set: Record<string, Json> = {};
  const removed: string[] = [];
  if (object !== undefined) collect(given, object, "", set, removed);
  const hasFields = Object.keys(set).length > 0;
  return {
    verdict: real.verdict,
    ...(real.pods === "deny" ? { pods: "deny" as const } : {}),
    ...(whole && object !== undefined && real.verdict === "patch"
      ? { object }
      : hasFields
        ? { fields: set }
        : {}),
    ...(!whole && removed.length > 0 ? { removed } : {}),
    ...(real.warnings.length > 0 ? { warnings: [...real.warnings] } : {}),
    ...(real.codes.length > 0 ? { codes: [...real.codes] } : {}),
    ...(real.events.length > 0 ? { events: recordedEvents(real) as Expectation["events"] } : {}),
    ...(real.causes.length > 0 ? { causes: plain(real.causes) as Expectation["causes"] } : {}),
  };
}

/** Changed fields as an expectation names them: members of maps one by one, a list as a whole. */
function collect(
  before: Json | undefined,
  after: Json | undefined,
  name: string,
  set: Record<string, Json>,
  removed: string[],
): void {
  if (equal(before, after)) return;
  if (after === undefined) removed.push(name);
  else if (!isObject(after) || (before !== undefined && !isObject(before)) || Object.keys(after).length === 0)
    setOwn(set, name, after);
  else
    for (const key of new Set([...keysOf(before), ...keysOf(after)]))
      collect(at(before, key), at(after, key), joined(name, String(key)), set, removed);
}

function joined(name: string, key: string): string {
  if (/[^A-Za-z0-9_-]/.test(key) || key === "") return `${name}[${key}]`;
  return name === "" ? key : `${name}.${key}`;
}

function recordedEvents({ events }: ObservedDecision): Json {
  return events.map(({ reason, type, message }) => ({ reason, type, message }));
}

function plain(value: unknown): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
