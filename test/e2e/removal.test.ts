// However usher is removed, its webhooks are deleted: by the real garbage collector, with an API server that enforces
// permissions on owner references.
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { anchor } from "../../src/core/registration/managed-objects.ts";
import { OWN_LABELS } from "../../src/core/registration/names.ts";
import { program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { runUsherForReal } from "../cluster/run-usher.ts";
import { install, REPLICAS } from "./fixtures/install.ts";
import { CONFIGURATIONS } from "./fixtures/placed-pods.ts";

const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const ANCHOR = `${ROLES}/usher-installation`;
const NAMESPACE = "/api/v1/namespaces/usher-system";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/usher-system/leases/usher";

/** The documented time, most of which is not needed. */
const GONE_MS = 60_000;
/** More than two rounds of a leader. */
const ROUNDS_MS = 7_000;

const FLAGS = ["--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"];

describeOwnCluster("a removed usher", { flags: { "kube-apiserver": FLAGS } }, (cluster) => {
  const exists = async (path: string) => (await cluster().request("GET", path)).status === 200;
  const owners = async (path: string) => {
    const live = await cluster().call("GET", path);
    return listAt(live, "metadata", "ownerReferences").map(
      (one) => `${stringAt(one, "kind")} ${stringAt(one, "name")}`,
    );
  };
  const gone = (what: string) =>
    eventually(`no webhooks once ${what}`, async () => !(await anyOf(CONFIGURATIONS)), GONE_MS);
  const anyOf = async (paths: readonly string[]) => (await Promise.all(paths.map(exists))).includes(true);
  const podsGone = () =>
    eventually(
      "no replicas",
      async () => listAt(await cluster().call("GET", REPLICAS), "items").length === 0,
    );

  beforeAll(async () => {
    await cluster().createNode("n1");
    await install(cluster());
  });

  test("the anchor owns the webhooks, and the namespace owns the anchor", async () => {
    for (const path of CONFIGURATIONS) expect(await owners(path)).toEqual(["ClusterRole usher-installation"]);
    expect(await owners(ANCHOR)).toEqual(["Namespace usher-system"]);
    const refused = cluster()
      .auditLog()
      .filter(
        ({ user, responseStatus }) =>
          user.username === "system:serviceaccount:usher-system:usher" && responseStatus?.code === 403,
      );
    expect(refused).toEqual([]);
  });

  test("the Deployment owns certificate and Lease, which go with it", async () => {
    for (const path of [`${NAMESPACE}/secrets/usher-certificates`, LEASE])
      expect(await owners(path)).toEqual(["Deployment usher"]);
  });

  test("webhooks of an older version, which the namespace owns, move to the anchor", async () => {
    const { metadata } = (await cluster().call("GET", NAMESPACE)) as {
      metadata: { name: string; uid: string };
    };
    const owner = { apiVersion: "v1", kind: "Namespace", name: metadata.name, uid: metadata.uid };
    for (const path of CONFIGURATIONS)
      await cluster().call("PATCH", path, [{ op: "add", path: "/metadata/ownerReferences", value: [owner] }]);
    for (const path of CONFIGURATIONS)
      await eventually(
        "the anchor's",
        async () => (await owners(path)).join() === "ClusterRole usher-installation",
      );
  });

  test("an anchor of Argo CD, which would not delete it with an owner, has none", async () => {
    const annotations = {
      "argocd.argoproj.io/tracking-id": "usher:rbac.authorization.k8s.io/ClusterRole:/usher-installation",
    };
    await cluster().call("PATCH", ANCHOR, { metadata: { annotations } });
    await eventually("no owner", async () => (await owners(ANCHOR)).length === 0);
  });

  test("deleting the anchor deletes the webhooks, and replicas that may create them do not", async () => {
    await cluster().call("DELETE", ANCHOR);
    await gone("the anchor is deleted");
    await pause(ROUNDS_MS);
    expect(await anyOf(CONFIGURATIONS)).toBe(false);
    expect(listAt(await cluster().call("GET", REPLICAS), "items")).toHaveLength(2);
    // They are restored with the anchor.
    await cluster().call("POST", ROLES, anchor());
    await eventually("webhooks again", () => anyOf(CONFIGURATIONS));
  });

  test("deleting all objects at once, as by a prune, leaves no webhooks", async () => {
    const printed = await program(["manifests", "-o", "json"]);
    const objects = (JSON.parse(printed.out) as { items: JsonObject[] }).items.filter(
      ({ kind }) => !/^(Namespace|CustomResourceDefinition|.*WebhookConfiguration)$/.test(String(kind)),
    );
    expect(objects.map(({ metadata }) => stringAt(metadata, "name"))).toContain("usher-installation");
    await Promise.all(objects.map(async (object) => cluster().call("DELETE", await pathOf(object))));
    await gone("everything is deleted");
    await podsGone();
    expect(await anyOf(CONFIGURATIONS)).toBe(false);
    // No private key stays behind in a namespace that is kept.
    const left = [`${NAMESPACE}/secrets/usher-certificates`, LEASE];
    await eventually("no certificate and no Lease", async () => !(await anyOf(left)), GONE_MS);
  });

  test("a namespace deleted under running replicas leaves no webhooks, also with an anchor that it does not own", async () => {
    // As `npm run cluster` prints it: without a label for the pods.
    const [, ...words] = (await runUsherForReal(cluster())).split(" ");
    const again = await program([...words, "--kubeconfig", await cluster().kubeconfig()]);
    expect(again, again.err).toMatchObject({ code: 0 });
    const labels = { "argocd.argoproj.io/instance": "usher" };
    await cluster().call("PATCH", ANCHOR, { metadata: { labels } });
    await eventually("no owner", async () => (await owners(ANCHOR)).length === 0);
    await cluster().call("DELETE", NAMESPACE);
    await gone("the namespace is being deleted");
    expect(await exists(ANCHOR)).toBe(false);
    await podsGone();
    expect(await anyOf(CONFIGURATIONS)).toBe(false);
  });

  test("a namespace deleted without any replica leaves no webhooks, by the garbage collector alone", async () => {
    const made = async (path: string, object: JsonObject, owner?: JsonObject) => {
      const { apiVersion, kind, metadata } = object as {
        apiVersion: string;
        kind: string;
        metadata: JsonObject;
      };
      const ownerReferences = owner === undefined ? [] : [owner];
      const body = { ...object, metadata: { ...metadata, labels: OWN_LABELS, ownerReferences } };
      const live = await cluster().call("POST", path, body);
      const name = stringAt(live, "metadata", "name") ?? "";
      return { apiVersion, kind, name, uid: stringAt(live, "metadata", "uid") ?? "" };
    };
    const home = { apiVersion: "v1", kind: "Namespace", metadata: { name: "lobby" } };
    const held = await made(ROLES, anchor(), await made("/api/v1/namespaces", home));
    for (const path of CONFIGURATIONS) {
      const kind = path.includes("/mutating")
        ? "MutatingWebhookConfiguration"
        : "ValidatingWebhookConfiguration";
      const apiVersion = "admissionregistration.k8s.io/v1";
      await made(path.slice(0, -"/usher".length), { apiVersion, kind, metadata: { name: "usher" } }, held);
    }
    await cluster().call("DELETE", "/api/v1/namespaces/lobby");
    await gone("the namespace is deleted");
    expect(await exists(ANCHOR)).toBe(false);
  });

  test("leftovers of a Helm release that was deleted with its namespace are removed only by usher uninstall --force", async () => {
    const labels = { ...OWN_LABELS, "app.kubernetes.io/managed-by": "Helm" };
    const annotations = {
      "meta.helm.sh/release-name": "usher",
      "meta.helm.sh/release-namespace": "usher-system",
    };
    const metadata = { name: "usher", labels, annotations };
    const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" };
    const subjects = [{ kind: "ServiceAccount", name: "usher", namespace: "usher-system" }];
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "usher" };
    await eventually("the namespace gone", async () => !(await exists(NAMESPACE)));
    await cluster().apply(
      { ...role, metadata, rules: [] },
      { ...role, kind: "ClusterRoleBinding", metadata, subjects, roleRef },
    );
    const uninstall = async (...flags: string[]) =>
      program(["uninstall", "--kubeconfig", await cluster().kubeconfig(), ...flags]);
    const refused = await uninstall();
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toContain(
      "if the Helm release usher in namespace usher-system is gone: usher uninstall --force",
    );
    expect(await uninstall("--force")).toMatchObject({ code: 0 });
    expect(await exists(`${ROLES}/usher`)).toBe(false);
  });

  /** By discovery, as kubectl finds it. */
  async function pathOf({ apiVersion, kind, metadata }: JsonObject): Promise<string> {
    const root = String(apiVersion).includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const served = listAt(await cluster().call("GET", root), "resources").find(
      (one) => stringAt(one, "kind") === kind && stringAt(one, "name")?.includes("/") === false,
    );
    const namespace = stringAt(metadata, "namespace");
    const scope = namespace === undefined ? "" : `/namespaces/${namespace}`;
    return `${root}${scope}/${stringAt(served, "name")}/${stringAt(metadata, "name")}`;
  }
});
