// For tests: the objects of an installation, and an API server with or without them.
import { z } from "zod";
import type { ApiResponse } from "../../../src/cluster/client/client.ts";
import { Gates } from "../../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../src/core/installation/installation.ts";
import { isObject, type Json, type JsonObject, stringAt } from "../../../src/core/json.ts";
import { nameOf, namespaceOf } from "../../../src/core/kubernetes/object.ts";
import { Assembly } from "../../../src/core/module/assembly.ts";
import { defineModule, type Module } from "../../../src/core/module/module.ts";
import { problem } from "../../../src/core/policy/problem.ts";
import { registration } from "../../../src/core/registration/index.ts";
import { describeObject, Objects } from "../../../src/operator/install/apply.ts";
import { answerOf, refuse, TestApiServer } from "../cluster/api-server.ts";

export const SEATING: Module = defineModule({
  name: "seating",
  summary: "seats pods",
  kinds: [
    {
      group: "test.usher.dev",
      kind: "Seating",
      plural: "seatings",
      singular: "seating",
      scope: "Cluster",
      standing: "resource",
      summary: "Where pods sit.",
      versions: [{ name: "v1", storage: true, spec: z.strictObject({ row: z.string() }) }],
      check: (object) =>
        stringAt(object, "spec", "row") === "none" ? [problem(["spec", "row"], "there is no such row")] : [],
      prepare: () => ({ policy: undefined, problems: [] }),
    },
  ],
  reads: [],
  hooks: () =>
    (["mutate", "validate"] as const).map((phase) => ({
      name: `seating-${phase}`,
      module: "seating",
      phase,
      rules: [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
      failure: "open",
      tooLarge: "allow",
      timeoutSeconds: 5,
      sideEffects: "None",
    })),
  predecessors: [{ name: "old-seating", meaning: "both seat pods" }],
  assemble: () => ({}),
});

export const POLICIES = "/apis/test.usher.dev/v1/seatings";

/** Every object of an installation, in the order of application. */
export function installedObjects(namespace = "usher-system", version = "1.2.0"): readonly JsonObject[] {
  const assembly = new Assembly([SEATING], { ...DEFAULT_INSTALLATION, namespace }, new Gates([]));
  return registration(assembly, {
    endpoint: { service: { name: "usher", namespace, port: 443 } },
    version,
    workload: { image: "usher:1.2.0" },
  }).objects;
}

const NAMESPACED =
  /^(Deployment|ReplicaSet|CronJob|PodDisruptionBudget|ResourceQuota|Service|Endpoints|EndpointSlice|ConfigMap|Secret|ServiceAccount|Role|RoleBinding|Lease|Pod|PodMetrics|NetworkPolicy|Event|Chair)$/;

/** An API server that knows the kinds of an installation, applies, and establishes CRDs immediately. */
export class TestInstallation {
  readonly server = new TestApiServer();
  readonly objects: Objects;
  /** The writes in order: `apply Deployment usher-system/usher`, `delete …`. */
  readonly written: string[] = [];
  /** Whether to respond with 403. */
  refusing: (method: string, path: string) => boolean = () => false;
  /** A response that replaces the default one. */
  answering: (method: string, path: string, query: URLSearchParams) => ApiResponse | undefined = () =>
    undefined;
  queues = true;
  establishes = true;

  constructor() {
    this.objects = new Objects(this.server.client);
    this.server.fault = (method, url, { body, contentType }) => {
      const { pathname: path, searchParams } = new URL(url, "https://test.invalid");
      if (this.refusing(method, path)) return refuse(403, "Forbidden");
      const given = this.answering(method, path, searchParams);
      if (given !== undefined) return given;
      if (method === "GET" && path === "/apis") return answerOf(200, { groups: GROUPS });
      if (method === "GET" && /^\/(api\/v1|apis\/[^/]+\/[^/]+)$/.test(path)) return this.#discovery(path);
      const selector = searchParams.get("labelSelector");
      if (method === "GET" && selector !== null && !path.endsWith("/pods"))
        return answerOf(200, { items: this.#selected(path, selector) });
      if (method === "PATCH" && contentType === "application/merge-patch+json" && isObject(body))
        return answerOf(200, this.server.put(path, merged(this.server.objects.get(path) ?? {}, body)));
      if (method === "PATCH" && isObject(body)) return this.#apply(path, body, searchParams.has("dryRun"));
      if (method === "DELETE")
        this.written.push(`delete ${describeObject(this.server.objects.get(path) ?? {})}`);
      const isList = method === "GET" && !this.server.objects.has(path) && /\/[a-z]+s$/.test(path);
      const items = [...this.server.objects].filter(([key]) => key.slice(0, key.lastIndexOf("/")) === path);
      if (isList && (searchParams.size === 0 || path.endsWith("/pods")))
        return answerOf(200, { items: items.map(([, object]) => object) });
      return undefined;
    };
  }

  /** As stored: with a uid, so that it can be distinguished from another object of the same name. */
  have(object: JsonObject): JsonObject {
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    const uid = `uid of ${describeObject(object)}`;
    return this.server.put(pathOf(object), { ...object, metadata: { ...metadata, uid } });
  }

  has(object: JsonObject): boolean {
    return this.server.objects.has(pathOf(object));
  }

  /** In one namespace or in all, by labels that exist or have a value. */
  #selected(path: string, selector: string): JsonObject[] {
    const resource = path.slice(path.lastIndexOf("/"));
    const everywhere = path.includes("/namespaces/") ? undefined : path.slice(0, -resource.length);
    return [...this.server.objects].flatMap(([key, object]) => {
      const parent = key.slice(0, key.lastIndexOf("/"));
      const inside =
        parent === path ||
        (everywhere !== undefined && parent.startsWith(everywhere) && parent.endsWith(resource));
      const fits = selector.split(",").every((one) => {
        const [label = "", value] = one.split("=");
        const found = stringAt(object, "metadata", "labels", label);
        return value === undefined ? found !== undefined : found === value;
      });
      return inside && fits ? [object] : [];
    });
  }

  #apply(path: string, body: JsonObject, dryRun: boolean) {
    const stored = this.server.objects.get(path);
    const applied = {
      ...stored,
      ...body,
      metadata: { ...(stored?.["metadata"] as JsonObject | undefined), ...(body["metadata"] as JsonObject) },
    };
    if (dryRun) return answerOf(200, applied);
    this.written.push(`apply ${describeObject(body)}`);
    const conditions = this.establishes
      ? [{ type: "Established", status: "True" }]
      : [{ type: "NamesAccepted", status: "False", message: "the names are taken" }];
    const isCrd = stringAt(body, "kind") === "CustomResourceDefinition";
    return answerOf(200, this.server.put(path, isCrd ? { ...applied, status: { conditions } } : applied));
  }

  #discovery(path: string) {
    if (!this.queues && path.includes("flowcontrol")) return refuse(404, "NotFound");
    const kinds = new Set(KINDS.filter(([api]) => api === path).map(([, kind]) => kind));
    const resources = [...kinds].map((kind) => ({
      kind,
      name: plural(kind),
      namespaced: NAMESPACED.test(kind),
      // Virtual resources such as metrics can't be deleted.
      verbs: kind === "PodMetrics" ? ["get", "list"] : ["create", "delete", "get", "list", "patch"],
    }));
    return answerOf(200, { resources });
  }
}

