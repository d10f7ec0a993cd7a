import { expect, test } from "vitest";
import { at, isObject, type JsonObject, stringAt } from "../core/json.ts";
import { describeObject } from "./apply.ts";
import { installedObjects, POLICIES, pathOf, SEATING, TestInstallation } from "./test-installation.ts";
import { carryOutRemovals, planUninstall } from "./uninstall.ts";

const INSTALLED = installedObjects();
const NAMESPACE = "usher-system";
const CRD = "CustomResourceDefinition seatings.test.usher.dev";

function named(apiVersion: string, kind: string, name: string): JsonObject {
  return { apiVersion, kind, metadata: { name, namespace: NAMESPACE } };
}

function installed(): TestInstallation {
  const cluster = new TestInstallation();
  for (const object of INSTALLED) cluster.have(object);
  return cluster;
}

async function plan(cluster: TestInstallation, customResources = false) {
  const removals = await planUninstall(cluster.objects, INSTALLED, [SEATING], { customResources });
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

const inNamespace: readonly [string, JsonObject, string | undefined][] = [
  ["a Secret of somebody", named("v1", "Secret", "database"), "Secret database"],
  ["a ConfigMap of somebody", named("v1", "ConfigMap", "settings"), "ConfigMap settings"],
  ["a Deployment of somebody", named("apps/v1", "Deployment", "web"), "Deployment web"],
  ["a Service that only begins like usher", named("v1", "Service", "usherette"), "Service usherette"],
  ["what every namespace has", named("v1", "ConfigMap", "kube-root-ca.crt"), undefined],
  ["usher's certificate", named("v1", "Secret", "usher-certificates"), undefined],
];
test.each(inNamespace)("the namespace with %s in it", async (_, object, stranger) => {
  const cluster = installed();
  cluster.have(object);
  const { of } = await plan(cluster);
  expect(of(`Namespace ${NAMESPACE}`)).toMatchObject(
    stranger === undefined
      ? { change: "delete" }
      : { change: "stays", note: `holds what is not usher's: ${stranger}` },
  );
});

test("what usher made while it ran goes before the namespace, and nothing that only sounds like it", async () => {
  const cluster = installed();
  const lease = "coordination.k8s.io/v1";
  for (const object of [
    named("v1", "Secret", "usher-certificates"),
    named("v1", "ConfigMap", "usher-tallies-usher-1"),
    named(lease, "Lease", "usher"),
    named(lease, "Lease", "usherette"),
    named("v1", "Secret", "usher-certificates-backup"),
  ])
    cluster.have(object);
  const { going } = await plan(cluster);
  expect(going.slice(-4)).toEqual([
    `Secret ${NAMESPACE}/usher-certificates`,
    `ConfigMap ${NAMESPACE}/usher-tallies-usher-1`,
    `Lease ${NAMESPACE}/usher`,
    `Namespace ${NAMESPACE}`,
  ]);
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

test("a refusal ends it, and says what was refused", async () => {
  const cluster = installed();
  cluster.refusing = (_, path) => path.endsWith("/leases");
  await expect(plan(cluster)).rejects.toThrow(/listing .*\/leases: .* 403/);
  cluster.refusing = (method, path) => method === "DELETE" && path.endsWith("/services/usher");
  const { removals } = await plan(cluster);
  await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(
    /deleting Service usher-system\/usher: .* 403/,
  );
  // From here on nothing in the cluster waits for usher, and the rest can be taken out by another try.
  expect(cluster.written.slice(0, 3).join()).toMatch(/registration.*Mutating.*Validating/);
});
