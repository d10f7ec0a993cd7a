// A garden deploys usher to its seeds, checked with Gardener's own validation, gardenlet and gardener-resource-manager,
// in a real cluster.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { keyOf } from "../../deploy/generate/installation/registered.ts";
import { version } from "../../src/cli/version.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";
import { program, ROOT } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import {
  type Deployed,
  deployed,
  gardener,
  managedResources,
  OBJECTS,
  registry,
  VALUES,
} from "./fixtures/gardener.ts";
import { CHART, documents, Helm } from "./fixtures/helm.ts";

/** The first call builds the tools. */
const BUILD_MS = 40 * 60_000;

const home = mkdtempSync(join(tmpdir(), "usher-gardener-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

let helm: Helm;
/** The chart as a file, and as the objects carry it. */
let archive = "";
let raw: Deployed;

async function prepare(): Promise<void> {
  helm = new Helm(await ensureTool("helm"), home);
  await ensureTool("gardener");
  const packaged = await helm.run("package", CHART, "--destination", home);
  expect(packaged, packaged.err).toMatchObject({ code: 0 });
  archive = join(home, readdirSync(home).find((file) => file.endsWith(".tgz")) ?? "");
  raw = { chart: { rawChart: readFileSync(archive).toString("base64") } };
}

/** The objects that Gardener applies from the chart. */
async function rendered(way: Deployed): Promise<JsonObject[]> {
  const { code, out, err } = await gardener("render", deployed(way));
  if (code !== 0) throw new Error(err);
  return documents(out);
}

function byKey(objects: readonly JsonObject[]): Record<string, JsonObject> {
  return Object.fromEntries(objects.map((object) => [keyOf(object), object]).sort());
}

/**
 * Gardener adds the seed's name to every container's environment, and passes objects through Go's types, which add
 * empty fields.
 */
function withoutSeed(object: JsonObject): JsonObject {
  const text = JSON.stringify(object, (key, value: Json) => {
    if (["status", "strategy"].includes(key) && JSON.stringify(value) === "{}") return undefined;
    return key === "env" ? (value as Json[]).filter((one) => at(one, "name") !== "SEED_NAME") : value;
  });
  return JSON.parse(text) as JsonObject;
}

/** A Gardener command that must succeed. */
async function succeed(...args: Parameters<typeof gardener>): Promise<void> {
  const ran = await gardener(...args);
  expect(ran, ran.err).toMatchObject({ code: 0 });
}

describe.skipIf(inject("clusterUnavailable") !== "")("the objects for a garden", () => {
  beforeAll(prepare, BUILD_MS);

  test("are accepted by Gardener's validation unchanged", async () => {
    expect(JSON.parse((await gardener("check", OBJECTS)).out)).toEqual([]);
    expect(OBJECTS.map(keyOf)).toEqual(["ControllerDeployment usher", "ControllerRegistration usher"]);
  });

  test.each<[string, (objects: JsonObject[]) => JsonObject[], string]>([
    ["no chart", () => deployed({ chart: {} }), "must provide either rawChart or ociRepository"],
    [
      "a repository without a version",
      () => deployed({ chart: { ociRepository: { repository: "registry.example.com/usher" } } }),
      "must provide either tag or digest",
    ],
    [
      "a policy that Gardener does not have",
      (objects) =>
        objects.map((one) => ("spec" in one ? { ...one, spec: { deployment: { policy: "Never" } } } : one)),
      'spec.deployment.policy: Unsupported value: "Never"',
    ],
    [
      "a field that Gardener does not have",
      (objects) => objects.map((one) => ({ ...one, values: {} })),
      'unknown field "values"',
    ],
  ])("are refused with %s", async (_what, broken, problem) => {
    const { out } = await gardener("check", broken(structuredClone(OBJECTS) as JsonObject[]));
    expect(JSON.parse(out).join("\n")).toContain(problem);
  });

  test("are published with the location and the digest of the chart", async () => {
    const workflow = readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8");
    const [, command = ""] = /^ *(sed .*deploy\/gardener\/usher\.yaml) >/m.exec(workflow) ?? [];
    const digest = `sha256:${"a".repeat(64)}`;
    const env = { PATH: process.env["PATH"], CHARTS: "ghcr.io/team/charts", REGISTRY: "ghcr.io", digest };
    const published = documents(execFileSync("bash", ["-c", command], { cwd: ROOT, env, encoding: "utf8" }));
    const chart = { repository: "ghcr.io/team/charts/usher", tag: version(), digest };
    expect(published).toEqual(
      deployed({ chart: { ociRepository: chart }, values: { image: { registry: "ghcr.io" } } }),
    );
    expect(JSON.parse((await gardener("check", published)).out)).toEqual([]);
  });

  test("render to the same objects as helm, except hooks and CRDs, from a registry as from the archive", async () => {
    const address = await registry();
    const pushed = await helm.run("push", archive, `oci://${address}/charts`, "--plain-http");
    expect(pushed, pushed.err).toMatchObject({ code: 0 });
    const named = at(OBJECTS[0], "helm", "ociRepository") as JsonObject;
    const repository = String(named["repository"]).replace(/^[^/]+/, address);
    const objects = await rendered({ chart: { ociRepository: { ...named, repository } } });
    expect(byKey(await rendered(raw))).toEqual(byKey(objects));

    const ofHelm = await helm.template(VALUES, "--namespace", "extension-usher-1");
    const kept = ofHelm.filter((one) => at(one, "metadata", "annotations", "helm.sh/hook") === undefined);
    expect(byKey(objects.map(withoutSeed))).toEqual(byKey(kept));
    expect(JSON.stringify(objects)).toContain("SEED_NAME");
    expect(ofHelm.length).toBeGreaterThan(kept.length);
    expect(objects.length).toBeGreaterThan(15);
    // According to the labels that Gardener's network policies allow.
    const service = objects.find((one) => keyOf(one) === "Service usher");
    const port = at(
      objects.find((one) => keyOf(one) === "Deployment usher"),
      "spec",
      "template",
      "spec",
      "containers",
      0,
      "ports",
      0,
      "containerPort",
    );
    const allowed = stringAt(
      service,
      "metadata",
      "annotations",
      "networking.resources.gardener.cloud/from-world-to-ports",
    );
    expect(JSON.parse(allowed ?? "")).toEqual([{ port, protocol: "TCP" }]);
  });

  test("fail to render with a value that the chart does not have", async () => {
    await expect(rendered({ ...raw, values: { replica: 3 } })).rejects.toThrow(/replica/);
  });
});

const OWN_OF_EACH = new Set([
  "uid",
  "creationTimestamp",
  "resourceVersion",
  "managedFields",
  "status",
  "ownerReferences",
]);
const EXTENSION = "extension-usher-1";
const SHOOT = "/api/v1/namespaces/shoot--shop--prod";
const WEBHOOKS = "/apis/admissionregistration.k8s.io/v1";
const POLICY = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies/etcd-pool";
const ANCHOR = "/apis/rbac.authorization.k8s.io/v1/clusterroles/usher-installation";
const CRD =
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpodschedulingpolicies.kupid.gardener.cloud";
/** One replica, so that its state is that of all. */
const RUN = { podLabels: { [RUN_LABEL]: "true" }, replicas: 1 };

describeOwnCluster("a seed", {}, (cluster) => {
  const kubectl = async (...args: string[]): Promise<void> => {
    const { code, stderr } = await cluster().kubectl(args);
    expect(code, stderr).toBe(0);
  };

  const webhooks = async (): Promise<readonly Json[]> => {
    const kinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    const both = await Promise.all(
      kinds.map((kind) => cluster().request("GET", `${WEBHOOKS}/${kind}/usher`)),
    );
    return both.flatMap(({ body }) => listAt(body, "webhooks"));
  };

  const ready = () =>
    eventually(
      "usher serves",
      async () => {
        const path = `/apis/apps/v1/namespaces/${EXTENSION}/deployments/usher`;
        const { body } = await cluster().request("GET", path);
        return at(body, "status", "readyReplicas") === 1 && (await webhooks()).length > 0;
      },
      120_000,
    );

  /** New pods of a shoot. */
  const shootPods = async (): Promise<readonly Json[]> => {
    await kubectl("apply", "-f", join(ROOT, "examples/gardener/shoot.yaml"));
    const pods = await eventually("pods on nodes", async () => {
      const items = listAt(await cluster().call("GET", `${SHOOT}/pods`), "items");
      return items.length === 2 && items.every((pod) => at(pod, "spec", "nodeName") !== undefined)
        ? items
        : undefined;
    });
    return [...pods].sort((a, b) =>
      String(at(a, "metadata", "name")) < String(at(b, "metadata", "name")) ? -1 : 1,
    );
  };
  /** The stored objects of the shoot, without fields that differ between two creations of one manifest. */
  const shootObjects = async (): Promise<Json> => {
    const set = "/apis/apps/v1/namespaces/shoot--shop--prod/statefulsets/etcd-main";
    const objects = [...(await shootPods()), await cluster().call("GET", set)];
    const text = JSON.stringify(objects, (key, value: Json) => {
      if (OWN_OF_EACH.has(key)) return undefined;
      return typeof value === "string" ? value.replace(/^kube-api-access-.*$/, "kube-api-access") : value;
    });
    return JSON.parse(text) as Json;
  };
  const noShootPods = async (): Promise<void> => {
    await kubectl("delete", "-f", join(ROOT, "examples/gardener/shoot.yaml"), "--wait=false");
    await eventually(
      "no pods",
      async () => listAt(await cluster().call("GET", `${SHOOT}/pods`), "items").length === 0,
    );
  };

  beforeAll(async () => {
    await prepare();
    for (const crd of managedResources())
      await cluster().call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    await cluster().call("POST", "/api/v1/namespaces", { metadata: { name: "garden" } });
    // Gardener creates it on every seed.
    await cluster().call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
      metadata: { name: "gardener-system-900" },
      value: 999_998_900,
    });
    for (const object of documents(readFileSync(join(ROOT, "examples/gardener/seed.yaml"), "utf8"))) {
      if (object["kind"] === "Namespace") await cluster().call("POST", "/api/v1/namespaces", object);
      else
        await cluster().createNode(stringAt(object, "metadata", "name") ?? "", {
          labels: (at(object, "metadata", "labels") ?? {}) as Record<string, string>,
          taints: listAt(object, "spec", "taints") as JsonObject[],
        });
    }
  }, BUILD_MS);

  test("runs usher, which brings its own CRDs, and without policies nothing is changed", {
    timeout: 240_000,
  }, async () => {
    const kubeconfig = await cluster().kubeconfig();
    const objects = deployed({ ...raw, values: RUN });
    const untouched = await shootObjects();
    await noShootPods();
    await succeed("install", objects, kubeconfig);
    await ready();
    expect(await cluster().call("GET", CRD)).toMatchObject({
      metadata: { labels: { "app.kubernetes.io/managed-by": "usher" } },
    });
    expect(await shootObjects()).toEqual(untouched);
    // No request would wait for usher.
    const pods = (await webhooks()).filter((one) => JSON.stringify(one).includes('"pods"'));
    expect(pods.length).toBeGreaterThan(0);
    for (const one of pods) expect(one).toMatchObject({ failurePolicy: "Ignore" });
    await noShootPods();
  });

  test("places etcds on their pool, once the example is applied", { timeout: 120_000 }, async () => {
    await kubectl("apply", "-f", join(ROOT, "examples/gardener/etcd-pool.yaml"));
    const status = async () => at(await cluster().call("GET", POLICY), "status", "observedGeneration");
    await eventually("usher to know the policy", async () => (await status()) === 1);
    const [etcd, other] = await shootPods();
    expect(etcd).toMatchObject({ metadata: { name: "etcd-main-0" }, spec: { nodeName: "etcd-1" } });
    expect(other).toMatchObject({ metadata: { name: "kube-scheduler" }, spec: { nodeName: "worker-1" } });
    expect(at(other, "metadata", "annotations", PROVENANCE)).toBeUndefined();
  });

  test("belongs to Gardener, whose next reconciliation changes nothing, and usher install refuses", {
    timeout: 120_000,
  }, async () => {
    const kubeconfig = await cluster().kubeconfig();
    const before = await cluster().call("GET", ANCHOR);
    expect(before).toMatchObject({
      metadata: {
        labels: { "resources.gardener.cloud/managed-by": "gardener" },
        annotations: { "resources.gardener.cloud/origin": "garden/usher-1" },
      },
    });
    await succeed("install", deployed({ ...raw, values: RUN }), kubeconfig);
    expect(await cluster().call("GET", ANCHOR)).toEqual(before);
    const refused = await program(["install", "--take-over", "--kubeconfig", kubeconfig]);
    expect(refused.code).toBe(1);
    expect(refused.err + refused.out).toContain("Gardener's ManagedResource usher-1 in namespace garden");
    expect(refused.err + refused.out).toContain("change the ControllerDeployment in the garden cluster");
  });

  test("loses usher and its webhooks, and keeps CRDs and policies", { timeout: 240_000 }, async () => {
    const kubeconfig = await cluster().kubeconfig();
    await succeed("remove", deployed(raw), kubeconfig);
    await eventually("no webhooks", async () => (await webhooks()).length === 0, 60_000);
    expect((await cluster().request("GET", POLICY)).status).toBe(200);
  });

  test("accepts policies with the chart, also when their CRDs do not exist yet", {
    timeout: 240_000,
  }, async () => {
    const kubeconfig = await cluster().kubeconfig();
    await cluster().call("DELETE", CRD);
    await eventually("no CRD", async () => (await cluster().request("GET", CRD)).status === 404);
    const policies = documents(readFileSync(join(ROOT, "examples/gardener/etcd-pool.yaml"), "utf8"));
    const objects = deployed({ ...raw, values: { ...RUN, policies } });
    const first = await gardener("install", objects, kubeconfig);
    expect(first).toMatchObject({ code: 1, err: expect.stringContaining("ClusterPodSchedulingPolicy") });
    // gardener-resource-manager retries by itself.
    await eventually(
      "policies to be applied",
      async () => (await gardener("install", objects, kubeconfig)).code === 0,
      120_000,
    );
    expect((await cluster().request("GET", POLICY)).status).toBe(200);
    await succeed("remove", objects, kubeconfig);
    expect((await cluster().request("GET", POLICY)).status).toBe(200);
  });
});
