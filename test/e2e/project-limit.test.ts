// Limits of projects on a real control plane: the registered objects, every route to the requester, unaffected users,
// and behaviour while no usher answers. ProjectRequest and User are CRDs here; a stand-in creates the Namespace of a
// ProjectRequest.
import { join } from "node:path";
import { expect, test } from "vitest";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { folder, program } from "../cli/usher.ts";
import type { Reply } from "../cluster/access/client.ts";
import { ADMIN, type Identity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { install, REPLICAS } from "./fixtures/install.ts";
import { calledFor } from "./fixtures/limited-identities.ts";
import { PEER_LABEL, startForger } from "./fixtures/peer-webhook.ts";

const NAMESPACES = "/api/v1/namespaces";
const REQUESTS = "/apis/project.openshift.io/v1/projectrequests";
const LIMITS = "/apis/operator.project.openshift.io/v1/projectrequestlimits";
const USERS = "/apis/user.openshift.io/v1/users";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const HOOKS = `${VALIDATING}/usher`;
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const RBAC = "rbac.authorization.k8s.io";
const REQUESTER = "openshift.io/requester";

const ALICE: Identity = { user: "alice", groups: ["tenants"] };
const BOB: Identity = { user: "bob", groups: ["tenants"] };
const EVE: Identity = { user: "eve", groups: ["tenants"] };
/** Has no User object. */
const GHOST: Identity = { user: "ghost", groups: ["tenants"] };
const PORTAL: Identity = { user: "portal", groups: ["tenants"] };
const ACCOUNT: Identity = {
  user: "system:serviceaccount:gitops:sync",
  groups: ["system:serviceaccounts", "system:serviceaccounts:gitops", "tenants"],
};

const SPEC: JsonObject = {
  limits: [{ selector: { level: "gold" }, maxProjects: 3 }, { maxProjects: 1 }],
  namespaces: {},
  trustedAnnotators: [PORTAL.user],
};

function crd(kind: string, plural: string, group: string): JsonObject {
  const singular = kind.toLowerCase();
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, plural, singular, listKind: `${kind}List` },
      scope: "Cluster",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}

