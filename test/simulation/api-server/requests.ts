import { at, type JsonObject } from "../../../src/core/json.ts";
import { labelsOf } from "../../../src/core/kubernetes/object.ts";
import { compileSelector, matches } from "../../../src/core/kubernetes/selectors/label-selector.ts";
import type { Resource } from "./resources.ts";
import { badRequest, noSuchResource, pageNotFound } from "./status.ts";

/** A request to a resource: its path and query, parsed. */
export interface ResourcePath {
  readonly resource: Resource;
  readonly namespace: string;
  /** Empty for a collection. */
  readonly name: string;
  readonly subresource: string;
  readonly query: URLSearchParams;
}

/** Parses `/apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUBRESOURCE`. */
export function parseResourcePath(url: URL, served: readonly Resource[]): ResourcePath {
  const [api, ...rest] = url.pathname.split("/").slice(1).map(decodeURIComponent);
  const [group = "", version, ...segments] = api === "api" ? ["", ...rest] : rest;
  const find = (name: string | undefined): Resource | undefined =>
    byPath(served).get(`${group}/${version}/${name}`);
  const query = url.searchParams;
  const [first, second = "", third, fourth = "", fifth = ""] = segments;
  const inNamespace = first === "namespaces" && third !== undefined ? find(third) : undefined;
  if (inNamespace?.namespaced === true)
    return { resource: inNamespace, namespace: second, name: fourth, subresource: fifth, query };
  const resource = find(first);
  const isObjectOfNamespace = resource?.namespaced === true && second !== "";
  const isServed = resource ?? served.find((one) => one.group === group && one.version === version);
  if ((api !== "api" && api !== "apis") || isServed === undefined) throw pageNotFound();
  if (resource === undefined || isObjectOfNamespace) throw noSuchResource();
  return { resource, namespace: "", name: second, subresource: third ?? "", query };
}

const indexes = new WeakMap<readonly Resource[], ReadonlyMap<string, Resource>>();

/** By group, version and plural. */
function byPath(served: readonly Resource[]): ReadonlyMap<string, Resource> {
  const known =
    indexes.get(served) ??
    new Map(served.map((one) => [`${one.group}/${one.version}/${one.resource}`, one] as const));
  indexes.set(served, known);
  return known;
}

/** Whether an object is selected by the query's labelSelector and fieldSelector. */
export type Selects = (object: JsonObject) => boolean;

export function selectorsOf({ query, resource }: ResourcePath): Selects | undefined {
  const labels = query.get("labelSelector") ?? "";
  const fields = query.get("fieldSelector") ?? "";
  if (labels === "" && fields === "") return undefined;
  const byLabels = labelSelector(labels);
  const byFields = fieldSelector(fields, resource);
  return (object) => byLabels(object) && byFields(object);
}

const REQUIREMENT =
  /^\s*(?:(!)\s*([^\s=!,()]+)|([^\s=!,()]+)\s*(?:(==|=|!=)\s*([^\s=!,()]*)|\s(in|notin)\s*\(([^()]*)\))?)\s*(?:,|$)/;

/** `a=1,b!=2,c in (x,y),d,!e` */
function labelSelector(text: string): Selects {
  const matchExpressions: JsonObject[] = [];
  for (let rest = text; rest !== ""; ) {
    const found = REQUIREMENT.exec(rest);
    if (found === null) throw badRequest(`unable to parse requirement: ${text}`);
    rest = rest.slice(found[0].length);
    const [, not, absent, key, operator, value = "", set, values = ""] = found;
    const list = values.split(",").map((one) => one.trim());
    if (not !== undefined) matchExpressions.push({ key: absent, operator: "DoesNotExist" });
    else if (set !== undefined)
      matchExpressions.push({ key, operator: set === "in" ? "In" : "NotIn", values: list });
    else if (operator === undefined) matchExpressions.push({ key, operator: "Exists" });
    else matchExpressions.push({ key, operator: operator === "!=" ? "NotIn" : "In", values: [value] });
  }
  const { selector, problems } = compileSelector({ matchExpressions }, []);
  if (problems.length > 0) throw badRequest(`unable to parse requirement: ${problems[0]?.message}`);
  return (object) => matches(selector, labelsOf(object));
}

/** Fields beside name and namespace that can be selected. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: ["spec.nodeName", "spec.schedulerName", "spec.serviceAccountName", "status.phase"],
  secrets: ["type"],
  namespaces: ["status.phase"],
  nodes: ["spec.unschedulable"],
  events: ["reason", "type"],
};

function fieldSelector(text: string, { resource }: Resource): Selects {
  const known = ["metadata.name", "metadata.namespace", ...(FIELDS[resource] ?? [])];
  const wanted = text.split(",").flatMap((one) => {
    if (one === "") return [];
    const [, field = "", operator = "", value = ""] = /^([^=!]+)(!=|==|=)(.*)$/.exec(one) ?? [];
    if (!known.includes(field)) throw badRequest(`field label not supported: ${field === "" ? one : field}`);
    return [{ path: field.split("."), equals: operator !== "!=", value }];
  });
  return (object) =>
    wanted.every(({ path, equals, value }) => (String(at(object, ...path) ?? "") === value) === equals);
}

/** Where a list in pages continues: at a revision, after a key. */
interface Continuation {
  readonly rv: number;
  readonly start: string;
}

export function continueToken(continuation: Continuation): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", ...continuation })).toString("base64url");
}

export function readContinueToken(text: string): Continuation {
  try {
    const { rv, start } = JSON.parse(Buffer.from(text, "base64url").toString()) as Continuation;
    if (typeof rv === "number" && typeof start === "string") return { rv, start };
  } catch {
    // The token is none of ours.
  }
  throw badRequest("continue key is not valid: not a continue token of this server");
}

/** A resourceVersion of a query; `undefined` if absent. */
export function versionIn(
  query: URLSearchParams,
  refuse = (): Error => badRequest("invalid resource version"),
): number | undefined {
  const text = query.get("resourceVersion") ?? "";
  if (text === "") return undefined;
  if (!/^\d+$/.test(text)) throw refuse();
  return Number(text);
}
