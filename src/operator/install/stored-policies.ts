import type { Client } from "../../cluster/client/client.ts";
import { listIfServed } from "../../cluster/client/list-pages.ts";
import type { JsonObject } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Module } from "../../core/module/module.ts";
import { checkObject } from "../../core/policy/check.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import type { View } from "../../core/view/view.ts";

/** A policy that was stored before anybody checked it, or by someone with other rules. */
export interface BrokenPolicy {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly problems: readonly string[];
}

/** What of these objects would not be let in today. None of it harms: a part that can't be used is not used, and nothing else. */
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
export async function storedObjects(client: Client, kind: Kind): Promise<JsonObject[]> {
  const version = kind.versions.find(({ storage }) => storage)?.name ?? "";
  const { group, plural, scope } = kind;
  const namespaced = scope === "Namespaced";
  const items = await listIfServed(client, { group, version, resource: plural, namespaced });
  return items.map((item) => ({ ...item, apiVersion: `${group}/${version}`, kind: kind.kind }));
}
