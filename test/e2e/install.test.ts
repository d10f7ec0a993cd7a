// An installation with the real command line, in its own cluster: webhook configurations and CRDs are cluster-scoped.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { program, type Ran, ROOT } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { configured, installWords } from "./fixtures/install.ts";
import { CRDS, left, OLD_CRD, OLD_WEBHOOK, same, versions } from "./fixtures/installed-objects.ts";
import { isPlaced, POLICIES, placingPolicy } from "./fixtures/placed-pods.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
const CRD =
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpodschedulingpolicies.kupid.gardener.cloud";
const NAMESPACE = "/api/v1/namespaces/usher-system";
const REPLICAS = `${NAMESPACE}/pods?labelSelector=app.kubernetes.io/component%3Dadmission`;
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const CLUSTER_ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/usher";
const VERSION_LABEL = "app.kubernetes.io/version";
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const BOTH_WAYS = {
  topologyKey: "zone",
  labelSelector: {},
  matchLabelKeys: ["app"],
  mismatchLabelKeys: ["app"],
};

describeOwnCluster("an installation", {}, (cluster) => {
  const called = new Set<string>();
  const install = async (...args: string[]): Promise<Ran> => {
    called.add(["usher", "install", ...args].join(" "));
    return program(await installWords(cluster(), ...args));
  };
  const uninstall = async (...args: string[]): Promise<Ran> => {
    called.add(["usher", "uninstall", ...args].join(" "));
    return program(["uninstall", "--kubeconfig", await cluster().kubeconfig(), ...args]);
  };
  const exists = async (path: string) => (await cluster().request("GET", path)).status === 200;
  /** Without the path token, which is replaced when another replica leads. */
  const hook = async (path = MUTATING) => {
    const text = JSON.stringify(at(await cluster().call("GET", path), "webhooks", 0) ?? null);
    return JSON.parse(text.replace(/"path":"\/[0-9a-f]{40}\//, '"path":"/token/')) as Json;
  };
  /** Stable over a reconciliation of the leader: after an install the last old replica may still be ending. */
  const steadyHook = () =>
    eventually("a stable webhook", async () => {
      const before = await hook();
      await pause(4_000);
      return same(await hook(), before) && before;
    });

  /**
   * Whether nothing is written. Up to a minute after a rollout the leader may write new paths of webhooks, once; a mistake would write at
   * each attempt.
   */
  const isUnaffected = async (
    version: () => Promise<Json | undefined>,
    done: () => Promise<void>,
  ): Promise<boolean> => {
    const before = await version();
    await done();
    return same(await version(), before);
  };

  beforeAll(async () => {
    await cluster().createNode("n1");
    await cluster().createNode("n2", { labels: { pool: "etcd" } });
  });

  test("a dry run prints what would be created and creates nothing", async () => {
    const { code, out, err } = await install("--dry-run");
    expect(`${code} ${err}`).toMatch(/^0 /);
    expect(out).toMatch(/^Namespace usher-system +create$/m);
    expect(out).toMatch(/^Deployment usher-system\/usher +create$/m);
    expect(out).toMatch(/^MutatingWebhookConfiguration usher +create +by usher, once it is ready$/m);
    expect(out).toMatch(/objects: \d+ to create, 0 to update, 0 unchanged$/m);
    expect(err).toMatch(/nothing was changed/);
    for (const path of [NAMESPACE, CRD, MUTATING]) expect(await exists(path)).toBe(false);
  });

  test("install ends when replicas answer and webhooks are registered, which place a pod by a policy", async () => {
    const { code, err } = await install();
    expect(`${code} ${err}`).toMatch(/^0 /);
    const deployment = await cluster().call("GET", DEPLOYMENT);
    expect(at(deployment, "status", "readyReplicas")).toBe(2);
    expect(await exists(MUTATING)).toBe(true);
    expect(await exists(VALIDATING)).toBe(true);

    await cluster().call("POST", POLICIES, placingPolicy());
    await eventually("a placed pod", () => isPlaced(cluster()));
    // The validating webhook is called too, by Service reference.
    const refused = await cluster().request("POST", `${POLICIES}?dryRun=All`, {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: "bad" },
      // A mistake that the CRD alone can't detect: the webhook must.
      spec: { podSelector: {}, affinity: { podAffinity: { [REQUIRED]: [BOTH_WAYS] } } },
    });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(stringAt(refused.body, "message")).toMatch(/USHER-E04/);
  });

  test("a second install prints unchanged and changes nothing", async () => {
    await eventually("an installation that writes nothing", () =>
      isUnaffected(
        () => versions(cluster()),
        async () => {
          const { code, out } = await install();
          expect(code).toBe(0);
          expect(out).toMatch(/objects: 0 to create, 0 to update, \d+ unchanged$/m);
        },
      ),
    );
  });

  test("another install keeps settings that its flags do not set, until --defaults resets them", async () => {
    const uses = async () => {
      const deployment = await cluster().call("GET", DEPLOYMENT);
      const map = await cluster().call("GET", `${NAMESPACE}/configmaps/usher-configuration`);
      const spec = JSON.parse(stringAt(map, "data", "configuration.yaml") ?? "").spec;
      return { replicas: at(deployment, "spec", "replicas"), open: spec.openNamespaces };
    };
    const usual = await hook();
    const label = `${RUN_LABEL}=true`;
    const words = async (...args: string[]) => {
      called.add(["usher", "install", ...args].join(" "));
      return program(["install", "--kubeconfig", await cluster().kubeconfig(), ...args]);
    };
    expect((await install("--replicas", "1", ...configured({ openNamespaces: ["kube-public"] }))).code).toBe(
      0,
    );
    const output = { replicas: 1, open: ["kube-public"] };
    expect(await uses()).toEqual(output);
    const generation = at(await cluster().call("GET", DEPLOYMENT), "metadata", "generation");

    const plain = await words();
    expect(`${plain.code} ${plain.err}`).toMatch(/^0 /);
    expect(plain.out).toMatch(/objects: 0 to create, 0 to update, \d+ unchanged$/m);
    expect(plain.out).toContain(
      `kept as installed: the configuration, 1 replica, pod label ${label}; use --defaults`,
    );
    expect(await uses()).toEqual(output);
    expect(at(await cluster().call("GET", DEPLOYMENT), "metadata", "generation")).toBe(generation);

    const back = await words("--defaults", "--pod-label", label);
    expect(`${back.code} ${back.err}`).toMatch(/^0 /);
    expect(await uses()).toEqual({ replicas: 2, open: undefined });
    // The webhooks follow the configuration, once the leader has read it.
    await eventually("the default webhooks", async () => same(await hook(), usual));
  });

  test("a second installation in another namespace is refused, and does not affect the first", async () => {
    await eventually("a refused installation that writes nothing", () =>
      isUnaffected(
        () => versions(cluster()),
        async () => {
          const { code, err } = await install("-n", "foyer");
          expect(code).toBe(1);
          expect(err).toMatch(
            /nothing was changed: usher is in namespace usher-system already .*uninstall -n usher-system/s,
          );
          expect(await exists("/api/v1/namespaces/foyer")).toBe(false);
        },
      ),
    );
    await eventually("a refused removal that writes nothing", () =>
      isUnaffected(
        () => versions(cluster()),
        async () => {
          const other = await uninstall("-n", "foyer", "--custom-resources");
          expect(other.err).toMatch(
            /usher is installed in namespace usher-system.*usher uninstall -n usher-system/s,
          );
          expect(other.err).not.toMatch(/usher is uninstalled/);
        },
      ),
    );
  });

  test("an older install over a newer one is refused with both versions", async () => {
    const label = (version: string) => ({ metadata: { labels: { "app.kubernetes.io/version": version } } });
    const now =
      stringAt(await cluster().call("GET", CLUSTER_ROLE), "metadata", "labels", VERSION_LABEL) ?? "";
    await cluster().call("PATCH", CLUSTER_ROLE, label("99.1.0"));
    const { code, err } = await install();
    expect(code).toBe(1);
    expect(err).toMatch(
      /ClusterRole usher was written by usher 99\.1\.0, and this is \d.*--allow-downgrade/s,
    );
    expect((await install("--allow-downgrade")).code).toBe(0);
    const after = await cluster().call("GET", CLUSTER_ROLE);
    expect(stringAt(after, "metadata", "labels", VERSION_LABEL)).toBe(now);
  });

  test("an edited webhook is repaired, and additions of others are kept", async () => {
    const wanted = await steadyHook();
    await cluster().call("PATCH", MUTATING, {
      metadata: { annotations: { "cloud.example/note": "kept" }, labels: { "cloud.example/team": "kept" } },
    });
    await cluster().call("PATCH", MUTATING, [
      { op: "replace", path: "/webhooks/0/failurePolicy", value: "Fail" },
      { op: "add", path: "/webhooks/0/objectSelector", value: { matchLabels: { never: "matches" } } },
      { op: "add", path: "/webhooks/0/matchConditions", value: [{ name: "off", expression: "false" }] },
      { op: "replace", path: "/webhooks/0/clientConfig/caBundle", value: "" },
    ]);
    await eventually("the repair", async () => same(await hook(), wanted));
    const stored = await cluster().call("GET", MUTATING);
    expect(stringAt(stored, "metadata", "annotations", "cloud.example/note")).toBe("kept");
    expect(stringAt(stored, "metadata", "labels", "cloud.example/team")).toBe("kept");
  });

  test("another address in place of the Service is reverted, and the other configuration is repaired too", async () => {
    const wanted = await hook();
    await cluster().call("PATCH", MUTATING, [
      { op: "replace", path: "/webhooks/0/clientConfig", value: { url: "https://example.com/x" } },
    ]);
    await cluster().call("PATCH", VALIDATING, [
      { op: "replace", path: "/webhooks/0/timeoutSeconds", value: 29 },
    ]);
    await eventually("the address repaired", async () => same(await hook(), wanted));
    await eventually("the other repaired", async () => at(await hook(VALIDATING), "timeoutSeconds") !== 29);
  });

  test("another client's entry in usher's configuration is removed, and a cloud provider's own narrowing stays", async () => {
    const wanted = await hook();
    const expression = { key: "control-plane", operator: "DoesNotExist" };
    await cluster().call("PATCH", MUTATING, [
      { op: "add", path: "/webhooks/1", value: { ...(wanted as JsonObject), name: "other.example.com" } },
      { op: "add", path: "/webhooks/0/namespaceSelector/matchExpressions/-", value: expression },
    ]);
    await eventually("the other entry gone", async () => {
      const entries = listAt(await cluster().call("GET", MUTATING), "webhooks");
      return entries.every((entry) => at(entry, "name") !== "other.example.com");
    });
    expect(listAt(await hook(), "namespaceSelector", "matchExpressions")).toContainEqual(expression);
    // It stays: no controller reverts it, also when the other configuration is repaired.
    await eventually("a repair that writes the other configuration alone", () =>
      isUnaffected(
        async () => stringAt(await cluster().call("GET", MUTATING), "metadata", "resourceVersion"),
        async () => {
          await cluster().call("PATCH", VALIDATING, [
            { op: "replace", path: "/webhooks/0/timeoutSeconds", value: 29 },
          ]);
          await eventually(
            "the other repaired",
            async () => at(await hook(VALIDATING), "timeoutSeconds") !== 29,
          );
        },
      ),
    );
    expect(listAt(await hook(), "namespaceSelector", "matchExpressions")).toContainEqual(expression);
  });

  test("deleted webhooks come back", async () => {
    const uid = stringAt(await cluster().call("GET", VALIDATING), "metadata", "uid");
    await cluster().call("DELETE", VALIDATING);
    await eventually("it to come back", async () => {
      const now = await cluster().request("GET", VALIDATING);
      return now.status === 200 && stringAt(now.body, "metadata", "uid") !== uid;
    });
  });

  test("a deleted certificate is issued again, trusted, and served without a restart", async () => {
    const secret = `${NAMESPACE}/secrets/usher-certificates`;
    const before = stringAt(await cluster().call("GET", secret), "data", "ca.crt");
    await cluster().call("DELETE", secret);
    const after = await eventually("a new certificate", async () => {
      const { status, body } = await cluster().request("GET", secret);
      const ca = stringAt(body, "data", "ca.crt");
      return status === 200 && ca !== before && ca;
    });
    await eventually(
      "the new bundle",
      async () => stringAt(await hook(), "clientConfig", "caBundle") === after,
    );
    // A mutating webhook that can't be called would be skipped: only an answer places the pod. Each replica must have
    // swapped.
    await eventually("both replicas to serve it", async () => {
      const pods = listAt(await cluster().call("GET", REPLICAS), "items");
      const swaps = pods.map((pod) =>
        cluster().podLog("usher-system", stringAt(pod, "metadata", "name") ?? ""),
      );
      return swaps.length === 2 && swaps.every((log) => log.includes("certificate reloaded"));
    });
    const pod = await cluster().call("POST", "/api/v1/namespaces/default/pods?dryRun=All", {
      metadata: { generateName: "p-", labels: { role: "etcd" } },
      spec: { containers: [{ name: "c", image: "any" }] },
    });
    expect(at(pod, "spec", "nodeSelector")).toEqual({ pool: "etcd" });
    for (const one of listAt(await cluster().call("GET", REPLICAS), "items"))
      expect(at(one, "status", "containerStatuses", 0, "restartCount")).toBe(0);
  });

  test("before a certificate expires the next one is issued and trusted beside it, and calls succeed", async () => {
    const secret = `${NAMESPACE}/secrets/usher-certificates`;
    const ageing = await makeCertificate(
      ["usher.usher-system.svc", "usher.usher-system", "usher.usher-system.svc.cluster.local"],
      Date.now() - 300 * 86_400_000,
    );
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const data = {
      "tls.crt": base64(ageing.cert),
      "tls.key": base64(ageing.key),
      "ca.crt": base64(ageing.ca),
    };
    await cluster().call("PATCH", secret, { data });
    const next = await eventually("the next certificate", async () => {
      const found = stringAt(await cluster().call("GET", secret), "data", "next-ca.crt");
      return found === undefined ? undefined : Buffer.from(found, "base64").toString();
    });
    await eventually("both CAs in the bundle", async () => {
      const bundle = Buffer.from(
        stringAt(await hook(), "clientConfig", "caBundle") ?? "",
        "base64",
      ).toString();
      return bundle.includes(ageing.ca.trim()) && bundle.includes(next.trim());
    });
    // The old one is still served: the next is only trusted. The API server finds its CA among two of the same name.
    expect(stringAt(await cluster().call("GET", secret), "data", "tls.crt")).toBe(base64(ageing.cert));
    await eventually("a placed pod", async () => {
      const pod = await cluster().call("POST", "/api/v1/namespaces/default/pods?dryRun=All", {
        metadata: { generateName: "p-", labels: { role: "etcd" } },
        spec: { containers: [{ name: "c", image: "any" }] },
      });
      return at(pod, "spec", "nodeSelector") !== undefined;
    });
  });

  test("usher had all permissions that it needed, and read no secrets but its own", () => {
    const mine = cluster()
      .auditLog()
      .filter(({ user }) => user.username === "system:serviceaccount:usher-system:usher");
    expect(mine.length).toBeGreaterThan(20);
    const refused = mine.filter(({ responseStatus }) => responseStatus?.code === 403);
    expect(refused.map(({ verb, objectRef }) => `${verb} ${objectRef?.resource}/${objectRef?.name}`)).toEqual(
      [],
    );
    const secrets = mine.filter(({ objectRef }) => objectRef?.resource === "secrets");
    expect(new Set(secrets.map(({ objectRef }) => objectRef?.name))).toEqual(new Set(["usher-certificates"]));
  });

  test("a namespace with objects of others would stay, even one named like usher's, and the plan lists them", async () => {
    const meta = (name: string) => ({ metadata: { name } });
    const job = { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "any" }] } } };
    const unmanaged: readonly (readonly [string, JsonObject, string])[] = [
      [
        "/apis/batch/v1/namespaces/usher-system/cronjobs",
        { ...meta("backup"), spec: { schedule: "0 0 1 1 *", jobTemplate: { spec: job } } },
        "CronJob backup",
      ],
      [`${NAMESPACE}/secrets`, meta("usher-database"), "Secret usher-database"],
      [
        "/apis/kupid.gardener.cloud/v1alpha1/namespaces/usher-system/podschedulingpolicies",
        {
          apiVersion: "kupid.gardener.cloud/v1alpha1",
          kind: "PodSchedulingPolicy",
          ...meta("own"),
          spec: { podSelector: { matchLabels: { no: "pod" } }, nodeSelector: { pool: "etcd" } },
        },
        "PodSchedulingPolicy own",
      ],
    ];
    for (const [path, object, what] of unmanaged) {
      await cluster().call("POST", path, object);
      const { code, out } = await uninstall("--dry-run");
      expect(code).toBe(0);
      expect(out).toMatch(
        new RegExp(`^Namespace usher-system +stays +contains unmanaged objects: ${what}$`, "m"),
      );
      await cluster().call("DELETE", `${path}/${stringAt(object, "metadata", "name")}`);
    }
  });

  test("uninstall leaves only the CRDs and the policies in them", async () => {
    const dry = await uninstall("--dry-run");
    expect(dry.code).toBe(0);
    expect(dry.out).toMatch(/clusterpodschedulingpolicies.kupid.gardener.cloud +stays +holds 1 policy/);
    expect(await exists(MUTATING)).toBe(true);

    const { code, out, err } = await uninstall();
    expect(`${code} ${err}`).toMatch(/^0 /);
    const order = out.split("\n").map((line) => line.split(/ {2,}/)[0] ?? "");
    expect(order.indexOf("MutatingWebhookConfiguration usher")).toBeLessThan(
      order.indexOf("Deployment usher-system/usher"),
    );
    expect(out).toMatch(/^Namespace usher-system +delete$/m);
    await eventually("the namespace gone", async () => !(await exists(NAMESPACE)));
    expect(await left(cluster())).toEqual([
      "CustomResourceDefinition clusterpodschedulingpolicies.kupid.gardener.cloud",
      "CustomResourceDefinition labels.node-labels.openshift.io",
      "CustomResourceDefinition ownedlabels.node-labels.openshift.io",
      "CustomResourceDefinition podschedulingpolicies.kupid.gardener.cloud",
      "CustomResourceDefinition projectrequestlimits.operator.project.openshift.io",
      "CustomResourceDefinition projectusages.usher.dev",
    ]);
    expect(await exists(`${POLICIES}/etcd`)).toBe(true);
  });

  test("uninstall --custom-resources removes the rest, and prints how many policies go", async () => {
    const { code, out } = await uninstall("--custom-resources");
    expect(code).toBe(0);
    expect(out).toMatch(/clusterpodschedulingpolicies.kupid.gardener.cloud +delete +with 1 policy/);
    await eventually("the CRD gone", async () => !(await exists(CRD)));
    expect((await uninstall()).out).toBe("usher is not installed\n");
  });

  test("leftovers of another installation stop an install, which names them and changes nothing", async () => {
    await cluster().call("POST", CRDS, OLD_CRD);
    await cluster().call("POST", `${HOOKS}/mutatingwebhookconfigurations`, OLD_WEBHOOK);
    await eventually("the old kind served", async () => exists(POLICIES));
    await cluster().call("POST", POLICIES, {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: "stored-before" },
      spec: {
        podSelector: { matchExpressions: [{ key: "a", operator: "Inn" }] },
        nodeSelector: { pool: "etcd" },
      },
    });
    const before = stringAt(await cluster().call("GET", CRD), "metadata", "resourceVersion");
    const { code, out, err } = await install();
    expect(code).toBe(1);
    expect(out).toMatch(/clusterpodschedulingpolicies.kupid.gardener.cloud +not changed +belongs to kupid/);
    expect(err).toMatch(
      /its schema does not have spec\.[^:]*spec\.priority[^:]*spec\.namespaceSelector, spec\.fromNamespace: the API server prunes these/,
    );
    expect(err).toMatch(/MutatingWebhookConfiguration gardener-extension-kupid exists/);
    expect(err).toMatch(/1 stored policy is not valid\n +ClusterPodSchedulingPolicy stored-before: .*Inn/);
    expect(err).toMatch(/--take-over/);
    expect(await exists(NAMESPACE)).toBe(false);
    expect(stringAt(await cluster().call("GET", CRD), "metadata", "resourceVersion")).toBe(before);
  });

  test("install --leave-conflicting reports what it leaves", async () => {
    const { code, out } = await install("--leave-conflicting", "--dry-run");
    expect(code).toBe(0);
    expect(out).toMatch(/clusterpodschedulingpolicies.kupid.gardener.cloud +not changed/);
    expect(out).toMatch(/^CustomResourceDefinition podschedulingpolicies.kupid.gardener.cloud +create$/m);
  });

  test("install --take-over makes the CRD usher's; the broken policy stays, is reported, and is harmless", async () => {
    const { code, out, err } = await install("--take-over");
    expect(`${code} ${err}`).toMatch(/^0 /);
    expect(out).toMatch(/clusterpodschedulingpolicies.kupid.gardener.cloud +update +adopted from kupid/);
    const adopted = await cluster().call("GET", CRD);
    const fields = at(
      adopted,
      "spec",
      "versions",
      0,
      "schema",
      "openAPIV3Schema",
      "properties",
      "spec",
      "properties",
    );
    expect(Object.keys(fields as JsonObject)).toContain("priority");
    expect(await exists(`${POLICIES}/stored-before`)).toBe(true);
    await eventually("the report in the leader's log", async () => {
      const pods = listAt(await cluster().call("GET", REPLICAS), "items");
      const logs = pods.map((pod) =>
        cluster().podLog("usher-system", stringAt(pod, "metadata", "name") ?? ""),
      );
      return logs.some((log) => log.includes("stored-before") && log.includes("gardener-extension-kupid"));
    });
    const pod = await cluster().call("POST", "/api/v1/namespaces/default/pods?dryRun=All", {
      metadata: { generateName: "p-", labels: { a: "b" } },
      spec: { containers: [{ name: "c", image: "any" }] },
    });
    expect(at(pod, "spec", "nodeSelector")).toBeUndefined();
    const secret = `${NAMESPACE}/secrets/usher-database`;
    await cluster().call("POST", `${NAMESPACE}/secrets`, { metadata: { name: "usher-database" } });
    const gone = await uninstall("--custom-resources");
    expect(`${gone.code} ${gone.err}`).toMatch(/^0 .*usher is uninstalled/s);
    expect(gone.out).toMatch(
      /^Namespace usher-system +stays +contains unmanaged objects: Secret usher-database$/m,
    );
    // A CRD is deleted after its objects.
    await eventually("all of usher gone", async () => (await left(cluster())).length === 0);
    expect(await exists(DEPLOYMENT)).toBe(false);
    expect(at(await cluster().call("GET", NAMESPACE), "metadata", "deletionTimestamp")).toBeUndefined();
    expect(await exists(secret)).toBe(true);
    expect(await exists(`${HOOKS}/mutatingwebhookconfigurations/gardener-extension-kupid`)).toBe(true);
  });

  test("the commands in docs/installing.md are those that ran here", () => {
    const text = readFileSync(join(ROOT, "docs/installing.md"), "utf8");
    const blocks = [...text.matchAll(/^```sh cluster\n([\s\S]*?)^```/gm)].flatMap(
      ([, block]) => block?.trim().split("\n") ?? [],
    );
    expect(blocks.length).toBeGreaterThan(5);
    const missing = blocks.filter((line) => ![...called].some((one) => one.startsWith(line)));
    expect(missing).toEqual([]);
  });
});
