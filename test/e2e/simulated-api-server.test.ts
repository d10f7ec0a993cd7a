import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import {
  APPLY,
  anyHistory,
  type Call,
  cleanup,
  kindsOfCalls,
  lastCall,
  MERGE,
  ROOT_CA,
  Side,
  simulated,
  simulatedSide,
  thingDefinition,
} from "../simulation/api-server/conformance.ts";
import { histories, RECORDED } from "../simulation/api-server/histories.ts";

const LONG_RUNS = process.env["USHER_HISTORIES"];
const RUNS = Number(LONG_RUNS ?? 40);
/** The same histories on every machine; `npm run test:long` has other ones each time. */
const SAME = LONG_RUNS === undefined ? { seed: 20_261_118 } : {};
const CALLS = 20;

async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of response) {
    const parts = (rest + String(chunk)).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest !== "") yield rest;
}

function realSide(cluster: ClusterAccess): Side {
  return new Side({
    send: async ({ method, path, body, type }) => {
      const headers = type === undefined ? {} : { "content-type": type };
      const reply = await cluster.client.request(method, path, body as never, undefined, { headers });
      return { status: reply.status, body: reply.body };
    },
    watch: async (path) => {
      const response = await cluster.client.open("GET", `${path}&timeoutSeconds=60`);
      return { lines: linesOf(response), close: () => response.destroy() };
    },
    wait: () => sleep(100),
  });
}

describeCluster("the simulated API server", (cluster) => {
  const namespace = testNamespace(cluster);
  const group = `s${randomBytes(4).toString("hex")}.usher.dev`;
  const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const maps = () => `/api/v1/namespaces/${namespace()}/configmaps`;

  beforeAll(async () => {
    await cluster().call("POST", crds, thingDefinition(group));
    const things = `/apis/${group}/v1/namespaces/${namespace()}/things`;
    for (const path of [things, `${maps()}/${ROOT_CA}`])
      await realSide(cluster()).call({ method: "GET", path, until: 200 });
    return async () => {
      await cluster().request("DELETE", `${crds}/things.${group}`);
    };
  });

  test(`answers ${RUNS} random histories of ${CALLS} calls as the real one does`, async () => {
    const kinds = kindsOfCalls(namespace(), group);
    const history = anyHistory(kinds, CALLS);
    await fc.assert(
      fc.asyncProperty(history, async ({ kind, calls }) => {
        const { real, ours } = await bothSides();
        const watches = await Promise.all([real.watch(kind), ours.watch(kind)]);
        try {
          for (const [i, call] of calls.entries()) {
            const [expected, answer] = await Promise.all([real.call(call), ours.call(call)]);
            expect({ i, call, answer }).toEqual({ i, call, answer: expected });
          }
          const last = lastCall(kind);
          await Promise.all([real.call(last), ours.call(last)]);
          const [expected, sent] = await Promise.all(watches.map((events) => events()));
          expect(sent).toEqual(expected);
        } finally {
          for (const call of cleanup(kind)) await real.call(call);
        }
      }),
      { ...SAME, numRuns: RUNS, endOnFailure: process.env["USHER_SHRINK"] === undefined },
    );
  });

  test("recorded histories are what the real one answers", async () => {
    const place = { namespace: namespace(), group };
    const answers: Record<string, Json> = {};
    for (const [title, calls] of Object.entries(histories(place))) {
      const side = realSide(cluster());
      const list: Json[] = [];
      for (const call of calls) list.push(await side.call(call));
      answers[title] = list;
    }
    const text = JSON.stringify(answers)
      .replaceAll(namespace(), RECORDED.namespace)
      .replaceAll(group, RECORDED.group);
    const file = join(import.meta.dirname, "..", "simulation", "api-server", "histories.json");
    if (process.env["USHER_RECORD"] !== undefined)
      await writeFile(file, `${JSON.stringify(JSON.parse(text), null, 2)}\n`);
    expect(JSON.parse(text)).toEqual(JSON.parse(await readFile(file, "utf8")));
  });

  test("asks webhooks as the real one does", async () => {
    const reviews: { readonly real: Json[]; readonly ours: Json[] } = { real: [], ours: [] };
    await using peer = await startWebhooks(cluster(), (request) => reviews.real.push(request));
    const made = simulated({
      callWebhook: async (review, { clientConfig }) => {
        const request = at(review, "request") as JsonObject;
        reviews.ours.push(request);
        return { response: { uid: request["uid"], ...judged(stringAt(clientConfig, "url") ?? "", request) } };
      },
    });
    const { real, ours } = await bothSides(simulatedSide(made));
    const ready = webhookHistory(namespace(), peer);
    for (const call of ready.begin) await Promise.all([real.call(call), ours.call(call)]);
    reviews.real.length = 0;
    reviews.ours.length = 0;
    try {
      for (const call of ready.calls) {
        const [expected, answer] = await Promise.all([real.call(call), ours.call(call)]);
        expect({ call, answer }).toEqual({ call, answer: expected });
        const normal = (side: Side, list: Json[]) =>
          list.splice(0).map((one) => side.normal(withoutUser(one)));
        const [wanted, sent] = [normal(real, reviews.real), normal(ours, reviews.ours)];
        expect({ call, reviews: sent }).toEqual({ call, reviews: wanted });
      }
    } finally {
      for (const call of ready.end) await real.call(call);
    }
  });

  test("evaluates ValidatingAdmissionPolicies as the real one does", async () => {
    const { real, ours } = await bothSides();
    const { begin, calls, end } = policyHistory(namespace());
    for (const call of begin) await Promise.all([real.call(call), ours.call(call)]);
    try {
      for (const call of calls) {
        const [expected, answer] = await Promise.all([real.call(call), ours.call(call)]);
        expect({ call, answer }).toEqual({ call, answer: expected });
      }
    } finally {
      for (const call of end) await real.call(call);
    }
  });

  async function bothSides(ours = simulatedSide()): Promise<{ real: Side; ours: Side }> {
    const start: Call[] = [
      { method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace() } } },
      { method: "POST", path: maps(), body: { metadata: { name: ROOT_CA } } },
      { method: "POST", path: crds, body: thingDefinition(group) },
      { method: "GET", path: `/apis/${group}/v1/namespaces/${namespace()}/things`, until: 200 },
    ];
    for (const call of start) await ours.call(call);
    return { real: realSide(cluster()), ours: ours.fresh() };
  }
});

