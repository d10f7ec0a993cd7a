import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Authority, type KeyedCertificate } from "../../../test/cluster/certificates/authority.ts";
import { type Got, keeping, responseOf, review } from "../../../test/support/admission/example-cluster.ts";
import {
  API,
  authenticationConfigMap,
  type Call,
  call,
  frontProxy,
  REVIEWS,
  reviewed,
} from "../../../test/support/admission/front-proxy.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import { at, type Json, type JsonObject } from "../../core/json.ts";
import type { AdmissionServer } from "../admission-server.ts";
import type { LiveFrontProxy } from "./front-proxy.ts";

let server: AdmissionServer;
let authority: Authority;
let client: KeyedCertificate;
let settings: LiveFrontProxy;
let commits = 0;
const asked: JsonObject[] = [];
const API_SERVER = ["X-Remote-User", "system:apiserver", "X-Remote-Group", "system:masters"];
const JSON_BODY = ["Content-Type", "application/json"];
const REVIEW = JSON.stringify(review());

beforeAll(async () => {
  authority = await Authority.create("front-proxy-ca");
  client = await authority.issue({ user: "front-proxy-client" });
  settings = frontProxy(authenticationConfigMap(authority.pem.certificate));
  const commit = async () => {
    commits += 1;
    return "done" as const;
  };
  server = await startTestServer({
    source: reviewed(asked, { commit }),
    aggregated: { api: API, frontProxy: settings },
    // Reviews by the webhook's path have no token here.
    acceptsToken: () => false,
    limits: { bodyBytes: 100_000 },
  });
});
afterAll(() => server.close());
beforeEach(() => {
  asked.length = 0;
  commits = 0;
});

const ask = (path: string, changes: Partial<Call> = {}): Promise<Got> =>
  call({
    url: `${server.webhookAddress.url}${path}`,
    ca: server.ca,
    client,
    headers: API_SERVER,
    ...changes,
  });

const send = (changes: Partial<Call> = {}): Promise<Got> =>
  ask(REVIEWS, { method: "POST", headers: [...API_SERVER, ...JSON_BODY], body: REVIEW, ...changes });

const status = (got: Got): Json => JSON.parse(got.body) as Json;

describe("reviews", () => {
  test("are answered for an identity that may create them, and may commit without a path token", async () => {
    const got = await send();
    expect(got.status).toBe(200);
    expect(at(status(got), "kind")).toBe("AdmissionReview");
    expect(responseOf(got)).toMatchObject({ uid: "705ab4f5-6393-11e8-b7cc-42010a800002", allowed: true });
    expect(commits).toBe(1);
    expect(asked).toEqual([
      {
        user: "system:apiserver",
        groups: ["system:masters", "system:authenticated"],
        resourceAttributes: {
          group: API.group,
          version: "v1",
          resource: API.resource,
          verb: "create",
          name: "",
          subresource: "",
        },
      },
    ]);
  });

  test("are authorized at the API server each time, also for system:masters", async () => {
    const mallory = ["X-Remote-User", "mallory", "X-Remote-Group", "system:masters"];
    const got = await send({ headers: [...mallory, ...JSON_BODY] });
    expect(got.status).toBe(403);
    expect(status(got)).toMatchObject({ kind: "Status", reason: "Forbidden", code: 403 });
    expect(asked.map(({ user }) => user)).toEqual(["mallory"]);
    expect(commits).toBe(0);
  });

  test("use the query's timeout", async () => {
    expect(
      (
        await ask(`${REVIEWS}?timeout=2s`, {
          method: "POST",
          headers: [...API_SERVER, ...JSON_BODY],
          body: REVIEW,
        })
      ).status,
    ).toBe(200);
  });

  test.each([
    ["no content type", API_SERVER, REVIEW, 415],
    ["YAML", [...API_SERVER, "Content-Type", "application/yaml"], REVIEW, 415],
    ["protobuf", [...API_SERVER, "Content-Type", "application/vnd.kubernetes.protobuf"], REVIEW, 415],
    ["compressed", [...API_SERVER, ...JSON_BODY, "Content-Encoding", "gzip"], REVIEW, 415],
    ["no JSON", [...API_SERVER, ...JSON_BODY], "{", 400],
    ["a body that is too large", [...API_SERVER, ...JSON_BODY], " ".repeat(200_000), 413],
    [
      "an unknown version",
      [...API_SERVER, ...JSON_BODY],
      REVIEW.replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1"),
      400,
    ],
  ])("with %s are refused", async (_what, headers, body, code) => {
    expect((await send({ headers, body })).status).toBe(code);
  });

  test.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])(
    "with method %s get 405 after the access review",
    async (method) => {
      const got = await ask(REVIEWS, { method });
      expect(got.status).toBe(405);
      expect(got.headers.allow).toBe("POST");
      expect(asked).toHaveLength(1);
    },
  );

  test("are refused with 503 if access can't be reviewed", async () => {
    const failing = await startTestServer({
      source: reviewed([], { fetch: async (needs) => needs.map(() => ({ failed: "no API server" })) }),
      aggregated: { api: API, frontProxy: settings },
    });
    const url = `${failing.webhookAddress.url}${REVIEWS}`;
    expect((await send({ url, ca: failing.ca })).status).toBe(503);
    await failing.close();
  });
});

