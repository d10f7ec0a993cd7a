import { isObject, type JsonObject, stringAt } from "../json.ts";
import { checkSubdomain } from "../kubernetes/names.ts";
import { groupVersionOf } from "../kubernetes/object.ts";
import type { View } from "../view/view.ts";
import { addSchemaProblems, addUnknownFields, shown } from "./check-schema.ts";
import type { Kind, KindVersion } from "./kind.ts";
import { type ConfiguredKind, ignoredBecause } from "./kind.ts";
import { idle, likelyMistake, PROBLEM, type Problem, problem } from "./problem.ts";
import { ProblemList } from "./problem-list.ts";

/** The version of a kind that an object is written in. */
export function versionOf(kind: Kind, object: JsonObject): KindVersion | undefined {
  const { version } = groupVersionOf(stringAt(object, "apiVersion") ?? "");
  return kind.versions.find(({ name }) => name === version);
}

/**
 * All problems of an object of a module's kind: its schema, its name, and those of the module's own `check`. One schema
 * serves this, the type and the CRD, so the same objects are invalid offline and in a cluster. `configured` is the
 * target configuration; an object that usher ignores there gets a problem.
 */
export function checkObject(
  kind: Kind,
  object: JsonObject,
  view: View,
  configured?: ConfiguredKind,
  now?: number,
): Problem[] {
  const version = versionOf(kind, object);
  if (version === undefined) return [versionProblem(kind, object)];
  const problems = new ProblemList();
  checkOutside(kind, object, problems);
  const spec = object["spec"] ?? {};
  if (!isObject(spec)) problems.push(problem(["spec"], `must be an object, got ${shown(spec)}`));
  else addSchemaProblems(problems, version.spec, spec);
  const ignored = configured === undefined ? undefined : ignoredBecause(kind, configured);
  if (ignored !== undefined) problems.push({ ...likelyMistake([], ignored), code: PROBLEM.noEffect });
  // A module's check relies on the shape; on a wrong one it would only repeat the problems above.
  else if (!problems.hasErrors && kind.check !== undefined)
    problems.push(...kind.check(object, view, configured?.installation, now));
  return problems.all([]);
}

/** An object in a version that its kind does not have. */
export function versionProblem(kind: Kind, object: JsonObject): Problem {
  const known = kind.versions.map(({ name }) => (kind.group === "" ? name : `${kind.group}/${name}`));
  const written = stringAt(object, "apiVersion") ?? "";
  return problem(["apiVersion"], `${kind.kind} has no version "${written}"; use ${known.join(" or ")}`);
}

const TOP_LEVEL = ["apiVersion", "kind", "metadata", "spec", "status"];

/** Everything beside the spec: name, namespace, unknown fields. */
function checkOutside(kind: Kind, object: JsonObject, problems: ProblemList): void {
  problems.push(...checkName(kind, object));
  if (kind.scope === "Cluster" && (stringAt(object, "metadata", "namespace") ?? "") !== "") {
    const message = `has no effect: ${kind.kind} is cluster-scoped`;
    problems.push({
      ...idle(PROBLEM.noEffect, ["metadata", "namespace"], message),
      fix: { remove: true },
    });
  }
  const unknown = Object.keys(object).filter((key) => !TOP_LEVEL.includes(key));
  addUnknownFields(problems, [], unknown, () => TOP_LEVEL);
}

function checkName(kind: Kind, object: JsonObject): Problem[] {
  const name = stringAt(object, "metadata", "name");
  if (name === undefined || name === "") {
    // A configuration file is identified by its path.
    if (kind.standing === "file" || stringAt(object, "metadata", "generateName") !== undefined) return [];
    return [problem(["metadata", "name"], "is missing: a name is required")];
  }
  const wrong = checkSubdomain(name);
  return wrong === undefined ? [] : [problem(["metadata", "name"], wrong)];
}