/** What the webhooks of the test answer, by their path. */
function judged(url: string, request: JsonObject): JsonObject {
  const object = at(request, "object");
  const has = (key: string): boolean => at(object, "data", key) !== undefined;
  const path = new URL(url).pathname;
  if (path === "/validate" || has("refused-early")) {
    const refuses =
      has("refused") || has("refused-early") || at(request, "oldObject", "data", "kept") !== undefined;
    const status = { code: 403, reason: "Forbidden", message: "refused by the test" };
    return refuses ? { allowed: false, status } : { allowed: true, warnings: ["seen"] };
  }
  // The first adds a key, and another one once it sees that of the second.
  const [own, other] = path === "/first" ? ["first", "second"] : ["second", "none"];
  const add = (key: string) => ({ op: "add", path: `/data/${key}`, value: "1" });
  const patch = !isObject(at(object, "data"))
    ? []
    : [...(has(own) ? [] : [add(own)]), ...(has(other) && !has("both") ? [add("both")] : [])];
  if (patch.length === 0) return { allowed: true };
  return {
    allowed: true,
    patchType: "JSONPatch",
    patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
  };
}

interface Webhooks extends AsyncDisposable {
  readonly url: string;
  readonly caBundle: string;
}

async function startWebhooks(cluster: ClusterAccess, seen: (request: JsonObject) => void): Promise<Webhooks> {
  const certificate = await makeCertificate(["127.0.0.1", "localhost"]);
  const server = createServer({ cert: certificate.cert, key: certificate.key }, async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const review = (JSON.parse(Buffer.concat(parts).toString()) as { request: JsonObject }).request;
    seen(review);
    const answer = { uid: review["uid"], ...judged(`https://127.0.0.1${request.url}`, review) };
    response.setHeader("content-type", "application/json");
    response.end(
      JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await cluster.route("127.0.0.1", port, port);
  return {
    url: `https://127.0.0.1:${port}`,
    caBundle: Buffer.from(certificate.ca).toString("base64"),
    [Symbol.asyncDispose]: async () => {
      await cluster.unroute("127.0.0.1", port);
      server.closeAllConnections();
      server.close();
    },
  };
}

function webhookHistory(namespace: string, { url, caBundle }: Webhooks) {
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  const root = "/apis/admissionregistration.k8s.io/v1";
  const entry = (name: string, path: string, more: JsonObject = {}): JsonObject => ({
    name: `${name}.usher.dev`,
    clientConfig: { url: `${url}${path}`, caBundle },
    rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
    objectSelector: { matchExpressions: [{ key: "unasked", operator: "DoesNotExist" }] },
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    timeoutSeconds: 5,
    ...more,
  });
  const unless = (also: string): JsonObject => ({
    matchConditions: [
      { name: "not-the-control-plane", expression: `${also} || request.name != '${ROOT_CA}'` },
    ],
  });
  const configuration = (kind: string, webhooks: Json): Call => ({
    method: "POST",
    path: `${root}/${kind}webhookconfigurations`,
    body: { metadata: { name: `${namespace}-asked` }, webhooks },
  });
  const map = (data: JsonObject, metadata: JsonObject = {}) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "asked", ...metadata },
    data,
  });
  const post = (data: JsonObject, more: Partial<Call> = {}): Call => ({
    method: "POST",
    path: `${maps}?fieldManager=m1`,
    body: map(data),
    ...more,
  });
  const dry = `${maps}?fieldManager=m1&dryRun=All`;
  const begin: Call[] = [
    configuration("mutating", [
      entry("first", "/first", { reinvocationPolicy: "IfNeeded", ...unless("!has(request.name)") }),
      entry("second", "/second", unless("!has(request.name)")),
      // Without a name, this condition fails, and so does the request.
      entry("third", "/third", { objectSelector: { matchLabels: { nameless: "1" } }, ...unless("false") }),
    ]),
    { ...post({ "refused-early": "1" }), path: dry, until: 403 },
    configuration("validating", [entry("validate", "/validate", unless("false"))]),
    { ...post({ refused: "1" }), path: dry, until: 403 },
  ];
  const object = `${maps}/asked?fieldManager=m2`;
  const calls: Call[] = [
    post({ refused: "1" }),
    post({ a: "1" }, { path: dry }),
    post({ a: "1" }),
    post({ a: "1" }),
    { method: "PATCH", type: MERGE, path: object, body: { data: { first: null } } },
    { method: "PUT", path: object, body: map({ b: "1" }, { labels: { x: "1" } }) },
    { method: "PATCH", type: APPLY, path: `${object}&force=true`, body: map({ b: "2" }) },
    { method: "PATCH", type: MERGE, path: object, body: { data: { refused: "1" } } },
    { method: "PATCH", type: MERGE, path: object, body: { data: { kept: "1" } } },
    { method: "DELETE", path: `${maps}/asked` },
    { method: "PATCH", type: MERGE, path: object, body: { metadata: { labels: { unasked: "1" } } } },
    // An object that had no such label, or has none, is asked about.
    { method: "PUT", path: object, body: map({}, { labels: { unasked: "1" } }) },
    {
      method: "DELETE",
      path: `${maps}/asked`,
      body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" },
    },
    { method: "PATCH", type: APPLY, path: `${object}&force=true`, body: map({ c: "2" }) },
    {
      method: "POST",
      path: `${maps}?fieldManager=m1`,
      body: { metadata: { generateName: "asked-" }, data: { refused: "1" } },
    },
    {
      method: "POST",
      path: `${maps}?fieldManager=m1`,
      body: { metadata: { generateName: "asked-", labels: { nameless: "1" } }, data: {} },
    },
  ];
  const end: Call[] = [
    ...["mutating", "validating"].map((kind) => ({
      method: "DELETE",
      path: `${root}/${kind}webhookconfigurations/${namespace}-asked`,
    })),
    { method: "DELETE", path: `${maps}/asked`, until: 404 },
  ];
  return { begin, calls, end };
}

