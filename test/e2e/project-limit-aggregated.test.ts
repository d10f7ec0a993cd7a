// The aggregated transport on a real control plane: kube-apiserver calls the operand over its own aggregation layer. A
// stand-in for OLM installs the operator with exactly the bundle's permissions; ProjectRequest is a CRD, and a stand-in
// creates the Namespaces.
import { expect, test } from "vitest";
import { bundleOf } from "../../deploy/generate/olm/bundle.ts";
import { at, type Json, listAt, stringAt } from "../../src/core/json.ts";
import { OPERAND } from "../../src/modules/project-limit/operand-names.ts";
import { operandRoles } from "../../src/modules/project-limit/operator/operand-rights.ts";
import { declaredRights, rightsOf } from "../cluster/access/rules.ts";
import { eventually } from "../cluster/access/wait.ts";
import { Authority } from "../cluster/certificates/authority.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { review } from "../support/admission/example-cluster.ts";
import { call } from "../support/admission/front-proxy.ts";
import { installBundle } from "./fixtures/olm.ts";
import { OperatorStage, PATHS } from "./fixtures/operator.ts";
import { ledgerOf, tenant } from "./fixtures/project-limits.ts";

const API_SERVICE = `/apis/apiregistration.k8s.io/v1/apiservices/${OPERAND.apiService}`;
const READER = `/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/${OPERAND.name}`;
const REVIEWS = `/apis/${OPERAND.apiGroup}/v1/${OPERAND.reviews}`;

const PROXY = ["get", "list", "watch"].map((verb) => `${verb} configmaps extension-apiserver-authentication`);

const SPEC = {
  transport: "Aggregated",
  certificates: "Own",
  limits: [3, 10].map((max) => ({ groups: [`limit-${max}`], maxProjects: max })),
};

/** A review that would consume another user's quota. */
function forged(user: string): string {
  const object = {
    apiVersion: "project.openshift.io/v1",
    kind: "ProjectRequest",
    metadata: { name: "stolen" },
  };
  const group = "project.openshift.io";
  return JSON.stringify(
    review({
      kind: { group, version: "v1", kind: "ProjectRequest" },
      resource: { group, version: "v1", resource: "projectrequests" },
      name: "stolen",
      namespace: "",
      userInfo: { username: user, groups: ["limit-10"] },
      object,
    }),
  );
}

