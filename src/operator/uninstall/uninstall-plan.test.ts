import { expect, test } from "vitest";
import {
  installedObjects,
  POLICIES,
  SEATING,
  TestInstallation,
} from "../../../test/support/operator/installation.ts";
import {
  CRD,
  INSTALLED,
  installed,
  NAMESPACE,
  named,
  plan,
} from "../../../test/support/operator/uninstall.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";
import { describeObject } from "../install/apply.ts";
import { carryOutRemovals } from "./uninstall.ts";
import { forcedRefusals, planUninstall, uninstallRefusals } from "./uninstall-plan.ts";

test("the order is: the permission to register webhooks, the webhooks, the workloads; the namespace last", async () => {
  const { going } = await plan(installed());
  expect(going.slice(0, 5)).toEqual([
    "ClusterRoleBinding usher-registration",
    "ClusterRole usher-installation",
    "MutatingWebhookConfiguration usher",
    "ValidatingWebhookConfiguration usher",
    `Deployment ${NAMESPACE}/usher`,
  ]);
  expect(going.at(-1)).toBe(`Namespace ${NAMESPACE}`);
  const order = (what: string) => going.findLastIndex((one) => one.startsWith(`${what} `));
  expect(order("Service")).toBeLessThan(order("ClusterRole"));
  expect(order("RoleBinding")).toBeLessThan(order("ServiceAccount"));
  expect(new Set(going).size).toBe(going.length);
  expect(going).toHaveLength(INSTALLED.length - 1);
});

test.each([
  [0, "0 policies"],
  [1, "1 policy"],
  [3, "3 policies"],
])("CRDs with %i policies stay by default, and the plan has their number", async (count, held) => {
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
])("%s of another owner stays, with any option", async (what) => {
  const cluster = installed();
  const object = INSTALLED.find((one) => describeObject(one) === what) ?? {};
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const managedFields = [{ manager: "kubectl", operation: "Apply" }];
  cluster.have({ ...object, metadata: { ...metadata, labels: {}, managedFields } });
  const { of, removals } = await plan(cluster, true);
  expect(of(what)).toMatchObject({ change: "stays", note: "belongs to field manager kubectl" });
  await carryOutRemovals(cluster.objects, removals, () => undefined);
  expect(cluster.has(object)).toBe(true);
});

