import { expect, onTestFinished, test, vi } from "vitest";
import {
  installedObjects,
  POLICIES,
  pathOf,
  SEATING,
  TestInstallation,
} from "../../../test/support/operator/installation.ts";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { describeObject } from "../install/apply.ts";
import { NotReadyError } from "../install/install.ts";
import { installedNamespaces } from "../install/installed-namespaces.ts";
import { carryOutRemovals, planUninstall } from "./uninstall.ts";

const INSTALLED = installedObjects();
const NAMESPACE = "usher-system";
const CRD = "CustomResourceDefinition seatings.test.usher.dev";

function named(apiVersion: string, kind: string, name: string): JsonObject {
  return { apiVersion, kind, metadata: { name, namespace: NAMESPACE } };
}

/** What another object brought along, as its controller writes it. */
function owned(object: JsonObject, kind: string, name: string): JsonObject {
  const uid = `uid of ${kind} ${NAMESPACE}/${name}`;
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  return { ...object, metadata: { ...metadata, ownerReferences: [{ kind, name, uid, controller: true }] } };
}

function installed(): TestInstallation {
  const cluster = new TestInstallation();
  for (const object of INSTALLED) cluster.have(object);
  return cluster;
}

async function plan(cluster: TestInstallation, customResources = false) {
  const elsewhere = (await installedNamespaces(cluster.objects)).filter(
    ({ namespace }) => namespace !== NAMESPACE,
  );
  const removals = await planUninstall(cluster.objects, INSTALLED, [SEATING], { customResources, elsewhere });
  return {
    removals,
    going: removals.filter(({ change }) => change === "delete").map(({ live }) => describeObject(live)),
    of: (what: string) => removals.find(({ live }) => describeObject(live) === what),
  };
}

test("first goes the right to register webhooks, then the webhooks, then what runs; the namespace last", async () => {
  const { going } = await plan(installed());
  expect(going.slice(0, 4)).toEqual([
    "ClusterRoleBinding usher-registration",
    "MutatingWebhookConfiguration usher",
    "ValidatingWebhookConfiguration usher",
    `Deployment ${NAMESPACE}/usher`,
  ]);
  expect(going.at(-1)).toBe(`Namespace ${NAMESPACE}`);
  const order = (what: string) => going.findIndex((one) => one.startsWith(`${what} `));
  expect(order("Service")).toBeLessThan(order("ClusterRole"));
  expect(order("RoleBinding")).toBeLessThan(order("ServiceAccount"));
  expect(new Set(going).size).toBe(going.length);
  expect(going).toHaveLength(INSTALLED.length - 1);
});

test.each([
  [0, "0 policies"],
  [1, "1 policy"],
  [3, "3 policies"],
])("CRDs with %i policies stay unless asked, and it is said how many there are", async (count, held) => {
  const cluster = installed();
  for (let i = 0; i < count; i++) cluster.server.put(`${POLICIES}/p-${i}`, { spec: { row: "a" } });
  expect((await plan(cluster)).of(CRD)).toMatchObject({
    change: "stays",
    note: `holds ${held}; --custom-resources deletes both`,
  });
  expect((await plan(cluster, true)).of(CRD)).toMatchObject({ change: "delete", note: `with ${held}` });
});

