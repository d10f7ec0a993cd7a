import { type ClientRequestArgs, type IncomingHttpHeaders, request as plainRequest } from "node:http";
import { Agent, type RequestOptions, request as secureRequest } from "node:https";
import { allow, deny, need, type Result } from "../../../src/core/decision/decision.ts";
import type { Need } from "../../../src/core/decision/need.ts";
import type { Source } from "../../../src/core/evaluate/source.ts";
import { Gates } from "../../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../src/core/installation/installation.ts";
import { isObject, type Json, type JsonObject } from "../../../src/core/json.ts";
import { Assembly } from "../../../src/core/module/assembly.ts";
import type { Hook, Phase } from "../../../src/core/module/hook.ts";
import { type Context, defineModule, type Module } from "../../../src/core/module/module.ts";

/** For tests: a cluster with one module, whose hooks each do one thing. */

export interface Behaviour {
  readonly phase: Phase;
  readonly judge: (context: Context) => Result;
  readonly failure?: Hook["failure"];
  /** @default "deny" for a validating hook */
  readonly tooLarge?: Hook["tooLarge"];
  readonly timeoutSeconds?: number;
}

const POOL: Need = { get: { resource: "pools", name: "shared" }, live: true };

function refuse(message: string): Result {
  return deny({ code: 403, reason: "Forbidden" }, [
    { rule: "refuse", outcome: "violated", code: "USHER-T01", path: ["spec", "nodeName"], message },
  ]);
}

function withPool(context: Context): Result {
  const fact = context.facts.of(POOL);
  if (fact === undefined) return need(POOL);
  return "found" in fact ? allow() : refuse("failed" in fact ? `no pool: ${fact.failed}` : "no such pool");
}

export const BEHAVIOURS = {
  label: {
    phase: "mutate",
    judge: ({ draft }) => {
      const done = draft.set(["metadata", "labels", "seen"], "yes", {
        policy: { kind: "Labelling", name: "seen" },
        rule: "label",
        outcome: "applied",
        message: "labelled",
      });
      return done ? allow() : refuse("metadata is not an object");
    },
  },
  second: { phase: "mutate", judge: () => allow() },
  welcome: { phase: "validate", judge: () => allow() },
  refuse: { phase: "validate", judge: () => refuse("may not run on cp-0") },
  pool: { phase: "validate", judge: withPool, timeoutSeconds: 1 },
  record: {
    phase: "validate",
    judge: (context) => {
      const fact = context.facts.of(POOL);
      if (fact === undefined) return need(POOL);
      if ("failed" in fact) return refuse(fact.failed);
      const commit = {
        resource: "pools",
        name: "shared",
        object: {},
        resourceVersion: undefined,
        rests: POOL,
      };
      return allow([], commit);
    },
  },
  "throws-open": {
    phase: "validate",
    failure: "open",
    judge: () => {
      throw new Error("inner workings");
    },
  },
  "throws-closed": {
    phase: "validate",
    judge: () => {
      throw new Error("inner workings");
    },
  },
} as const satisfies Record<string, Behaviour>;

export function testModule(behaviours: Readonly<Record<string, Behaviour>> = BEHAVIOURS): Module {
  const judge = (context: Context): Result => behaviours[context.hook]?.judge(context) ?? allow();
  return defineModule({
    name: "tiny",
    summary: "for tests",
    kinds: [],
    reads: [],
    hooks: () =>
      Object.entries(behaviours).map(([name, behaviour]) => ({
        name,
        module: "tiny",
        phase: behaviour.phase,
        rules: [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE", "UPDATE"] }],
        failure: behaviour.failure ?? "closed",
        tooLarge: behaviour.tooLarge ?? (behaviour.phase === "mutate" ? "allow" : "deny"),
        timeoutSeconds: behaviour.timeoutSeconds ?? 10,
        sideEffects: "None",
      })),
    assemble: () => ({ mutate: judge, validate: judge }),
  });
}

/** A source on which every need is found and every commit succeeds, by default. */
export function testSource(changes: Partial<Source> = {}, module = testModule()): Source {
  return {
    assembly: new Assembly([module], DEFAULT_INSTALLATION, new Gates([])),
    ready: true,
    fetch: async (needs) => needs.map(() => ({ found: {}, complete: true })),
    commit: async () => "done",
    stop: async () => undefined,
    ...changes,
  };
}

export function review(changes: JsonObject = {}, around: JsonObject = {}): JsonObject {
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
      kind: { group: "", version: "v1", kind: "Pod" },
      resource: { group: "", version: "v1", resource: "pods" },
      requestKind: { group: "", version: "v1", kind: "Pod" },
      name: "web",
      namespace: "shop",
      operation: "CREATE",
      userInfo: { username: "ann", uid: "7", groups: ["system:authenticated"] },
      object: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "web", namespace: "shop" },
        spec: { containers: [{ name: "web", image: "web:1" }] },
      },
      oldObject: null,
      dryRun: false,
      options: null,
      ...changes,
    },
    ...around,
  };
}

export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The `response` of an answered review; throws if the body has none. */
export function responseOf(got: Pick<Got, "body">): JsonObject {
  const parsed = JSON.parse(got.body) as Json;
  const response = isObject(parsed) ? parsed["response"] : undefined;
  if (!isObject(response)) throw new Error(`no AdmissionReview: ${got.body}`);
  return response;
}

/** A POST of a review to an HTTPS server whose authority is `ca`. */
export function post(
  url: string,
  ca: string | undefined,
  body: string | Buffer | JsonObject = review(),
  options: RequestOptions = {},
): Promise<Got> {
  const bytes = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return exchange(
    (args, done) =>
      secureRequest(
        url,
        { method: "POST", agent: false, ...(ca === undefined ? {} : { ca }), ...args },
        done,
      ),
    { headers: { "content-type": "application/json" }, ...options },
    bytes,
  );
}

export function get(url: string, options: ClientRequestArgs = {}): Promise<Got> {
  return exchange((args, done) => plainRequest(url, { agent: false, ...args }, done), options, "");
}

type Done = Parameters<typeof plainRequest>[2];

function exchange(
  send: (options: RequestOptions, done: Done) => ReturnType<typeof plainRequest>,
  options: RequestOptions,
  body: string | Buffer,
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = send(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** An agent that keeps its one connection, as the API server does. */
export function keeping(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 });
}
