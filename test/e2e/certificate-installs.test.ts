// Every way to use certificates of others, installed in real pods, and webhooks that an administrator writes.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { controlPlanePolicy } from "../builders/guard.ts";
import { folder, program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster, LONG } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { TestAuthority } from "../support/operator/authority.ts";
import { ServiceCa, secretData, startCertManager } from "./certifying/makers.ts";
import { CHART, Helm, valuesFlag } from "./fixtures/helm.ts";
import { configured, installWords, REPLICAS } from "./fixtures/install.ts";
import {
  entriesOf,
  isClosed,
  isPlaced,
  placingPolicy,
  webhooksGone,
  whilePlacing,
} from "./fixtures/placed-pods.ts";
import { create, ledgerOf, SETUP, tenant } from "./fixtures/project-limits.ts";

const SECRETS = "/api/v1/namespaces/usher-system/secrets";
const LEASE = "/apis/coordination.k8s.io/v1/namespaces/usher-system/leases/usher";
const SERVING = "usher-serving-certificate";
const BUILD_MS = 30 * 60_000;
const LONG_MS = 240_000;
const POLICY = placingPolicy({ failurePolicy: "Fail" });

describeOwnCluster("certificates of others, in pods", {}, (cluster) => {
  const home = mkdtempSync(join(tmpdir(), "usher-helm-"));
  let helm: Helm | undefined;
  beforeAll(async () => {
    helm = new Helm(await ensureTool("helm"), home);
    await cluster().createNode("n1");
    for (const name of ["usher-system", "excluded"])
      await cluster().call("POST", "/api/v1/namespaces", { metadata: { name } });
  }, BUILD_MS);
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  const runHelm = async (...args: string[]) => {
    const where = ["--kubeconfig", await cluster().kubeconfig(), "-n", "usher-system"];
    return (helm as Helm).run(...args, "--wait", "--timeout=100s", ...where);
  };
  const succeeds = async (...args: string[]) => {
    const ran = await runHelm(...args);
    expect(ran, `${args[0]}\n${ran.out}\n${ran.err}`).toMatchObject({ code: 0 });
  };
  const chart = (action: string, configuration: JsonObject) => {
    const values = { replicas: 1, podLabels: { [RUN_LABEL]: "true" }, configuration, policies: [POLICY] };
    return [action, "usher", CHART, ...valuesFlag(values)];
  };
  const places = async () => {
    await eventually("a closed hook", () => isClosed(cluster()), 30_000);
    await eventually("a placed pod", () => isPlaced(cluster()));
  };
  const forget = async () => {
    await webhooksGone(cluster());
    // Its issuer leaves it in place.
    await cluster().call("DELETE", `${SECRETS}/${SERVING}`);
    // This long after the last leader: the next one waits for the lease to expire.
    await cluster().request("DELETE", LEASE);
  };
  const usherMay = async (...what: string[]) => {
    const account = "--as=system:serviceaccount:usher-system:usher";
    const { stdout } = await cluster().kubectl(["auth", "can-i", ...what, "-n", "usher-system", account]);
    return stdout.trim();
  };

  test(
    "CertManager, by the chart: serves, and usher install refuses to change it",
    async () => {
      using _maker = await startCertManager(cluster());
      await succeeds(...chart("install", { certificates: "CertManager", excludedNamespaces: ["excluded"] }));
      await places();
      expect(await usherMay("get", "secrets")).toBe("no");
      // Usher is not called for an excluded namespace: the fail-closed policy has no effect there.
      const excluded = "/api/v1/namespaces/excluded/pods?dryRun=All";
      const pod = {
        metadata: { name: "p", labels: { role: "etcd" } },
        spec: { containers: [{ name: "c", image: "any" }] },
      };
      expect(at(await cluster().call("POST", excluded, pod), "spec", "nodeSelector")).toBeUndefined();

      const other = await installWords(cluster(), "--take-over", ...configured({ certificates: "Own" }));
      expect(await program(other)).toMatchObject({
        code: 1,
        err: expect.stringContaining(
          "nothing was changed: certificates can't change from CertManager to Own",
        ),
      });
      await succeeds("uninstall", "usher");
      await forget();
      const certificates = "/apis/cert-manager.io/v1/namespaces/usher-system/certificates";
      expect(listAt(await cluster().call("GET", certificates), "items")).toEqual([]);
    },
    LONG_MS,
  );

  const waitsForInjector = async () => {
    using serviceCa = await ServiceCa.start(cluster());
    const words = await installWords(
      cluster(),
      "--replicas",
      "1",
      ...configured({ certificates: "ServiceCA" }),
    );
    expect(await program([...words, "--no-wait"])).toMatchObject({ code: 0 });
    await eventually("entries", async () => (await entriesOf(cluster())).length > 0, 60_000);
    const early = await program([...words, "--timeout", "1"]);
    expect(early.code).toBe(3);
    expect(early.err).toMatch(/has no caBundle.*the service CA's injector writes it/);
    expect(await isClosed(cluster())).toBe(false);
    serviceCa.injects = true;
    expect(await program(words)).toMatchObject({ code: 0 });
    // Not before its end: the objects that it waits for.
    expect(await isClosed(cluster())).toBe(true);
    await places();
    const uninstall = ["uninstall", "--kubeconfig", await cluster().kubeconfig()];
    expect(await program(uninstall)).toMatchObject({ code: 0 });
    await forget();
  };
  // certificates.test.ts also covers this mode, in one process.
  if (LONG)
    test(
      "ServiceCA, a stand-in, by usher install, which waits for the injector and names it",
      waitsForInjector,
      LONG_MS,
    );

  test(
    "Secret, by the chart: serves, refuses a change to another mode, and works with webhooks that the administrator writes",
    async () => {
      const made = await (await TestAuthority.create("mine")).sign({ names: ["usher.usher-system.svc"] });
      await cluster().call("POST", SECRETS, {
        metadata: { name: SERVING },
        type: "kubernetes.io/tls",
        data: secretData({ "tls.crt": made.cert, "tls.key": made.key, "ca.crt": made.ca }),
      });
      await succeeds(...chart("install", { certificates: "Secret" }));
      await places();

      // A refused change has changed nothing.
      const changed = await whilePlacing(cluster(), () =>
        runHelm(...chart("upgrade", { certificates: "Own" })),
      );
      expect(changed).toMatchObject({ failed: [], done: { code: 1 } });
      const hooks =
        "/api/v1/namespaces/usher-system/pods?labelSelector=batch.kubernetes.io/job-name%3Dusher-crds";
      const [refusing] = listAt(await cluster().call("GET", hooks), "items");
      expect(cluster().podLog("usher-system", stringAt(refusing, "metadata", "name") ?? "")).toContain(
        "certificates can't change from Secret usher-serving-certificate to Own",
      );

      const configuration = {
        certificates: "Secret",
        manageWebhooks: false,
        featureGates: { OpenShiftNodeSchedulingPolicy: true },
        modules: { "node-guard": { fallback: true } },
      };
      const upgraded = await whilePlacing(cluster(), () => succeeds(...chart("upgrade", configuration)));
      expect(upgraded.failed).toEqual([]);
      expect(await usherMay("patch", "mutatingwebhookconfigurations/usher")).toBe("no");

      // A limit needs a record before it allows, and hooks that are not applied yet.
      const limit = {
        apiVersion: "operator.project.openshift.io/v1",
        kind: "ProjectRequestLimit",
        metadata: { name: "cluster" },
        spec: {
          limits: [0, 1].map((max) => ({ groups: [`limit-${max}`], maxProjects: max })),
          namespaces: {},
        },
      };
      const guard = controlPlanePolicy();
      await cluster().apply(...SETUP, limit, guard);
      const drift = async (object: string) => {
        const [pod] = listAt(await cluster().call("GET", REPLICAS), "items");
        const port = await cluster().localPort(stringAt(pod, "status", "podIP") ?? "", 8080);
        const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
        const [, figure] =
          new RegExp(`^usher_object_drift\\{object="${object}"\\} (\\d+)$`, "m").exec(text) ?? [];
        return figure === undefined ? undefined : Number(figure);
      };
      await eventually("drift", async () => {
        const policy = await drift("ValidatingAdmissionPolicy usher-node-guard-[a-z-]+");
        return policy === 1 && ((await drift("ValidatingWebhookConfiguration usher")) ?? 0) > 0;
      });

      const files = folder({
        "ca.pem": made.ca,
        "policies.yaml": [POLICY, limit, guard].map((one) => JSON.stringify(one)).join("\n---\n"),
      });
      const { major, minor } = (await cluster().call("GET", "/version")) as JsonObject;
      const known = configured({ ...configuration, kubernetesVersion: `${major}.${minor}` });
      const print = async () => {
        const source = ["--source", join(files, "policies.yaml"), "--ca-bundle", join(files, "ca.pem")];
        const printed = await program(["manifests", "--webhooks", ...known, ...source]);
        expect(printed, printed.err).toMatchObject({ code: 0 });
        return printed.out;
      };
      const apply = async (text: string) => {
        const apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        expect(await cluster().kubectl(apply, { input: text })).toMatchObject({ code: 0 });
      };
      await apply(await print());
      await eventually("no drift", async () => (await drift("ValidatingWebhookConfiguration usher")) === 0);
      const ann = tenant("ann", 1);
      await eventually("the limit", async () => {
        const { body } = await create(cluster(), "Namespace", tenant("nobody", 0), "probe", {
          query: "?dryRun=All",
        });
        return stringAt(body, "message")?.includes("USHER-Q01") === true;
      });
      // The next request carries the new token.
      await apply(await print());
      const first = await create(cluster(), "Namespace", ann, "ann-1");
      expect(first, JSON.stringify(first.body)).toMatchObject({ status: 201 });
      expect(await ledgerOf(cluster(), "ann")).toEqual(["ann-1"]);
      const second = await create(cluster(), "Namespace", ann, "ann-2");
      expect(stringAt(second.body, "message")).toContain("USHER-Q01");
      expect(await isPlaced(cluster())).toBe(true);
    },
    LONG_MS,
  );
});
