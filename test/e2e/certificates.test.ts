// Certificates under fail-closed hooks of a real API server, each changed while a client creates pods. Usher's own:
// issued, trusted, and served after two minutes; only the clock that measures the time of trust is advanced. Also
// certificates of others: cert-manager by its own code, and a stand-in for the service CA.
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startAdmission } from "../../src/admission/admission-server.ts";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import {
  certificateObjects,
  SERVING_SECRET,
  serviceNames,
} from "../../src/core/registration/certificates.ts";
import { OWN_LABELS } from "../../src/core/registration/names.ts";
import { allModules } from "../../src/modules/all.ts";
import { openCertificates } from "../../src/operator/certificates/certificates.ts";
import { TRUST_MS } from "../../src/operator/certificates/path-tokens.ts";
import { InstallationController } from "../../src/operator/controller/installation-controller.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { TestAuthority } from "../support/operator/authority.ts";
import { injectBundle, secretData, startCertManager } from "./certifying/makers.ts";
import { mountedUsher, NAMESPACE, SERVING } from "./certifying/mounted-usher.ts";
import { FaultProxy } from "./fault-proxy.ts";
import {
  CONFIGURATIONS,
  entriesOf,
  isClosed,
  isPlaced,
  POLICIES,
  placingPolicy,
  whilePlacing,
} from "./fixtures/placed-pods.ts";
import { createUsherService } from "./fixtures/usher-service.ts";
import { installKinds, openLive } from "./live-source.ts";

const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const SECRET = `${SECRETS}/usher-certificates`;
const NAMES = [`usher.${NAMESPACE}.svc`];
const HOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/usher";
const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 200;

const base64 = (text: string): string => Buffer.from(text).toString("base64");

