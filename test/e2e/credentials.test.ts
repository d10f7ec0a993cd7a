import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/cluster/client/client.ts";
import { createClient } from "../../src/cluster/client/https-client.ts";
import { inClusterCredentials } from "../../src/cluster/credentials/in-cluster.ts";
import { kubeconfigCredentials } from "../../src/cluster/credentials/kubeconfig.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { usher } from "../cli/usher.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";

const POD = JSON.stringify({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p" },
  spec: { containers: [{ name: "c", image: "app:1" }] },
});

describeCluster("credentials for the API server", (cluster) => {
  const namespace = testNamespace(cluster);
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "usher-credentials-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const accounts = (): string => `/api/v1/namespaces/${namespace()}/serviceaccounts`;
  const tokenOf = async (account: string): Promise<string> => {
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    return (
      stringAt(await cluster().call("POST", `${accounts()}/${account}/token`, body), "status", "token") ?? ""
    );
  };
  const account = async (name: string): Promise<string> => {
    await cluster().call("POST", accounts(), { metadata: { name } });
    return tokenOf(name);
  };
  const whoAmI = async (client: Client): Promise<string | undefined> => {
    const body = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const { body: review } = await client.request("POST", path, { body });
    return stringAt(review, "status", "userInfo", "username");
  };
  const userOf = (name: string): string => `system:serviceaccount:${namespace()}:${name}`;
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);

  /** A kubeconfig of this cluster with another user, and other settings of the cluster entry. */
  async function kubeconfig(user: JsonObject, entry: JsonObject = {}): Promise<string> {
    const config = JSON.parse(await readFile(await cluster().kubeconfig(), "utf8"));
    config.users = [{ name: "other", user }];
    config.contexts[0].context.user = "other";
    Object.assign(config.clusters[0].cluster, entry);
    const file = join(folder, "kubeconfig");
    await writeFile(file, JSON.stringify(config));
    return file;
  }

  async function clientBy(file: string): Promise<Client> {
    return createClient(await kubeconfigCredentials({ file }));
  }

  test("in a pod: its service account, and a new token as soon as the old one is rejected", async () => {
    await write("token", await account("first"));
    await write("ca.crt", cluster().info.ca.certificate);
    await write("namespace", namespace());
    const { hostname, port } = new URL(cluster().server);
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
    const client = createClient(await inClusterCredentials({ folder, env }));
    expect(await whoAmI(client)).toBe(userOf("first"));
    await write("token", await account("second"));
    // The file was replaced but not read again. A token is rejected once its account is deleted.
    expect(await whoAmI(client)).toBe(userOf("first"));
    await cluster().call("DELETE", `${accounts()}/first`);
    await expect.poll(() => whoAmI(client), { timeout: 60_000 }).toBe(userOf("second"));
    client.close();
  });

  test("by a kubeconfig: a client certificate, a token, an exec plugin", async () => {
    const certificate = await clientBy(await cluster().kubeconfig("alice", ["people"]));
    expect(await whoAmI(certificate)).toBe("alice");
    const token = await account("third");
    const inline = await clientBy(await kubeconfig({ token }));
    expect(await whoAmI(inline)).toBe(userOf("third"));
    const credential = {
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token },
    };
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: process.execPath,
      args: ["-e", `console.log(${JSON.stringify(JSON.stringify(credential))})`],
    };
    const plugin = await clientBy(await kubeconfig({ exec }));
    expect(await whoAmI(plugin)).toBe(userOf("third"));
    for (const client of [certificate, inline, plugin]) client.close();
  });

  test("acts as another user with the rights of constrained impersonation, and says clearly what is refused without them", async () => {
    const token = await account("actor");
    const as = `jane-${namespace()}`;
    const file = await kubeconfig({ token, as });
    const source = join(folder, "no-policies");
    await mkdir(source);
    const run = () =>
      usher(["review", "-", "--source", source, "--cluster", "--kubeconfig", file], { stdin: POD });
    const refusal =
      /the kubeconfig's user has "as", and the API server refuses to act as another user: .*cannot impersonate.*Use a context without "as"/;
    const without = await run();
    expect([without.code, without.err]).toEqual([3, expect.stringMatching(refusal)]);

    const name = `acts-${namespace()}`;
    const grant = async (rules: readonly JsonObject[]): Promise<void> => {
      const rbac = "/apis/rbac.authorization.k8s.io/v1";
      await cluster().call("POST", `${rbac}/clusterroles`, { metadata: { name }, rules });
      await cluster().call("POST", `${rbac}/clusterrolebindings`, {
        metadata: { name },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
        subjects: [{ kind: "ServiceAccount", namespace: namespace(), name: "actor" }],
      });
    };
    await grant([
      {
        apiGroups: ["authentication.k8s.io"],
        resources: ["users"],
        resourceNames: [as],
        verbs: ["impersonate:user-info"],
      },
      {
        apiGroups: ["authentication.k8s.io"],
        resources: ["selfsubjectreviews"],
        verbs: ["impersonate-on:user-info:create"],
      },
    ]);
    const client = await clientBy(file);
    await expect.poll(() => whoAmI(client), { timeout: 20_000 }).toBe(as);
    client.close();
    // It may act as jane, but for no other request.
    const partly = await run();
    expect([partly.code, partly.err]).toEqual([3, expect.stringMatching(refusal)]);
    for (const kind of ["clusterroles", "clusterrolebindings"])
      await cluster().call("DELETE", `/apis/rbac.authorization.k8s.io/v1/${kind}/${name}`);
  });

  test("rejects a server with another name, unless the kubeconfig has tls-server-name", async () => {
    const token = await account("fourth");
    const wrong = await clientBy(await kubeconfig({ token }, { "tls-server-name": "somewhere.else" }));
    await expect(whoAmI(wrong)).rejects.toThrow(/altnames|certificate/i);
    const right = await clientBy(await kubeconfig({ token }, { "tls-server-name": "localhost" }));
    expect(await whoAmI(right)).toBe(userOf("fourth"));
    const otherCa = { "certificate-authority-data": undefined };
    const unknown = await clientBy(await kubeconfig({ token }, otherCa));
    await expect(whoAmI(unknown)).rejects.toThrow(/certificate/i);
    const careless = { ...otherCa, "insecure-skip-tls-verify": true };
    const trusting = await clientBy(await kubeconfig({ token }, careless));
    expect(await whoAmI(trusting)).toBe(userOf("fourth"));
    for (const client of [wrong, right, unknown, trusting]) client.close();
  });

  test("connects through the proxy-url of the kubeconfig", async () => {
    const asked: string[] = [];
    const proxy: Server = createServer().on("connect", ({ url = "" }, socket, head) => {
      asked.push(url);
      const { hostname, port } = new URL(`https://${url}`);
      const there = connect(Number(port), hostname, () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        there.write(head);
        there.pipe(socket).pipe(there);
      });
      there.on("error", () => socket.destroy());
      socket.on("error", () => there.destroy());
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const client = await clientBy(await kubeconfig({ token: await account("fifth") }, { "proxy-url": url }));
    expect(await whoAmI(client)).toBe(userOf("fifth"));
    expect(asked[0]).toBe(new URL(cluster().server).host);
    client.close();
    proxy.close();
  });
});
