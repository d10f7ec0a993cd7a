// A running cluster as tests see it. Made from plain data, so that a test in another process than the one that started
// the cluster can use all of it.
import { mkdirSync } from "node:fs";
import { request as httpRequest, type RequestOptions } from "node:http";
import { join } from "node:path";
import type { Json, JsonObject } from "../../../src/core/json.ts";
import type { KeyedCertificate } from "../certificates/authority.ts";
import { address } from "../egress/routes.ts";
import { type AuditEntry, readAuditLog } from "./audit.ts";
import { Client, type Reply } from "./client.ts";
import { ADMIN, Identities, type Identity } from "./identity.ts";
import { type CommandResult, runKubectl } from "./kubectl.ts";
import { createNode, type NodeOptions } from "./node.ts";
import { readPodLog } from "./pod-log.ts";

/** Everything needed to use a cluster; plain data. */
export interface ClusterInfo {
  readonly server: string;
  readonly ca: KeyedCertificate;
  /** Holds the components' logs, kubeconfigs and all other files of this cluster. */
  readonly folder: string;
  readonly kubectl: string;
  readonly auditLog: string;
  readonly egressSocket: string;
}

export interface KubectlOptions {
  readonly as?: Identity;
  readonly input?: string;
}

export class ClusterAccess {
  readonly info: ClusterInfo;
  readonly client: Client;
  readonly #identities: Identities;
  readonly #home: string;

  constructor(info: ClusterInfo) {
    this.info = info;
    this.#home = join(info.folder, "home");
    mkdirSync(this.#home, { recursive: true });
    this.#identities = new Identities(this.#home, info.server, info.ca);
    this.client = new Client(info.server, info.ca.certificate, this.#identities);
  }

  get server(): string {
    return this.info.server;
  }

  /**
   * The path of a kubeconfig for any identity: `kubeconfig("system:node:n1", ["system:nodes"])`. Without a user: the
   * administrator.
   */
  kubeconfig(user?: string, groups: readonly string[] = []): Promise<string> {
    return this.#identities.kubeconfig(user === undefined ? ADMIN : { user, groups });
  }

  /** Runs kubectl; `as` is the identity of its client certificate, not an impersonation. */
  async kubectl(args: readonly string[], options: KubectlOptions = {}): Promise<CommandResult> {
    const kubeconfig = await this.#identities.kubeconfig(options.as ?? ADMIN);
    return runKubectl(this.info.kubectl, args, kubeconfig, this.#home, options.input);
  }

  /** `kubectl apply` of objects, which must succeed. */
  async apply(...objects: readonly JsonObject[]): Promise<void> {
    const input = objects.map((object) => JSON.stringify(object)).join("\n---\n");
    const { code, stderr } = await this.kubectl(["apply", "-f", "-"], { input });
    if (code !== 0) throw new Error(`kubectl apply: ${stderr}`);
  }

  /** Sends one request and returns any response. A PATCH with a list is a JSON Patch, with an object a merge patch. */
  request(
    method: string,
    path: string,
    body?: JsonObject | readonly Json[],
    identity?: Identity,
  ): Promise<Reply> {
    return this.client.request(method, path, body, identity);
  }

  /** Sends one request that must succeed; returns its body. */
  call(
    method: string,
    path: string,
    body?: JsonObject | readonly Json[],
    identity?: Identity,
  ): Promise<Json> {
    return this.client.call(method, path, body, identity);
  }

  /** Creates a node that kwok makes Ready. */
  createNode(name: string, options?: NodeOptions): Promise<void> {
    return createNode(this.client, name, options);
  }

  auditLog(): readonly AuditEntry[] {
    return readAuditLog(this.info.auditLog);
  }

  /** The output of the containers of a pod that runs for real. */
  podLog(namespace: string, name: string): string {
    return readPodLog(this.info.folder, namespace, name);
  }

  /** Routes connections of the API server to `host:port` to a local port. */
  async route(host: string, port: number, localPort: number): Promise<void> {
    await this.#onRoute("PUT", `${address(host, port)}?port=${localPort}`);
  }

  async unroute(host: string, port: number): Promise<void> {
    await this.#onRoute("DELETE", address(host, port));
  }

  /** The local port behind an address of the cluster (a pod's or a Service's), so that a test can call it directly. */
  async localPort(host: string, port: number): Promise<number> {
    const local = Number(await this.#onRoute("GET", address(host, port)));
    if (!local) throw new Error(`nothing ready at ${address(host, port)}`);
    return local;
  }

  /** Closes connections; the cluster keeps running. */
  close(): void {
    this.client.close();
  }

  #onRoute(method: string, path: string): Promise<string> {
    const options: RequestOptions = { socketPath: this.info.egressSocket, method, path: `/${path}` };
    return new Promise((resolve, reject) => {
      const sent = httpRequest(options, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.once("end", () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`${method} route ${path}: ${response.statusCode}`));
        });
      });
      sent.once("error", reject);
      sent.end();
    });
  }
}
