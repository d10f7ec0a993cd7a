import type { Client } from "../../cluster/client/client.ts";
import { listIfServed } from "../../cluster/client/list-pages.ts";
import { at, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { checkObject } from "../../core/policy/check.ts";
import { type CustomResource, type Kind, kindResource } from "../../core/policy/kind.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import type { View } from "../../core/view/view.ts";

/** A stored policy that is not valid: it was not validated when it was written, or by other rules. */
export interface BrokenPolicy {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly problems: readonly string[];
}

/** The objects that would be denied today. Only their invalid parts have no effect. */
export function brokenPolicies(kind: Kind, objects: Iterable<JsonObject>, view: View): BrokenPolicy[] {
  const broken: BrokenPolicy[] = [];
  for (const object of objects) {
    const problems = checkObject(kind, object, view).filter(({ severity }) => severity === "error");
    if (problems.length === 0) continue;
    broken.push({
      kind: kind.kind,
      namespace: namespaceOf(object),
      name: nameOf(object),
      problems: problems.map(describeProblem),
    });
  }
  return broken;
}

/** A CRD of a plan, and its stored version. */
interface PlannedCrd {
  readonly object: JsonObject;
  readonly live?: JsonObject | undefined;
}

/** More than these mostly have one cause. */
export const NAMED = 5;

/** The stored policies whose result differs from that of the version whose CRDs are stored. */
export async function changedAnswers(
  client: Client,
  modules: readonly Module[],
  crds: readonly PlannedCrd[],
): Promise<string[]> {
  const findings: string[] = [];
  for (const kind of resourceKinds(modules)) {
    const { changedAnswer } = kind;
    const crd = crds.find(({ object }) => nameOf(object) === kindResource(kind));
    if (changedAnswer === undefined || crd?.live === undefined) continue;
    const { field, concerns, meaning } = changedAnswer;
    if (descriptionOf(crd.live, field) === descriptionOf(crd.object, field)) continue;
    const names = (await storedObjects(client, kind)).filter(concerns).map((object) => {
      const namespace = namespaceOf(object);
      return `${kind.kind} ${namespace === "" ? "" : `${namespace}/`}${nameOf(object)}`;
    });
    if (names.length === 0) continue;
    const more = names.length > NAMED ? [`and ${names.length - NAMED} more`] : [];
    const head = names.length === 1 ? "1 stored policy is" : `${names.length} stored policies are`;
    findings.push([`${head} answered otherwise`, ...names.slice(0, NAMED), ...more, meaning].join("\n  "));
  }
  return findings;
}

/** How a CRD describes a field of the spec, in the version that is stored. */
function descriptionOf(crd: JsonObject, field: string): string | undefined {
  const version = listAt(crd, "spec", "versions").find((one) => at(one, "storage") === true);
  const spec = at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties");
  return stringAt(spec, field, "description");
}

export function resourceKinds(modules: readonly Module[]): Kind[] {
  return modules.flatMap(({ kinds }) => kinds).filter(({ standing }) => standing === "resource");
}

/** All stored objects of a kind, in the stored version; empty if it is not served. */
export async function storedObjects(client: Client, kind: CustomResource): Promise<JsonObject[]> {
  const version = kind.versions.find(({ storage }) => storage)?.name ?? "";
  const { group, plural, scope } = kind;
  const namespaced = scope === "Namespaced";
  const items = await listIfServed(client, { group, version, resource: plural, namespaced });
  return items.map((item) => ({ ...item, apiVersion: `${group}/${version}`, kind: kind.kind }));
}
