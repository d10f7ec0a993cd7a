import type { World } from "../../core/foresight/world.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { checkObject } from "../../core/policy/check.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import { didYouMean } from "../../core/suggest.ts";
import type { Change } from "../../core/view/view.ts";
import { entryOf } from "../../files/source/entry.ts";
import type { Resources } from "../../files/source/resources.ts";
import type { Input, InputProblem, Manifest } from "../input/input.ts";

const NOWHERE = { file: "", document: 0, path: [], ordinal: 0 };

/** One object that is added, replaced or removed. */
export interface WorldEdit {
  readonly change: Change;
  /** `ClusterPodSchedulingPolicy etcd-pool` */
  readonly name: string;
  readonly what: "added" | "changed" | "removed" | "cordoned";
  /** A policy, an object that usher's modules read, or a workload. */
  readonly of: "policy" | "namespace" | "node" | "workload";
  /** As it is written. */
  readonly manifest?: Manifest;
}

export interface Edits {
  readonly edits: readonly WorldEdit[];
  readonly problems: readonly InputProblem[];
}

export interface EditContext {
  readonly world: World;
  readonly resources: Resources;
  /** Of objects without one. */
  readonly namespace: string | undefined;
  /** The objects that may be edited, and the remedy for others. */
  readonly allowed: readonly WorldEdit["of"][];
  readonly otherwise: string;
}

/** The edits of manifests. An invalid manifest is a problem at its position. */
export function editsOf(input: Input, context: EditContext): Edits {
  const edits: WorldEdit[] = [];
  const problems: InputProblem[] = [...input.problems];
  const seen = new Map<string, string>();
  for (const manifest of input.manifests) {
    const edit = editOf(manifest, context);
    if (!("change" in edit)) {
      for (const one of edit) problems.push({ place: manifest.place, problem: one });
      continue;
    }
    const key = `${edit.change.resource} ${edit.change.namespace}/${edit.change.name}`;
    const twice = seen.get(key);
    if (twice === undefined) edits.push(edit);
    else
      problems.push({ place: manifest.place, problem: problem([], `${edit.name} is in ${twice} already`) });
    seen.set(key, `${manifest.place.input.name}:${manifest.line()}`);
  }
  return { edits, problems };
}

function editOf(manifest: Manifest, context: EditContext): WorldEdit | readonly Problem[] {
  const { world, resources, allowed, otherwise } = context;
  const written = stringAt(manifest.object, "kind") ?? "";
  if (written === "AdmissionReview")
    return [
      problem([], "a recorded AdmissionReview is not an object: replay it with usher replay --reviews"),
    ];
  const { entry, problems } = entryOf(placed(manifest.object, context), NOWHERE, resources);
  const wrong = problems.filter(({ severity }) => severity === "error");
  if (entry === undefined || wrong.length > 0) return wrong;
  const { resource, namespace, name, object } = entry;
  const of = kindOf(object, context);
  const shown = `${written} ${namespace === "" ? "" : `${namespace}/`}${name}`;
  if (of === undefined || !allowed.includes(of)) return [problem(["kind"], `${shown}: ${otherwise}`)];
  const { assembly } = world;
  if (resource.policy !== undefined) {
    const invalid = checkObject(resource.policy, object, assembly.view, assembly).filter(
      ({ severity, pruned }) => severity === "error" || pruned === true,
    );
    if (invalid.length > 0) return invalid;
  }
  const stored = assembly.view.get(resource.name, namespace, name);
  const whole = world.get(resource.name, namespace, name) ?? stored;
  const what = whole === undefined ? ("added" as const) : ("changed" as const);
  return {
    change: { resource: resource.name, namespace, name, object: applied(object, whole, of) },
    name: shown,
    what,
    of,
    manifest,
  };
}

/** Objects of namespaced kinds without a namespace go to `-n`. */
function placed(object: JsonObject, { namespace, resources }: EditContext): JsonObject {
  const resource = resources.of(stringAt(object, "apiVersion") ?? "", stringAt(object, "kind") ?? "");
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  if (namespace === undefined || resource.scope === "Cluster" || (metadata["namespace"] ?? "") !== "")
    return object;
  return { ...object, metadata: { ...metadata, namespace } };
}

function kindOf(object: JsonObject, { world, resources }: EditContext): WorldEdit["of"] | undefined {
  const apiVersion = stringAt(object, "apiVersion") ?? "";
  const kind = stringAt(object, "kind") ?? "";
  const resource = resources.of(apiVersion, kind);
  if (resource.policy !== undefined) return "policy";
  if (resource.name === "namespaces") return "namespace";
  if (resource.name === "nodes") return "node";
  const { workloads } = world.assembly.installation;
  const known = workloads.all.some(
    (one) => resource.name === (one.group === "" ? one.resource : `${one.resource}.${one.group}`),
  );
  return known ? "workload" : undefined;
}

/** Fields of the stored object that decide about order and identity, and that no manifest has. */
const KEPT = ["uid", "creationTimestamp", "ownerReferences"];

/**
 * The object as it is stored afterwards. Of a node or namespace a manifest is merged into the stored object, as kubectl apply does; with a
 * resourceVersion, as kubectl get prints it, the manifest is the whole object. Policies and workloads are replaced.
 */
