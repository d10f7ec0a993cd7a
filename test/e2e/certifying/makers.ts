// Issuers of certificates for usher: cert-manager by its own code, and a stand-in for OpenShift's service CA.
import { spawn } from "node:child_process";
import { at, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import { moduleFolder } from "../../cluster/binaries/module-folder.ts";
import { ensureTool } from "../../cluster/binaries.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { TestAuthority } from "../../support/operator/authority.ts";
import { CONFIGURATIONS } from "../fixtures/placed-pods.ts";

const NAMESPACE = "/api/v1/namespaces/usher-system";
const SIGNS = "service.beta.openshift.io/serving-cert-secret-name";
const INJECTS = "service.beta.openshift.io/inject-cabundle";
const LOOK_EVERY_MS = 300;

/** The data of a Secret. */
export function secretData(files: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(files).map(([name, text]) => [name, Buffer.from(text).toString("base64")]),
  );
}

/** Its CRDs, certificate controllers and cainjector, until the end of the test. */
export async function startCertManager(cluster: Cluster): Promise<Disposable> {
  const program = await ensureTool("cert-manager");
  const folder = moduleFolder("cert-manager", "github.com/cert-manager/cert-manager");
  const applied = await cluster.kubectl(["apply", "--server-side", "-f", `${folder}/deploy/crds`]);
  if (applied.code !== 0) throw new Error(applied.stderr);
  await eventually("its kinds", async () => {
    const { status } = await cluster.request("GET", "/apis/cert-manager.io/v1/certificates");
    return status === 200;
  });
  const child = spawn(program, [await cluster.kubeconfig()], { stdio: "ignore" });
  return { [Symbol.dispose]: () => void child.kill() };
}

/** Writes a CA into every entry of annotated webhook configurations; false if a write conflicted. */
export async function injectBundle(cluster: Cluster, pem: string): Promise<boolean> {
  const caBundle = Buffer.from(pem).toString("base64");
  for (const path of CONFIGURATIONS) {
    const { status, body } = await cluster.request("GET", path);
    if (status !== 200 || stringAt(body, "metadata", "annotations", INJECTS) !== "true") continue;
    const entries = listAt(body, "webhooks") as JsonObject[];
    if (entries.every((entry) => stringAt(entry, "clientConfig", "caBundle") === caBundle)) continue;
    const webhooks = entries.map((entry) => ({
      ...entry,
      clientConfig: { ...(at(entry, "clientConfig") as JsonObject), caBundle },
    }));
    const written = await cluster.request("PUT", path, { ...(body as JsonObject), webhooks });
    if (written.status !== 200) return false;
  }
  return true;
}

/** Signs for the annotated Service and, while it injects, writes its CA as the service CA does. */
export class ServiceCa implements Disposable {
  injects = false;
  readonly #cluster: Cluster;
  readonly #authority: TestAuthority;
  readonly #timer: NodeJS.Timeout;

  private constructor(cluster: Cluster, authority: TestAuthority) {
    this.#cluster = cluster;
    this.#authority = authority;
    this.#timer = setInterval(() => void this.#look().catch(() => undefined), LOOK_EVERY_MS);
  }

  static async start(cluster: Cluster): Promise<ServiceCa> {
    return new ServiceCa(cluster, await TestAuthority.create("service-ca"));
  }

  async #look(): Promise<void> {
    const { body } = await this.#cluster.request("GET", `${NAMESPACE}/services/usher`);
    const name = stringAt(body, "metadata", "annotations", SIGNS);
    if (name === undefined) return;
    if ((await this.#cluster.request("GET", `${NAMESPACE}/secrets/${name}`)).status === 404) {
      const { cert, key } = await this.#authority.sign({ names: ["usher.usher-system.svc"] });
      const data = secretData({ "tls.crt": cert, "tls.key": key });
      await this.#cluster.request("POST", `${NAMESPACE}/secrets`, {
        metadata: { name },
        type: "kubernetes.io/tls",
        data,
      });
    }
    if (this.injects) await injectBundle(this.#cluster, this.#authority.pem);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
