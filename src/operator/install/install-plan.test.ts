import { describe, expect, test } from "vitest";
import {
  installedObjects,
  POLICIES,
  SEATING,
  TestInstallation,
} from "../../../test/support/operator/installation.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { describeObject } from "./apply.ts";
import { type PlanOptions, planInstall } from "./install-plan.ts";

const WANTED = installedObjects();
const CRD = "CustomResourceDefinition seatings.test.usher.dev";

function wanted(what: string): JsonObject {
  const found = WANTED.find((object) => describeObject(object) === what);
  if (found === undefined) throw new Error(`an installation has no ${what}`);
  return found;
}

/** The same object as another owner would have created it. */
function otherOwners(what: string): JsonObject {
  const object = wanted(what);
  const name = stringAt(object, "metadata", "name") ?? "";
  const namespace = stringAt(object, "metadata", "namespace");
  const labels = { "app.kubernetes.io/name": "kupid" };
  return { ...object, metadata: { name, labels, ...(namespace === undefined ? {} : { namespace }) } };
}

async function planned(test: TestInstallation, options: PlanOptions = {}) {
  const plan = await planInstall(test.objects, WANTED, [SEATING], options);
  const of = (what: string) => plan.objects.find(({ object }) => describeObject(object) === what);
  return { plan, of };
}

