import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { groupVersionOf } from "../../core/kubernetes/object.ts";
import { specPath, type WorkloadKind } from "../../core/kubernetes/workloads.ts";
import { fieldPath } from "../../core/path.ts";
import { checkObject, versionOf, versionProblem } from "../../core/policy/check.ts";
import type { ConfiguredKind } from "../../core/policy/kind.ts";
import { likelyMistake, type Problem, problem } from "../../core/policy/problem.ts";
import { didYouMean } from "../../core/suggest.ts";
import type { View } from "../../core/view/view.ts";
import { checkStringMap, entryOf } from "../../files/source/entry.ts";
import type { Resources } from "../../files/source/resources.ts";
import type { ApiTypes } from "./api-types.ts";

const NOWHERE = { file: "", document: 0, path: [], ordinal: 0 };

/** Versions of workloads that Kubernetes had, by its deprecation guide. */
const REMOVED = [
  {
    apiVersion: "extensions/v1beta1",
    kinds: ["DaemonSet", "Deployment", "ReplicaSet"],
    since: "1.16",
    use: "apps/v1",
  },
  { apiVersion: "apps/v1beta1", kinds: ["Deployment", "StatefulSet"], since: "1.16", use: "apps/v1" },
  {
    apiVersion: "apps/v1beta2",
    kinds: ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    since: "1.16",
    use: "apps/v1",
  },
  { apiVersion: "batch/v2alpha1", kinds: ["CronJob"], since: "1.21", use: "batch/v1" },
  { apiVersion: "batch/v1beta1", kinds: ["CronJob"], since: "1.25", use: "batch/v1" },
];

/** The minimum shape of an object: the API server could not decode anything else. */
export class Shape {
  readonly #resources: Resources;
  readonly #configured: ConfiguredKind;

  constructor(resources: Resources, configured: ConfiguredKind) {
    this.#resources = resources;
    this.#configured = configured;
  }

  problems(value: Json): Problem[] {
    // A recorded review is checked when it is decoded.
    if (stringAt(value, "kind") === "AdmissionReview") return [];
    if (stringAt(value, "kind") === "List") return [problem([], "List without items")];
    const { entry, problems } = entryOf(named(value), NOWHERE, this.#resources);
    const wrong = problems.filter(({ severity }) => severity === "error");
    const kind = entry?.resource.policy;
    if (kind !== undefined && entry !== undefined && versionOf(kind, entry.object) === undefined)
      wrong.push(versionProblem(kind, entry.object));
    const workload = this.#workloadOf(value);
    return workload === undefined ? wrong : [...wrong, ...templateProblems(value, workload)];
  }

  /**
   * Objects that usher ignores although their author expects otherwise, and unknown fields of policies. `types`: also
   * wrong fields of Kubernetes' own kinds.
   */
  mistakes(object: JsonObject, view: View, types: ApiTypes | undefined): Problem[] {
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    const unknown = this.#resources.unknownKind(apiVersion, kind);
    if (unknown !== undefined) return [unknown];
    const removed = REMOVED.find((one) => one.apiVersion === apiVersion && one.kinds.includes(kind));
    if (removed !== undefined) {
      const message = `API servers have no ${apiVersion} ${kind} since Kubernetes ${removed.since}; write apiVersion: ${removed.use}`;
      return [likelyMistake(["apiVersion"], message)];
    }
    const hint = this.#workloadHint(object);
    if (hint !== undefined) return [likelyMistake(["kind"], hint)];
    const { policy } = this.#resources.of(apiVersion, kind);
    if (policy === undefined) return types?.problems(object) ?? [];
    return checkObject(policy, object, view, this.#configured).filter(({ strict }) => strict);
  }

  #workloadHint(object: JsonObject): string | undefined {
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    const { group, version } = groupVersionOf(apiVersion);
    const { all } = this.#configured.installation.workloads;
    const same = all.find((one) => one.group === group && one.kind === kind);
    if (same !== undefined && same.version !== version) {
      return `${kind} is evaluated only as ${writtenAs(same)}: a review does not convert ${apiVersion}; write apiVersion: ${writtenAs(same)}`;
    }
    if (same !== undefined || this.#resources.of(apiVersion, kind).scope !== undefined) return undefined;
    const elsewhere = all.find((one) => one.kind === kind);
    if (elsewhere !== undefined && group === "")
      return `${apiVersion} has no kind ${kind}; use ${writtenAs(elsewhere)}`;
    const siblings = all.filter((one) => one.group === group).map((one) => one.kind);
    const hint = didYouMean(kind, siblings);
    return hint === undefined ? undefined : `${apiVersion} has no known kind ${kind}; ${hint}`;
  }

  #workloadOf(value: Json): WorkloadKind | undefined {
    const { group } = groupVersionOf(stringAt(value, "apiVersion") ?? "");
    return this.#configured.installation.workloads.byKind(group, stringAt(value, "kind") ?? "");
  }
}

/** With generateName the API server generates the name. */
function named(value: Json): Json {
  const metadata = at(value, "metadata");
  const generated = stringAt(metadata, "generateName") ?? "";
  if (!isObject(value) || !isObject(metadata) || generated === "") return value;
  return (metadata["name"] ?? "") === "" ? { ...value, metadata: { ...metadata, name: generated } } : value;
}

/** A template with labels that are not strings would silently match no policy. */
function templateProblems(value: Json, workload: WorkloadKind): Problem[] {
  const path = specPath(workload);
  for (let length = 1; length <= path.length; length++) {
    const step = path.slice(0, length);
    const found = at(value, ...step);
    if (found === undefined || found === null) break;
    if (!isObject(found)) return [problem(step, `must be a map with ${fieldPath(path)}`)];
  }
  if (workload.template.length === 0 || !isObject(value)) return [];
  return checkStringMap(value, [...workload.template, "metadata", "labels"]);
}

function writtenAs({ group, version }: WorkloadKind): string {
  return group === "" ? version : `${group}/${version}`;
}
