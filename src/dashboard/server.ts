import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type {
  ApiError,
  EditableManifest,
  ExplainRequest,
  Explanations,
  LiveDecision,
  ServerEvents,
  WhatIf,
  WhatIfRequest,
} from "./model.ts";
import { BadCall, type ChangedParts, type DashboardState } from "./state.ts";

/**
 * The dashboard over HTTP, for one person on this machine. It listens on 127.0.0.1 alone. Every request must name that address as its
 * host, so that no other site's name can be rebound to it; come from no other origin; and have the session, which the token of the printed
 * address is exchanged for once. Nothing it serves changes anything.
 */

/** A file of the page. */
export interface PageFile {
  readonly type: string;
  readonly body: Uint8Array;
}

/** Functions that need more than the state: they judge objects in worlds. */
export interface Judging {
  readonly manifest: (object: { kind: string; namespace: string; name: string }) => EditableManifest;
  readonly explain: (object: { kind: string; namespace: string; name: string }) => Promise<Explanations>;
  readonly explainManifest: (request: ExplainRequest) => Promise<Explanations>;
  readonly whatIf: (request: WhatIfRequest) => Promise<WhatIf>;
}

export interface DashboardServerOptions {
  readonly state: DashboardState;
  readonly judging: Judging;
  /** By path: `/page.js`. `/` is the page itself. */
  readonly page: ReadonlyMap<string, PageFile>;
  readonly port: number;
  /** Called with errors that no request should cause. */
  readonly failed: (error: unknown) => void;
}

export interface DashboardServer {
  /** With the token: for the person who started it, once. */
  readonly url: string;
  readonly port: number;
  /** Sends decisions to every open page. */
  readonly sendDecisions: (decisions: readonly LiveDecision[]) => void;
  /** Sends the state of the source to every open page. */
  readonly sendSource: () => void;
  readonly stop: () => Promise<void>;
}

const LOOPBACK = "127.0.0.1";

/** A pasted manifest is read whole. The API server takes 3 MiB of one object; people paste less. */
const BODY_BYTES = 1_048_576;

/** A page sends a handful of requests at once. More would wait longer than a person does. */
const MOST_JUDGING = 4;

/** Pages that follow changes. A browser opens six connections to one host. */
const MOST_STREAMS = 16;

/** How often changes are reported at most. */
const REPORT_MS = 250;

/** Some proxies close a stream that is silent for long; and a browser notices a dead server. */
const ALIVE_MS = 15_000;

/** A stream with more unread bytes than this is closed. The page connects again and reads everything. */
const UNREAD_BYTES = 1_048_576;

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": CSP,
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Cache-Control": "no-store",
} as const;

const REOPEN =
  "Open the address that usher dashboard printed when it started; it works once. Start it again for a new one.";

export async function startDashboard(options: DashboardServerOptions): Promise<DashboardServer> {
  const dashboard = new Dashboard(options);
  await dashboard.listen(options.port);
  return dashboard;
}

class Dashboard implements DashboardServer {
  readonly #options: DashboardServerOptions;
  readonly #server: Server;
  readonly #session = randomBytes(32).toString("base64url");
  readonly #streams = new Set<ServerResponse>();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #stopListening: () => void;
  #token: string | undefined = randomBytes(32).toString("base64url");
  #printed = "";
  #judging = 0;
  #due: { map: boolean; policies: boolean } | undefined;

