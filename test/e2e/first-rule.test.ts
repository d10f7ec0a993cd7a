// The first policy, end to end: the commands of an administrator and a user, on a real control plane.
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { applyPatch } from "rfc6902";
import { beforeAll, expect, test } from "vitest";
import { at, isObject, type Json, type JsonObject, listAt, setOwn, stringAt } from "../../src/core/json.ts";
import { PROVENANCE, provenanceOf } from "../../src/core/provenance/annotation.ts";
import { customResourceDefinition } from "../../src/core/registration/crd.ts";
import { readManifests } from "../../src/files/reader/read-documents.ts";
import { nodeGuard } from "../../src/modules/node-guard/index.ts";
import { folder, program, ROOT } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured, install } from "./fixtures/install.ts";

const FIXTURES = join(import.meta.dirname, "..", "fixtures", "first-rule");
const POLICY = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies/etcd-pool";
const DEPLOYMENT = "/apis/apps/v1/namespaces/shop/deployments/etcd-proxy";
const PODS = "/api/v1/namespaces/shop/pods";
const DEVELOPER = { user: "dev", groups: ["developers"] };

interface Typed {
  readonly error: string;
  readonly stdout: string;
  readonly stderr: string;
}

const fixture = (name: string): string => join(FIXTURES, name);