test.each([
  CRD,
  "MutatingWebhookConfiguration usher",
  `Deployment ${NAMESPACE}/usher`,
  `Namespace ${NAMESPACE}`,
])("%s of someone else's stays, whatever is asked", async (what) => {
  const cluster = installed();
  const object = INSTALLED.find((one) => describeObject(one) === what) ?? {};
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const managedFields = [{ manager: "kubectl", operation: "Apply" }];
  cluster.have({ ...object, metadata: { ...metadata, labels: {}, managedFields } });
  const { of, removals } = await plan(cluster, true);
  expect(of(what)).toMatchObject({ change: "stays", note: "belongs to someone with kubectl" });
  await carryOutRemovals(cluster.objects, removals, () => undefined);
  expect(cluster.has(object)).toBe(true);
});

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
  ["a Secret of somebody", [named("v1", "Secret", "database")], "Secret database"],
  ["a Secret that sounds like usher's", [named("v1", "Secret", "usher-database")], "Secret usher-database"],
  ["a ConfigMap of somebody", [named("v1", "ConfigMap", "settings")], "ConfigMap settings"],
  [
    "a ConfigMap called as tallies are",
    [named("v1", "ConfigMap", "usher-tallies-x")],
    "ConfigMap usher-tallies-x",
  ],
  ["a Deployment of somebody", [named("apps/v1", "Deployment", "web")], "Deployment web"],
  ["a Service that only begins like usher", [named("v1", "Service", "usherette")], "Service usherette"],
  ["a CronJob", [named("batch/v1", "CronJob", "backup")], "CronJob backup"],
  ["a custom resource of a lesser version", [named("test.usher.dev/v1alpha1", "Chair", "red")], "Chair red"],
  ["another's Lease", [named("coordination.k8s.io/v1", "Lease", "usher-2")], "Lease usher-2"],
  ["a bare pod called like a replica", [named("v1", "Pod", "usher-7d9-x")], "Pod usher-7d9-x"],
  ["a pod of someone else's ReplicaSet", [owned(named("v1", "Pod", "w"), "ReplicaSet", "web")], "Pod w"],
  [
    "more than can be named, and what belongs to it after it",
    [
      owned(named("v1", "Pod", "a"), "CronJob", "backup"),
      ...["b", "c", "d", "e"].map((name) => named("v1", "Secret", name)),
    ],
    "Secret b, Secret c, Secret d and 2 more",
  ],
  ["what every namespace has", [named("v1", "ConfigMap", "kube-root-ca.crt")], undefined],
  ["the account that every namespace has", [named("v1", "ServiceAccount", "default")], undefined],
  ["that account's token, as Kubernetes once made them", [TOKEN], undefined],
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
    [owned(SLICE, "Service", "usher"), named("v1", "Endpoints", "usher")],
    undefined,
  ],
  ["endpoints of no Service", [named("v1", "Endpoints", "database")], "Endpoints database"],
  ["events", [named("v1", "Event", "web.17")], undefined],
  ["what is only measured", [named("metrics.k8s.io/v1beta1", "PodMetrics", "web")], undefined],
];
test.each(inNamespace)("the namespace with %s in it", async (_, objects, strangers) => {
  const cluster = installed();
  for (const object of objects) cluster.have(object);
  const { of, removals } = await plan(cluster);
  expect(of(`Namespace ${NAMESPACE}`)).toMatchObject(
    strangers === undefined
      ? { change: "delete" }
      : { change: "stays", note: `holds what is not usher's: ${strangers}` },
  );
  await carryOutRemovals(
    cluster.objects,
    removals.filter(({ live }) => live["kind"] !== "Deployment"),
    () => undefined,
  );
  if (strangers !== undefined) for (const object of objects) expect(cluster.has(object)).toBe(true);
});

test.each<[string, (path: string) => boolean]>([
  ["a kind that may not be listed", (path) => path.endsWith(`/namespaces/${NAMESPACE}/cronjobs`)],
  ["a group that does not answer", (path) => path === "/apis/metrics.k8s.io/v1beta1"],
  ["no list of groups", (path) => path === "/apis"],
])("a namespace that nobody can look into stays, and the plan says why: %s", async (_, refusing) => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "GET" && refusing(path);
  const { of, going } = await plan(cluster);
  expect(of(`Namespace ${NAMESPACE}`)).toMatchObject({
    change: "stays",
    note: expect.stringMatching(/what is in it could not be looked at: .* 403/),
  });
  expect(going).toContain("MutatingWebhookConfiguration usher");
  expect(going).toContain(`Deployment ${NAMESPACE}/usher`);
});

test("policies in the namespace keep it, unless they go with their CRD", async () => {
  const cluster = installed();
  const crd = INSTALLED.find((object) => describeObject(object) === CRD) ?? {};
  const chairs = { ...crd, metadata: { ...(crd["metadata"] as JsonObject), name: "chairs.test.usher.dev" } };
  const chair = named("test.usher.dev/v1alpha1", "Chair", "red");
  for (const object of [chairs, chair]) cluster.have(object);
  const planned = async (customResources: boolean) => {
    const all = await planUninstall(cluster.objects, [...INSTALLED, chairs], [SEATING], { customResources });
    return all.find(({ live }) => live["kind"] === "Namespace")?.change;
  };
  expect(await planned(false)).toBe("stays");
  expect(await planned(true)).toBe("delete");
});

test("what only informs holds nothing up: policies that may not be counted are an unknown number", async () => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "GET" && path === POLICIES;
  const { of, going } = await plan(cluster);
  expect(of(CRD)).toMatchObject({
    change: "stays",
    note: "holds an unknown number of policies; --custom-resources deletes both",
  });
  expect((await plan(cluster, true)).of(CRD)).toMatchObject({ note: "with an unknown number of policies" });
  expect(going).toContain("ValidatingWebhookConfiguration usher");
});

