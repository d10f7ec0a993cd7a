import type { IncomingMessage, ServerResponse } from "node:http";
import type { UserInfo } from "../../core/decision/request.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { at } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { type HttpResponse, jsonResponse } from "../http/http-response.ts";
import { RequestDeadline } from "../review/deadline.ts";
import { type Handle, ReviewHandler } from "../review/handle.ts";
import { timeoutFor } from "../review/routes.ts";
import { ClientCertificates } from "../tls/client-certificate.ts";
import { accessOf } from "./authorization.ts";
import { Documents } from "./discovery.ts";
import type { FrontProxy, LiveFrontProxy } from "./front-proxy.ts";
import { identityOf } from "./identity.ts";
import { type ReviewApi, reviewPath } from "./review-api.ts";

export interface AggregatedOptions {
  readonly source: Source;
  readonly log: Log;
  readonly api: ReviewApi;
  readonly frontProxy: LiveFrontProxy;
  /** The wall clock that modules see. @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** The result of a request's head: a response, or a function that reviews its body. */
export type Admitted = HttpResponse | Handle;

/**
 * Serves validating reviews as a resource of an aggregated API. Every request is authenticated by the certificate and
 * the headers of the front proxy, then authorized by a SubjectAccessReview, before anything else. So a review comes
 * from an identity that may create reviews, and usher may write for it.
 */
export class AggregatedServing {
  readonly #options: AggregatedOptions;
  readonly #documents: Documents;
  readonly #reviews: string;
  readonly #handle: Handle;
  #clients: { readonly proxy: FrontProxy; readonly certificates: ClientCertificates } | undefined;

  constructor(options: AggregatedOptions) {
    const { source, log, now, api } = options;
    this.#options = options;
    this.#documents = new Documents(api);
    this.#reviews = reviewPath(api);
    this.#handle = new ReviewHandler({ source, log, now }).handle;
  }

  /** The CA by which the handshake verifies clients. Without settings it is empty, never the system's CAs. */
  get ca(): string | string[] {
    return this.#options.frontProxy.current?.ca ?? [];
  }

  follow(use: () => void): { readonly stop: () => void } {
    return this.#options.frontProxy.follow(use);
  }

  serves(url: string): boolean {
    return /^\/(?:apis|openapi)(?:[/?]|$)/.test(url);
  }

  /** To be called with the head of a request, before its body is read. */
  async admit(request: IncomingMessage, response: ServerResponse, started: number): Promise<Admitted> {
    const { method = "", url = "/" } = request;
    const [path = "", query = ""] = url.split("?", 2);
    const user = this.#authenticate(request);
    if ("status" in user) return user;
    const { source, log } = this.#options;
    const deadline = new RequestDeadline(source, log, response, started, timeoutFor(query, []));
    const refused = await this.#authorize(user, method, path, deadline).finally(() => deadline.end());
    if (refused !== undefined) return refused;
    if (path === this.#reviews) return method === "POST" ? this.#review(query) : notAllowed(method, "POST");
    if (!this.#documents.has(path))
      return statusResponse(404, "NotFound", "the server could not find the requested resource");
    if (method !== "GET") return notAllowed(method, "GET");
    const document = this.#documents.at(path, request.headers.accept);
    if (document === undefined)
      return statusResponse(406, "NotAcceptable", "only application/json is served");
    return jsonResponse(200, document.body, document.type);
  }

  #authenticate({ socket, headersDistinct }: IncomingMessage): UserInfo | HttpResponse {
    const proxy = this.#options.frontProxy.current;
    if (proxy === undefined)
      return statusResponse(503, "ServiceUnavailable", "the settings of the front proxy are not read yet");
    if (this.#clients?.proxy !== proxy)
      this.#clients = { proxy, certificates: new ClientCertificates(proxy) };
    const refused = this.#clients.certificates.refuse(socket);
    if (refused !== undefined) return unauthorized(refused.body.trim());
    const user = identityOf(headersDistinct, proxy);
    return typeof user === "string" ? unauthorized(user) : user;
  }

  async #authorize(
    user: UserInfo,
    method: string,
    path: string,
    deadline: RequestDeadline,
  ): Promise<HttpResponse | undefined> {
    const [fact] = await deadline.fetch([{ access: accessOf(user, method, path) }]);
    if (fact === undefined || !("found" in fact)) {
      const error = fact !== undefined && "failed" in fact ? fact.failed : "no answer";
      this.#options.log.warn({ error }, "failed to authorize a request of the front proxy");
      return statusResponse(
        503,
        "ServiceUnavailable",
        "the request could not be authorized: the SubjectAccessReview failed",
      );
    }
    if (at(fact.found, "allowed") === true && at(fact.found, "denied") !== true) return undefined;
    const message = `forbidden: user ${JSON.stringify(user.username)} may not ${method} ${path}`;
    return statusResponse(403, "Forbidden", message);
  }

  #review(query: string): Handle {
    const url = query === "" ? "/validate" : `/validate?${query}`;
    return (body, _url, ...rest) => this.#handle(body, url, ...rest);
  }
}

function unauthorized(why: string): HttpResponse {
  return statusResponse(401, "Unauthorized", `Unauthorized: ${why}`);
}

function notAllowed(method: string, allow: string): HttpResponse {
  return { ...statusResponse(405, "MethodNotAllowed", `${method} is not allowed: use ${allow}`), allow };
}

/** An error as API servers send it. */
function statusResponse(code: number, reason: string, message: string): HttpResponse {
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
  return jsonResponse(code, JSON.stringify(status));
}
