// A kubelet's requests to the API server for its pods, as that node: the Node authorizer and NodeRestriction treat the
// harness like a kubelet, and webhooks see the same users as in production.
import type { Json, JsonObject } from "../../../src/core/json.ts";
import { stringAt } from "../../../src/core/json.ts";
import { type Client, StatusError } from "../access/client.ts";
import { nodeIdentity } from "../access/identity.ts";
import type { Pod } from "./pod-spec.ts";

/** A token is renewed after this share of its lifetime. */
const RENEW_AT = 0.8;

interface Token {
  readonly value: string;
  readonly renewAt: number;
}

export class KubeletApi {
  readonly #client: Client;
  readonly #pod: Pod;
  readonly #tokens = new Map<string, Token>();

  constructor(client: Client, pod: Pod) {
    this.#client = client;
    this.#pod = pod;
  }

  /** A ConfigMap or Secret of the pod's namespace; `undefined` if absent. */
  async read(resource: "configmaps" | "secrets", name: string): Promise<Json | undefined> {
    const reply = await this.#request("GET", `${resource}/${name}`);
    return reply;
  }

  async token(audience: string | undefined, expirationSeconds: number): Promise<string> {
    const key = `${audience ?? ""} ${expirationSeconds}`;
    const known = this.#tokens.get(key);
    if (known !== undefined && Date.now() < known.renewAt) return known.value;
    const { name, uid } = this.#pod.metadata;
    const account = stringAt(this.#pod, "spec", "serviceAccountName") ?? "default";
    const reply = await this.#request("POST", `serviceaccounts/${account}/token`, {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        ...(audience === undefined ? {} : { audiences: [audience] }),
        expirationSeconds,
        boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid },
      },
    });
    const value = stringAt(reply, "status", "token");
    if (value === undefined) throw new Error(`no service account ${account}`);
    const expires = Date.parse(stringAt(reply, "status", "expirationTimestamp") ?? "");
    this.#tokens.set(key, { value, renewAt: Date.now() + (expires - Date.now()) * RENEW_AT });
    return value;
  }

  /** False where the pod is gone. */
  async writeStatus(status: JsonObject): Promise<boolean> {
    const { name, uid } = this.#pod.metadata;
    // The uid turns the request into a conflict if another pod has the name by now.
    const body = { metadata: { uid }, status };
    const headers = { "content-type": "application/strategic-merge-patch+json" };
    const reply = await this.#request("PATCH", `pods/${name}/status`, body, headers);
    return reply !== undefined;
  }

  /** The last step: the containers have ended, so the pod may be removed. */
  async remove(): Promise<void> {
    const { name, uid } = this.#pod.metadata;
    await this.#request("DELETE", `pods/${name}`, { gracePeriodSeconds: 0, preconditions: { uid } });
  }

  async #request(
    method: string,
    path: string,
    body?: JsonObject,
    headers: Record<string, string> = {},
  ): Promise<Json | undefined> {
    const { namespace } = this.#pod.metadata;
    const identity = nodeIdentity(this.#pod.spec.nodeName);
    const url = `/api/v1/namespaces/${namespace}/${path}`;
    const reply = await this.#client.request(method, url, body, identity, { headers });
    if (reply.status === 404 || (reply.status === 409 && method !== "POST")) return undefined;
    if (reply.status >= 300) throw new StatusError(`${method} ${url}`, reply);
    return reply.body;
  }
}
