import type { Fact } from "../../src/core/decision/need.ts";
import type { AdmissionRequest, UserInfo } from "../../src/core/decision/request.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import type { Evaluation } from "../../src/core/evaluate/evaluate-hooks.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../src/core/installation/installation.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { parseVersion } from "../../src/core/kubernetes/versions.ts";
import type { Change } from "../../src/core/view/view.ts";
import { projectLimit } from "../../src/modules/project-limit/index.ts";
import { assemblyOf, callOf } from "./evaluation.ts";
import { outside } from "./outside.ts";
import { requestFor } from "./request.ts";

const REQUESTER = "openshift.io/requester";

export function limits(spec: JsonObject, name = "cluster"): JsonObject {
  return {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name, uid: `uid-of-${name}`, generation: 1 },
    spec,
  };
}

export function limitsCame(spec: JsonObject, name = "cluster"): Change {
  const resource = "projectrequestlimits.operator.project.openshift.io";
  return { resource, namespace: "", name, object: limits(spec, name) };
}

/** A namespace that counts for a user. */
export function project(name: string, requester: string | undefined, phase = "Active"): JsonObject {
  const annotations = requester === undefined ? {} : { annotations: { [REQUESTER]: requester } };
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, ...annotations },
    status: { phase },
  };
}

export function projectCame(object: JsonObject): Change {
  const name = String((object["metadata"] as JsonObject)["name"]);
  return { resource: "namespaces", namespace: "", name, object };
}

/** This many namespaces of a user, active and terminating. */
export function projects(requester: string, active: number, terminating = 0): Change[] {
  const some = (count: number, phase: string) =>
    Array.from({ length: count }, (_, i) =>
      projectCame(project(`${phase.toLowerCase()}-${i}`, requester, phase)),
    );
  return [...some(active, "Active"), ...some(terminating, "Terminating")];
}

export function userInfo(username: string, groups: readonly string[] = []): UserInfo {
  return { username, groups: [...groups, "system:authenticated"] };
}

export function projectRequest(
  user: UserInfo,
  name = "new",
  change: Partial<AdmissionRequest> = {},
): AdmissionRequest {
  const object = { apiVersion: "project.openshift.io/v1", kind: "ProjectRequest", metadata: { name } };
  return requestFor(object, { userInfo: user, ...change });
}

export function namespaceRequest(
  user: UserInfo,
  object: JsonObject = project("new", undefined),
  change: Partial<AdmissionRequest> = {},
): AdmissionRequest {
  const { name } = object["metadata"] as { name: string };
  return requestFor(object, { userInfo: user, namespace: name, ...change });
}

export interface Given {
  readonly changes?: readonly Change[];
  /** Labels of users; `undefined`: the cluster does not serve Users. @default every user exists, without labels */
  readonly users?: Readonly<Record<string, JsonObject>> | undefined;
  readonly userFact?: (name: string) => Fact;
}

export const MODERN: Installation = { ...DEFAULT_INSTALLATION, ...versionOf("v1.37.1") };

export function versionOf(text: string): Pick<Installation, "kubernetesVersion"> {
  const version = parseVersion(text);
  if (version === undefined) throw new Error(`not a version: ${text}`);
  return { kubernetesVersion: { effective: version, binary: version } };
}

/** The result of one phase. */
export async function judged(
  spec: JsonObject | undefined,
  request: AdmissionRequest,
  given: Given = {},
  phase: "mutate" | "validate" = "validate",
  trace = false,
): Promise<Evaluation> {
  const changes = [...(spec === undefined ? [] : [limitsCame(spec)]), ...(given.changes ?? [])];
  const assembly = assemblyOf([projectLimit], changes, MODERN);
  const world = outside({
    fact: (need) => {
      if (!("get" in need) || need.get.resource !== "users.user.openshift.io") return { absent: "NotFound" };
      return (given.userFact ?? userFactOf(given))(need.get.name);
    },
  });
  return evaluate(callOf(assembly, request, { phase, trace }), world);
}

function userFactOf(given: Given): (name: string) => Fact {
  return (name) => {
    const { users } = given;
    if ("users" in given && users === undefined) return { absent: "NotServed" };
    if (users !== undefined && !Object.hasOwn(users, name)) return { absent: "NotFound" };
    const labels = users?.[name] ?? {};
    return { found: { metadata: { name, labels } }, complete: true };
  };
}