/** A JSON merge patch. */
function merged(object: JsonObject, patch: JsonObject): JsonObject {
  const result = { ...object } as Record<string, Json>;
  for (const [key, value] of Object.entries(patch)) {
    const inner = result[key];
    if (value === null || value === undefined) delete result[key];
    else result[key] = isObject(value) ? merged(isObject(inner) ? inner : {}, value) : value;
  }
  return result;
}

const KINDS: readonly (readonly [string, string])[] = [
  ...installedObjects().map((object) => [apiOf(object), stringAt(object, "kind") ?? ""] as const),
  ["/api/v1", "Secret"],
  ["/api/v1", "ConfigMap"],
  ["/api/v1", "Pod"],
  ["/api/v1", "Node"],
  ["/api/v1", "Endpoints"],
  ["/api/v1", "Event"],
  ["/apis/coordination.k8s.io/v1", "Lease"],
  ["/apis/networking.k8s.io/v1", "NetworkPolicy"],
  ["/apis/apps/v1", "ReplicaSet"],
  ["/apis/batch/v1", "CronJob"],
  ["/apis/discovery.k8s.io/v1", "EndpointSlice"],
  ["/apis/metrics.k8s.io/v1beta1", "PodMetrics"],
  // Two versions of one group, each with a resource that the other does not have.
  ["/apis/test.usher.dev/v1", "Seating"],
  ["/apis/test.usher.dev/v1alpha1", "Chair"],
];

const GROUPS: readonly JsonObject[] = [...new Set(KINDS.map(([api]) => api.split("/")[2] ?? ""))]
  .filter((name) => name !== "v1")
  .map((name) => {
    const apis = new Set(KINDS.map(([api]) => api).filter((api) => api.startsWith(`/apis/${name}/`)));
    return { name, versions: [...apis].map((api) => ({ groupVersion: api.slice("/apis/".length) })) };
  });

function apiOf(object: JsonObject): string {
  const version = stringAt(object, "apiVersion") ?? "";
  return version.includes("/") ? `/apis/${version}` : `/api/${version}`;
}

function plural(kind: string): string {
  return `${kind.toLowerCase()}s`.replace(/ys$/, "ies").replace(/ss$/, "s");
}

export function pathOf(object: JsonObject): string {
  const kind = stringAt(object, "kind") ?? "";
  const scope = NAMESPACED.test(kind) ? `/namespaces/${namespaceOf(object)}` : "";
  return `${apiOf(object)}${scope}/${plural(kind)}/${nameOf(object)}`;
}