  constructor(options: DashboardServerOptions) {
    this.#options = options;
    this.#server = createServer(
      { headersTimeout: 10_000, requestTimeout: 30_000, maxHeaderSize: 16_384 },
      (request, response) => {
        this.#handle(request, response).catch((error: unknown) => this.#fail(response, error));
      },
    );
    this.#stopListening = options.state.onChange((parts) => this.#changed(parts));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return this.#printed;
  }

  async listen(port: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject);
    this.#server.listen({ host: LOOPBACK, port }, resolve);
    await promise;
    this.#server.removeListener("error", reject);
    this.#printed = `http://${LOOPBACK}:${this.port}/?token=${this.#token}`;
    this.#timers.push(
      setInterval(() => this.#report(), REPORT_MS),
      setInterval(() => this.#write(":\n\n"), ALIVE_MS),
    );
    for (const timer of this.#timers) timer.unref();
  }

  async stop(): Promise<void> {
    this.#stopListening();
    for (const timer of this.#timers) clearInterval(timer);
    for (const stream of this.#streams) stream.destroy();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  sendDecisions = (decisions: readonly LiveDecision[]): void => {
    if (decisions.length > 0) this.#send("decisions", decisions);
  };

  sendSource = (): void => this.#send("source", this.#options.state.source);

  // ------------------------------------------------------------------------------------------------------------- requests

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
    this.#checkSender(request);
    const url = urlOf(request);
    const path = url.pathname;
    const isApi = path.startsWith("/api/");
    if (!isApi && url.searchParams.has("token")) return this.#exchange(request, response, url);
    // The page itself holds no data; without a session it says what to do.
    if (isApi && !this.#hasSession(request))
      throw new BadCall(401, "this browser has no session with the dashboard", REOPEN);
    if (request.method === "POST") return this.#post(request, response, path);
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("Allow", "GET, HEAD, POST");
      throw new BadCall(405, `${request.method ?? ""} is not allowed`, "The dashboard changes nothing.");
    }
    if (path === "/api/events") return this.#stream(request, response);
    if (isApi)
      return sendJson(
        response,
        200,
        await this.#get(path.slice("/api/".length).split("/").map(decoded), url.searchParams),
      );
    return this.#file(response, path);
  }

  /** Host and origin: a site of another name, or another program's page, gets nothing. */
  #checkSender(request: IncomingMessage): void {
    const hosts = [`${LOOPBACK}:${this.port}`, `localhost:${this.port}`];
    const { host, origin, "sec-fetch-site": site } = request.headers;
    if (host === undefined || !hosts.includes(host.toLowerCase()))
      throw new BadCall(
        403,
        "the Host header names another address than this dashboard's",
        `Open http://${hosts[0]}/.`,
      );
    if (origin !== undefined && origin !== `http://${host.toLowerCase()}`)
      throw new BadCall(403, "the request comes from another origin", `Open http://${hosts[0]}/.`);
    if (request.method === "POST" && origin === undefined)
      throw new BadCall(
        403,
        "a POST must have the Origin header",
        "Browsers send it; programs use usher what-if and usher explain.",
      );
    if (site !== undefined && site !== "same-origin" && site !== "none")
      throw new BadCall(403, "the request comes from another site", `Open http://${hosts[0]}/.`);
  }

  #hasSession(request: IncomingMessage): boolean {
    const name = this.#cookieName;
    return (request.headers.cookie ?? "")
      .split(";")
      .map((one) => one.trim())
      .some((one) => one.startsWith(`${name}=`) && same(one.slice(name.length + 1), this.#session));
  }

  /** Cookies do not distinguish ports: two dashboards on one machine must not overwrite each other's cookie. */
  get #cookieName(): string {
    return `usher-dashboard-${this.port}`;
  }

  /** The token for a session, once; then the address without it, whether or not the token was right. */
  #exchange(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const token = url.searchParams.get("token") ?? "";
    url.searchParams.delete("token");
    const query = url.searchParams.toString();
    // Never another host: a path that starts with two slashes would be one.
    const there = `${url.pathname.replace(/^\/+/, "/")}${query === "" ? "" : `?${query}`}`;
    if (this.#token !== undefined && request.method === "GET" && same(token, this.#token)) {
      this.#token = undefined;
      response.setHeader(
        "Set-Cookie",
        `${this.#cookieName}=${this.#session}; HttpOnly; SameSite=Strict; Path=/`,
      );
    }
    response.writeHead(303, { Location: there }).end();
  }

  async #get(path: readonly string[], query: URLSearchParams): Promise<unknown> {
    const { state, judging } = this.#options;
    const [what = "", first = "", second = ""] = path;
    switch (path.length === 1 ? what : `${what}/${path.length}`) {
      case "overview":
        return state.overview();
      case "map": {
        const since = query.get("since");
        if (since !== null && !/^\d{1,15}$/.test(since))
          throw new BadCall(400, "since must be a revision, a number", "Leave it out to get the whole map.");
        return state.map({
          ...(query.has("lens") ? { lens: query.get("lens") ?? "" } : {}),
          ...(query.has("group") ? { group: query.get("group") ?? "" } : {}),
          ...(since === null ? {} : { since: Number(since) }),
        });
      }
      case "nodes/2":
        return state.node(first);
      case "pods/3":
        return state.pod(first, second);
      case "policies":
        return state.policies();
      case "tables/2":
        return state.table(first);
      case "manifest":
        return judging.manifest(objectIn(query));
      case "explain":
        return this.#judge(() => judging.explain(objectIn(query)));
      case "decisions":
        return state.decisions();
      case "search":
        return state.search((query.get("q") ?? "").slice(0, 512));
      default:
        throw new BadCall(
          404,
          `there is no /api/${path.join("/")}`,
          "The calls are listed in docs/dashboard.md.",
        );
    }
  }

  async #post(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { judging } = this.#options;
    if (path !== "/api/explain" && path !== "/api/what-if")
      throw new BadCall(
        404,
        `there is nothing to POST to at ${path}`,
        "POST goes to /api/explain and /api/what-if.",
      );
    if (!/^application\/json\s*(?:;|$)/i.test(request.headers["content-type"] ?? ""))
      throw new BadCall(415, "the body must have content-type application/json");
    const body = await readBody(request);
    const result =
      path === "/api/explain"
        ? await this.#judge(() => judging.explainManifest(explainRequest(body)))
        : await this.#judge(() => judging.whatIf(whatIfRequest(body)));
    sendJson(response, 200, result);
  }

  /** Evaluation takes CPU time: a few requests run at once, and the others are told to wait. */
  async #judge<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#judging >= MOST_JUDGING)
      throw new BadCall(429, "several questions are being answered already", "Try again in a moment.");
    this.#judging += 1;
    try {
      return await work();
    } finally {
      this.#judging -= 1;
    }
  }

  /** Paths with a dot are files; all others are states of the page. */
  #file(response: ServerResponse, path: string): void {
    const { page } = this.#options;
    const file = page.get(path) ?? (path.includes(".") ? undefined : page.get("/"));
    if (file === undefined) throw new BadCall(404, `there is no file ${path}`);
    response.setHeader("Content-Type", file.type);
    response.setHeader("Content-Length", file.body.byteLength);
    response.writeHead(200).end(file.body);
  }

  #fail(response: ServerResponse, error: unknown): void {
    if (!(error instanceof BadCall)) this.#options.failed(error);
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    if (!(error instanceof BadCall)) {
      sendJson(response, 500, {
        error: {
          message: "usher failed to answer",
          hint: "The terminal that runs usher dashboard says why.",
        },
      } satisfies ApiError);
      return;
    }
    const { message, hint, problems, status } = error;
    // The rest of a body that is too large is not read.
    if (status === 413) response.setHeader("Connection", "close");
    sendJson(response, status, {
      error: {
        message,
        ...(hint === undefined ? {} : { hint }),
        ...(problems === undefined ? {} : { problems }),
      },
    } satisfies ApiError);
  }

  // --------------------------------------------------------------------------------------------------------------- events

  #stream(request: IncomingMessage, response: ServerResponse): void {
    if (this.#streams.size >= MOST_STREAMS)
      throw new BadCall(429, "too many pages follow this dashboard", "Close some of them.");
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
    request.socket.setNoDelay(true);
    this.#streams.add(response);
    response.on("close", () => this.#streams.delete(response));
    response.write(`retry: 2000\n${eventText("source", this.#options.state.source)}`);
  }

  #changed({ map, policies }: ChangedParts): void {
    this.#due = { map: map || this.#due?.map === true, policies: policies || this.#due?.policies === true };
  }

  #report(): void {
    if (this.#due === undefined) return;
    const parts = this.#due;
    this.#due = undefined;
    this.#send("changed", { revision: this.#options.state.revision, ...parts });
  }

  #send<Name extends keyof ServerEvents>(name: Name, data: ServerEvents[Name]): void {
    if (this.#streams.size > 0) this.#write(eventText(name, data));
  }

  #write(text: string): void {
    for (const stream of this.#streams) {
      if (stream.writableLength > UNREAD_BYTES) stream.destroy();
      else stream.write(text);
    }
  }
}

