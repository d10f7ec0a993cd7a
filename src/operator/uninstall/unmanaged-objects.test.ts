import { expect, test } from "vitest";
import { answerOf, NO_SUCH_API, refuse } from "../../../test/support/cluster/api-server.ts";
import { installed, NAMESPACE, named, owned, plan } from "../../../test/support/operator/uninstall.ts";
import type { ApiResponse } from "../../cluster/client/client.ts";
import type { JsonObject } from "../../core/json.ts";
import { carryOutRemovals } from "./uninstall.ts";

const SLICE = named("discovery.k8s.io/v1", "EndpointSlice", "usher-x2");
const TOKEN = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name: "default-token-x1",
    namespace: NAMESPACE,
    annotations: { "kubernetes.io/service-account.name": "default" },
  },
  type: "kubernetes.io/service-account-token",
};
const inNamespace: readonly [string, readonly JsonObject[], string | undefined][] = [
  ["another owner's Secret", [named("v1", "Secret", "database")], "Secret database"],
  ["a Secret with a name like usher's", [named("v1", "Secret", "usher-database")], "Secret usher-database"],
  ["another owner's ConfigMap", [named("v1", "ConfigMap", "settings")], "ConfigMap settings"],
  [
    "a ConfigMap named like tallies",
    [named("v1", "ConfigMap", "usher-tallies-x")],
    "ConfigMap usher-tallies-x",
  ],
  ["another owner's Deployment", [named("apps/v1", "Deployment", "web")], "Deployment web"],
  ["a Service whose name begins like usher's", [named("v1", "Service", "usherette")], "Service usherette"],
  ["a CronJob", [named("batch/v1", "CronJob", "backup")], "CronJob backup"],
  ["a custom resource of a lesser version", [named("test.usher.dev/v1alpha1", "Chair", "red")], "Chair red"],
  ["another's Lease", [named("coordination.k8s.io/v1", "Lease", "usher-2")], "Lease usher-2"],
  ["a bare pod named like a replica", [named("v1", "Pod", "usher-7d9-x")], "Pod usher-7d9-x"],
  ["a pod of another owner's ReplicaSet", [owned(named("v1", "Pod", "w"), "ReplicaSet", "web")], "Pod w"],
  [
    "more than can be named, and objects that it owns after it",
    [
      owned(named("v1", "Pod", "a"), "CronJob", "backup"),
      ...["b", "c", "d", "e"].map((name) => named("v1", "Secret", name)),
    ],
    "Secret b, Secret c, Secret d and 2 more",
  ],
  ["objects that every namespace has", [named("v1", "ConfigMap", "kube-root-ca.crt")], undefined],
  ["the account that every namespace has", [named("v1", "ServiceAccount", "default")], undefined],
  ["that account's token, as Kubernetes once created them", [TOKEN], undefined],
  ["usher's certificate", [named("v1", "Secret", "usher-certificates")], undefined],
  [
    "usher's replicas",
    [
      owned(named("v1", "Pod", "usher-7d9-x"), "ReplicaSet", "usher-7d9"),
      owned(named("apps/v1", "ReplicaSet", "usher-7d9"), "Deployment", "usher"),
    ],
    undefined,
  ],
  [
    "the endpoints of its Service",
    [
      owned(SLICE, "Service", "usher"),
      named("v1", "Endpoints", "usher"),
      named("v1", "Endpoints", "usher-metrics"),
    ],
    undefined,
  ],
  ["endpoints of no Service", [named("v1", "Endpoints", "database")], "Endpoints database"],
  ["events", [named("v1", "Event", "web.17")], undefined],
  ["virtual resources such as metrics", [named("metrics.k8s.io/v1beta1", "PodMetrics", "web")], undefined],
];
test.each(inNamespace)("the namespace with %s", async (_, objects, unmanaged) => {
  const cluster = installed();
  for (const object of objects) cluster.have(object);
  const { of, removals } = await plan(cluster);
  expect(of(`Namespace ${NAMESPACE}`)).toMatchObject(
    unmanaged === undefined
      ? { change: "delete" }
      : { change: "stays", note: `contains unmanaged objects: ${unmanaged}` },
  );
  await carryOutRemovals(
    cluster.objects,
    removals.filter(({ live }) => live["kind"] !== "Deployment"),
    () => undefined,
  );
  if (unmanaged !== undefined) for (const object of objects) expect(cluster.has(object)).toBe(true);
});

