import { expect, test } from "vitest";
import { stringAt } from "../../src/core/json.ts";
import { nodeIdentity } from "./access/identity.ts";
import { eventually } from "./access/wait.ts";
import { describeCluster, testNamespace } from "./describe.ts";

const BOB = { user: "bob", groups: ["developers"] };

describeCluster("identities", (cluster) => {
  const namespace = testNamespace(cluster);

  test("the API server takes user and groups from the certificate", async () => {
    const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const seen = await cluster().call(
      "POST",
      "/apis/authentication.k8s.io/v1/selfsubjectreviews",
      review,
      BOB,
    );
    expect(seen).toMatchObject({
      status: { userInfo: { username: "bob", groups: ["developers", "system:authenticated"] } },
    });
  });

  test("RBAC forbids a user without permissions, and the audit log has an entry", async () => {
    const who = { user: `bob-${namespace()}` };
    const refused = await cluster().kubectl(["-n", namespace(), "create", "configmap", "x"], { as: who });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(`User "${who.user}" cannot create resource "configmaps"`);
    const entry = await eventually("the audit entry", () =>
      cluster()
        .auditLog()
        .find(({ user, verb }) => user.username === who.user && verb === "create"),
    );
    expect(entry).toMatchObject({
      objectRef: { resource: "configmaps", namespace: namespace() },
      responseStatus: { code: 403 },
      annotations: { "authorization.k8s.io/decision": "forbid" },
    });
  });

  test("RBAC allows a group what it is bound to and nothing else", async () => {
    const bind = ["create", "rolebinding", "edit", "--clusterrole=edit", "--group=developers"];
    expect((await cluster().kubectl(["-n", namespace(), ...bind])).code).toBe(0);
    const path = `/api/v1/namespaces/${namespace()}/configmaps`;
    const made = await eventually("the binding to take effect", async () => {
      const reply = await cluster().request("POST", path, { metadata: { generateName: "made-" } }, BOB);
      return reply.status === 201 && reply;
    });
    expect(made.status).toBe(201);
    expect((await cluster().request("GET", "/api/v1/nodes", undefined, BOB)).status).toBe(403);
  });

  test("a node may label itself, but NodeRestriction refuses restricted labels", async () => {
    await cluster().createNode("identities-n1");
    const patch = (labels: Record<string, string>) =>
      cluster().request(
        "PATCH",
        "/api/v1/nodes/identities-n1",
        { metadata: { labels } },
        nodeIdentity("identities-n1"),
      );
    expect((await patch({ "example.com/own": "yes" })).status).toBe(200);
    const refused = await patch({ "node-role.kubernetes.io/control-plane": "" });
    expect(refused.status).toBe(403);
    expect(stringAt(refused.body, "message")).toContain("is not allowed to modify labels");
  });

  test("a node may not touch another node", async () => {
    await cluster().createNode("identities-n2");
    const body = { metadata: { labels: { "example.com/own": "yes" } } };
    const refused = await cluster().request(
      "PATCH",
      "/api/v1/nodes/identities-n2",
      body,
      nodeIdentity("identities-n1"),
    );
    expect(refused.status).toBe(403);
  });
});
