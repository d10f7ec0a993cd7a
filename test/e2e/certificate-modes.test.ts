// Certificates that others make, under closed hooks of a real API server: every rotation happens while a client creates pods. cert-manager
// is its own code; the service CA is a stand-in that signs and injects as it does.
import { beforeAll, expect, test } from "vitest";
import { stringAt } from "../../src/core/json.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/module/installation.ts";
import { certificateObjects, SERVING_SECRET } from "../../src/core/registration/certificates.ts";
import { allModules } from "../../src/modules/all.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { TestAuthority } from "../support/operator/authority.ts";
import { injectBundle, secretData, startCertManager } from "./certifying/makers.ts";
import { mountedUsher, NAMESPACE, SECRET } from "./certifying/mounted-usher.ts";
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
import { installKinds } from "./live-source.ts";

const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const NAMES = [`usher.${NAMESPACE}.svc`];
const base64 = (text: string): string => Buffer.from(text).toString("base64");

describeOwnCluster("certificates that others make", { without: ["kube-scheduler", "kwok"] }, (cluster) => {
  let clusterIP = "";

  beforeAll(async () => {
    await installKinds(cluster(), allModules);
    clusterIP = await createUsherService(cluster(), NAMESPACE);
    await cluster().call("POST", POLICIES, placingPolicy({ failurePolicy: "Fail" }));
  });

  const closed = () => isClosed(cluster());
  const placed = () => isPlaced(cluster());
  const entries = () => entriesOf(cluster());
  const bundles = async () =>
    (await entries()).map((one) =>
      Buffer.from(stringAt(one, "clientConfig", "caBundle") ?? "", "base64").toString(),
    );
  const forget = async () => {
    for (const path of CONFIGURATIONS) await cluster().request("DELETE", path);
    await cluster().request("DELETE", SECRET);
  };

  /** With a second more, in which API servers may still fail. */
  const during = (work: () => Promise<unknown>) =>
    whilePlacing(cluster(), async () => {
      await work();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    });

  const put = async ({ cert, key, ca }: { cert: string; key: string; ca: string }) => {
    const data = secretData({ "tls.crt": cert, "tls.key": key, "ca.crt": ca });
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
    await eventually("a closed hook", closed);
    await eventually("a placed pod", placed);
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
    expect(await placed()).toBe(true);
    expect((await bundles()).every((one) => one.includes(second.pem) && !one.includes(third.pem))).toBe(true);
    expect(usher.certificates.current.cert).toBe(cert);
    await forget();
  });

  test("ServiceCA, a stand-in: nothing is closed before the injector came, and what a new CA costs is printed", async () => {
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
      await eventually("it is served", () => usher.certificates.current.cert === again.cert);
    });
    expect(stays.failed).toEqual([]);

    const next = await second.sign({ names: NAMES });
    const replaced = await during(async () => {
      await put(next);
      await inject(second);
      await eventually("it is served", () => usher.certificates.current.cert === next.cert);
    });
    console.log(`ServiceCA, CA replaced: ${replaced.failed.length} of ${replaced.asked} requests failed`);
    expect((await bundles()).every((one) => one === second.pem)).toBe(true);
    await eventually("a placed pod", placed);

    // One that serves stays ready, and says that it is not trusted.
    await eventually("ready", async () => (await usher.readyz()) === "ok\n");
    expect(await usher.metrics()).toContain("\nusher_certificate_trusted 1\n");
    await inject(first);
    await eventually("the metric", async () =>
      (await usher.metrics()).includes("\nusher_certificate_trusted 0\n"),
    );
    expect(await usher.readyz()).toBe("ok\n");

    // One that starts is not, until it is trusted.
    await using starting = await mountedUsher(cluster(), clusterIP, "ServiceCA");
    expect(await starting.readyz()).toContain("certificate-trusted: the CA bundle");
    await inject(second);
    await eventually("ready", async () => (await starting.readyz()) === "ok\n");
    await forget();
  });

  test("CertManager: its own controllers sign and inject; a renewal costs no request, a new CA is printed", async () => {
    const objects = certificateObjects({ ...DEFAULT_INSTALLATION, certificates: { mode: "CertManager" } });
    using _maker = await startCertManager(cluster());
    await cluster().apply(...objects);
    await using usher = await mountedUsher(cluster(), clusterIP, "CertManager");
    await eventually("a closed hook", closed, 60_000);
    await eventually("a placed pod", placed);
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
    await eventually("it is trusted", async () => (await bundles()).every((one) => one.includes(ca.trim())));
    console.log(`CertManager, CA replaced: ${replaced.failed.length} of ${replaced.asked} requests failed`);
    await eventually("a placed pod", placed);
  });
});
