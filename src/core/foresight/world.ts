import type { Fact, Need } from "../decision/need.ts";
import { copyOf, isObject, type Json, type JsonObject, listAt, stringAt } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { Assembly } from "../module/assembly.ts";
import type { StandingChange } from "../module/standing.ts";
import { fieldPath } from "../path.ts";
import type { Stage } from "../review/review.ts";
import { type Change, objectKey } from "../view/view.ts";

type Fetch = (needs: readonly Need[]) => Promise<readonly Fact[]>;

/** Rules may select nodes by labels that other rules set: each pass makes one step of such a chain. */
const MAX_PASSES = 4;

/**
 * A cluster in its current or a hypothetical state: an assembly, whole objects of the read resources, and the facts
 * beyond both. It is never written to; `with` returns another world, and this one is unchanged.
 */
export class World implements Stage {
  readonly assembly: Assembly;
  readonly #fetch: Fetch;
  readonly #objects: ReadonlyMap<string, ReadonlyMap<string, JsonObject>>;
  /** Objects that differ from the cluster's; `undefined` if removed. */
  readonly #changed: ReadonlyMap<string, JsonObject | undefined>;
  /** Which policy set a value of a node: `worker-1 metadata.labels.pool`. */
  readonly #reasons: ReadonlyMap<string, string>;

  constructor(
    assembly: Assembly,
    fetch: Fetch,
    objects: ReadonlyMap<string, ReadonlyMap<string, JsonObject>>,
    changed: ReadonlyMap<string, JsonObject | undefined> = new Map(),
    reasons: ReadonlyMap<string, string> = new Map(),
  ) {
    this.assembly = assembly;
    this.#fetch = fetch;
    this.#objects = objects;
    this.#changed = changed;
    this.#reasons = reasons;
  }

  /** Whole objects of a resource that was read, in the order of the API server. */
  list(resource: string): JsonObject[] {
    return [...(this.#objects.get(resource)?.values() ?? [])];
  }

  /** Whether a resource was read. */
  has(resource: string): boolean {
    return this.#objects.has(resource);
  }

  get(resource: string, namespace: string, name: string): JsonObject | undefined {
    return this.#objects.get(resource)?.get(objectKey(namespace, name));
  }

  /** The policy of a node's value, if a rule would set it. */
  reason(node: string, path: string): string | undefined {
    return this.#reasons.get(`${node} ${path}`);
  }

  with(changes: readonly Change[], reasons?: ReadonlyMap<string, string>): World {
    const changed = new Map(this.#changed);
    const objects = new Map(this.#objects);
    for (const resource of new Set(changes.map((one) => one.resource)))
      objects.set(resource, new Map(objects.get(resource)));
    for (const { resource, namespace, name, object } of changes) {
      const table = objects.get(resource) as Map<string, JsonObject>;
      changed.set(`${resource} ${objectKey(namespace, name)}`, object);
      if (object === undefined) table.delete(objectKey(namespace, name));
      else table.set(objectKey(namespace, name), object);
    }
    return new World(
      this.assembly.with(changes),
      this.#fetch,
      objects,
      changed,
      new Map([...this.#reasons, ...(reasons ?? [])]),
    );
  }

  /** The same after controllers have made their changes of nodes. */
  reconciled(): World {
    let world: World = this;
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const reasons = new Map<string, string>();
      const changes: Change[] = [];
      for (const { object, changes: planned } of world.assembly.modules.flatMap(({ standing }) => [
        ...(standing?.(world.assembly) ?? []),
      ])) {
        const node = world.get("nodes", "", object.name);
        if (object.kind !== "Node" || node === undefined || planned.length === 0) continue;
        for (const { path, by } of planned)
          if (by !== undefined) reasons.set(`${object.name} ${fieldPath(path)}`, by);
        changes.push({
          resource: "nodes",
          namespace: "",
          name: object.name,
          object: withValues(node, planned),
        });
      }
      if (changes.length === 0) return world;
      world = world.with(changes, reasons);
    }
    return world;
  }

  /** Resources that were read whole, and objects that differ from the cluster's, need no call. */
  async fetch(needs: readonly Need[]): Promise<readonly Fact[]> {
    const known = needs.map((need) => this.#known(need));
    const asked = needs.filter((_, i) => known[i] === undefined);
    const found = asked.length === 0 ? [] : [...(await this.#fetch(asked))];
    return needs.map((need, i) => {
      const fact = known[i] ?? found.shift() ?? { failed: "the source returned no fact" };
      return "list" in need ? this.#overlaid(need, fact) : fact;
    });
  }

  /** Nothing is written: the next request starts from the same records. */
  async commit(): Promise<"done"> {
    return "done";
  }

  admit(): void {}

  #known(need: Need): Fact | undefined {
    if (!("get" in need)) return undefined;
    const { resource, namespace = "", name } = need.get;
    const key = objectKey(namespace, name);
    if (this.#changed.has(`${resource} ${key}`)) {
      const object = this.#changed.get(`${resource} ${key}`);
      return object === undefined ? { absent: "NotFound" } : { found: object, complete: true };
    }
    const found = this.#objects.get(resource)?.get(key);
    return found === undefined ? undefined : { found, complete: true };
  }

  #overlaid({ list }: Extract<Need, { readonly list: unknown }>, fact: Fact): Fact {
    if (this.#changed.size === 0 || !("found" in fact) || !Array.isArray(fact.found)) return fact;
    const seen = new Set<string>();
    const found = fact.found.filter(isObject).flatMap((object) => {
      const key = `${list.resource} ${objectKey(namespaceOf(object), nameOf(object))}`;
      seen.add(key);
      const changed = this.#changed.has(key) ? this.#changed.get(key) : object;
      return changed === undefined ? [] : [changed];
    });
    const isPlain = list.labelSelector === undefined && list.fieldSelector === undefined;
    for (const [key, object] of this.#changed)
      if (isPlain && object !== undefined && !seen.has(key) && key.startsWith(`${list.resource} `))
        if (list.namespace === undefined || namespaceOf(object) === list.namespace) found.push(object);
    return { ...fact, found };
  }
}

/** A node with values set and removed. */
function withValues(node: JsonObject, changes: readonly StandingChange[]): JsonObject {
  const copy = copyOf(node) as Record<string, Json | undefined>;
  const metadata = { ...(isObject(copy["metadata"]) ? copy["metadata"] : {}) };
  const spec = { ...(isObject(copy["spec"]) ? copy["spec"] : {}) };
  for (const { path, change, to } of changes) {
    const [, field = "", key = ""] = path.map(String);
    if (path[0] === "metadata") {
      const map = { ...(isObject(metadata[field]) ? metadata[field] : {}) };
      if (change === "remove") delete map[key];
      else map[key] = to ?? "";
      metadata[field] = map;
    } else spec["taints"] = taintsWith(spec, key, change === "remove" ? undefined : String(to ?? ""));
  }
  return { ...copy, metadata, spec };
}

function taintsWith(spec: JsonObject, id: string, value: string | undefined): Json[] {
  const colon = id.lastIndexOf(":");
  const [key, effect] = [id.slice(0, colon), id.slice(colon + 1)];
  const isIt = (one: Json) => stringAt(one, "key") === key && stringAt(one, "effect") === effect;
  const others = listAt(spec, "taints").filter((one) => !isIt(one));
  if (value === undefined) return others;
  return [...others, { key, effect, ...(value === "" ? {} : { value }) }];
}