/** Policies with params, with an expression that fails, and with params that do not exist. */
function policyHistory(namespace: string) {
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  const root = "/apis/admissionregistration.k8s.io/v1";
  const here = { matchLabels: { "kubernetes.io/metadata.name": namespace } };
  const policies: Readonly<Record<string, { readonly spec: JsonObject; readonly bound: JsonObject }>> = {
    params: {
      spec: {
        failurePolicy: "Ignore",
        paramKind: { apiVersion: "v1", kind: "Namespace" },
        matchConditions: [
          { name: "named", expression: 'object.?data["space"].orValue("") == params.metadata.name' },
        ],
        validations: [
          {
            expression: 'request.userInfo.username in ["none"]',
            reason: "Forbidden",
            messageExpression: '"refused for " + params.metadata.name + " (" + object.metadata.name + ")"',
          },
        ],
      },
      bound: { paramRef: { selector: here, parameterNotFoundAction: "Allow" } },
    },
    closed: {
      spec: {
        failurePolicy: "Fail",
        validations: [{ expression: 'object.data.must == "1"', message: "must has to be 1" }],
      },
      bound: { matchResources: { objectSelector: { matchLabels: { strict: "1" } } } },
    },
    open: {
      spec: { failurePolicy: "Ignore", validations: [{ expression: 'object.data.may == "1"' }] },
      bound: { matchResources: { objectSelector: { matchLabels: { lax: "1" } } } },
    },
    unbound: {
      spec: { paramKind: { apiVersion: "v1", kind: "Namespace" }, validations: [{ expression: "false" }] },
      bound: {
        paramRef: { selector: { matchLabels: { none: namespace } }, parameterNotFoundAction: "Allow" },
      },
    },
    audited: {
      spec: { validations: [{ expression: "false" }] },
      bound: { validationActions: ["Audit"] },
    },
  };
  const names = Object.keys(policies).map((name) => `${namespace}-${name}`);
  const created = Object.entries(policies).flatMap(([name, { spec, bound }]): Call[] => {
    const metadata = { name: `${namespace}-${name}` };
    const resources = ["configmaps"];
    const matchConstraints = {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources }],
    };
    const matchResources = { ...((bound["matchResources"] ?? {}) as JsonObject), namespaceSelector: here };
    return [
      {
        method: "POST",
        path: `${root}/validatingadmissionpolicies`,
        body: { metadata, spec: { matchConstraints, ...spec } },
      },
      {
        method: "POST",
        path: `${root}/validatingadmissionpolicybindings`,
        body: {
          metadata,
          spec: { policyName: metadata.name, validationActions: ["Deny"], ...bound, matchResources },
        },
      },
    ];
  });
  const map = (data: JsonObject, labels: JsonObject = {}) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "judged", labels },
    data,
  });
  const post = (data: JsonObject, labels?: JsonObject): Call => ({
    method: "POST",
    path: `${maps}?fieldManager=m1`,
    body: map(data, labels),
  });
  const dry = (data: JsonObject, labels: JsonObject, until: number): Call => ({
    ...post(data, labels),
    path: `${maps}?fieldManager=m1&dryRun=All`,
    until,
  });
  const object = `${maps}/judged?fieldManager=m2`;
  const calls: Call[] = [
    post({ space: namespace }),
    { ...post({}, { strict: "1" }), only: "status" },
    post({ must: "2" }, { strict: "1" }),
    post({ may: "2" }, { lax: "1" }),
    post({ must: "1", space: "another" }, { strict: "1", lax: "1" }),
    { method: "PATCH", type: MERGE, path: object, body: { data: { space: namespace } } },
    { method: "PATCH", type: MERGE, path: object, body: { data: { must: "2" } } },
    { method: "PUT", path: object, body: map({ must: "1" }, { strict: "1" }) },
    { method: "PATCH", type: APPLY, path: `${object}&force=true`, body: map({ space: namespace }) },
    { method: "DELETE", path: `${maps}/judged` },
  ];
  return {
    begin: [
      ...created,
      dry({ space: namespace }, {}, 403),
      dry({ must: "2" }, { strict: "1" }, 422),
      dry({ may: "2" }, { lax: "1" }, 422),
    ],
    calls,
    end: names.flatMap((name): Call[] =>
      ["validatingadmissionpolicybindings", "validatingadmissionpolicies"].map((one) => ({
        method: "DELETE",
        path: `${root}/${one}/${name}`,
      })),
    ),
  };
}

function withoutUser(request: Json): Json {
  const { userInfo: _user, uid: _uid, ...rest } = request as JsonObject;
  return rest;
}
