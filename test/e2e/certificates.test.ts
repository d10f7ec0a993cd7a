// A certificate is renewed under the eyes of a real API server: made, trusted, and after its two minutes served. Only the clock of the
// two who keep it is moved; every call is the API server's own, which would pass over a webhook that it does not trust.
import { beforeAll, expect, test } from "vitest";
import { makeCertificate } from "../../src/admission/certificate.ts";
import { startAdmission } from "../../src/admission/server.ts";
import { allModules } from "../../src/cli/source.ts";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { TRUST_MS } from "../../src/operator/certificate-plan.ts";
import { openCertificates, serviceNames } from "../../src/operator/certificates.ts";
import { Keeper } from "../../src/operator/keep-right.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
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
    await cluster().call("POST", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
    const service = await cluster().call("POST", `/api/v1/namespaces/${NAMESPACE}/services`, {
      metadata: { name: "usher" },
      spec: { ports: [{ port: 443, targetPort: 8443 }] },
    });
    clusterIP = stringAt(service, "spec", "clusterIP") ?? "";
    // What a ready replica behind the Service looks like.
    await cluster().call("POST", `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`, {
      metadata: { name: "usher-1", labels: { "kubernetes.io/service-name": "usher" } },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.245.0.9"], conditions: { ready: true } }],
      ports: [{ port: 8443 }],
    });
    await cluster().call("POST", "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies", {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: "etcd" },
      spec: { namespaceSelector: {}, podSelector: {}, nodeSelector: { pool: "etcd" } },
    });
  });

  const secret = async (): Promise<Json> => cluster().call("GET", SECRET);
  const bundle = async (): Promise<string> => {
    const hook = at(await cluster().call("GET", HOOK), "webhooks", 0);
    return Buffer.from(stringAt(hook, "clientConfig", "caBundle") ?? "", "base64").toString();
  };
  const isPlaced = async (): Promise<boolean> => {
    const pod = await cluster().call("POST", "/api/v1/namespaces/default/pods?dryRun=All", {
      metadata: { generateName: "p-" },
      spec: { containers: [{ name: "c", image: "any" }] },
    });
    return stringAt(pod, "spec", "nodeSelector", "pool") === "etcd";
  };

  test("is replaced after it was trusted for two minutes, and no call is lost on the way", async () => {
    let later = 0;
    const now = () => Date.now() + later;
    await using live = await openLive(cluster(), allModules);
    await live.source.live.synced();
    const { client } = live;
    const keeping = { client, log: SILENT, now, lookEveryMs: LOOK_EVERY_MS };
    const certificates = await openCertificates({ ...keeping, namespace: NAMESPACE });
    const server = await startAdmission({
      source: live.source,
      log: SILENT,
      port: 0,
      opsPort: 0,
      certificate: certificates,
    });
    await cluster().route(clusterIP, 443, server.webhookAddress.port);
    const keeper = new Keeper({
      ...keeping,
      assembly: live.source.assembly,
      certificates,
      version: "0.0.0",
      ready: () => live.source.ready,
    });
    keeper.start();
    try {
      await eventually("a pod placed through the webhook", isPlaced);

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
      const authority = Buffer.from(
        stringAt(await secret(), "data", "next-ca.crt") ?? "",
        "base64",
      ).toString();
      await eventually("its authority published", async () => (await bundle()).includes(authority.trim()));
      await eventually("the ageing one served", () => certificates.current.cert === ageing.cert);

      // Just short of the two minutes it is only trusted, however often the leader looks.
      later = TRUST_MS - 30_000;
      await new Promise((resolve) => setTimeout(resolve, 10 * LOOK_EVERY_MS));
      expect(stringAt(await secret(), "data", "tls.crt")).toBe(base64(ageing.cert));
      expect(certificates.current.cert).toBe(ageing.cert);
      expect(await isPlaced()).toBe(true);

      // Every call from here on is answered, by one or the other.
      let lost = 0;
      let going = true;
      const calling = (async () => {
        while (going) if (!(await isPlaced())) lost += 1;
      })();
      later += TRUST_MS;
      await eventually("the next one to be the current", async () => {
        return stringAt(await secret(), "data", "tls.crt") === next;
      });
      await eventually("it is served", () => base64(certificates.current.cert) === next);
      await eventually("calls on new connections", async () => {
        // Kept connections have the certificate of before.
        await cluster().unroute(clusterIP, 443);
        await cluster().route(clusterIP, 443, server.webhookAddress.port);
        return isPlaced();
      });
      going = false;
      await calling;
      expect(lost).toBe(0);

      const record = at(await secret(), "data") as JsonObject;
      expect(record["next-tls.crt"]).toBeUndefined();
      expect(record["ca.crt"]).toBe(base64(authority));
      // A replica that could not read the Secret still serves with the one before.
      expect(record["previous-ca.crt"]).toBe(base64(ageing.ca));
      expect(await bundle()).toContain(ageing.ca.trim());
    } finally {
      await keeper.stop();
      certificates.stop();
      await server.drain({ serveOnMs: 0 });
    }
  });
});