test.each([
  ["secrets/usher-certificates", `Secret ${NAMESPACE}/usher-certificates`],
  ["leases/usher", `Lease ${NAMESPACE}/usher`],
  ["configmaps", `ConfigMap ${NAMESPACE}/usher-tallies-*`],
])(
  "what usher made and nobody may look at (%s) is told to stay, and holds nothing up",
  async (path, what) => {
    const cluster = installed();
    cluster.refusing = (method, asked) => method === "GET" && asked.endsWith(`/${NAMESPACE}/${path}`);
    const { of, going } = await plan(cluster);
    expect(of(what)).toMatchObject({ change: "stays", note: expect.stringMatching(/may be there: .* 403/) });
    expect(going.slice(0, 3).join()).toMatch(/registration.*Mutating.*Validating/);
  },
);

test("an API server that can't say whether it has priority levels leaves them, told, and the webhooks go", async () => {
  const cluster = installed();
  cluster.refusing = (_, path) => path === "/apis/flowcontrol.apiserver.k8s.io/v1";
  const { of, going } = await plan(cluster);
  expect(of("FlowSchema usher")).toMatchObject({
    change: "stays",
    note: expect.stringMatching(/may be there: .* 403/),
  });
  expect(going).toContain("MutatingWebhookConfiguration usher");
});

test("what another usher needs stays; what is this one's alone goes", async () => {
  const cluster = installed();
  // The rights were moved to a second one, the webhooks still name the first.
  for (const object of installedObjects("hall"))
    if (!String(object["kind"]).endsWith("WebhookConfiguration")) cluster.have(object);
  const { of, going } = await plan(cluster, true);
  for (const what of [
    "ClusterRoleBinding usher",
    "ClusterRole usher",
    "ClusterRoleBinding usher-registration",
    CRD,
  ])
    expect(of(what), what).toMatchObject({
      change: "stays",
      note: expect.stringMatching(/usher in namespace hall/),
    });
  expect(going).toContain("MutatingWebhookConfiguration usher");
  expect(going).toContain(`Deployment ${NAMESPACE}/usher`);
  expect(going.join()).not.toMatch(/hall/);
});

test("what usher made while it ran goes before the namespace, and nothing that only sounds like it", async () => {
  const cluster = installed();
  const lease = "coordination.k8s.io/v1";
  for (const object of [
    named("v1", "Secret", "usher-certificates"),
    {
      ...named("v1", "ConfigMap", "usher-tallies-usher-1"),
      metadata: {
        name: "usher-tallies-usher-1",
        namespace: NAMESPACE,
        labels: { "usher.dev/tallies": "true" },
      },
    },
    named(lease, "Lease", "usher"),
    named(lease, "Lease", "usherette"),
    named("v1", "Secret", "usher-certificates-backup"),
  ])
    cluster.have(object);
  const { going, removals } = await plan(cluster);
  expect(going.slice(-3)).toEqual([
    `Secret ${NAMESPACE}/usher-certificates`,
    `Lease ${NAMESPACE}/usher`,
    `ConfigMap ${NAMESPACE}/usher-tallies-usher-1`,
  ]);
  expect(removals.at(-1)).toMatchObject({ change: "stays", live: { kind: "Namespace" } });
  expect(going.join()).not.toMatch(/usherette|backup/);
});

test("where nothing of usher is, nothing goes; where half is, that half", async () => {
  expect((await plan(new TestInstallation())).removals).toEqual([]);
  const cluster = new TestInstallation();
  const service = INSTALLED.find((object) => object["kind"] === "Service") ?? {};
  cluster.have(service);
  expect((await plan(cluster)).going).toEqual([`Service ${NAMESPACE}/usher`]);
});

test("an API server without priority levels is not asked for them", async () => {
  const cluster = installed();
  cluster.queues = false;
  expect((await plan(cluster)).going.join()).not.toMatch(/FlowSchema|PriorityLevel/);
});

test("it is carried out in its order, each just as it was seen; what stays is not touched", async () => {
  const cluster = installed();
  const { removals, going } = await plan(cluster);
  const told: string[] = [];
  await carryOutRemovals(cluster.objects, removals, ({ live }) => told.push(describeObject(live)));
  expect(cluster.written).toEqual(going.map((what) => `delete ${what}`));
  expect(told).toEqual(removals.map(({ live }) => describeObject(live)));
  for (const body of cluster.server.bodies)
    expect(stringAt(body, "preconditions", "uid")).toMatch(/^uid of /);
  expect(cluster.server.bodies).toHaveLength(going.length);
  expect(cluster.has(INSTALLED.find((object) => describeObject(object) === CRD) ?? {})).toBe(true);
});

