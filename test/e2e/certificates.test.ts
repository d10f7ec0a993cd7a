// A certificate is renewed under the eyes of a real API server: made, trusted, and after its two minutes served. Only the clock by
// which trust is counted is moved; every call is the API server's own, which would pass over a webhook that it does not trust.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { startAdmission } from "../../src/admission/server/admission-server.ts";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { serviceNames } from "../../src/core/registration/certificates.ts";
import { OWN_LABELS } from "../../src/core/registration/names.ts";
import { allModules } from "../../src/modules/all.ts";
import { TRUST_MS } from "../../src/operator/certificates/certificate-plan.ts";
import { openCertificates } from "../../src/operator/certificates/certificates.ts";
import { InstallationController } from "../../src/operator/controller/installation-controller.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { isPlaced, POLICIES, placingPolicy, whilePlacing } from "./fixtures/placed-pods.ts";
import { createUsherService } from "./fixtures/usher-service.ts";
import { installKinds, openLive } from "./live-source.ts";

const NAMESPACE = "usher-system";
const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/usher-certificates`;
const HOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/usher";
const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 200;

const base64 = (text: string): string => Buffer.from(text).toString("base64");

describeOwnCluster("a certificate that grows old", { without: ["kube-scheduler", "kwok"] }, (cluster) => {
  let clusterIP = "";

  beforeAll(async () => {
    await installKinds(cluster(), allModules);
    clusterIP = await createUsherService(cluster(), NAMESPACE);
    await cluster().call("POST", POLICIES, placingPolicy());
  });

  const secret = async (): Promise<Json> => cluster().call("GET", SECRET);
  const bundle = async (): Promise<string> => {
    const hook = at(await cluster().call("GET", HOOK), "webhooks", 0);
    return Buffer.from(stringAt(hook, "clientConfig", "caBundle") ?? "", "base64").toString();
  };
  const placed = () => isPlaced(cluster());

  /** One replica that leads, and what the API server calls. `later` moves the clock by which trust is counted. */
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
    const way = await cuttable(server.webhookAddress.port);
    await cluster().route(clusterIP, 443, way.port);
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
      /** Kept connections were trusted when they were made: only a new one shows what is trusted now. */
      cut: way.cut,
      [Symbol.asyncDispose]: async () => {
        await controller.stop();
        certificates.stop();
        await server.drain({ serveOnMs: 0 });
        await cluster().unroute(clusterIP, 443);
        way.close();
        await live[Symbol.asyncDispose]();
      },
    };
  }

  const looks = (count: number) => new Promise((resolve) => setTimeout(resolve, count * LOOK_EVERY_MS));

  test("is replaced after it was trusted for two minutes, and no call is lost on the way", async () => {
    await using leader = await leading();
    const { certificates, moved } = leader;
    await eventually("a pod placed through the webhook", placed);

    // It has stood there for ten months.
    const ageing = await makeCertificate(serviceNames("usher", NAMESPACE), Date.now() - 300 * DAY_MS);
    const data: JsonObject = {
      "tls.crt": base64(ageing.cert),
      "tls.key": base64(ageing.key),
      "ca.crt": base64(ageing.ca),
    };
    await cluster().call("PATCH", SECRET, { data });
    const next = await eventually("the next one", async () =>
      stringAt(await secret(), "data", "next-tls.crt"),
    );
    const authority = Buffer.from(stringAt(await secret(), "data", "next-ca.crt") ?? "", "base64").toString();
    await eventually("its authority published", async () => (await bundle()).includes(authority.trim()));
    await eventually("the ageing one served", () => certificates.current.cert === ageing.cert);

    // Just short of the two minutes it is only trusted, however often the leader looks.
    moved.later = TRUST_MS - 30_000;
    await looks(10);
    expect(stringAt(await secret(), "data", "tls.crt")).toBe(base64(ageing.cert));
    expect(certificates.current.cert).toBe(ageing.cert);
    expect(await placed()).toBe(true);

    // Every call from here on is answered, by one or the other.
    const { failed } = await whilePlacing(cluster(), async () => {
      moved.later += TRUST_MS;
      await eventually("the next one to be the current", async () => {
        return stringAt(await secret(), "data", "tls.crt") === next;
      });
      await eventually("it is served", () => base64(certificates.current.cert) === next);
      // API servers keep connections by the bundle, so another one means new connections.
      await eventually("its authority first in the bundle", async () =>
        (await bundle()).startsWith(authority.trim()),
      );
      await looks(5);
    });
    expect(failed).toEqual([]);

    const record = at(await secret(), "data") as JsonObject;
    expect(record["next-tls.crt"]).toBeUndefined();
    expect(record["ca.crt"]).toBe(base64(authority));
    // A replica that could not read the Secret still serves with the one before.
    expect(record["previous-ca.crt"]).toBe(base64(ageing.ca));
    expect(await bundle()).toContain(ageing.ca.trim());
  });

  test("stays trusted where the Secret is garbage or gone and can't be written", async () => {
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
      // The API server may send one more call into what was cut.
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
    await eventually("the quota counted", async () =>
      at(await cluster().call("GET", `${quotas}/none`), "status", "used", "count/secrets"),
    );
    await cluster().call("DELETE", SECRET);
    await isStill();
    expect((await cluster().request("GET", SECRET)).status).toBe(404);

    await cluster().call("DELETE", `${quotas}/none`);
    await eventually("a new one served", () => certificates.current.cert !== cert);
    const made = stringAt(await secret(), "data", "ca.crt");
    // As after a leak: nothing of before is trusted.
    await eventually("it alone trusted", async () => base64(await bundle()) === made);
    cut();
    await eventually("calls on new connections", placed);
  });

  test("is not replaced by a replica whose clock is 400 days ahead: the API server's counts", async () => {
    const before = await secret();
    await using live = await openLive(cluster(), allModules);
    const now = () => Date.now() + 400 * DAY_MS;
    const ahead = await openCertificates({ client: live.client, log: SILENT, namespace: NAMESPACE, now });
    await ahead.reconcile("no webhooks");
    ahead.stop();
    expect(await secret()).toEqual(before);
  });

  test("is published nowhere but in usher's own webhook configurations", async () => {
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

    // As an installation marks it that takes it over.
    await cluster().call("PATCH", HOOK, { metadata: { labels: OWN_LABELS } });
    await eventually("it is ours", async () => (await bundle()) === leader.certificates.bundle);
    expect(JSON.stringify(await cluster().call("GET", HOOK))).not.toContain("127.0.0.1");
    await eventually("a pod placed through the webhook", placed);
  });
});

/** A way to a port of this machine on which all connections can be cut. */
async function cuttable(to: number): Promise<{ port: number; cut: () => void; close: () => void }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    const onward = connect(to, "127.0.0.1");
    for (const end of [socket, onward]) {
      open.add(end);
      end.on("error", () => undefined);
      end.on("close", () => {
        open.delete(end);
        socket.destroy();
        onward.destroy();
      });
    }
    socket.pipe(onward).pipe(socket);
  });
  const cut = () => {
    for (const socket of open) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    cut();
  };
  return { port, cut, close };
}
