import { resourceName } from "../core/decision/request.ts";
import { isObject, type Json, type JsonObject, listAt, setOwn, stringAt } from "../core/json.ts";
import { annotationsOf, namespaceOf } from "../core/kubernetes/object.ts";
import { hasEnded } from "../core/kubernetes/pod-state.ts";
import type { WorkloadKind } from "../core/kubernetes/workloads.ts";
import { defineModule, type Module, NAMESPACES, NODES, type Read } from "../core/module/module.ts";
import type { Path } from "../core/path.ts";

/**
 * The parts of objects that the dashboard keeps. Values of environment variables, data of Secrets and copies of manifests in annotations
 * are left out before anything is stored, so that no view can show them. Pods of one template share its parts in memory.
 */

/** Replaces a hidden value. */
export const NOT_SHOWN = "(not shown)";

const CONTAINERS = ["containers", "initContainers", "ephemeralContainers"];

/** Decisions depend on annotations of these domains only; others may hold whole manifests. */
const DOMAINS = /(?:^|\.)(?:kubernetes\.io|k8s\.io|openshift\.io|usher\.dev)\//;
const COPY = "kubectl.kubernetes.io/last-applied-configuration";

/** An object as it may be shown: every value of an environment variable and of a Secret replaced, and no copy of a manifest. */
export function shown(object: JsonObject): JsonObject {
  const value = withoutValues(object) as JsonObject;
  if (value["kind"] !== "Secret") return value;
  const hidden = (data: Json | undefined) =>
    isObject(data) ? Object.fromEntries(Object.keys(data).map((key) => [key, NOT_SHOWN])) : undefined;
  const { data, stringData, ...rest } = value;
  return {
    ...rest,
    ...(data === undefined ? {} : { data: hidden(data) }),
    ...(stringData === undefined ? {} : { stringData: hidden(stringData) }),
  } as JsonObject;
}

/** Wherever containers are: in a pod, a template, a template of a job, or a kind that is not known here. */
function withoutValues(value: Json | undefined, key = ""): Json | undefined {
  if (Array.isArray(value))
    return CONTAINERS.includes(key)
      ? value.map(withoutEnvironment)
      : value.map((one) => withoutValues(one) as Json);
  if (!isObject(value)) return value;
  const result: Record<string, Json | undefined> = {};
  for (const [name, one] of Object.entries(value)) {
    if (one === undefined) continue;
    const kept = name === "annotations" && isObject(one) ? withoutCopies(one) : withoutValues(one, name);
    // A client may name a field `__proto__`.
    setOwn(result, name, kept as Json);
  }
  return result;
}

function withoutEnvironment(container: Json): Json {
  if (!isObject(container)) return container;
  const env = listAt(container, "env").map((one) =>
    isObject(one) && one["value"] !== undefined ? { ...one, value: NOT_SHOWN } : one,
  );
  return { ...container, ...(container["env"] === undefined ? {} : { env }) };
}

function withoutCopies(annotations: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(annotations).filter(([key]) => key !== COPY && DOMAINS.test(key)),
  ) as JsonObject;
}

/** The parts that pods of one template share. */
export interface Template {
  readonly namespace: string;
}

/** Every pod has a token volume with a name of its own; without that volume, pods of a template are equal. No policy reads it. */
const TOKEN = /^kube-api-access-[a-z0-9]{5}$/;

/** Keeps equal values once. Values that nothing uses any more are forgotten. */
class Pool<Value extends object> {
  readonly #values = new Map<string, WeakRef<Value>>();
  readonly #gone = new FinalizationRegistry<string>((key) => {
    if (this.#values.get(key)?.deref() === undefined) this.#values.delete(key);
  });

  of(key: string, make: () => Value): Value {
    const known = this.#values.get(key)?.deref();
    if (known !== undefined) return known;
    const value = make();
    this.#values.set(key, new WeakRef(value));
    this.#gone.register(value, key);
    return value;
  }
}

/** Pods, reduced to the fields that are shown or evaluated. Parts that pods share are kept once. */
export class KeptPods {
  readonly #parts = new Pool<{ readonly id: number; readonly value: Json }>();
  readonly #templates = new Pool<Template & { readonly parts: readonly object[] }>();
  /** By the spec of a pod: a view keeps that object as it is. */
  readonly #templateOf = new WeakMap<object, Template>();
  #next = 0;

  /** The template of a pod that was reduced here. */
  templateOf(pod: JsonObject): Template | undefined {
    const spec = pod["spec"];
    return isObject(spec) ? this.#templateOf.get(spec) : undefined;
  }

