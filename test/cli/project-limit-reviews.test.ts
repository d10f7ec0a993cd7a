// Names that a CRD's User can't have, as raw AdmissionReviews: OpenShift's own User API allows them.
import { expect, test } from "vitest";
import { type Json, listAt, stringAt } from "../../src/core/json.ts";
import { recordOf } from "./recorded.ts";
import { folder, usher } from "./usher.ts";

/** Three namespaces for any user: a limit that an administrator writes on plain Kubernetes. */
const THREE = { limits: [{ maxProjects: 3 }], namespaces: {} };

const REQUESTER = "openshift.io/requester";

function source(spec: object, user: string, projects: number, labels: object): string {
  const objects = [
    {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      metadata: { name: "cluster" },
      spec,
    },
    { apiVersion: "user.openshift.io/v1", kind: "User", metadata: { name: user, labels } },
    ...Array.from({ length: projects }, (_, i) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: `p-${i}`, annotations: { [REQUESTER]: user } },
      status: { phase: "Active" },
    })),
  ];
  return folder({ "cluster.yaml": objects.map((one) => JSON.stringify(one)).join("\n---\n") });
}

const GOLD = { limits: [{ selector: { level: "gold" }, maxProjects: 2 }, { maxProjects: 1 }] };
const SYSTEM = { ...GOLD, maxProjectsForSystemUsers: 1, exempt: { groups: [] } };

test.each([
  ["Alice", GOLD, 1, {}, "USHER-Q01"],
  ["Alice", GOLD, 1, { level: "gold" }, undefined],
  ["Alice", GOLD, 2, { level: "gold" }, "USHER-Q01"],
  ["alice@example.com", GOLD, 1, {}, "USHER-Q01"],
  ["alice smith", GOLD, 1, {}, "USHER-Q01"],
  ["cn=alice,dc=example", GOLD, 1, { level: "gold" }, undefined],
  ["under_score", GOLD, 1, {}, "USHER-Q01"],
  ["b64:QWxpY2U=", GOLD, 1, {}, "USHER-Q01"],
  ["b64:QWxpY2U=", GOLD, 1, { level: "gold" }, undefined],
  ["ünïcode", GOLD, 1, {}, "USHER-Q01"],
  ["system:admin", GOLD, 5, {}, undefined],
  ["system:admin", SYSTEM, 0, {}, undefined],
  ["system:admin", SYSTEM, 1, {}, "USHER-Q01"],
  ["kube:admin", SYSTEM, 1, {}, "USHER-Q01"],
  // Never looked up: `users/a%2Fb` would be the user `a`.
  ["a/b", SYSTEM, 1, {}, "USHER-Q01"],
  ["a%2Fb", SYSTEM, 0, {}, undefined],
  ["system:serviceaccount:x", SYSTEM, 1, {}, "USHER-Q01"],
])("user %s, %j, %i project(s), labels %j", async (username, spec, has, labels, code) => {
  const object = {
    apiVersion: "project.openshift.io/v1",
    kind: "ProjectRequest",
    metadata: { name: "next" },
  };
  const userInfo = { username, groups: ["system:authenticated", "system:authenticated:oauth"] };
  const review = recordOf("projectrequests", object, { userInfo, namespace: "" });
  const { out } = await usher(
    ["review", "-", "--source", source(spec, username, has, labels), "-o", "json"],
    {
      stdin: JSON.stringify(review),
    },
  );
  const [reviewed] = listAt(JSON.parse(out) as Json, "results");
  expect(stringAt(reviewed, "verdict")).toBe(code === undefined ? "allow" : "deny");
  if (code !== undefined) {
    const sentence = `projectrequests.project.openshift.io "next" is forbidden: user ${username} cannot create more than`;
    expect(JSON.stringify(reviewed)).toContain(JSON.stringify(sentence).slice(1, -1));
    expect(JSON.stringify(reviewed)).toContain(code);
  }
});

/** Namespaces of these names, created by bob. */
async function created(spec: object, names: readonly string[], more: readonly object[] = []) {
  const limit = {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec,
  };
  const files = { "cluster.yaml": [limit, ...more].map((one) => JSON.stringify(one)).join("\n---\n") };
  const stdin = names
    .map((name) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: name.endsWith("-") ? { generateName: name } : { name },
    }))
    .map((one) => JSON.stringify(one))
    .join("\n---\n");
  const { out, err } = await usher(["review", "-", "--source", folder(files), "--as", "bob", "-o", "json"], {
    stdin,
  });
  expect(err).not.toContain("internal error");
  return listAt(JSON.parse(out) as Json, "results").map(
    (one) => stringAt(listAt(one, "violations")[0], "code") ?? stringAt(one, "verdict"),
  );
}

const GROUP = { apiVersion: "user.openshift.io/v1", kind: "Group", metadata: { name: "devs" } };
const SERVICE = {
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name: "v1.user.openshift.io" },
  spec: { group: "user.openshift.io", version: "v1" },
};
const CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "users.user.openshift.io" },
  spec: { group: "user.openshift.io" },
};

test.each([
  ["no object of the group", [], "patch"],
  ["an APIService of another group", [{ ...SERVICE, spec: { group: "x.example.com" } }], "patch"],
  ["an object of the group", [GROUP], "USHER-Q02"],
  ["an APIService", [SERVICE], "USHER-Q02"],
  ["a CustomResourceDefinition", [CRD], "USHER-Q02"],
])("a source with %s determines whether the cluster serves Users", async (_, more, verdict) => {
  expect(await created(THREE, ["a"], more)).toEqual([verdict]);
});

test.each(["Exact", "BestEffort"])(
  "namespaces of one review count together, in the order given, count: %s",
  async (count) => {
    const spec = { ...THREE, count };
    expect(await created(spec, ["d", "c", "b", "a"])).toEqual(["patch", "patch", "patch", "USHER-Q01"]);
  },
);

test("a namespace with a generated name counts, and a refused one does not", async () => {
  expect(await created(THREE, ["a-", "a-", "a-", "a-"])).toEqual(["patch", "patch", "patch", "USHER-Q01"]);
  const has = ["x", "y"].map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, annotations: { [REQUESTER]: "bob" } },
  }));
  expect(await created(THREE, ["a", "b", "c"], has)).toEqual(["patch", "USHER-Q01", "USHER-Q01"]);
});