describe("a client other than the front proxy is not authenticated", () => {
  const refusals = async (changes: Partial<Call>) => {
    const codes = [];
    for (const got of [
      await send(changes),
      await ask("/apis", changes),
      await ask("/apis/unknown", changes),
    ]) {
      expect(status(got)).toMatchObject({ kind: "Status", status: "Failure", code: got.status });
      codes.push(got.status);
    }
    expect(asked, "no access is reviewed").toEqual([]);
    expect(commits).toBe(0);
    return codes;
  };

  test("with forged headers without a certificate", async () => {
    expect(await refusals({ client: undefined })).toEqual([401, 401, 401]);
  });

  test("with a certificate of another CA, even of the same name", async () => {
    for (const name of ["elsewhere", "front-proxy-ca"]) {
      const other = await Authority.create(name);
      const forged = await other.issue({ user: "front-proxy-client", groups: ["system:masters"] });
      expect(await refusals({ client: forged })).toEqual([401, 401, 401]);
      // The chain that it sends can't vouch for itself either.
      const chained = { ...forged, certificate: `${forged.certificate}\n${other.pem.certificate}` };
      expect(await refusals({ client: chained })).toEqual([401, 401, 401]);
    }
  });

  test("with a name that is not allowed", async () => {
    const kubelet = await authority.issue({ user: "system:node:a", groups: ["front-proxy-client"] });
    expect(await refusals({ client: kubelet })).toEqual([401, 401, 401]);
  });

  test("with the certificate without headers, with an empty user, or with two users", async () => {
    const forms = [
      [],
      ["X-Remote-User", ""],
      ["X-Remote-Group", "system:masters"],
      ["X-Remote-User", "a", "X-Remote-User", "system:apiserver"],
      ["X-Remote-User", "system:apiserver", "x-remote-user", "system:apiserver"],
      ["X-Remote-User", "a", "X-Remote-Uid", "1", "X-Remote-Uid", "2"],
      ["X-Remote-User", "\xff\xfe"],
      ["X_Remote_User", "system:apiserver"],
      ["X-Remote_User", "system:apiserver"],
      ["X-Remote-User-", "system:apiserver"],
      ["Remote-User", "system:apiserver"],
    ];
    for (const headers of forms)
      expect((await send({ headers: [...headers, ...JSON_BODY] })).status, headers.join()).toBe(401);
    expect(asked).toEqual([]);
  });

  test("a webhook's path needs no certificate, and headers grant nothing there", async () => {
    const got = await ask("/validate/record", {
      method: "POST",
      headers: [...API_SERVER, ...JSON_BODY],
      body: REVIEW,
    });
    expect(responseOf(got)).toMatchObject({ allowed: false });
    expect(commits).toBe(0);
    expect(asked).toEqual([]);
  });

  test.each(["//apis", "/apis/../apis", "/%61pis", "/APIS", "/apisx"])("does not serve %s", async (path) => {
    expect((await ask(path, { client: undefined })).status).toBeGreaterThanOrEqual(401);
    expect(asked).toEqual([]);
  });
});