describeOwnCluster("project limits over the aggregation layer", {}, (cluster) => {
  const stage = new OperatorStage(cluster);
  let condition = "";
  /** The operand's permissions in its namespace, and beyond that in kube-system. */
  const operandRights = async () => {
    const [own, everywhere, system] = await Promise.all(
      [OPERAND.namespace, "default", "kube-system"].map((one) => rightsOf(cluster(), OPERAND, one)),
    );
    return [own, system?.filter((right) => !everywhere?.includes(right))];
  };
  const service = async () =>
    at(listAt(await stage.read(PATHS.webhook), "webhooks")[0], "clientConfig", "service", "name");

  test("is called through the API server itself, with its own authentication", async () => {
    await stage.prepare();
    await stage.controlPlane("c1", "c2");
    const image = `registry.example.com/usher@sha256:${"1".repeat(64)}`;
    condition = await installBundle(cluster(), bundleOf({ version: "0.1.0", image }));
    await stage.create(SPEC);
    await stage.until("Available", "True Ready");
    const [entry] = listAt(await stage.read(PATHS.webhook), "webhooks");
    expect(at(entry, "clientConfig")).toEqual({
      service: { namespace: "default", name: "kubernetes", port: 443, path: REVIEWS },
      caBundle: Buffer.from(cluster().info.ca.certificate).toString("base64"),
    });
    expect(await stage.requests(tenant("ann", 3), 5)).toEqual({ "201": 3, "403 USHER-Q01": 2 });
    await stage.until("Progressing", "False AsDesired");
    await eventually("Upgradeable", async () => {
      const [found] = listAt(await stage.read(condition), "spec", "conditions");
      return at(found, "type") === "Upgradeable" && at(found, "status") === "True";
    });
  }, 120_000);

  test("the operand may review access, and reads the front proxy's configuration, by name", async () => {
    expect(await operandRights()).toEqual([declaredRights(operandRoles(true)), PROXY]);
  });

  test("kubectl and OpenAPI know the resource, namespaces are deleted, and edits are reverted", async () => {
    const listed = await cluster().kubectl([
      "api-resources",
      `--api-group=${OPERAND.apiGroup}`,
      "-o",
      "wide",
      "--no-headers",
    ]);
    expect(listed.stdout.trim().split(/\s{2,}/)).toMatchObject([
      OPERAND.reviews,
      `${OPERAND.apiGroup}/v1`,
      "false",
      "AdmissionReview",
      "create",
    ]);
    const namespace = "/api/v1/namespaces/short-lived";
    await cluster().call("POST", "/api/v1/namespaces", { metadata: { name: "short-lived" } });
    await cluster().call("DELETE", namespace);
    const documents = ["/openapi/v2", `/openapi/v3/apis/${OPERAND.apiGroup}/v1`];
    const before = await stage.read(API_SERVICE);
    await cluster().call("PATCH", API_SERVICE, { spec: { versionPriority: 99, groupPriorityMinimum: 99 } });
    await cluster().call("DELETE", READER);
    await Promise.all([
      eventually("drift repaired", async () => {
        const [now, reader] = [await stage.read(API_SERVICE), await stage.read(READER)];
        return JSON.stringify(at(now, "spec")) === JSON.stringify(at(before, "spec")) && reader !== undefined;
      }),
      ...documents.map((path) =>
        eventually(path, async () => at(await stage.read(path), "paths", REVIEWS, "post") !== undefined),
      ),
      eventually("the namespace to be gone", async () => (await stage.read(namespace)) === undefined),
    ]);
  }, 90_000);

  test("forged headers of the front proxy are refused, at the pod and at the API server", async () => {
    const pods = listAt(
      await stage.read(
        `${PATHS.pods}?labelSelector=${encodeURIComponent(`${Object.keys(OPERAND.podLabels)[0]}=true`)}`,
      ),
      "items",
    );
    const address = stringAt(pods[0], "status", "podIP") ?? "";
    const pod = `https://127.0.0.1:${await cluster().localPort(address, OPERAND.port)}`;
    const clients = await Authority.load(cluster().info.ca);
    const headers = [
      "X-Remote-User",
      "system:apiserver",
      "X-Remote-Group",
      "system:masters",
      "Content-Type",
      "application/json",
    ];
    const send = (server: string, client?: Awaited<ReturnType<Authority["issue"]>>, more = headers) =>
      call({
        url: `${server}${REVIEWS}`,
        ca: cluster().info.ca.certificate,
        client,
        method: "POST",
        headers: more,
        body: forged("victim"),
        options: { rejectUnauthorized: server !== pod },
      });
    const proxy = await clients.issue({ user: "front-proxy-client", groups: ["system:masters"] });
    expect((await send(pod)).status).toBe(401);
    expect((await send(pod, proxy)).status, "of the authority for users").toBe(401);
    const mallory = await clients.issue({ user: "mallory" });
    expect((await send(cluster().server, mallory)).status).toBe(403);
    expect((await send(cluster().server)).status).toBeGreaterThanOrEqual(401);
    expect(await ledgerOf(cluster(), "victim")).toEqual([]);
    const admin = await clients.issue({ user: "admin", groups: ["system:masters"] });
    const allowed = await send(cluster().server, admin, ["Content-Type", "application/json"]);
    expect(at(JSON.parse(allowed.body) as Json, "response", "allowed"), "who may create reviews").toBe(true);
    expect(await ledgerOf(cluster(), "victim")).toEqual(["stolen"]);
  }, 60_000);

  test("back in transport Direct: no request fails, and nothing is left of the API", async () => {
    const asked = stage.requests(tenant("cas", 10), 60, 3);
    await stage.change({ transport: "Direct" });
    await eventually("asked directly", async () => (await service()) === OPERAND.service);
    expect(await asked).toEqual({ "201": 10, "403 USHER-Q01": 50 });
    await eventually("no APIService", async () =>
      [await stage.read(API_SERVICE), await stage.read(READER)].every((one) => one === undefined),
    );
    const direct = JSON.stringify([declaredRights(operandRoles(false)), []]);
    await eventually("no further permission", async () => JSON.stringify(await operandRights()) === direct);
  }, 120_000);
});
