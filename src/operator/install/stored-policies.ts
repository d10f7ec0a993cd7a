import type { Client } from "../../cluster/client/client.ts";
import { listIfServed } from "../../cluster/client/list-pages.ts";
import type { JsonObject } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { checkObject } from "../../core/policy/check.ts";
import type { CustomResource, Kind } from "../../core/policy/kind.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import type { View } from "../../core/view/view.ts";

/** A stored policy that is not valid: it was not checked when it was written, or by other rules. */
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

export function resourceKinds(modules: readonly Module[]): Kind[] {
  return modules.flatMap(({ kinds }) => kinds).filter(({ standing }) => standing === "resource");
}

/** Everything stored of a kind, in the version that is stored; nothing where it is not served. */
export async function storedObjects(client: Client, kind: CustomResource): Promise<JsonObject[]> {
  const version = kind.versions.find(({ storage }) => storage)?.name ?? "";
  const { group, plural, scope } = kind;
  const namespaced = scope === "Namespaced";
  const items = await listIfServed(client, { group, version, resource: plural, namespaced });
  return items.map((item) => ({ ...item, apiVersion: `${group}/${version}`, kind: kind.kind }));
}