describeOwnCluster("a certificate", { without: ["kube-scheduler", "kwok"] }, (cluster) => {
  let clusterIP = "";

  beforeAll(async () => {
    await installKinds(cluster(), allModules);
    clusterIP = await createUsherService(cluster(), NAMESPACE);
    await cluster().call("POST", POLICIES, placingPolicy({ failurePolicy: "Fail" }));
  });

  const secret = async (): Promise<Json> => cluster().call("GET", SECRET);
  const bundle = async (): Promise<string> => {
    const hook = at(await cluster().call("GET", HOOK), "webhooks", 0);
    return Buffer.from(stringAt(hook, "clientConfig", "caBundle") ?? "", "base64").toString();
  };
  const placed = () => isPlaced(cluster());

  /** One leading replica, which the API server calls. `later` advances the clock that measures the time of trust. */
  async function leading() {
    const moved = { later: 0 };
    const live = await openLive(cluster(), allModules);
    await live.source.cache.waitForSync();
    const shared = {
      client: live.client,
      log: SILENT,
      refreshEveryMs: LOOK_EVERY_MS,
      resyncMs: LOOK_EVERY_MS,
    };
    const certificates = await openCertificates({ ...shared, namespace: NAMESPACE });
    const server = await startAdmission({
      source: live.source,
      log: SILENT,
      port: 0,
      opsPort: 0,
      certificate: certificates,
    });
    const way = new FaultProxy(server.webhookAddress.url);
    await way.listen();
    await cluster().route(clusterIP, 443, Number(new URL(way.address).port));
    const controller = new InstallationController({
      ...shared,
      clock: () => performance.now() + moved.later,
      assembly: live.source.assembly,
      certificates,
      version: "0.0.0",
      ready: () => live.source.ready,
    });
    controller.start();
    return {
      certificates,
      moved,
      /** Kept connections were trusted when they were opened: only a new one shows the current trust. */
      cut: () => way.reset(),
      [Symbol.asyncDispose]: async () => {
        await controller.stop();
        certificates.stop();
        await server.drain({ serveOnMs: 0 });
        await cluster().unroute(clusterIP, 443);
        await way.close();
        await live[Symbol.asyncDispose]();
      },
    };
  }

  const looks = (count: number) => new Promise((resolve) => setTimeout(resolve, count * LOOK_EVERY_MS));

  test("is replaced after it was trusted for two minutes, and no call fails", async () => {
    await using leader = await leading();
    const { certificates, moved } = leader;
    await eventually("a pod placed through the webhook", placed);

    // It is ten months old.
    const ageing = await makeCertificate(serviceNames("usher", NAMESPACE), Date.now() - 300 * DAY_MS);
    const data: JsonObject = {
      "tls.crt": base64(ageing.cert),
      "tls.key": base64(ageing.key),
      "ca.crt": base64(ageing.ca),
    };
    await cluster().call("PATCH", SECRET, { data });
    const next = await eventually("the next certificate", async () =>
      stringAt(await secret(), "data", "next-tls.crt"),
    );
    const authority = Buffer.from(stringAt(await secret(), "data", "next-ca.crt") ?? "", "base64").toString();
    await eventually("its CA published", async () => (await bundle()).includes(authority.trim()));
    await eventually("the expiring certificate served", () => certificates.current.cert === ageing.cert);

    // Just before the two minutes it is only trusted, however often the leader reconciles.
    moved.later = TRUST_MS - 30_000;
    await looks(10);
    expect(stringAt(await secret(), "data", "tls.crt")).toBe(base64(ageing.cert));
    expect(certificates.current.cert).toBe(ageing.cert);
    expect(await placed()).toBe(true);

    // Every call from here on is answered, with one certificate or the other.
    const { failed } = await whilePlacing(cluster(), async () => {
      moved.later += TRUST_MS;
      await eventually("the next certificate to become current", async () => {
        return stringAt(await secret(), "data", "tls.crt") === next;
      });
      await eventually("the new certificate served", () => base64(certificates.current.cert) === next);
      // API servers pool connections by CA bundle, so another bundle means new connections.
      await eventually("its CA first in the bundle", async () =>
        (await bundle()).startsWith(authority.trim()),
      );
      await looks(5);
    });
    expect(failed).toEqual([]);

    const record = at(await secret(), "data") as JsonObject;
    expect(record["next-tls.crt"]).toBeUndefined();
    expect(record["ca.crt"]).toBe(base64(authority));
    // A replica that could not read the Secret keeps serving with the previous certificate.
    expect(record["previous-ca.crt"]).toBe(base64(ageing.ca));
    expect(await bundle()).toContain(ageing.ca.trim());
  });

  test("stays trusted while the Secret is garbage or gone and can't be written", async () => {
    await using leader = await leading();
    const { certificates, cut } = leader;
    await eventually("a pod placed through the webhook", placed);
    await eventually("nothing more to publish", async () => (await bundle()) === certificates.bundle);
    const trusted = await bundle();
    const { cert } = certificates.current;
    const isStill = async () => {
      await looks(10);
      expect(await bundle()).toBe(trusted);
      expect(certificates.current.cert).toBe(cert);
      // The API server may send one more call on a cut connection.
      cut();
      await eventually("calls on new connections", placed);
    };

    const data = Object.fromEntries(
      ["tls.crt", "tls.key", "ca.crt", "next-ca.crt", "previous-ca.crt"].map((key) => [key, base64("x")]),
    );
    await cluster().call("PATCH", SECRET, { data, immutable: true });
    await isStill();

    const quotas = `/api/v1/namespaces/${NAMESPACE}/resourcequotas`;
    await cluster().call("POST", quotas, {
      metadata: { name: "none" },
      spec: { hard: { "count/secrets": "0" } },
    });
    await eventually("the quota to take effect", async () =>
      at(await cluster().call("GET", `${quotas}/none`), "status", "used", "count/secrets"),
    );
    await cluster().call("DELETE", SECRET);
    await isStill();
    expect((await cluster().request("GET", SECRET)).status).toBe(404);

    await cluster().call("DELETE", `${quotas}/none`);
    await eventually("a new certificate served", () => certificates.current.cert !== cert);
    const made = stringAt(await secret(), "data", "ca.crt");
    // As after a leak: no earlier certificate is trusted.
    await eventually("only the new CA trusted", async () => base64(await bundle()) === made);
    cut();
    await eventually("calls on new connections", placed);
  });

  test("is not replaced by a replica whose clock is 400 days ahead: the API server's clock counts", async () => {
    const before = await secret();
    await using live = await openLive(cluster(), allModules);
    const now = () => Date.now() + 400 * DAY_MS;
    const ahead = await openCertificates({ client: live.client, log: SILENT, namespace: NAMESPACE, now });
    await ahead.reconcile("no webhooks");
    ahead.stop();
    expect(await secret()).toEqual(before);
  });

  test("is published only in usher's own webhook configurations", async () => {
    const theirs: JsonObject = {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "usher" },
      webhooks: [
        {
          name: "other.example.com",
          admissionReviewVersions: ["v1"],
          clientConfig: { url: "https://127.0.0.1:1/none" },
          rules: [],
          failurePolicy: "Ignore",
          sideEffects: "None",
        },
      ],
    };
    await cluster().call("DELETE", HOOK);
    await cluster().call("DELETE", HOOK.replace("mutating", "validating"));
    const before = await cluster().call("POST", HOOK.slice(0, HOOK.lastIndexOf("/")), theirs);
    await using leader = await leading();
    await eventually(
      "ours registered",
      async () => (await cluster().request("GET", HOOK.replace("mutating", "validating"))).status === 200,
    );
    await looks(5);
    expect(await cluster().call("GET", HOOK)).toEqual(before);

    // With the mark of an installation that takes it over.
    await cluster().call("PATCH", HOOK, { metadata: { labels: OWN_LABELS } });
    await eventually(
      "the configuration to be usher's",
      async () => (await bundle()) === leader.certificates.bundle,
    );
    expect(JSON.stringify(await cluster().call("GET", HOOK))).not.toContain("127.0.0.1");
    await eventually("a pod placed through the webhook", placed);
  });

  describe("issued by others", () => {
    const closed = () => isClosed(cluster());
    const entries = () => entriesOf(cluster());
    const bundles = async () =>
      (await entries()).map((one) =>
        Buffer.from(stringAt(one, "clientConfig", "caBundle") ?? "", "base64").toString(),
      );
    beforeEach(async () => {
      for (const path of [...CONFIGURATIONS, SERVING]) await cluster().request("DELETE", path);
    });

    /** Plus a second in which API servers may still fail. */
    const during = (work: () => Promise<unknown>) =>
      whilePlacing(cluster(), async () => {
        await work();
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      });

    const put = async ({ cert, key, ca }: { cert: string; key: string; ca: string }) => {
      const data = secretData({ "tls.crt": cert, "tls.key": key, "ca.crt": ca });
      const secret = { metadata: { name: SERVING_SECRET }, type: "kubernetes.io/tls", data };
      if ((await cluster().request("GET", SERVING)).status === 404)
        await cluster().call("POST", SECRETS, secret);
      else await cluster().call("PATCH", SERVING, { data });
    };

    test("Secret: usher publishes the CA before it serves the certificate, and no request fails", async () => {
      const [first, second] = await Promise.all([
        TestAuthority.create("first"),
        TestAuthority.create("second"),
      ]);
      await put(await first.sign({ names: NAMES }));
      await using usher = await mountedUsher(cluster(), clusterIP, "Secret");
      await eventually("a closed hook", closed);
      await eventually("a placed pod", placed);
      for (const authority of [first, second]) {
        const next = await authority.sign({ names: NAMES });
        const { asked, failed } = await during(async () => {
          await put(next);
          await eventually("the certificate served", () => usher.certificates.current.cert === next.cert);
          await eventually("its CA published", async () =>
            (await bundles()).every((one) => one.includes(authority.pem)),
          );
        });
        expect({ failed, some: asked > 0 }).toEqual({ failed: [], some: true });
      }
      // A certificate that its own CAs do not verify is neither published nor served.
      const { cert } = usher.certificates.current;
      const third = await TestAuthority.create("third");
      await put({ ...(await third.sign({ names: NAMES })), ca: first.pem });
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      expect(await placed()).toBe(true);
      expect((await bundles()).every((one) => one.includes(second.pem) && !one.includes(third.pem))).toBe(
        true,
      );
      expect(usher.certificates.current.cert).toBe(cert);
    });

    test("ServiceCA, a stand-in: nothing is fail-closed before the injector has run, and the cost of a new CA is printed", async () => {
      const [first, second] = await Promise.all([TestAuthority.create("one"), TestAuthority.create("two")]);
      await put(await first.sign({ names: NAMES }));
      const inject = ({ pem }: TestAuthority) =>
        eventually("an injection without a conflict", () => injectBundle(cluster(), pem));
      await using usher = await mountedUsher(cluster(), clusterIP, "ServiceCA");
      await eventually("entries", async () => (await entries()).length > 1);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(await closed()).toBe(false);
      expect(await placed()).toBe(false);
      expect(await bundles()).toEqual((await entries()).map(() => ""));
      await inject(first);
      await eventually("a closed hook", closed);
      await eventually("a placed pod", placed);

      const again = await first.sign({ names: NAMES });
      const stays = await during(async () => {
        await put(again);
        await eventually("the certificate served", () => usher.certificates.current.cert === again.cert);
      });
      expect(stays.failed).toEqual([]);

      const next = await second.sign({ names: NAMES });
      const replaced = await during(async () => {
        await put(next);
        await inject(second);
        await eventually("the certificate served", () => usher.certificates.current.cert === next.cert);
      });
      console.log(`ServiceCA, CA replaced: ${replaced.failed.length} of ${replaced.asked} requests failed`);
      expect((await bundles()).every((one) => one === second.pem)).toBe(true);
      await eventually("a placed pod", placed);

      // A serving replica stays ready, and reports that it is not trusted.
      await eventually("ready", async () => (await usher.readyz()) === "ok\n");
      expect(await usher.metrics()).toContain("\nusher_certificate_trusted 1\n");
      await inject(first);
      await eventually("the metric", async () =>
        (await usher.metrics()).includes("\nusher_certificate_trusted 0\n"),
      );
      expect(await usher.readyz()).toBe("ok\n");

      // A starting replica is not ready until it is trusted.
      await using starting = await mountedUsher(cluster(), clusterIP, "ServiceCA");
      expect(await starting.readyz()).toContain("certificate-trusted: the CA bundle");
      await inject(second);
      await eventually("ready", async () => (await starting.readyz()) === "ok\n");
    });

    test("CertManager: its own controllers sign and inject; a renewal fails no request, and the cost of a new CA is printed", async () => {
      const objects = certificateObjects({ ...DEFAULT_INSTALLATION, certificates: { mode: "CertManager" } });
      using _maker = await startCertManager(cluster());
      await cluster().apply(...objects);
      await using usher = await mountedUsher(cluster(), clusterIP, "CertManager");
      await eventually("a closed hook", closed, 60_000);
      await eventually("a placed pod", placed);
      const served = () => usher.certificates.current.cert;
      const authority = async () => stringAt(await cluster().call("GET", SERVING), "data", "ca.crt");

      const before = { cert: served(), ca: await authority() };
      const stays = await during(async () => {
        await cluster().call("DELETE", SERVING);
        await eventually("the certificate served", () => served() !== before.cert, 30_000);
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
        await cluster().call("DELETE", SERVING);
        await eventually("the certificate served", () => served() !== renewed, 30_000);
      });
      const ca = Buffer.from((await authority()) ?? "", "base64").toString();
      expect(base64(ca)).not.toBe(before.ca);
      await eventually("the certificate trusted", async () =>
        (await bundles()).every((one) => one.includes(ca.trim())),
      );
      console.log(`CertManager, CA replaced: ${replaced.failed.length} of ${replaced.asked} requests failed`);
      await eventually("a placed pod", placed);
    });
  });
});
