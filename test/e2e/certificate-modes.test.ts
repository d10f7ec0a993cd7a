// Certificates that others make, under closed hooks of a real API server: every rotation happens while a client creates pods. cert-manager
// is its own code; the service CA is a stand-in that signs and injects as it does.
import { execFileSync, spawn } from "node:child_process";
import { beforeAll, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/module/installation.ts";
import { certificateObjects, SERVING_SECRET } from "../../src/core/registration/certificates.ts";
import { allModules } from "../../src/modules/all.ts";
import { eventually } from "../cluster/access/wait.ts";
import { findGo } from "../cluster/binaries/places.ts";
import { BUILD_FOLDER } from "../cluster/binaries/recipes.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { TestAuthority } from "../support/operator/authority.ts";
import { mountedUsher, NAMESPACE, SECRET } from "./fixtures/mounted-usher.ts";
import { createUsherService } from "./fixtures/usher-service.ts";
import { installKinds } from "./live-source.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const CONFIGURATIONS = ["mutating", "validating"].map(
  (kind) => `${HOOKS}/${kind}webhookconfigurations/usher`,
);
const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const NAMES = [`usher.${NAMESPACE}.svc`];
const base64 = (text: string): string => Buffer.from(text).toString("base64");

describeOwnCluster("certificates that others make", { without: ["kube-scheduler", "kwok"] }, (cluster) => {
  let clusterIP = "";

  beforeAll(async () => {
    await installKinds(cluster(), allModules);
    clusterIP = await createUsherService(cluster(), NAMESPACE);
    await cluster().call("POST", "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies", {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: "etcd" },
      spec: { namespaceSelector: {}, podSelector: {}, nodeSelector: { pool: "etcd" }, failurePolicy: "Fail" },
    });
  });

  const create = async () =>
    cluster().request("POST", "/api/v1/namespaces/default/pods?dryRun=All", {
      metadata: { generateName: "p-" },
      spec: { containers: [{ name: "c", image: "any" }] },
    });
  const entries = async () => {
    const found = await Promise.all(CONFIGURATIONS.map((path) => cluster().request("GET", path)));
    return found.flatMap(({ body }) => listAt(body, "webhooks"));
  };
  const isClosed = async () => (await entries()).some((one) => stringAt(one, "failurePolicy") === "Fail");
  const isPlaced = async () => stringAt((await create()).body, "spec", "nodeSelector", "pool") === "etcd";
  const bundles = async () =>
    (await entries()).map((one) =>
      Buffer.from(stringAt(one, "clientConfig", "caBundle") ?? "", "base64").toString(),
    );
  const forget = async () => {
    for (const path of CONFIGURATIONS) await cluster().request("DELETE", path);
    await cluster().request("DELETE", SECRET);
  };

  /** Creates pods all the while, and says what became of them. */
  async function during(work: () => Promise<unknown>): Promise<{ asked: number; failed: string[] }> {
    const failed: string[] = [];
    let asked = 0;
    let going = true;
    const calling = (async () => {
      while (going) {
        asked += 1;
        const { status, body } = await create();
        if (status >= 300) failed.push(stringAt(body, "message") ?? String(status));
        else if (stringAt(body, "spec", "nodeSelector", "pool") !== "etcd") failed.push("not placed");
      }
    })();
    await work();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    going = false;
    await calling;
    return { asked, failed };
  }

  const put = async ({ cert, key, ca }: { cert: string; key: string; ca: string }) => {
    const data = { "tls.crt": base64(cert), "tls.key": base64(key), "ca.crt": base64(ca) };
    const secret = { metadata: { name: SERVING_SECRET }, type: "kubernetes.io/tls", data };
    if ((await cluster().request("GET", SECRET)).status === 404)
      await cluster().call("POST", SECRETS, secret);
    else await cluster().call("PATCH", SECRET, { data });
  };

  test("Secret: usher publishes the authority before it serves by it, and no request fails", async () => {
    const [first, second] = await Promise.all([
      TestAuthority.create("first"),
      TestAuthority.create("second"),
    ]);
    await put(await first.sign({ names: NAMES }));
    await using usher = await mountedUsher(cluster(), clusterIP, "Secret");
    await eventually("a closed hook", isClosed);
    await eventually("a placed pod", isPlaced);
    for (const authority of [first, second]) {
      const next = await authority.sign({ names: NAMES });
      const { asked, failed } = await during(async () => {
        await put(next);
        await eventually("it is served", () => usher.certificates.current.cert === next.cert);
        await eventually("its authority published", async () =>
          (await bundles()).every((one) => one.includes(authority.pem)),
        );
      });
      expect({ failed, some: asked > 0 }).toEqual({ failed: [], some: true });
    }
    // A certificate that its own authorities do not make valid is neither published nor served.
    const { cert } = usher.certificates.current;
    const third = await TestAuthority.create("third");
    await put({ ...(await third.sign({ names: NAMES })), ca: first.pem });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(await isPlaced()).toBe(true);
    expect((await bundles()).every((one) => one.includes(second.pem) && !one.includes(third.pem))).toBe(true);
    expect(usher.certificates.current.cert).toBe(cert);
    await forget();
  });

  test("ServiceCA, a stand-in: nothing is closed before the injector came, and what a new CA costs is printed", async () => {
    const [first, second] = await Promise.all([TestAuthority.create("one"), TestAuthority.create("two")]);
    await put(await first.sign({ names: NAMES }));
    /** As the injector writes it into every entry of an annotated configuration. */
    const inject = async ({ pem }: TestAuthority) => {
      for (const path of CONFIGURATIONS) {
        const live = await cluster().call("GET", path);
        expect(stringAt(live, "metadata", "annotations", "service.beta.openshift.io/inject-cabundle")).toBe(
          "true",
        );
        const webhooks = listAt(live, "webhooks").map((entry) => ({
          ...(entry as JsonObject),
          clientConfig: { ...(at(entry, "clientConfig") as JsonObject), caBundle: base64(pem) },
        }));
        await cluster().call("PUT", path, { ...(live as JsonObject), webhooks });
      }
    };
    await using usher = await mountedUsher(cluster(), clusterIP, "ServiceCA");
    await eventually("entries", async () => (await entries()).length > 1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(await isClosed()).toBe(false);
    expect((await create()).status).toBe(201);
    expect(await bundles()).toEqual((await entries()).map(() => ""));
    await eventually("an injection without a conflict", () =>
      inject(first).then(
        () => true,
        () => false,
      ),
    );
    await eventually("a closed hook", isClosed);
    await eventually("a placed pod", isPlaced);

    const again = await first.sign({ names: NAMES });
    const stays = await during(async () => {
      await put(again);
      await eventually("it is served", () => usher.certificates.current.cert === again.cert);
    });
    expect(stays.failed).toEqual([]);

    const next = await second.sign({ names: NAMES });
    const replaced = await during(async () => {
      await put(next);
      await eventually("an injection without a conflict", () =>
        inject(second).then(
          () => true,
          () => false,
        ),
      );
      await eventually("it is served", () => usher.certificates.current.cert === next.cert);
    });
    console.log(`ServiceCA, CA replaced: ${replaced.failed.length} of ${replaced.asked} requests failed`);
    expect((await bundles()).every((one) => one === second.pem)).toBe(true);
    await eventually("a placed pod", isPlaced);

    // One that serves stays ready, and says that it is not trusted.
    await eventually("ready", async () => (await usher.readyz()) === "ok\n");
    expect(await usher.metrics()).toContain("\nusher_certificate_trusted 1\n");
    await eventually("an injection without a conflict", () =>
      inject(first).then(
        () => true,
        () => false,
      ),
    );
    await eventually("the metric", async () =>
      (await usher.metrics()).includes("\nusher_certificate_trusted 0\n"),
    );
    expect(await usher.readyz()).toBe("ok\n");

    // One that starts is not, until it is trusted.
    await using starting = await mountedUsher(cluster(), clusterIP, "ServiceCA");
    expect(await starting.readyz()).toContain("certificate-trusted: the CA bundle");
    await eventually("an injection without a conflict", () =>
      inject(second).then(
        () => true,
        () => false,
      ),
    );
    await eventually("ready", async () => (await starting.readyz()) === "ok\n");
    await forget();
  });

  test("CertManager: its own controllers sign and inject; a renewal costs no request, a new CA is printed", async () => {
    const program = await ensureTool("cert-manager");
    const folder = execFileSync(
      findGo(process.env) ?? "",
      ["list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager"],
      {
        cwd: `${BUILD_FOLDER}/cert-manager`,
        encoding: "utf8",
      },
    ).trim();
    const { code, stderr } = await cluster().kubectl([
      "apply",
      "--server-side",
      "-f",
      `${folder}/deploy/crds`,
    ]);
    expect(code, stderr).toBe(0);
    const objects = certificateObjects({ ...DEFAULT_INSTALLATION, certificates: { mode: "CertManager" } });
    await eventually("its kinds", async () => {
      const { status } = await cluster().request("GET", "/apis/cert-manager.io/v1/certificates");
      return status === 200;
    });
    const child = spawn(program, [await cluster().kubeconfig()], { stdio: "ignore" });
    try {
      await cluster().apply(...objects);
      await using usher = await mountedUsher(cluster(), clusterIP, "CertManager");
      await eventually("a closed hook", isClosed, 60_000);
      await eventually("a placed pod", isPlaced);
      const served = () => usher.certificates.current.cert;
      const authority = async () => stringAt(await cluster().call("GET", SECRET), "data", "ca.crt");

      const before = { cert: served(), ca: await authority() };
      const stays = await during(async () => {
        await cluster().call("DELETE", SECRET);
        await eventually("it is served", () => served() !== before.cert, 30_000);
      });
      expect(await authority()).toBe(before.ca);
      expect(stays.failed).toEqual([]);

      const renewed = served();
      const replaced = await during(async () => {
        await cluster().call("DELETE", `${SECRETS}/usher-ca`);
        await eventually(
          "a new authority",
          async () => {
            const { status, body } = await cluster().request("GET", `${SECRETS}/usher-ca`);
            return status === 200 && stringAt(body, "data", "tls.crt") !== before.ca;
          },
          30_000,
        );
        await cluster().call("DELETE", SECRET);
        await eventually("it is served", () => served() !== renewed, 30_000);
      });
      const ca = Buffer.from((await authority()) ?? "", "base64").toString();
      expect(base64(ca)).not.toBe(before.ca);
      await eventually("it is trusted", async () =>
        (await bundles()).every((one) => one.includes(ca.trim())),
      );
      console.log(`CertManager, CA replaced: ${replaced.failed.length} of ${replaced.asked} requests failed`);
      await eventually("a placed pod", isPlaced);
    } finally {
      child.kill();
    }
  });
});
