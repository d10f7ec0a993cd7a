import { applyPatch } from "rfc6902";
import { beforeEach, expect, test } from "vitest";
import { node } from "../../../test/builders/node.ts";
import { answerOf, refuse } from "../../../test/support/cluster/api-server.ts";
import { installedObjects, pathOf, TestInstallation } from "../../../test/support/operator/installation.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../core/installation/installation.ts";
import { at, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { nodeLabels } from "../../modules/node-labels/index.ts";
import { cleanUp, cleanupsOf, lookForMarked } from "./cleanup.ts";

const STARTING = { key: "usher.dev/starting", effect: "NoSchedule" };
const THEIRS = { key: "theirs", value: "x", effect: "NoExecute" };
const OTHER_KEY = "startup-taint.cluster-autoscaler.kubernetes.io/usher";

const tainted = (name: string, ...taints: JsonObject[]) =>
  node(name, { a: "1" }, { spec: { podCIDR: "10.0.0.0/24", taints } });

let cluster: TestInstallation;
/** Called before each patch of a node. */
let before: (name: string) => void;

const pathOfNode = (name: string) => pathOf(node(name));
const taintsOf = (name: string) => at(cluster.server.objects.get(pathOfNode(name)), "spec", "taints");

beforeEach(() => {
  cluster = new TestInstallation();
  before = () => undefined;
  const usual = cluster.server.fault;
  cluster.server.fault = (method, url, options) => {
    if (method !== "PATCH" || !Array.isArray(options.body)) return usual(method, url, options);
    const { pathname } = new URL(url, "https://test.invalid");
    const name = pathname.slice(pathname.lastIndexOf("/") + 1);
    if (cluster.refusing(method, pathname)) return refuse(403, "Forbidden");
    before(name);
    const stored = cluster.server.objects.get(pathname);
    if (stored === undefined) return refuse(404, "NotFound", name);
    const made = structuredClone(stored) as JsonObject;
    for (const error of applyPatch(made, options.body as never)) if (error !== null) throw error;
    // As in the API server: the written version must be the stored one.
    const version = (object: Json) => stringAt(object, "metadata", "resourceVersion");
    if (version(made) !== version(stored)) return refuse(409, "Conflict", name);
    return answerOf(200, cluster.server.put(pathname, made));
  };
});

function cleanups(installation: Installation = DEFAULT_INSTALLATION) {
  return cleanupsOf(cluster.objects, installedObjects(), [nodeLabels], installation);
}

test("the startup taint is removed from every node that has it, and nothing else", async () => {
  cluster.have(tainted("both", THEIRS, STARTING));
  cluster.have(tainted("only", STARTING));
  cluster.have(tainted("none", THEIRS));
  cluster.have(node("bare"));
  const { marked, unseen } = await lookForMarked(cluster.objects, await cleanups());
  expect(marked.map(({ live }) => stringAt(live, "metadata", "name"))).toEqual(["both", "only"]);
  expect(unseen).toEqual([]);
  expect(await cleanUp(cluster.objects, await cleanups())).toEqual([]);
  expect(taintsOf("both")).toEqual([THEIRS]);
  expect(cluster.server.objects.get(pathOfNode("only"))).toMatchObject({
    metadata: { labels: { a: "1" } },
    spec: { podCIDR: "10.0.0.0/24" },
  });
  expect(taintsOf("only")).toBeUndefined();
  expect(cluster.server.count("PATCH 200")).toBe(2);
});

test("its key is that of the replicas' configuration", async () => {
  const configuration = {
    apiVersion: "usher.dev/v1alpha1",
    kind: "UsherConfiguration",
    spec: { modules: { "node-labels": { startupTaint: OTHER_KEY, enabled: false } } },
  };
  const [configMap] = installedObjects().filter((object) => object["kind"] === "ConfigMap");
  cluster.have({ ...configMap, data: { "configuration.yaml": JSON.stringify(configuration) } });
  cluster.have(tainted("n", STARTING, { ...STARTING, key: OTHER_KEY }));
  expect(await cleanUp(cluster.objects, await cleanups())).toEqual([]);
  expect(taintsOf("n")).toEqual([STARTING]);
});

test.each<[string, JsonObject | undefined]>([
  ["gone", undefined],
  ["not JSON", { "configuration.yaml": "spec:\n  modules: {}" }],
  ["without data", {}],
])("if the configuration is %s, the key of the call is used", async (_, data) => {
  const [configMap] = installedObjects().filter((object) => object["kind"] === "ConfigMap");
  if (data !== undefined) cluster.have({ ...configMap, data });
  cluster.have(tainted("n", { ...STARTING, key: OTHER_KEY }));
  const settings = { "node-labels": { startupTaint: OTHER_KEY } };
  expect(await cleanUp(cluster.objects, await cleanups({ ...DEFAULT_INSTALLATION, settings }))).toEqual([]);
  expect(taintsOf("n")).toBeUndefined();
});

test("a concurrent write of a node loses nothing", async () => {
  cluster.have(tainted("n", STARTING));
  let times = 0;
  before = () => {
    times += 1;
    if (times === 1) cluster.have(tainted("n", STARTING, THEIRS));
  };
  expect(await cleanUp(cluster.objects, await cleanups())).toEqual([]);
  expect(taintsOf("n")).toEqual([THEIRS]);
  expect(cluster.server.count("PATCH 409")).toBe(1);
});

test("a node that is deleted in the meantime, or freed by another client, is done", async () => {
  cluster.have(tainted("going", STARTING));
  cluster.have(tainted("freed", STARTING));
  before = (name) => {
    if (name === "going") cluster.server.objects.delete(pathOfNode(name));
    else cluster.have(tainted(name, THEIRS));
  };
  expect(await cleanUp(cluster.objects, await cleanups())).toEqual([]);
  expect(taintsOf("freed")).toEqual([THEIRS]);
});

test("a node that can't be written does not block others, and the manual command is reported", async () => {
  for (const name of ["a", "b", "c", "d"]) cluster.have(tainted(name, STARTING));
  cluster.refusing = (method, path) => method === "PATCH" && path.endsWith("/b");
  before = (name) => {
    if (name === "c") cluster.have(tainted("c", STARTING));
  };
  const still = await cleanUp(cluster.objects, await cleanups());
  expect(
    still.map(({ live, cleanup, why }) => [cleanup.byHand(stringAt(live, "metadata", "name") ?? ""), why]),
  ).toEqual([
    ["kubectl taint nodes b usher.dev/starting-", expect.stringContaining("Forbidden")],
    ["kubectl taint nodes c usher.dev/starting-", "too many concurrent writes"],
  ]);
  expect([taintsOf("a"), taintsOf("d")]).toEqual([undefined, undefined]);
});

test("without permission to list nodes the uninstall continues, and reports it", async () => {
  cluster.have(tainted("n", STARTING));
  cluster.refusing = (_, path) => path === "/api/v1/nodes";
  const { marked, unseen } = await lookForMarked(cluster.objects, await cleanups());
  expect(marked).toEqual([]);
  expect(unseen).toMatchObject([
    { live: undefined, why: expect.stringContaining("listing /api/v1/nodes: ") },
  ]);
});

test("nodes on later pages are found too", async () => {
  for (let i = 0; i < 501; i++) cluster.have(i === 500 ? tainted("last", STARTING) : node(`n-${i}`));
  const { marked } = await lookForMarked(cluster.objects, await cleanups());
  expect(marked).toHaveLength(1);
});