function eventText<Name extends keyof ServerEvents>(name: Name, data: ServerEvents[Name]): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Takes the same time for every text of one length. */
function same(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function urlOf({ url = "/" }: IncomingMessage): URL {
  const whole = URL.parse(url, `http://${LOOPBACK}`);
  if (whole === null) throw new BadCall(400, "the address can't be read");
  return whole;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new BadCall(400, "the path is not encoded as a URL");
  }
}

function objectIn(query: URLSearchParams): { kind: string; namespace: string; name: string } {
  const [kind, namespace, name] = ["kind", "namespace", "name"].map((one) => query.get(one) ?? "") as [
    string,
    string,
    string,
  ];
  if (kind === "" || name === "")
    throw new BadCall(
      400,
      "kind and name are required",
      "As in /api/explain?kind=Pod&namespace=team-a&name=report-0.",
    );
  return { kind, namespace, name };
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const tooLarge = new BadCall(
    413,
    `the body has more than ${BODY_BYTES} bytes`,
    "Paste fewer objects at once.",
  );
  if (Number(request.headers["content-length"] ?? 0) > BODY_BYTES) throw tooLarge;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES) throw tooLarge;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch {
    throw new BadCall(400, "the body is not JSON");
  }
}

function fieldsOf(body: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw new BadCall(400, "the body must be an object");
  const unknown = Object.keys(body).find((one) => !known.includes(one));
  if (unknown !== undefined)
    throw new BadCall(400, `unknown field ${unknown}`, `Known: ${known.join(", ")}.`);
  return body as Readonly<Record<string, unknown>>;
}