test("what runs has ended before what it would make anew goes", async () => {
  const cluster = installed();
  const pod = named("v1", "Pod", "usher-1");
  cluster.have(pod);
  const { removals } = await plan(cluster);
  const service = pathOf(INSTALLED.find((object) => object["kind"] === "Service") ?? {});
  let looks = 0;
  const usual = cluster.server.fault;
  cluster.server.fault = (method, path, options) => {
    if (method === "GET" && path.includes("/pods?")) {
      looks += 1;
      expect(cluster.server.objects.has(service)).toBe(true);
      if (looks === 2) cluster.server.objects.delete(pathOf(pod));
    }
    return usual(method, path, options);
  };
  await carryOutRemovals(cluster.objects, removals, () => undefined);
  expect(looks).toBe(2);
  expect(cluster.server.objects.has(service)).toBe(false);
});

test("a webhook that a replica registered once more, before it lost the right to, goes as well", async () => {
  const cluster = installed();
  const { removals } = await plan(cluster);
  const hook = INSTALLED.find((object) => object["kind"] === "MutatingWebhookConfiguration") ?? {};
  await carryOutRemovals(cluster.objects, removals, ({ live }) => {
    if (at(live, "kind") === "Deployment") cluster.have(hook);
  });
  expect(cluster.has(hook)).toBe(false);
});

test.each(["/services/usher", "/pods"])(
  "a webhook that came back goes, though the uninstall breaks at %s",
  async (place) => {
    const cluster = installed();
    const { removals } = await plan(cluster);
    const hook = INSTALLED.find((object) => object["kind"] === "ValidatingWebhookConfiguration") ?? {};
    cluster.refusing = (method, path) => {
      const broken = path.endsWith(place) && (method === "DELETE" || place === "/pods");
      if (broken) cluster.have(hook);
      return broken;
    };
    await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(/403/);
    expect(cluster.has(hook)).toBe(false);
  },
);

test("a webhook that came back does not stay until everything else is gone", async () => {
  const cluster = installed();
  const { removals } = await plan(cluster);
  const hook = INSTALLED.find((object) => object["kind"] === "ValidatingWebhookConfiguration") ?? {};
  const deployment = INSTALLED.find((object) => object["kind"] === "Deployment") ?? {};
  const usual = cluster.server.fault;
  cluster.server.fault = (method, path, options) => {
    if (method === "DELETE" && path === pathOf(deployment)) cluster.have(hook);
    // Also while replicas still end, which may take a minute.
    if (path.includes("/pods?")) expect(cluster.has(hook)).toBe(false);
    return usual(method, path, options);
  };
  await carryOutRemovals(cluster.objects, removals, ({ live }) => {
    if (live["kind"] === "Deployment") expect(cluster.has(hook)).toBe(false);
  });
});

test("where nothing could be begun, the webhooks stay: usher would only put them back", async () => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "DELETE" && path.includes("clusterrolebindings");
  const { removals } = await plan(cluster);
  await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(/403/);
  expect(cluster.written).toEqual([]);
});

test("pods that do not end are named with their nodes and what to do, and it is no fault of usher's", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const cluster = installed();
  cluster.have({ ...named("v1", "Pod", "usher-7d9-x"), spec: { nodeName: "n1" } });
  const { removals } = await settled(plan(cluster));
  const error = await settled(
    carryOutRemovals(cluster.objects, removals, () => undefined).catch((thrown: unknown) => thrown),
  );
  expect(error).toBeInstanceOf(NotReadyError);
  expect(String(error)).toMatch(/usher-7d9-x on node n1/);
  expect(String(error)).toMatch(new RegExp(`kubectl delete pod -n ${NAMESPACE} usher-7d9-x --force`));
});

/** Lets the clock run until it has come about; the server's own round trips are real. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  let over = false;
  const end = () => {
    over = true;
  };
  promise.then(end, end);
  while (!over) {
    await vi.advanceTimersByTimeAsync(500);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return promise;
}

test("a refusal ends it, and says what was refused", async () => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "DELETE" && path.endsWith("/services/usher");
  const { removals } = await plan(cluster);
  await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(
    /deleting Service usher-system\/usher: .* 403/,
  );
  // From here on nothing in the cluster waits for usher, and the rest can be taken out by another try.
  expect(cluster.written.slice(0, 3).join()).toMatch(/registration.*Mutating.*Validating/);
});