const TENANTS: readonly JsonObject[] = [
  {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRole",
    metadata: { name: "tenants" },
    rules: [
      {
        apiGroups: [""],
        resources: ["namespaces", "namespaces/status", "namespaces/finalize"],
        verbs: ["get", "create", "update", "patch", "delete"],
      },
      { apiGroups: ["project.openshift.io"], resources: ["projectrequests"], verbs: ["create"] },
    ],
  },
  {
    apiVersion: `${RBAC}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: "tenants" },
    roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "tenants" },
    subjects: [{ kind: "Group", apiGroup: RBAC, name: "tenants" }],
  },
];

describeOwnCluster("limits of projects", {}, (cluster) => {
  const limits = (spec: JsonObject, name = "cluster"): JsonObject => ({
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name },
    spec,
  });
  const create = (as: Identity, name: string, metadata: JsonObject = {}): Promise<Reply> =>
    cluster().request("POST", NAMESPACES, { metadata: { name, ...metadata } }, as);
  const request = (as: Identity, name: string): Promise<Reply> =>
    cluster().request(
      "POST",
      REQUESTS,
      { apiVersion: "project.openshift.io/v1", kind: "ProjectRequest", metadata: { name } },
      as,
    );
  const read = (name: string) => cluster().call("GET", `${NAMESPACES}/${name}`);
  const requesterOf = async (name: string) =>
    stringAt(await read(name), "metadata", "annotations", REQUESTER);
  const codeIn = ({ status, body }: Reply) =>
    `${status} ${/USHER-Q\d+/.exec(stringAt(body, "message") ?? "")?.[0] ?? ""}`.trim();
  const condition = async (type: string, name = "cluster") => {
    const found = listAt(await cluster().call("GET", `${LIMITS}/${name}`), "status", "conditions").find(
      (one) => at(one, "type") === type,
    );
    return stringAt(found, "status");
  };
  const hooks = async () =>
    listAt((await cluster().request("GET", HOOKS)).body, "webhooks").filter((hook) =>
      stringAt(hook, "name")?.startsWith("project-limit"),
    );

  test("nothing is registered before an object exists, and the API server itself refuses an invalid one", async () => {
    await cluster().createNode("n1");
    await cluster().apply(...TENANTS, crd("ProjectRequest", "projectrequests", "project.openshift.io"));
    await install(cluster(), "--replicas", "1");
    expect(await hooks()).toEqual([]);
    const wrong: readonly JsonObject[] = [
      { limits: [{ maxProjects: -1 }] },
      { limits: [{ maxProjects: "2" }] },
      { limits: [{ maxProjects: 2.5 }] },
      { limits: [{ maxProjects: 2 ** 31 }] },
      { limits: [{ selector: { "*invalid/label": "x" } }] },
      { limits: [{ selector: { a: "*" } }] },
      { limits: [{ groups: [] }] },
      { maxProjectsForSystemUsers: -1 },
      { count: "exact" },
      { timeoutSeconds: 31 },
    ];
    const answers = await Promise.all(wrong.map((spec) => cluster().request("POST", LIMITS, limits(spec))));
    expect(answers.map(({ status }) => status)).toEqual(wrong.map(() => 422));
  }, 120_000);

  test("the CEL conditions of fail-closed webhooks select the same users as the decision", async () => {
    const { found, expected } = await calledFor(cluster());
    expect(found).toEqual(expected);
    await cluster().call("DELETE", `${VALIDATING}/conditions`);
  });

  test("without the User API users have no labels", async () => {
    await cluster().call("POST", LIMITS, limits(SPEC));
    await eventually("alice to be annotated and limited", async () => {
      const dry = await cluster().request(
        "POST",
        `${NAMESPACES}?dryRun=All`,
        { metadata: { name: "a" } },
        ALICE,
      );
      return stringAt(dry.body, "metadata", "annotations", REQUESTER) === "alice";
    });
    await eventually("the hook", async () => (await hooks()).length === 4);
    await eventually("the condition", async () => (await condition("UserAPIMissing")) === "True");
    expect(await condition("Valid")).toBe("True");
    expect(await condition("Ignored")).toBe("False");
    expect(await condition("NamespacesOpen")).toBe("False");
  });

  test("limits users by label, warns about the last place and refuses more, for both kinds", async () => {
    await cluster().call("POST", CRDS, crd("User", "users", "user.openshift.io"));
    await eventually(
      "users to be served",
      async () => (await cluster().request("GET", USERS)).status === 200,
    );
    for (const [name, labels] of Object.entries({ alice: {}, bob: { level: "gold" }, eve: {}, portal: {} }))
      await cluster().call("POST", USERS, {
        apiVersion: "user.openshift.io/v1",
        kind: "User",
        metadata: { name, labels },
      });
    await eventually(
      "users to be read",
      async () => codeIn(await request(GHOST, "ghostly")) === "404 USHER-Q02",
    );
    const first = await create(ALICE, "alice-1");
    expect(first.status).toBe(201);
    expect(first.headers["warning"]).toContain("this is the last of 1 project(s) that user alice may have");
    expect(await requesterOf("alice-1")).toBe("alice");
    await eventually(
      "the view to know it",
      async () => codeIn(await create(ALICE, "alice-2")) === "403 USHER-Q01",
    );
    const over = await create(ALICE, "alice-2");
    expect(stringAt(over.body, "message")).toContain(
      'denied the request: namespaces "alice-2" is forbidden: user alice cannot create more than 1 project(s). Has 1: alice-1 (USHER-Q01)',
    );
    expect(over.body).toMatchObject({ code: 403, reason: "Forbidden" });
    const project = await request(ALICE, "alice-3");
    expect(stringAt(project.body, "message")).toContain(
      'projectrequests.project.openshift.io "alice-3" is forbidden: user alice cannot create more than 1 project(s). Has 1: alice-1 (USHER-Q01)',
    );
    const missing = await request(GHOST, "ghost-1");
    expect(missing.body).toMatchObject({
      code: 404,
      reason: "NotFound",
      details: { kind: "users", name: "ghost" },
    });
    expect((await create(BOB, "bob-1")).status).toBe(201);
    expect((await request(BOB, "bob-2")).status).toBe(201);
    // As OpenShift's API server does, with an exempt account: the annotation that it writes stays.
    expect((await create(ADMIN, "bob-2", { annotations: { [REQUESTER]: "bob" } })).status).toBe(201);
    expect(await requesterOf("bob-2")).toBe("bob");
  });

  test("no route can change the requester", async () => {
    const path = `${NAMESPACES}/alice-1`;
    const stamp = (value: string | null) => ({ metadata: { annotations: { [REQUESTER]: value } } });
    const whole = async (value: string | undefined): Promise<JsonObject> => {
      const object = await read("alice-1");
      if (!isObject(object) || !isObject(object["metadata"])) throw new Error("not an object");
      return {
        ...object,
        metadata: { ...object["metadata"], annotations: value === undefined ? {} : { [REQUESTER]: value } },
      };
    };
    const apply = (as: Identity, value: string) =>
      cluster().kubectl(["apply", "--server-side", "--force-conflicts", "--field-manager=x", "-f", "-"], {
        as,
        input: JSON.stringify({
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: "alice-1", annotations: { [REQUESTER]: value } },
        }),
      });
    const routes: readonly (readonly [string, () => Promise<Reply>])[] = [
      ["patch", () => cluster().request("PATCH", path, stamp("eve"), ALICE)],
      ["patch of status", () => cluster().request("PATCH", `${path}/status`, stamp("eve"), ALICE)],
      ["put", async () => cluster().request("PUT", path, await whole("eve"), ALICE)],
      [
        "put of finalize",
        async () => cluster().request("PUT", `${path}/finalize`, await whole("eve"), ALICE),
      ],
      // Neither limited nor exempt.
      ["patch of an account", () => cluster().request("PATCH", path, stamp("eve"), ACCOUNT)],
      [
        "put of finalize of an account",
        async () => cluster().request("PUT", `${path}/finalize`, await whole("eve"), ACCOUNT),
      ],
    ];
    for (const [route, change] of routes)
      expect([route, codeIn(await change())]).toEqual([route, "403 USHER-Q04"]);
    expect((await apply(ALICE, "eve")).stderr).toContain("USHER-Q04");
    const removals: readonly (readonly [string, () => Promise<Reply>])[] = [
      ["patch", () => cluster().request("PATCH", path, stamp(null), ALICE)],
      ["patch of status", () => cluster().request("PATCH", `${path}/status`, stamp(null), ALICE)],
      ["put", async () => cluster().request("PUT", path, await whole(undefined), ALICE)],
      [
        "put of finalize",
        async () => cluster().request("PUT", `${path}/finalize`, await whole(undefined), ALICE),
      ],
    ];
    for (const [route, change] of removals) expect([route, (await change()).status]).toEqual([route, 200]);
    expect(await requesterOf("alice-1")).toBe("alice");
    expect((await cluster().request("PATCH", path, { metadata: { labels: { a: "b" } } }, ALICE)).status).toBe(
      200,
    );
    expect((await cluster().request("PATCH", path, stamp("eve"), ADMIN)).status).toBe(200);
    expect((await cluster().request("PATCH", path, stamp("alice"), PORTAL)).status).toBe(200);
  });

  test("a forged requester is overwritten, also when a label suggests another name", async () => {
    expect((await create(EVE, "eve-1", { annotations: { [REQUESTER]: "bob" } })).status).toBe(201);
    expect(await requesterOf("eve-1")).toBe("eve");
    const forged = await cluster().request(
      "POST",
      NAMESPACES,
      {
        metadata: {
          generateName: "bob-",
          labels: { "kubernetes.io/metadata.name": "kube-system" },
          annotations: { [REQUESTER]: "eve" },
        },
      },
      BOB,
    );
    expect(forged.status).toBe(201);
    expect(stringAt(forged.body, "metadata", "annotations", REQUESTER)).toBe("bob");
    // No name is exempt.
    await eventually(
      "the view to know it",
      async () => codeIn(await create(EVE, "kube-eve")) === "403 USHER-Q01",
    );
    const made = await create(ACCOUNT, "gitops-1", { annotations: { [REQUESTER]: "bob" } });
    expect(made.status).toBe(201);
    expect(stringAt(made.body, "metadata", "annotations", REQUESTER)).toBe(ACCOUNT.user);
  });

  test("a requester that another webhook writes after usher is refused, for limited users and for others", async () => {
    await using _ = await startForger(cluster(), { [REQUESTER]: "mallory" });
    const labels = { [PEER_LABEL]: "forge" };
    const query = `${NAMESPACES}?dryRun=All`;
    for (const as of [BOB, ACCOUNT]) {
      const forged = () => cluster().request("POST", query, { metadata: { name: "forged", labels } }, as);
      await eventually("the forger to be called", async () => codeIn(await forged()) === "403 USHER-Q04");
      expect(stringAt((await forged()).body, "message")).toContain(
        `openshift.io/requester must be "${as.user}", got "mallory"`,
      );
    }
    await cluster().call("DELETE", `${MUTATING}/zz-peer`);
  });

  test("a trusted annotator creates for others, within their limits", async () => {
    const forEve = { annotations: { [REQUESTER]: "eve" } };
    const over = await create(PORTAL, "portal-1", forEve);
    expect(codeIn(over)).toBe("403 USHER-Q01");
    expect(stringAt(over.body, "message")).toContain("user eve cannot create more than 1 project(s)");
    expect((await create(PORTAL, "portal-2")).status).toBe(201);
    expect(await requesterOf("portal-2")).toBe("portal");
  });

  test("an object of another name is ignored, with an event", async () => {
    await cluster().call("POST", LIMITS, limits({ limits: [{ maxProjects: 0 }] }, "other"));
    await eventually("the condition", async () => (await condition("Ignored", "other")) === "True");
    await eventually("the event", async () => {
      const events = listAt(await cluster().call("GET", "/apis/events.k8s.io/v1/events"), "items");
      return events.some(
        (one: Json) => at(one, "reason") === "Ignored" && stringAt(one, "regarding", "name") === "other",
      );
    });
    const shown = await cluster().kubectl(["get", "projectrequestlimits"]);
    expect(shown.stdout).toMatch(/NAME +FULL +OVER +VALID +ENFORCED +IGNORED +AVAILABLE +AGE/);
    await eventually(
      "users to be known",
      async () => (await condition("UserAPIMissing")) === "False",
      90_000,
    );
  });

  test("backfill sets the requester of namespaces without one, and usage shows it", async () => {
    await create(ADMIN, "legacy");
    await cluster().call("PATCH", `${NAMESPACES}/legacy`, {
      metadata: { annotations: { [REQUESTER]: null } },
    });
    expect(await requesterOf("legacy")).toBeUndefined();
    const file = join(folder({ "owners.csv": "namespace,user\nlegacy,bob\nalice-1,eve\n" }), "owners.csv");
    const kubeconfig = await cluster().kubeconfig();
    const run = (...args: string[]) =>
      program(["project-limit", ...args, "--kubeconfig", kubeconfig, "-o", "json"]);
    await run("backfill", file);
    expect(await requesterOf("legacy")).toBeUndefined();
    const applied = await run("backfill", file, "--apply");
    expect(applied.code).toBe(1);
    expect(applied.out).toContain("requester is alice already; kept");
    expect(await requesterOf("legacy")).toBe("bob");
    expect(await requesterOf("alice-1")).toBe("alice");
    const usage = await run("usage");
    const users = listAt(JSON.parse(usage.out) as Json, "users");
    expect(users.find((one) => at(one, "subject") === "bob")).toMatchObject({ max: 3, rule: "limits[0]" });
    expect(users.find((one) => at(one, "subject") === "alice")).toMatchObject({
      count: 1,
      max: 1,
      state: "full",
    });
  });

  test("without usher only users that can be limited are blocked; deletions work, and so do the documented ways out", async () => {
    await cluster().call("PATCH", DEPLOYMENT, { spec: { replicas: 0 } });
    await eventually(
      "usher to be down",
      async () => listAt(await cluster().call("GET", REPLICAS), "items").length === 0,
    );
    await eventually("bob waits", async () => codeIn(await create(BOB, "bob-9")) === "500");
    expect((await request(BOB, "bob-9")).status).toBe(500);
    expect((await create(ADMIN, "admin-1")).status).toBe(201);
    expect((await create(ACCOUNT, "gitops-2")).status).toBe(201);
    expect((await request(ACCOUNT, "gitops-3")).status).toBe(201);
    const eve = { metadata: { annotations: { [REQUESTER]: "bob" } } };
    expect((await cluster().request("PATCH", `${NAMESPACES}/eve-1`, eve, EVE)).status).toBe(500);
    expect(
      (await cluster().request("PATCH", `${NAMESPACES}/eve-1`, { metadata: { labels: { a: "b" } } }, EVE))
        .status,
    ).toBe(200);
    expect((await cluster().request("DELETE", `${NAMESPACES}/eve-1`, undefined, EVE)).status).toBe(200);
    await eventually(
      "eve-1 is gone",
      async () => (await cluster().request("GET", `${NAMESPACES}/eve-1`)).status === 404,
      60_000,
    );
    await cluster().call("PATCH", `${LIMITS}/cluster`, { spec: { failurePolicy: "Ignore" } });
    await cluster().call("PATCH", DEPLOYMENT, { spec: { replicas: 1 } });
    await eventually(
      "hooks to be fail-open",
      async () => {
        const all = await hooks();
        return all.length > 0 && all.every((hook) => at(hook, "failurePolicy") === "Ignore");
      },
      60_000,
    );
    await cluster().call("DELETE", `${LIMITS}/cluster`);
    await eventually("no hook to be left", async () => (await hooks()).length === 0);
    expect((await create(EVE, "eve-2")).status).toBe(201);
  }, 180_000);
});