function text(fields: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || typeof value === "string") return value;
  throw new BadCall(400, `${name} must be a string`);
}

/** More than a person types. */
const MOST_NAMES = 500;

function texts(fields: Readonly<Record<string, unknown>>, name: string): readonly string[] {
  const value = fields[name] ?? [];
  if (!Array.isArray(value) || value.length > MOST_NAMES || !value.every((one) => typeof one === "string"))
    throw new BadCall(400, `${name} must be a list of at most ${MOST_NAMES} strings`);
  return value as string[];
}

function explainRequest(body: unknown): ExplainRequest {
  const fields = fieldsOf(body, ["manifest", "namespace"]);
  const [manifest, namespace] = [text(fields, "manifest"), text(fields, "namespace")];
  if (manifest === undefined || manifest.trim() === "")
    throw new BadCall(400, "manifest is empty", "Paste YAML or JSON.");
  return { manifest, ...(namespace === undefined || namespace === "" ? {} : { namespace }) };
}

function whatIfRequest(body: unknown): WhatIfRequest {
  const fields = fieldsOf(body, ["manifests", "remove", "cordon", "serverDryRun", "group", "lens"]);
  const [group, lens] = [text(fields, "group"), text(fields, "lens")];
  const asked = fields["serverDryRun"] ?? false;
  if (typeof asked !== "boolean") throw new BadCall(400, "serverDryRun must be true or false");
  return {
    manifests: text(fields, "manifests") ?? "",
    remove: texts(fields, "remove"),
    cordon: texts(fields, "cordon"),
    serverDryRun: asked,
    ...(group === undefined ? {} : { group }),
    ...(lens === undefined ? {} : { lens }),
  };
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response
    .writeHead(status, {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Length": body.byteLength,
    })
    .end(body);
}