  readonly reduce = (pod: JsonObject): JsonObject => {
    if (this.templateOf(pod) !== undefined) return pod;
    const { metadata, spec, status } = shown(pod);
    const { name, namespace, uid, deletionTimestamp, creationTimestamp, ...common } = isObject(metadata)
      ? metadata
      : {};
    const { nodeName, ...plain } = isObject(spec) ? withoutToken(spec) : {};
    const parts: object[] = [];
    const keys: string[] = [String(namespace)];
    const shared = (fields: JsonObject): JsonObject => {
      const kept: Record<string, Json | undefined> = {};
      for (const [key, value] of Object.entries(fields)) {
        if (typeof value !== "object" || value === null) {
          setOwn(kept, key, value as Json);
          keys.push(`${key}=${JSON.stringify(value)}`);
          continue;
        }
        const text = JSON.stringify(value);
        const part = this.#parts.of(text, () => ({ id: this.#next++, value }));
        parts.push(part);
        keys.push(`${key}:${part.id}`);
        setOwn(kept, key, part.value);
      }
      return kept;
    };
    const [keptMetadata, keptSpec] = [shared(common), shared(plain)];
    const template = this.#templates.of(keys.join("\n"), () => ({ namespace: namespaceOf(pod), parts }));
    const own = { ...keptSpec, ...(nodeName === undefined ? {} : { nodeName }) };
    this.#templateOf.set(own, template);
    const phase = stringAt(status, "phase");
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(uid === undefined ? {} : { uid }),
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
        ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
        ...keptMetadata,
      },
      spec: own,
      ...(phase === undefined ? {} : { status: phase === "Running" ? RUNNING : { phase } }),
    };
  };
}

const RUNNING = { phase: "Running" };

function withoutToken(spec: JsonObject): JsonObject {
  const isToken = (one: Json) => TOKEN.test(stringAt(one, "name") ?? "");
  if (!listAt(spec, "volumes").some(isToken)) return spec;
  const cleaned: Record<string, Json | undefined> = {
    ...spec,
    volumes: listAt(spec, "volumes").filter((one) => !isToken(one)),
  };
  for (const field of CONTAINERS)
    if (Array.isArray(spec[field]))
      cleaned[field] = listAt(spec, field).map((container) =>
        isObject(container)
          ? { ...container, volumeMounts: listAt(container, "volumeMounts").filter((one) => !isToken(one)) }
          : container,
      );
  return cleaned;
}

/** Pods by their node; those that wait are under the empty name. */
export const PODS_BY_NODE = "dashboard/node";

const METADATA: readonly Path[] = [
  ["metadata", "labels"],
  ["metadata", "annotations"],
  ["metadata", "ownerReferences"],
  ["metadata", "creationTimestamp"],
  ["metadata", "generation"],
  ["metadata", "generateName"],
];

/** A heartbeat changes only times, which are not kept. Rules set annotations of any domain, so those of a node stay. */
export function reduceNode(node: JsonObject): JsonObject {
  const metadata = isObject(node["metadata"]) ? node["metadata"] : {};
  const { [COPY]: _copy, ...annotations } = annotationsOf(node) ?? {};
  const status = isObject(node["status"]) ? node["status"] : {};
  const conditions = listAt(status, "conditions")
    .filter((one) => stringAt(one, "type") === "Ready")
    .map((one) => ({ type: "Ready", status: stringAt(one, "status") ?? "Unknown" }));
  return { ...node, metadata: { ...metadata, annotations }, status: { ...status, conditions } };
}

function readsOf(workloads: readonly WorkloadKind[], pods: KeptPods): Read[] {
  const common = { optional: true, why: "show it on the dashboard" } as const;
  return [
    {
      ...common,
      ...NODES,
      keep: [
        ...METADATA,
        ["spec", "taints"],
        ["spec", "unschedulable"],
        ["status", "allocatable"],
        ["status", "conditions"],
        ["status", "declaredFeatures"],
        ["status", "nodeInfo", "operatingSystem"],
        ["status", "nodeInfo", "kubeletVersion"],
      ],
      reduce: reduceNode,
    },
    {
      ...common,
      ...NAMESPACES,
      keep: METADATA,
      reduce: shown,
    },
    ...workloads.map(
      (workload): Read => ({
        ...common,
        ...workload,
        scope: "Namespaced",
        keep: [
          ...METADATA,
          ...(workload.template[0] === "template" ? [["template"]] : [["spec"]]),
          ["status", "phase"],
        ],
        reduce: workload.template.length === 0 ? pods.reduce : shown,
        ...(workload.template.length === 0
          ? {
              indexes: [
                {
                  name: PODS_BY_NODE,
                  values: (pod: JsonObject) => [stringAt(pod, "spec", "nodeName") ?? ""],
                },
              ],
            }
          : {}),
      }),
    ),
  ];
}

/** A module without decisions: it declares what the dashboard reads. */
export function keeping(workloads: readonly WorkloadKind[], pods: KeptPods): Module {
  return defineModule<never>({
    name: "dashboard",
    summary: "reads what the dashboard shows",
    kinds: [],
    reads: readsOf(workloads, pods),
    hooks: () => [],
    assemble: () => ({}),
  });
}

/** The resources that are read for a world to be judged: workloads, nodes and namespaces. */
export function keptResources(workloads: readonly WorkloadKind[]): string[] {
  return [...new Set([...workloads.map(resourceName), "nodes", "namespaces"])];
}

/** Whether a pod is shown: a pod that has ended is no longer on its node. */
export function isLive(pod: JsonObject): boolean {
  return !hasEnded(pod);
}