describe("a plan", () => {
  test("creates everything in a cluster without usher, in order, and writes nothing itself", async () => {
    const cluster = new TestInstallation();
    const { plan, of } = await planned(cluster);
    expect(plan.objects.map(({ object }) => object)).toEqual(WANTED);
    expect(new Set(plan.objects.map(({ change }) => change))).toEqual(new Set(["create"]));
    expect(plan).toMatchObject({ findings: [], conflicts: [] });
    for (const kind of ["Mutating", "Validating"])
      expect(of(`${kind}WebhookConfiguration usher`)).toMatchObject({
        byUsher: true,
        note: "by usher, once it is ready",
      });
    expect(cluster.written).toEqual([]);
  });

  test("has the namespace before its objects, and CRDs and permissions before workloads", async () => {
    const order = WANTED.map((object) => stringAt(object, "kind"));
    const precedes = (one: string, other: string) =>
      expect(order.lastIndexOf(one), `${one} before ${other}`).toBeLessThan(order.indexOf(other));
    precedes("Namespace", "ServiceAccount");
    precedes("CustomResourceDefinition", "Deployment");
    precedes("ClusterRoleBinding", "Deployment");
    precedes("ServiceAccount", "Deployment");
    precedes("ConfigMap", "Deployment");
    precedes("Deployment", "MutatingWebhookConfiguration");
    precedes("Deployment", "ValidatingWebhookConfiguration");
  });

  test("keeps objects that are as desired, and updates others", async () => {
    const cluster = new TestInstallation();
    for (const object of WANTED) cluster.have(object);
    const deployment = wanted("Deployment usher-system/usher");
    cluster.have({ ...deployment, spec: { replicas: 1 } });
    const { plan, of } = await planned(cluster);
    expect(of("Deployment usher-system/usher")).toMatchObject({ change: "update" });
    const others = plan.objects.filter(({ object }) => object !== deployment);
    expect(new Set(others.map(({ change }) => change))).toEqual(new Set(["unchanged"]));
    expect(of("MutatingWebhookConfiguration usher")?.note).toBe("reconciled by usher");
    expect(cluster.written).toEqual([]);
  });

  test.each<[string, PlanOptions, object, readonly string[]]>([
    ["stops", {}, { change: "conflict", note: "belongs to kupid" }, [CRD]],
    ["is left", { conflicts: "leave" }, { change: "conflict", note: "belongs to kupid" }, []],
    ["is adopted", { conflicts: "take over" }, { change: "update", note: "adopted from kupid" }, []],
  ])("an object of another owner %s", async (_, options, expected, stopping) => {
    const cluster = new TestInstallation();
    cluster.have(otherOwners(CRD));
    const { plan, of } = await planned(cluster, options);
    expect(of(CRD)).toMatchObject(expected);
    expect(plan.conflicts.map(({ object }) => describeObject(object))).toEqual(stopping);
    expect(plan.findings.join()).toMatch(/seatings\.test\.usher\.dev/);
    expect(cluster.written).toEqual([]);
  });

  test("a CRD that is declared as never taken over is used unchanged, with any option", async () => {
    const [kind] = SEATING.kinds;
    if (kind === undefined) throw new Error("no kind");
    const modules = [{ ...SEATING, kinds: [{ ...kind, takeOver: "never" as const }] }];
    for (const options of [{}, { conflicts: "take over" }, { conflicts: "leave" }] as const) {
      const cluster = new TestInstallation();
      cluster.have(otherOwners(CRD));
      const plan = await planInstall(cluster.objects, WANTED, modules, options);
      expect(plan.conflicts).toEqual([]);
      const one = plan.objects.find(({ object }) => describeObject(object) === CRD);
      expect(one).toMatchObject({ change: "unchanged", note: "belongs to kupid; used as it is" });
      expect(plan.findings.join()).toMatch(/CustomResourceDefinition seatings.* belongs to kupid/);
    }
  });

  test.each([
    ["OLM", { "operators.coreos.com/limits.operators": "" }],
    ["OLM", { "olm.managed": "true" }],
    ["seats-operator", { "usher.dev/operator": "seats-operator" }],
  ])("a CRD that %s keeps is used unchanged, even if usher wrote it once", async (keeper, labels) => {
    const cluster = new TestInstallation();
    const crd = WANTED.find((object) => stringAt(object, "kind") === "CustomResourceDefinition") ?? {};
    const metadata = crd["metadata"] as JsonObject;
    const own = metadata["labels"] as JsonObject;
    cluster.have({ ...crd, metadata: { ...metadata, labels: { ...own, ...labels } } });
    for (const options of [{}, { conflicts: "take over" as const }]) {
      const { objects, conflicts, refusals } = await planInstall(cluster.objects, WANTED, [SEATING], options);
      const one = objects.find(({ object }) => object === crd);
      expect(one).toMatchObject({ change: "unchanged", note: `belongs to ${keeper}; used as it is` });
      expect([...conflicts, ...refusals]).toEqual([]);
    }
  });

  test("a webhook configuration of another owner is a conflict like any other", async () => {
    const cluster = new TestInstallation();
    cluster.have(otherOwners("MutatingWebhookConfiguration usher"));
    const { plan } = await planned(cluster);
    expect(plan.conflicts.map(({ object }) => describeObject(object))).toEqual([
      "MutatingWebhookConfiguration usher",
    ]);
  });

  test("an existing namespace keeps its owner, and does not block", async () => {
    const cluster = new TestInstallation();
    cluster.have(otherOwners("Namespace usher-system"));
    const { plan, of } = await planned(cluster);
    expect(of("Namespace usher-system")).toMatchObject({
      change: "unchanged",
      note: "existed before usher",
    });
    expect(plan.conflicts).toEqual([]);
  });

  const HELM = {
    labels: { "app.kubernetes.io/name": "usher", "app.kubernetes.io/managed-by": "Helm" },
    annotations: { "meta.helm.sh/release-name": "door", "meta.helm.sh/release-namespace": "ops" },
  };

  const GARDENER = {
    labels: { "app.kubernetes.io/name": "usher", "resources.gardener.cloud/managed-by": "gardener" },
    annotations: { "resources.gardener.cloud/origin": "garden/usher-x" },
  };

  function installedBy(own: JsonObject): TestInstallation {
    const cluster = new TestInstallation();
    for (const object of WANTED) {
      // Managers label neither of these.
      const plain = /^(CustomResource|.*Webhook)/.test(String(object["kind"]));
      const marks = plain ? {} : own;
      cluster.have({ ...object, metadata: { ...(object["metadata"] as JsonObject), ...marks } });
    }
    return cluster;
  }

  test.each<PlanOptions>([{}, { conflicts: "leave" }, { downgrade: true }])(
    "an installation by Helm is refused with its release and the right command: %j",
    async (options) => {
      const cluster = installedBy(HELM);
      const { plan, of } = await planned(cluster, options);
      expect(plan.refusals).toHaveLength(1);
      expect(plan.refusals[0]).toMatch(
        /^\d+ objects, such as ServiceAccount usher-system\/usher, are managed by the Helm release door in namespace ops\n.*helm upgrade door CHART -n ops\n.*usher install --take-over\n.*if the Helm release door in namespace ops is gone: usher uninstall --force, and then install it again$/,
      );
      const note = "managed by the Helm release door in namespace ops";
      expect(of("Deployment usher-system/usher")).toMatchObject({ change: "conflict", note });
      expect(of(CRD)).toMatchObject({ change: "unchanged" });
      expect(of("Namespace usher-system")?.change).not.toBe("conflict");
      expect(cluster.written).toEqual([]);
    },
  );

  test("an installation by Helm is taken over on request, and the removal of its record is reported", async () => {
    const cluster = installedBy(HELM);
    const { plan, of } = await planned(cluster, { conflicts: "take over" });
    expect(plan).toMatchObject({ refusals: [], conflicts: [] });
    expect(of("Deployment usher-system/usher")).toMatchObject({
      change: "update",
      note: "adopted from the Helm release door in namespace ops",
      from: { name: "Helm" },
    });
    expect(plan.findings.join()).toMatch(/kubectl delete secret -n ops -l owner=helm,name=door/);
  });

  test.each<PlanOptions>([{}, { conflicts: "take over" }])(
    "an installation by Gardener, which would delete the namespace under usher, is never taken over: %j",
    async (options) => {
      const { plan } = await planned(installedBy(GARDENER), options);
      expect(plan.refusals).toEqual([
        expect.stringMatching(
          /are managed by Gardener's ManagedResource usher-x in namespace garden\n.*change the ControllerDeployment.*\n.*remove it before, which leaves CRDs and policies: delete the ControllerRegistration/,
        ),
      ]);
    },
  );

  test("an object of a release that is not usher's is a conflict, and its release is kept", async () => {
    const cluster = new TestInstallation();
    const kupid = otherOwners(CRD);
    const metadata = { ...(kupid["metadata"] as JsonObject), annotations: HELM.annotations };
    cluster.have({ ...kupid, metadata });
    const { plan } = await planned(cluster, { conflicts: "take over" });
    expect(plan.findings.join()).not.toMatch(/kubectl delete secret/);
    expect((await planned(cluster)).plan).toMatchObject({
      refusals: [],
      conflicts: [{ change: "conflict" }],
    });
  });

  test("an API server without priority levels is reported, and gets none", async () => {
    const cluster = new TestInstallation();
    cluster.queues = false;
    const { plan, of } = await planned(cluster);
    expect(plan.findings).toEqual([expect.stringMatching(/does not serve flowcontrol/)]);
    expect(plan.objects.some(({ object }) => /^(FlowSchema|Priority)/.test(describeObject(object)))).toBe(
      false,
    );
    expect(of("Deployment usher-system/usher")).toBeDefined();
  });

  test("a predecessor is reported, once for each of its webhooks", async () => {
    const cluster = new TestInstallation();
    for (const kind of ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
      cluster.have({
        apiVersion: "admissionregistration.k8s.io/v1",
        kind,
        metadata: { name: "old-seating" },
      });
    expect((await planned(cluster)).plan.findings).toEqual([
      "MutatingWebhookConfiguration old-seating exists\n  both seat pods",
      "ValidatingWebhookConfiguration old-seating exists\n  both seat pods",
    ]);
  });

  test.each([
    [1, /^1 stored policy is not valid\n {2}Seating p-0: .*there is no such row/, false],
    [5, /^5 stored policies are/, false],
    [7, /^7 stored policies are.*\n {2}and 2 more\n/s, true],
  ])("of %i invalid stored policies some are named", async (count, message, more) => {
    const cluster = new TestInstallation();
    cluster.server.put(`${POLICIES}/good`, { spec: { row: "a" } });
    for (let i = 0; i < count; i++) cluster.server.put(`${POLICIES}/p-${i}`, { spec: { row: "none" } });
    const [finding = ""] = (await planned(cluster)).plan.findings;
    expect(finding).toMatch(message);
    expect(finding).not.toContain("good");
    expect(finding.includes("p-5")).toBe(false);
    expect(finding.includes("more")).toBe(more);
  });

  test("an object that may not be read is an error that names it", async () => {
    const cluster = new TestInstallation();
    cluster.refusing = (_, path) => path.endsWith("/deployments/usher");
    await expect(planned(cluster)).rejects.toThrow(/reading Deployment usher-system\/usher: .* 403/);
  });

  test.each(["ClusterRoleBinding", "MutatingWebhookConfiguration", "Deployment"])(
    "an usher in another namespace, known by its %s, is named with the remedy",
    async (kind) => {
      const cluster = new TestInstallation();
      for (const object of installedObjects("hall")) if (object["kind"] === kind) cluster.have(object);
      const { plan } = await planned(cluster, { conflicts: "take over" });
      expect(plan.refusals).toEqual([expect.stringMatching(/namespace hall .*usher uninstall -n hall/s)]);
    },
  );

  test("an usher in the same namespace is not an obstacle", async () => {
    const cluster = new TestInstallation();
    for (const object of WANTED) cluster.have(object);
    expect((await planned(cluster)).plan.refusals).toEqual([]);
  });

  const versions: readonly [string, boolean][] = [
    ["1.1.9", false],
    ["1.2.0-rc.1", false],
    ["1.2.0", false],
    ["1.2.0+b", false],
    ["1.2.1", true],
    ["2.0.0-alpha.1", true],
    ["1.3.0+b", true],
    // As an earlier usher wrote it.
    ["1.3.0_b", true],
    ["unknown", false],
  ];
  test.each(versions)("over usher version %s: refused is %s", async (version, refused) => {
    const cluster = new TestInstallation();
    for (const object of installedObjects("usher-system", version)) cluster.have(object);
    const { plan } = await planned(cluster);
    expect(plan.refusals).toEqual(
      refused ? [expect.stringMatching(/by usher [12]\.[^,]*, and this is 1\.2\.0.*--allow-downgrade/s)] : [],
    );
    expect((await planned(cluster, { downgrade: true })).plan.refusals).toEqual([]);
  });

  test("a CRD of a newer usher is enough to refuse, and is named", async () => {
    const cluster = new TestInstallation();
    for (const object of installedObjects("usher-system", "1.4.0"))
      if (describeObject(object) === CRD) cluster.have(object);
    expect((await planned(cluster)).plan.refusals).toEqual([
      expect.stringMatching(/seatings\.test\.usher\.dev .*by usher 1\.4\.0, and this is 1\.2\.0/),
    ]);
  });

  test("the version of another owner's object does not count", async () => {
    const cluster = new TestInstallation();
    const { metadata, ...rest } = otherOwners(CRD);
    const labels = { "app.kubernetes.io/name": "kupid", "app.kubernetes.io/version": "9.9.9" };
    cluster.have({ ...rest, metadata: { ...(metadata as JsonObject), labels } });
    expect((await planned(cluster, { conflicts: "take over" })).plan.refusals).toEqual([]);
  });
});