test("policies in the namespace keep it, unless they are deleted with their CRD", async () => {
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

test("informational reads do not block: policies that may not be counted are an unknown number", async () => {
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
])("runtime objects that can't be read (%s) are reported, and do not block", async (path, what) => {
  const cluster = installed();
  cluster.refusing = (method, asked) => method === "GET" && asked.endsWith(`/${NAMESPACE}/${path}`);
  const { of, going } = await plan(cluster);
  expect(of(what)).toMatchObject({ change: "stays", note: expect.stringMatching(/may exist: .* 403/) });
  expect(going.slice(0, 4).join()).toMatch(/registration.*Mutating.*Validating/);
});

test("if the API server can't tell whether it has priority levels they are left, and the webhooks are deleted", async () => {
  const cluster = installed();
  cluster.refusing = (_, path) => path === "/apis/flowcontrol.apiserver.k8s.io/v1";
  const { of, going } = await plan(cluster);
  expect(of("FlowSchema usher")).toMatchObject({
    change: "stays",
    note: expect.stringMatching(/may exist: .* 403/),
  });
  expect(going).toContain("MutatingWebhookConfiguration usher");
});

test("objects that another usher needs stay; those of only this one are deleted", async () => {
  const cluster = installed();
  // The permissions were moved to a second one, the webhooks still name the first.
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

test("objects that usher created at run time are deleted before the namespace, and none with a similar name", async () => {
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

test("without usher nothing is deleted; with half of it, that half", async () => {
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

const MANAGED: Module = {
  ...SEATING,
  managed: {
    why: "",
    resources: [
      {
        group: "coordination.k8s.io",
        version: "v1",
        resource: "leases",
        kind: "Lease",
        scope: "Namespaced",
      },
    ],
    desired: () => [],
  },
};

function managedLease(name: string, labels: JsonObject = OWN_LABELS): JsonObject {
  const object = named("coordination.k8s.io/v1", "Lease", name);
  const metadata = {
    ...(object["metadata"] as JsonObject),
    labels: { ...labels, "usher.dev/module": "seating" },
  };
  return { ...object, metadata };
}

test("objects that modules manage are deleted before the webhooks, once usher can't create them again", async () => {
  const cluster = installed();
  cluster.have(managedLease("fallback"));
  cluster.have(managedLease("other", { "app.kubernetes.io/managed-by": "usher" }));
  const removals = await planUninstall(cluster.objects, INSTALLED, [MANAGED], { customResources: false });
  const going = removals.filter(({ change }) => change === "delete").map(({ live }) => describeObject(live));
  expect(going.slice(0, 4)).toEqual([
    "ClusterRoleBinding usher-registration",
    "ClusterRole usher-installation",
    `Lease ${NAMESPACE}/fallback`,
    "MutatingWebhookConfiguration usher",
  ]);
  expect(going).not.toContain(`Lease ${NAMESPACE}/other`);
});

test("managed objects that can't be listed are reported, and do not block", async () => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "GET" && path === "/apis/coordination.k8s.io/v1/leases";
  const removals = await planUninstall(cluster.objects, INSTALLED, [MANAGED], { customResources: false });
  expect(removals.find(({ live }) => describeObject(live) === "Lease of module seating")).toMatchObject({
    change: "stays",
    note: expect.stringMatching(/may exist: .* 403/),
  });
  expect(removals.map(({ live }) => describeObject(live))).toContain("MutatingWebhookConfiguration usher");
});

test("a CRD that the configuration does not register now is treated like the others", async () => {
  const cluster = installed();
  const others = INSTALLED.filter((object) => describeObject(object) !== CRD);
  const removals = await planUninstall(cluster.objects, others, [SEATING], { customResources: true });
  expect(removals.find(({ live }) => describeObject(live) === CRD)).toMatchObject({ change: "delete" });
});

test("objects of another manager are refused with the command that removes them; another's namespace is not a reason, and stays", async () => {
  const cluster = installed();
  const flux = {
    "kustomize.toolkit.fluxcd.io/name": "platform",
    "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
  };
  const marked = (what: string) => {
    const object = INSTALLED.find((one) => describeObject(one) === what) ?? {};
    const metadata = object["metadata"] as JsonObject;
    cluster.have({
      ...object,
      metadata: { ...metadata, labels: { ...(metadata["labels"] as JsonObject), ...flux } },
    });
  };
  expect(uninstallRefusals((await plan(cluster)).removals)).toEqual([]);
  marked(`Namespace ${NAMESPACE}`);
  const { removals, of } = await plan(cluster);
  expect(of(`Namespace ${NAMESPACE}`)).toMatchObject({
    change: "stays",
    note: expect.stringMatching(/managed by Flux/),
  });
  expect(uninstallRefusals(removals)).toEqual([]);
  marked(CRD);
  expect(uninstallRefusals((await plan(cluster)).removals)).toEqual([]);
  marked(`Deployment ${NAMESPACE}/usher`);
  expect(uninstallRefusals((await plan(cluster)).removals)).toEqual([
    expect.stringMatching(
      /^Deployment usher-system\/usher is managed by Flux's Kustomization platform in namespace flux-system\n.*: flux delete kustomization platform -n flux-system\n/,
    ),
  ]);
});

test("with force only a Helm release that is still recorded is refused, and leftovers of a vanished one are deleted", async () => {
  const cluster = installed();
  const what = `Deployment ${NAMESPACE}/usher`;
  const object = INSTALLED.find((one) => describeObject(one) === what) ?? {};
  const metadata = object["metadata"] as JsonObject;
  const labels = { ...(metadata["labels"] as JsonObject), "app.kubernetes.io/managed-by": "Helm" };
  const annotations = { "meta.helm.sh/release-name": "usher", "meta.helm.sh/release-namespace": NAMESPACE };
  cluster.have({ ...object, metadata: { ...metadata, labels, annotations } });
  const { removals } = await plan(cluster);
  const release = `the Helm release usher in namespace ${NAMESPACE}`;
  expect(uninstallRefusals(removals)).toEqual([
    expect.stringContaining(`if ${release} is gone: usher uninstall --force`),
  ]);
  expect(await forcedRefusals(cluster.objects, removals)).toEqual([]);
  const record = named("v1", "Secret", "sh.helm.release.v1.usher.v1");
  const marks = { owner: "helm", name: "usher" };
  cluster.have({ ...record, metadata: { ...(record["metadata"] as JsonObject), labels: marks } });
  expect(await forcedRefusals(cluster.objects, removals)).toEqual([
    `${what} is managed by ${release}\n  it is still there; to remove this installation: helm uninstall usher -n ${NAMESPACE}`,
  ]);
});