describeOwnCluster("the first policy, end to end", {}, (cluster) => {
  const kubectl = async (as: typeof DEVELOPER | undefined, ...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cluster().kubectl(args, as === undefined ? {} : { as });
    expect(stderr).not.toMatch(/Error/);
    expect(code).toBe(0);
    return stdout;
  };

  beforeAll(async () => {
    await cluster().createNode("worker-0");
    await cluster().createNode("etcd-0", { labels: { pool: "etcd" } });
    await cluster().createNode("etcd-1", { labels: { pool: "etcd" } });
  });

  test("an administrator installs usher and applies a policy", async () => {
    await install(cluster());
    // Usher has nothing to do, so it is not called.
    expect(await asksAboutPods()).toBe(false);
    await kubectl(undefined, "apply", "-f", fixture("namespace.yaml"), "-f", fixture("policy.yaml"));
    await kubectl(
      undefined,
      "create",
      "rolebinding",
      "dev",
      "-n",
      "shop",
      "--clusterrole=edit",
      "--group=developers",
    );
    // The replicas follow by watch; until both know the policy a pod may bypass it, because the hook is fail-open.
    await eventually("the policy in force in both replicas", async () => {
      const pods = await Promise.all(Array.from({ length: 6 }, () => dryRunPod("shop")));
      return pods.every((pod) => stringAt(pod, "spec", "nodeSelector", "pool") === "etcd");
    });
  });

  const dryRunPod = (namespace: string): Promise<Json> =>
    cluster().call("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      metadata: { generateName: "probe-", labels: { app: "etcd" } },
      spec: { containers: [{ name: "c", image: "any" }] },
    });

  /** Whether the API server calls usher for every new pod, or only for pods with usher's annotations. */
  const asksAboutPods = async (): Promise<boolean> => {
    const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/usher";
    return listAt(await cluster().call("GET", path), "webhooks").some(
      (entry) =>
        listAt(entry, "rules").some(
          (rule) =>
            listAt(rule, "resources").includes("pods") && listAt(rule, "operations").includes("CREATE"),
        ) && !listAt(entry, "matchConditions").some((one) => at(one, "name") === "has-annotation"),
    );
  };

  test("a first policy that selects no node is warned about, and its status reports when it takes effect", async () => {
    expect(await asksAboutPods()).toBe(true);
    const status = await eventually("the status", async () => {
      const found = at(await cluster().call("GET", POLICY), "status");
      return listAt(found, "conditions").some((one) => at(one, "reason") === "InEffect") && found;
    });
    expect(status).toMatchObject({ nodes: 2 });
    const { headers } = await cluster().request("PATCH", `${POLICY}?dryRun=All`, {
      spec: { nodeSelector: { pool: "gone" } },
    });
    expect(headers["warning"]).toContain("selects 0 of 3 nodes: pods that get it stay pending");
  });

  test("a user with only edit rights creates a Deployment and a bare pod, and both have the nodeSelector", async () => {
    await kubectl(DEVELOPER, "create", "-f", fixture("workload.yaml"));
    const deployment = await cluster().call("GET", DEPLOYMENT);
    expect(at(deployment, "spec", "template", "spec", "nodeSelector")).toEqual({ pool: "etcd" });
    expect(at(await cluster().call("GET", `${PODS}/etcd-debug`), "spec", "nodeSelector")).toEqual({
      pool: "etcd",
    });
    const [origin] = provenanceOf(deployment as JsonObject);
    expect(origin).toMatchObject({
      module: "placement",
      policy: "ClusterPodSchedulingPolicy/etcd-pool",
      generation: 1,
    });
    expect(origin?.uid).toBe(stringAt(await cluster().call("GET", POLICY), "metadata", "uid"));
  });

  test("the real scheduler places all of them on the labelled nodes", async () => {
    const nodes = await eventually("three pods on nodes", async () => {
      const pods = listAt(await cluster().call("GET", PODS), "items");
      const placed = pods.map((pod) => stringAt(pod, "spec", "nodeName") ?? "").filter((name) => name !== "");
      return placed.length === 3 ? placed : undefined;
    });
    for (const node of nodes) expect(node).toMatch(/^etcd-/);
  });

  test("one ReplicaSet exists, and no extra one after the policy has changed", async () => {
    const sets = async () =>
      listAt(await cluster().call("GET", "/apis/apps/v1/namespaces/shop/replicasets"), "items");
    expect(await sets()).toHaveLength(1);
    await cluster().call("PATCH", POLICY, { spec: { nodeSelector: { pool: "etcd", disk: "nvme" } } });
    await kubectl(DEVELOPER, "annotate", "-n", "shop", "deployment/etcd-proxy", "touched=yes");
    await kubectl(DEVELOPER, "scale", "-n", "shop", "deployment/etcd-proxy", "--replicas=1");
    await eventually("the scaled Deployment", async () => {
      return at(await cluster().call("GET", DEPLOYMENT), "status", "replicas") === 1;
    });
    expect(await sets()).toHaveLength(1);
    await cluster().call("PATCH", POLICY, { spec: { nodeSelector: { disk: null } } });
  });

  test("the policy's status shows it, and kubectl prints it", async () => {
    const status = await eventually(
      "the status",
      async () => {
        const found = at(await cluster().call("GET", POLICY), "status");
        // No node had the label of the test before.
        const effective = listAt(found, "conditions").find((one) => at(one, "type") === "Effective");
        return Number(at(found, "applied") ?? 0) > 0 && at(effective, "status") === "True"
          ? found
          : undefined;
      },
      120_000,
    );
    expect(status).toMatchObject({
      conditions: [
        { type: "Valid", status: "True" },
        { type: "Effective", status: "True" },
      ],
    });
    expect(stringAt(status, "lastApplied")).toMatch(/^20\d\d-/);
    expect(await kubectl(undefined, "get", "cpsp")).toMatch(
      /NAME +PRIORITY +MATCHED +APPLIED +VALID +AGE\netcd-pool .* True /,
    );
  });

  test("its events show it, counted", async () => {
    await eventually(
      "an event about the policy",
      async () => {
        const events = listAt(await cluster().call("GET", "/apis/events.k8s.io/v1/events"), "items");
        return events.some(
          (event) =>
            at(event, "reason") === "PlacementApplied" && at(event, "regarding", "name") === "etcd-pool",
        );
      },
      60_000,
    );
  });

  test("review on the same files, offline and against the cluster, gives the same objects", async () => {
    const kubeconfig = await cluster().kubeconfig();
    const offline = await program(["review", fixture("workload.yaml"), "--source", FIXTURES, "-o", "json"]);
    const live = await program([
      "review",
      fixture("workload.yaml"),
      "--cluster",
      "--kubeconfig",
      kubeconfig,
      "-o",
      "json",
    ]);
    expect(offline).toMatchObject({ code: 0 });
    expect(live).toMatchObject({ code: 0 });
    const patches = ({ out }: { out: string }) =>
      listAt(JSON.parse(out) as Json, "results").map((one) => at(one, "patch"));
    expect(withoutState(patches(live))).toEqual(withoutState(patches(offline)));

    const { manifests } = readManifests(readFileSync(fixture("workload.yaml"), "utf8"));
    for (const [i, path] of [DEPLOYMENT, `${PODS}/etcd-debug`].entries()) {
      const created = await cluster().call("GET", path);
      const written = structuredClone(manifests[i]?.value) as JsonObject;
      const operations = (patches(offline)[i] ?? []) as unknown as Parameters<typeof applyPatch>[1];
      // Patches are relative to the object with the server's defaults; the manifest without defaults has the same
      // paths.
      applyPatch(
        written,
        operations.filter(({ path: place }) => !place.startsWith("/metadata")),
      );
      const spec = i === 0 ? ["spec", "template", "spec", "nodeSelector"] : ["spec", "nodeSelector"];
      expect(at(created, ...spec)).toEqual(at(written, ...spec));
    }
  });

  test("without the last policy usher is called only for objects that it placed, which are still restored", async () => {
    await cluster().call("DELETE", POLICY);
    await eventually("no call for pods", async () => !(await asksAboutPods()));
    // API servers follow by watch.
    const restored = await cluster().call("PATCH", DEPLOYMENT, {
      spec: { template: { spec: { nodeSelector: null } } },
    });
    expect(at(restored, "spec", "template", "spec", "nodeSelector")).toEqual({ pool: "etcd" });
  });

  test("the commands of docs/first-policy.md do what it says, in its order", async () => {
    const text = readFileSync(join(ROOT, "docs/first-policy.md"), "utf8");
    const steps = [...text.matchAll(/^```console cluster\n([\s\S]*?)^```/gm)].flatMap(([, block = ""]) =>
      block
        .split(/^\$ /m)
        .slice(1)
        .map((part) => part.trim().split("\n")),
    );
    expect(steps.length).toBeGreaterThan(20);
    for (const name of ["node-1", "node-2", "node-3"]) await cluster().createNode(name);
    const place = folder({ "bin/.keep": "" });
    symlinkSync(cluster().info.kubectl, join(place, "bin/kubectl"));
    const PATH = `${place}/bin:${ROOT}/bin:${process.env["PATH"]}`;
    const env = { ...process.env, KUBECONFIG: await cluster().kubeconfig(), PATH };
    for (const [command = "", ...prints] of steps) {
      // Not synchronously: connections of the API server to the replicas go through this process.
      const { error, stdout, stderr } = await new Promise<Typed>((resolve) =>
        execFile("sh", ["-c", command], { cwd: place, env }, (failed, out, err) =>
          resolve({ error: failed?.message ?? "", stdout: out, stderr: err }),
        ),
      );
      expect({ command, error }).toEqual({ command, error: "" });
      // Columns are as wide as the cluster's names.
      const said = `${stdout}${stderr}`.replaceAll(/ +/g, " ");
      for (const line of prints) expect(said, command).toContain(line.replaceAll(/ +/g, " "));
      // Its reader takes longer for the next command than the API server and both replicas for the policy.
      if (command.startsWith("kubectl wait"))
        await eventually("the policy in force in both replicas", async () => {
          const pods = await Promise.all(Array.from({ length: 6 }, () => dryRunPod("reports")));
          return pods.every((pod) => stringAt(pod, "spec", "nodeSelector", "pool") === "data");
        });
    }
  });

  test("a disabled module or gate leaves no status that claims an effect, and a write is warned about", async () => {
    const guard = nodeGuard.kinds.find(({ kind }) => kind === "NodeSchedulingPolicy");
    if (guard === undefined) throw new Error("no kind");
    await cluster().apply(customResourceDefinition(guard));
    await kubectl(undefined, "apply", "-f", fixture("policy.yaml"));
    const GUARD = "/apis/scheduling.openshift.io/v1alpha1/nodeschedulingpolicies";
    const object = {
      apiVersion: "scheduling.openshift.io/v1alpha1",
      kind: "NodeSchedulingPolicy",
      metadata: { name: "cluster" },
    };
    await eventually("the kind", async () => (await cluster().request("POST", GUARD, object)).status === 201);
    await install(cluster(), ...configured({ modules: { placement: { enabled: false } } }));
    for (const path of [POLICY, `${GUARD}/cluster`])
      await eventually(`the status of ${path}`, async () => {
        const conditions = listAt(await cluster().call("GET", path), "status", "conditions");
        return conditions.map((one) => `${at(one, "type")}=${at(one, "status")}`).join() === "Ignored=True";
      });
    // A replica with the earlier configuration may still end, and answer over a connection from before.
    const isWarned = (path: string, change: JsonObject, text: string) =>
      eventually(text, async () => {
        const { headers } = await cluster().request("PATCH", `${path}?dryRun=All`, change);
        return String(headers["warning"]).includes(text);
      });
    await isWarned(
      POLICY,
      { spec: { priority: 7 } },
      "usher ignores this ClusterPodSchedulingPolicy: spec.modules.placement.enabled is not true",
    );
    await isWarned(
      `${GUARD}/cluster`,
      { spec: { groups: [{ name: "ControlPlane", mode: "Inform" }] } },
      "usher ignores this NodeSchedulingPolicy: spec.featureGates.OpenShiftNodeSchedulingPolicy is not true",
    );
  });
});

/** Patches without the values that only a cluster has for a policy: its uid and generation. */
function withoutState(patches: readonly (Json | undefined)[]): Json {
  return JSON.parse(
    JSON.stringify(patches, (key, value: unknown) =>
      key === PROVENANCE && typeof value === "string" ? bare(value) : value,
    ),
  ) as Json;
}

function bare(text: string): string {
  return JSON.stringify(JSON.parse(text), (_key, value: Json) => {
    if (!isObject(value)) return value;
    const kept: Record<string, Json | undefined> = {};
    for (const name of Object.keys(value)) {
      const inner = value[name];
      if (name !== "uid" && name !== "generation" && inner !== undefined) setOwn(kept, name, inner);
    }
    return kept;
  });
}