test.each<[string, (path: string) => boolean]>([
  ["a kind that may not be listed", (path) => path.endsWith(`/namespaces/${NAMESPACE}/cronjobs`)],
  ["a group that does not answer", (path) => path === "/apis/metrics.k8s.io/v1beta1"],
  ["no list of groups", (path) => path === "/apis"],
])(
  "a namespace whose contents can't be listed stays, and the plan has the reason: %s",
  async (_, refusing) => {
    const cluster = installed();
    cluster.refusing = (method, path) => method === "GET" && refusing(path);
    const { of, going } = await plan(cluster);
    expect(of(`Namespace ${NAMESPACE}`)).toMatchObject({
      change: "stays",
      note: expect.stringMatching(/its contents could not be listed: .* 403/),
    });
    expect(going).toContain("MutatingWebhookConfiguration usher");
    expect(going).toContain(`Deployment ${NAMESPACE}/usher`);
  },
);

/** A body with status 200 that is not the requested list. */
const NOT_LISTS: readonly [string, ApiResponse][] = [
  ["an empty object", answerOf(200, {})],
  ["a Status", answerOf(200, { kind: "Status", status: "Success" })],
  ["items that are an object", answerOf(200, { items: {} })],
  ["items that hold a string", answerOf(200, { items: ["web"] })],
  ["a page of a proxy", { status: 200, headers: {}, body: undefined, text: "<html>" }],
  ["nothing", { status: 200, headers: {}, body: undefined, text: "" }],
];

const UNREADABLE = {
  change: "stays",
  note: expect.stringMatching(/its contents could not be listed: /),
};

test.each(NOT_LISTS)("a namespace stays if a list is answered with %s", async (_, answer) => {
  const cluster = installed();
  cluster.answering = (method, path) =>
    method === "GET" && path.endsWith(`/namespaces/${NAMESPACE}/cronjobs`) ? answer : undefined;
  expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`)).toMatchObject(UNREADABLE);
});

test.each(NOT_LISTS)("a namespace stays if discovery is answered with %s", async (_, answer) => {
  for (const place of ["/apis", "/apis/batch/v1"]) {
    const cluster = installed();
    cluster.answering = (method, path) => (method === "GET" && path === place ? answer : undefined);
    expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`), place).toMatchObject(UNREADABLE);
  }
});

test.each<[string, ApiResponse]>([
  ["a Status", refuse(404, "NotFound")],
  ["text", NO_SUCH_API],
])("a namespace stays if a kind that discovery lists is answered with 404 as %s", async (_, answer) => {
  const cluster = installed();
  cluster.answering = (method, path) =>
    method === "GET" && path.endsWith(`/namespaces/${NAMESPACE}/cronjobs`) ? answer : undefined;
  expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`)).toMatchObject(UNREADABLE);
});

test("a namespace stays if a group version that discovery lists is answered with 404", async () => {
  const cluster = installed();
  cluster.answering = (method, path) =>
    method === "GET" && path.startsWith("/apis/batch/v1") ? NO_SUCH_API : undefined;
  expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`)).toMatchObject(UNREADABLE);
});

test("a kind that is deleted while it is listed holds nothing", async () => {
  const cluster = installed();
  let listed = false;
  cluster.answering = (method, path) => {
    if (method !== "GET") return undefined;
    if (path.endsWith("/cronjobs")) {
      listed = true;
      return NO_SUCH_API;
    }
    return path === "/apis/batch/v1" && listed ? answerOf(200, { resources: [] }) : undefined;
  };
  expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`)).toMatchObject({ change: "delete" });
});

const FIRST_PAGE = answerOf(200, {
  apiVersion: "batch/v1",
  kind: "CronJobList",
  metadata: { continue: "t1" },
  items: [],
});

test.each<[string, ApiResponse]>([
  ["404", NO_SUCH_API],
  ["500", refuse(500, "InternalError")],
  ["a body that is not a list", answerOf(200, {})],
  ["the same continue token", FIRST_PAGE],
])("a namespace stays if a later page is answered with %s", async (_, answer) => {
  const cluster = installed();
  cluster.answering = (method, path, query) => {
    if (method !== "GET" || !path.endsWith(`/namespaces/${NAMESPACE}/cronjobs`)) return undefined;
    return query.get("continue") === null ? FIRST_PAGE : answer;
  };
  expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`)).toMatchObject(UNREADABLE);
});

test("a list whose continue token expired is read again, and its objects count", async () => {
  const cluster = installed();
  const queries: string[] = [];
  cluster.answering = (method, path, query) => {
    if (method !== "GET" || !path.endsWith(`/namespaces/${NAMESPACE}/cronjobs`)) return undefined;
    queries.push(query.toString());
    if (query.get("continue") !== null) return refuse(410, "Expired");
    if (queries.length === 1) return FIRST_PAGE;
    return answerOf(200, { items: [named("batch/v1", "CronJob", "backup")] });
  };
  expect((await plan(cluster)).of(`Namespace ${NAMESPACE}`)).toMatchObject({
    change: "stays",
    note: "contains unmanaged objects: CronJob backup",
  });
  expect(queries).toEqual(["limit=25", "limit=50&continue=t1", "limit=25"]);
});
