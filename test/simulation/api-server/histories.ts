import type { Json, JsonObject } from "../../../src/core/json.ts";
import { APPLY, type Call, JSON_PATCH, MERGE, thingDefinition } from "./conformance.ts";

/** Histories whose responses are recorded from a real API server, in histories.json. */

/** The names that stand in the recording for those of a run. */
export const RECORDED = { namespace: "recorded", group: "recorded.usher.dev" };

interface Place {
  readonly namespace: string;
  readonly group: string;
}

export function histories({ namespace, group }: Place): Readonly<Record<string, readonly Call[]>> {
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  const secrets = `/api/v1/namespaces/${namespace}/secrets`;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const things = `/apis/${group}/v1/namespaces/${namespace}/things`;
  const namespaces = "/api/v1/namespaces";
  const get = (path: string, more: Partial<Call> = {}): Call => ({ method: "GET", path, ...more });
  const post = (path: string, body: Json, more: Partial<Call> = {}): Call => ({
    method: "POST",
    path,
    body,
    ...more,
  });
  const put = (path: string, body: Json): Call => ({
    method: "PUT",
    path: `${path}?fieldManager=usher`,
    body,
  });
  const remove = (path: string, body?: JsonObject, more: Partial<Call> = {}): Call => ({
    method: "DELETE",
    path,
    ...(body === undefined ? {} : { body: { kind: "DeleteOptions", apiVersion: "v1", ...body } }),
    ...more,
  });
  const merge = (path: string, body: Json): Call => ({
    method: "PATCH",
    type: MERGE,
    path: `${path}?fieldManager=usher`,
    body,
  });
  const patch = (path: string, body: Json): Call => ({
    method: "PATCH",
    type: JSON_PATCH,
    path: `${path}?fieldManager=usher`,
    body,
  });
  const apply = (path: string, query: string, body: Json): Call => ({
    method: "PATCH",
    type: APPLY,
    path: `${path}?${query}`,
    body,
  });
  const map = (name: string, data: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, ...metadata },
    data,
  });
  const lease = (holderIdentity: string, metadata: JsonObject = {}): JsonObject => ({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "leader", ...metadata },
    spec: { holderIdentity, leaseDurationSeconds: 15 },
  });
  const thing = (name: string, spec: JsonObject, more: JsonObject = {}): JsonObject => ({
    apiVersion: `${group}/v1`,
    kind: "Thing",
    metadata: { name },
    spec,
    ...more,
  });
  const finalizers = ["usher.dev/hold"];
  const owner = (name: string, more: JsonObject = {}): JsonObject[] => [
    { apiVersion: "v1", kind: "ConfigMap", name, uid: `@uid:${maps}/${name}`, ...more },
  ];
  const ended = `${namespace}-ended`;

  return {
    "a leader takes, renews and loses its lease": [
      post(`${leases}?fieldManager=usher`, lease("a")),
      post(`${leases}?fieldManager=usher`, lease("b")),
      put(`${leases}/leader`, lease("a", { resourceVersion: "@version" })),
      put(`${leases}/leader`, lease("b", { resourceVersion: "@version" })),
      put(`${leases}/leader`, lease("a", { resourceVersion: "@older" })),
      put(`${leases}/leader`, lease("a")),
      remove(`${leases}/leader`),
      // A PUT creates a lease, whatever version it names.
      put(`${leases}/leader`, lease("a", { resourceVersion: "@version" })),
      remove(`${leases}/leader`),
    ],
    "two replicas apply the Secret of the certificates": [
      apply(`${secrets}/certs`, "fieldManager=usher-1", {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "certs", labels: { app: "usher" } },
        type: "kubernetes.io/tls",
        data: { "tls.crt": "YQ==", "tls.key": "YQ==" },
      }),
      apply(`${secrets}/certs`, "fieldManager=usher-2", {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "certs", labels: { app: "usher" } },
        type: "kubernetes.io/tls",
        data: { "tls.crt": "Yg==", "tls.key": "Yg==" },
      }),
      put(`${secrets}/certs`, { "@object": {}, data: { "tls.crt": "Yw==", "tls.key": "Yw==" } }),
      apply(`${secrets}/certs`, "fieldManager=usher-1&force=true", {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "certs" },
        type: "kubernetes.io/tls",
        data: { "tls.crt": "YQ==", "tls.key": "YQ==" },
      }),
      remove(`${secrets}/certs`, { preconditions: { uid: "@uid", resourceVersion: "@version" } }),
    ],
    "invalid requests are refused": [
      post(maps, map("Upper")),
      post(maps, map("")),
      post(maps, map("x", {}, { namespace: "other" })),
      post(maps, map("x", {}, { resourceVersion: "1" })),
      post(maps, { ...map("x"), apiVersion: "apps/v1" }),
      post(maps, { ...map("x"), kind: "Secret" }),
      post(`${namespaces}/${namespace}-missing/configmaps`, map("x")),
      get(`${maps}/missing`),
      put(`${maps}/missing`, map("missing")),
      put(`${maps}/missing`, map("other")),
      merge(`${maps}/missing`, { data: { a: "1" } }),
      remove(`${maps}/missing`),
      get("/api/v1/nothings"),
      get("/apis/nothing.usher.dev/v1/things"),
      get("/apis/nothing.usher.dev/v1"),
      get(`${things}/missing/status`),
      get(`${maps}/missing/status`),
      get(`${maps}?labelSelector=a%3D%3D%3Db`),
      get(`${maps}?fieldSelector=data.a%3D1`),
      get(`${maps}?limit=1&continue=nonsense`),
      get(`${maps}?resourceVersionMatch=Exact`),
      get(`${maps}?resourceVersionMatch=Exact&resourceVersion=0`),
      get(`${maps}?resourceVersion=nonsense`),
      post(maps, map("x"), { only: "status" }),
      { method: "PATCH", type: "application/nonsense", path: `${maps}/x`, body: {} },
      patch(`${maps}/x`, { data: {} }),
      patch(`${maps}/x`, [{ op: "remove", path: "/data/none" }]),
      apply(`${maps}/x`, "force=true", map("x")),
      remove(`${maps}/x`),
    ],
    "an object with finalizers is marked and goes with the last one": [
      post(`${things}?fieldManager=usher`, {
        ...thing("held", { note: "1" }, { status: { ready: true } }),
        metadata: { name: "held", finalizers },
      }),
      put(`${things}/held/status`, { "@object": {}, status: { ready: true } }),
      put(`${things}/held`, { "@object": {}, status: { ready: false } }),
      put(`${things}/held`, { "@object": {}, spec: { note: "2" } }),
      remove(`${things}/held`, { preconditions: { uid: "wrong" } }),
      remove(`${things}/held`, { propagationPolicy: "Background" }),
      remove(`${things}/held`, { propagationPolicy: "Background" }),
      merge(`${things}/held`, { metadata: { finalizers: [...finalizers, "usher.dev/new"] } }),
      patch(`${things}/held/status`, [
        { op: "add", path: "/status", value: { ready: false } },
        { op: "add", path: "/metadata/resourceVersion", value: "@version" },
      ]),
      merge(`${things}/held`, { metadata: { finalizers: null } }),
      get(`${things}/held`),
    ],
    "an apply that owns nothing of a map removes it, with the defaults in it": [
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", { note: "1" })),
      // An empty list of elements is owned by no manager.
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", { tags: [] })),
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", { note: "1" })),
      merge(`${things}/emptied`, { spec: { size: 2 } }),
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", { tags: [] })),
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", { marks: { a: "1" } })),
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", { plain: [], parts: [] })),
      apply(`${things}/emptied`, "fieldManager=usher-1", thing("emptied", {})),
      remove(`${things}/emptied`),
      apply(`${things}/lists`, "fieldManager=usher-1", thing("lists", { note: "1", tags: [] })),
      apply(`${things}/lists`, "fieldManager=usher-1", thing("lists", {})),
      apply(`${things}/lists`, "fieldManager=usher-1", thing("lists", { note: "1" })),
      apply(`${things}/lists`, "fieldManager=usher-1", thing("lists", {})),
      remove(`${things}/lists`),
    ],
    "a dry run answers as if it had happened": [
      post(`${maps}?dryRun=All&fieldManager=usher`, map("dry", { a: "1" })),
      get(`${maps}/dry`),
      apply(`${maps}/dry`, "fieldManager=usher&force=true&dryRun=All", map("dry", { a: "1" })),
      post(`${maps}?fieldManager=usher`, map("dry", { a: "1" })),
      post(`${maps}?dryRun=All&fieldManager=usher`, map("dry", { a: "1" })),
      merge(`${maps}/dry`, { data: { b: "1" } }),
      remove(`${maps}/dry`, { dryRun: ["All"], preconditions: { resourceVersion: "@version" } }),
      remove(`${maps}/dry`, { dryRun: ["All"], preconditions: { resourceVersion: "@older" } }),
      get(`${maps}/dry`),
      remove(`${maps}/dry`),
    ],
    "pages continue at the state of the first one": [
      ...["p1", "p2", "p3", "p4"].map((name) => post(`${things}?fieldManager=usher`, thing(name, {}))),
      get(`${things}?limit=3`),
      post(`${things}?fieldManager=usher`, thing("p5", {})),
      remove(`${things}/p4`),
      get(`${things}?limit=3&continue=@token`),
      get(`${things}?limit=2&labelSelector=!none`),
      get(`${things}?limit=2&resourceVersion=@version:${things}/p5&resourceVersionMatch=Exact`),
      ...["p1", "p2", "p3", "p5"].map((name) => remove(`${things}/${name}`)),
    ],
    "a stream sends its state, a bookmark and what follows": [
      post(`${things}?fieldManager=usher`, thing("s1", {})),
      post(`${things}?fieldManager=usher`, thing("s2", {})),
      get(
        `${things}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
        { lines: 3 },
      ),
      get(`${things}?watch=true&resourceVersion=@version:${things}/s1`, { lines: 1 }),
      get(`${things}?watch=true&fieldSelector=metadata.name%3Ds2`, { lines: 1 }),
      get(`${things}?watch=true&resourceVersion=1`, { lines: 1 }),
      get(`${things}?watch=true&sendInitialEvents=true`, { lines: 1 }),
      get(`${things}?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1`, { lines: 1 }),
      get(`${things}?watch=true&resourceVersion=nonsense`, { lines: 1 }),
      remove(`${things}/s1`),
      remove(`${things}/s2`),
    ],
    "dependents are deleted, kept or waited for": [
      post(maps, map("owner")),
      post(maps, map("dependent", {}, { ownerReferences: owner("owner") })),
      remove(`${maps}/owner`),
      get(`${maps}/dependent`, { until: 404 }),
      post(maps, map("parent")),
      post(
        maps,
        map("child", {}, { finalizers, ownerReferences: owner("parent", { blockOwnerDeletion: true }) }),
      ),
      remove(`${maps}/parent`, { propagationPolicy: "Foreground" }, { only: "status" }),
      get(`${maps}/parent`, { only: "status" }),
      { ...merge(`${maps}/child`, { metadata: { finalizers: null } }), only: "status" },
      get(`${maps}/child`, { until: 404 }),
      get(`${maps}/parent`, { until: 404 }),
      post(maps, map("giver")),
      post(maps, map("orphan", {}, { ownerReferences: owner("giver") })),
      remove(`${maps}/giver`, { propagationPolicy: "Orphan" }, { only: "status" }),
      get(`${maps}/giver`, { until: 404 }),
      get(`${maps}/orphan`, { only: "status" }),
      remove(`${maps}/orphan`),
    ],
    "a namespace that ends refuses new objects": [
      post(
        namespaces,
        { apiVersion: "v1", kind: "Namespace", metadata: { name: ended } },
        { only: "status" },
      ),
      post(`${namespaces}/${ended}/configmaps`, map("held", {}, { finalizers }), { only: "status" }),
      remove(`${namespaces}/default`),
      remove(`${namespaces}/${ended}`, undefined, { only: "status" }),
      post(`${namespaces}/${ended}/configmaps`, map("late"), { until: 403 }),
      get(`${namespaces}/${ended}`, { only: "status" }),
      {
        ...merge(`${namespaces}/${ended}/configmaps/held`, { metadata: { finalizers: null } }),
        only: "status",
      },
      get(`${namespaces}/${ended}`, { until: 404 }),
      get(`${namespaces}/${ended}/configmaps/held`),
    ],
    "a pod is bound once and waits for its grace period": [
      post(
        pods,
        {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "pod" },
          spec: { schedulerName: "none", containers: [{ name: "c", image: "c" }] },
        },
        { only: "status" },
      ),
      post(`${pods}/pod/binding`, {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: "pod" },
        target: { kind: "Node", name: "nowhere" },
      }),
      post(`${pods}/pod/binding`, {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: "pod" },
        target: { kind: "Node", name: "nowhere" },
      }),
      remove(`${pods}/pod`, undefined, { only: "status" }),
      get(`${pods}/pod`, { only: "status" }),
      remove(`${pods}/pod`, { gracePeriodSeconds: 0 }, { only: "status" }),
      get(`${pods}/pod`),
    ],
    "a definition is served and its resources go with it": [
      post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", thingDefinition(`second.${group}`), {
        only: "status",
      }),
      get(`/apis/second.${group}/v1/namespaces/${namespace}/things`, { until: 200 }),
      post(`/apis/second.${group}/v1/namespaces/${namespace}/things?fieldManager=usher`, {
        ...thing("t", { unknown: 1 }),
        apiVersion: `second.${group}/v1`,
      }),
      remove(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.second.${group}`, undefined, {
        only: "status",
      }),
      get(`/apis/second.${group}/v1/namespaces/${namespace}/things`, { until: 404, only: "status" }),
    ],
    "a webhook that can't be reached refuses or is ignored": [
      post(`${WEBHOOKS}?fieldManager=usher`, unreachable(namespace, {})),
      post(`${maps}?dryRun=All`, map("hooked"), { until: 500 }),
      post(`${maps}?dryRun=All`, map("spared", { spared: "1" }), { only: "status" }),
      post(`${secrets}?dryRun=All`, { metadata: { name: "hooked" } }, { only: "status" }),
      merge(`${WEBHOOKS}/${namespace}-hook`, unreachable(namespace, { failurePolicy: "Ignore" })),
      post(`${maps}?dryRun=All`, map("hooked"), { until: 201, only: "status" }),
      merge(`${WEBHOOKS}/${namespace}-hook`, unreachable(namespace, { sideEffects: "NoneOnDryRun" })),
      post(`${maps}?dryRun=All`, map("hooked"), { until: 500 }),
      remove(`${WEBHOOKS}/${namespace}-hook`),
      post(`${maps}?dryRun=All`, map("hooked"), { until: 201, only: "status" }),
    ],
  };
}

const WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

function unreachable(namespace: string, more: JsonObject): JsonObject {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: `${namespace}-hook` },
    webhooks: [
      {
        name: "unreachable.usher.dev",
        clientConfig: { service: { namespace, name: "missing" } },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        matchConditions: [
          { name: "not-spared", expression: "!has(object.data) || !('spared' in object.data)" },
        ],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        timeoutSeconds: 5,
        ...more,
      },
    ],
  };
}