function applied(object: JsonObject, stored: JsonObject | undefined, of: WorldEdit["of"]): JsonObject {
  if (stored === undefined) return object;
  const partial = of === "node" || of === "namespace";
  if (partial && stringAt(object, "metadata", "resourceVersion") === undefined)
    return merged(stored, object) as JsonObject;
  const metadata: Record<string, Json | undefined> = {
    ...(isObject(object["metadata"]) ? object["metadata"] : {}),
  };
  for (const field of KEPT) metadata[field] ??= at(stored, "metadata", field);
  const generation = at(stored, "metadata", "generation");
  if (typeof generation === "number") metadata["generation"] = generation + 1;
  const status = partial && object["status"] === undefined ? { status: stored["status"] } : {};
  return { ...object, ...status, metadata };
}

function merged(stored: Json | undefined, written: Json | undefined): Json | undefined {
  if (!isObject(stored) || !isObject(written)) return written;
  const result: Record<string, Json | undefined> = { ...stored };
  for (const [key, value] of Object.entries(written)) result[key] = merged(stored[key], value);
  return result;
}

/** `--remove KIND/NAME`, or KIND/NAMESPACE/NAME. */
export function removalOf(text: string, context: EditContext): WorldEdit | { readonly wrong: string } {
  const [, kind = "", namespace = "", name = ""] = /^([^/]+)\/(?:([^/]+)\/)?([^/]+)$/.exec(text) ?? [];
  if (name === "")
    return { wrong: `--remove ${text}: must be KIND/NAME, or KIND/NAMESPACE/NAME, such as node/worker-1` };
  const found = removableKinds(context).find(({ spellings }) => spellings.includes(kind.toLowerCase()));
  if (found === undefined) {
    const known = removableKinds(context).map((one) => one.kind);
    return {
      wrong: `--remove ${text}: unknown kind ${kind}; ${didYouMean(kind, known) ?? `known kinds: ${known.join(", ")}`}`,
    };
  }
  const { world } = context;
  const inside = found.namespaced ? namespace || (context.namespace ?? "default") : "";
  const exists =
    world.get(found.resource, inside, name) ?? world.assembly.view.get(found.resource, inside, name);
  const shown = `${found.kind} ${inside === "" ? "" : `${inside}/`}${name}`;
  if (exists === undefined) {
    const names = [...world.assembly.view.list(found.resource), ...world.list(found.resource)].map(
      (one) => stringAt(one, "metadata", "name") ?? "",
    );
    const hint = didYouMean(name, names);
    return { wrong: `--remove ${text}: there is no ${shown}${hint === undefined ? "" : `; ${hint}`}` };
  }
  return {
    change: { resource: found.resource, namespace: inside, name, object: undefined },
    name: shown,
    what: "removed",
    of: found.of,
  };
}

interface Removable {
  readonly kind: string;
  readonly resource: string;
  readonly namespaced: boolean;
  readonly of: WorldEdit["of"];
  readonly spellings: readonly string[];
}

function removableKinds({ world, allowed }: EditContext): Removable[] {
  const { modules, installation } = world.assembly;
  const spelled = (...words: readonly string[]) => words.map((one) => one.toLowerCase());
  const all: Removable[] = [
    ...modules.flatMap(({ kinds }) =>
      kinds.map((kind) => ({
        kind: kind.kind,
        resource: kindResource(kind),
        namespaced: kind.scope === "Namespaced",
        of: "policy" as const,
        spellings: spelled(
          kind.kind,
          kind.plural,
          kind.singular,
          ...(kind.shortNames ?? []),
          kindResource(kind),
        ),
      })),
    ),
    { kind: "Node", resource: "nodes", namespaced: false, of: "node", spellings: ["node", "nodes", "no"] },
    {
      kind: "Namespace",
      resource: "namespaces",
      namespaced: false,
      of: "namespace",
      spellings: ["namespace", "namespaces", "ns"],
    },
    ...installation.workloads.all.map(({ kind, group, resource }) => ({
      kind,
      resource: group === "" ? resource : `${resource}.${group}`,
      namespaced: true,
      of: "workload" as const,
      spellings: spelled(kind, resource, `${resource}.${group}`),
    })),
  ];
  return all.filter(({ of }) => allowed.includes(of));
}

const UNSCHEDULABLE = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/** `--cordon NODE`: as kubectl cordon, with the taint that the node controller adds. */
export function cordonOf(text: string, { world }: EditContext): WorldEdit | { readonly wrong: string } {
  const name = text.replace(/^nodes?\//, "");
  const node = world.get("nodes", "", name);
  if (node === undefined) {
    const hint = didYouMean(
      name,
      world.list("nodes").map((one) => stringAt(one, "metadata", "name") ?? ""),
    );
    return { wrong: `--cordon ${text}: there is no Node ${name}${hint === undefined ? "" : `; ${hint}`}` };
  }
  const spec = isObject(node["spec"]) ? node["spec"] : {};
  const others = listAt(spec, "taints").filter((one) => stringAt(one, "key") !== UNSCHEDULABLE.key);
  const object = { ...node, spec: { ...spec, unschedulable: true, taints: [...others, UNSCHEDULABLE] } };
  return {
    change: { resource: "nodes", namespace: "", name, object },
    name: `Node ${name}`,
    what: "cordoned",
    of: "node",
  };
}