describe("discovery", () => {
  test("requires authorization, and lists the resource", async () => {
    const user = ["X-Remote-User", "ann", "X-Remote-Group", "system:authenticated"];
    const groups = await ask("/apis", { headers: user });
    expect(at(status(groups), "groups", 0, "name")).toBe(API.group);
    const list = await ask(`/apis/${API.group}/v1`, { headers: user });
    expect(at(status(list), "resources")).toEqual([
      {
        name: API.resource,
        singularName: "validatingreview",
        namespaced: false,
        group: "admission.k8s.io",
        version: "v1",
        kind: "AdmissionReview",
        verbs: ["create"],
      },
    ]);
    expect((await ask(`/apis/${API.group}`, { headers: user })).status).toBe(200);
    expect(asked.map((one) => at(one, "nonResourceAttributes"))).toEqual([
      { path: "/apis", verb: "get" },
      { path: `/apis/${API.group}/v1`, verb: "get" },
      { path: `/apis/${API.group}`, verb: "get" },
    ]);
  });

  test("serves the aggregated document on request", async () => {
    const v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const accept = `${v2},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json`;
    const got = await ask("/apis", { headers: [...API_SERVER, "Accept", accept] });
    expect(got.headers["content-type"]).toBe(v2);
    expect(at(status(got), "items", 0, "versions", 0, "resources", 0)).toMatchObject({
      resource: API.resource,
      scope: "Cluster",
      verbs: ["create"],
    });
  });

  test("serves OpenAPI with the one path in both versions", async () => {
    for (const path of ["/openapi/v2", `/openapi/v3/apis/${API.group}/v1`])
      expect(Object.keys(at(status(await ask(path)), "paths") ?? {}), path).toEqual([REVIEWS]);
    const index = await ask("/openapi/v3");
    expect(at(status(index), "paths", `apis/${API.group}/v1`, "serverRelativeURL")).toBe(
      `/openapi/v3/apis/${API.group}/v1`,
    );
    const accept = ["Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"];
    expect((await ask("/openapi/v2", { headers: [...API_SERVER, ...accept] })).status).toBe(406);
  });

  test.each([
    ["POST", "/apis", 405],
    ["GET", "/apis/other.example.com/v1", 404],
    ["GET", `/apis/${API.group}/v2/${API.resource}`, 403],
    ["POST", `${REVIEWS}/one`, 404],
  ])("%s %s: %i", async (method, path, code) => {
    const source = reviewed(asked, {
      fetch: async (needs) => needs.map(() => ({ found: { allowed: code !== 403 }, complete: true })),
    });
    const open = await startTestServer({ source, aggregated: { api: API, frontProxy: settings } });
    const url = `${open.webhookAddress.url}${path}`;
    expect((await ask("", { url, ca: open.ca, method })).status).toBe(code);
    await open.close();
  });
});

describe("the settings of the front proxy", () => {
  test("a new CA is accepted immediately and the old one no longer, also on its open connection", async () => {
    const live = frontProxy(authenticationConfigMap(authority.pem.certificate));
    const rotating = await startTestServer({
      source: reviewed(asked),
      aggregated: { api: API, frontProxy: live },
    });
    const url = `${rotating.webhookAddress.url}/apis`;
    const next = await Authority.create("front-proxy-ca");
    const renewed = await next.issue({ user: "front-proxy-client" });
    const both = `${authority.pem.certificate}\n${next.pem.certificate}\n`;
    const agent = keeping();
    const by = (one: KeyedCertificate, options = {}) =>
      ask("", { url, ca: rotating.ca, client: one, options });
    expect((await by(client, { agent })).status).toBe(200);
    expect((await by(renewed)).status).toBe(401);
    live.offer(authenticationConfigMap(both));
    expect((await by(client, { agent })).status, "trusted before and after").toBe(200);
    expect((await by(renewed)).status).toBe(200);
    live.offer(authenticationConfigMap(next.pem.certificate));
    expect((await by(client, { agent })).status, "on the old connection").toBe(401);
    expect((await by(client)).status).toBe(401);
    expect((await by(renewed)).status).toBe(200);
    live.offer(
      authenticationConfigMap(next.pem.certificate, { "requestheader-allowed-names": '["another"]' }),
    );
    expect((await by(renewed)).status, "by its name").toBe(401);
    agent.destroy();
    await rotating.close();
  });

  test("before they are read no client is authenticated, whatever the certificate", async () => {
    const waiting = await startTestServer({
      source: reviewed(asked),
      aggregated: { api: API, frontProxy: frontProxy(undefined) },
    });
    const url = `${waiting.webhookAddress.url}${REVIEWS}`;
    expect((await send({ url, ca: waiting.ca })).status).toBe(503);
    expect(asked).toEqual([]);
    await waiting.close();
  });

  test("the aggregated API is not served together with a client CA", async () => {
    const starting = startTestServer({
      clients: { ca: authority.pem.certificate },
      aggregated: { api: API, frontProxy: settings },
    });
    await expect(starting).rejects.toThrow("--client-ca");
  });
});
