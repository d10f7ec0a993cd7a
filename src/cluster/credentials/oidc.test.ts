import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { idTokenUntil, TestProvider } from "../../../test/support/cluster/oidc-provider.ts";
import { makeCertificate } from "../../admission/tls/certificate.ts";
import type { JsonObject } from "../../core/json.ts";
import { kubeconfigCredentials } from "./kubeconfig.ts";
import { idTokenOf } from "./oidc.ts";

const HOUR = 3_600_000;
const START = Date.parse("2026-01-01T00:00:00Z");

let provider: TestProvider;
let ca: string;
/** The library that validates ID tokens reads the clock itself. */
const setClock = (now: number) => vi.setSystemTime(now);
const now = () => Date.now();

beforeAll(async () => {
  const certificate = await makeCertificate(["127.0.0.1", "localhost"]);
  ca = Buffer.from(certificate.ca).toString("base64");
  provider = new TestProvider(certificate);
  await provider.listen();
});
afterAll(() => provider.close());
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: START });
  provider.forms.length = 0;
  provider.discovery = undefined;
  provider.respond = () => [500, "unexpected in this test"];
});
afterEach(() => {
  vi.useRealTimers();
});

function settings(more: JsonObject = {}): JsonObject {
  return {
    "idp-issuer-url": `${provider.url}/realm`,
    "idp-certificate-authority-data": ca,
    "client-id": "usher",
    "client-secret": "secret",
    "id-token": idTokenUntil(START + HOUR, "first"),
    "refresh-token": "refresh 1",
    ...more,
  };
}

describe("an ID token", () => {
  test("is used unchanged until it expires", async () => {
    const token = idTokenOf(settings(), now);
    expect(await token.get()).toBe(idTokenUntil(START + HOUR, "first"));
    expect(provider.forms).toEqual([]);
  });

  test("is renewed shortly before it expires, once for concurrent callers, and then kept", async () => {
    provider.respond = () => [200, { id_token: idTokenUntil(START + 2 * HOUR, "second") }];
    const token = idTokenOf(settings(), now);
    setClock(START + HOUR - 5_000);
    const second = idTokenUntil(START + 2 * HOUR, "second");
    expect(await Promise.all([token.get(), token.get()])).toEqual([second, second]);
    expect(await token.get()).toBe(second);
    expect(provider.forms).toEqual([
      {
        grant_type: "refresh_token",
        refresh_token: "refresh 1",
        client_id: "usher",
        client_secret: "secret",
      },
    ]);
  });

  test("is renewed by the latest refresh token", async () => {
    let given = 1;
    provider.respond = () => {
      given += 1;
      // Rotates the refresh token every second time only.
      const rotated = given % 2 === 0 ? { refresh_token: `refresh ${given}` } : {};
      return [200, { id_token: idTokenUntil(START + given * HOUR, `${given}`), ...rotated }];
    };
    const token = idTokenOf(settings({ "id-token": "" }), now);
    for (let hour = 0; hour < 4; hour++) {
      setClock(START + (hour + 1.5) * HOUR);
      await token.get();
    }
    expect(provider.forms.map((form) => form["refresh_token"])).toEqual([
      "refresh 1",
      "refresh 2",
      "refresh 2",
      "refresh 4",
    ]);
  });

  test("that the API server refused is renewed, if there is a refresh token", async () => {
    provider.respond = () => [200, { id_token: idTokenUntil(START + HOUR, "second") }];
    const token = idTokenOf(settings(), now);
    token.invalidate();
    expect(await token.get()).toBe(idTokenUntil(START + HOUR, "second"));
    const last = idTokenOf(settings({ "refresh-token": "" }), now);
    last.invalidate();
    expect(await last.get()).toBe(idTokenUntil(START + HOUR, "first"));
  });

  test.each(["", "no token", "a.b.c", `a.${Buffer.from("{}").toString("base64url")}.c`])(
    "that can't be decoded (%j) is renewed",
    async (unreadable) => {
      const good = idTokenUntil(START + HOUR, "good");
      provider.respond = () => [200, { id_token: good }];
      expect(await idTokenOf(settings({ "id-token": unreadable }), now).get()).toBe(good);
    },
  );

  const refusals: readonly [string, JsonObject, RegExp][] = [
    ["no refresh token", { "refresh-token": "" }, /its id-token has expired.*refresh-token; log in again/],
    ["nothing", { "id-token": "", "refresh-token": "" }, /there is no id-token.*log in again/],
    ["no client", { "client-id": 1 }, /client-id/],
    ["an issuer without TLS", { "idp-issuer-url": "http://127.0.0.1:1" }, /must start with https/],
    ["a CA that did not sign its certificate", { "idp-certificate-authority-data": "" }, /certificate/],
  ];
  test.each(refusals)("can't be renewed with %s: the error has the reason", async (_, more, message) => {
    setClock(START + 2 * HOUR);
    await expect(idTokenOf(settings(more), now).get()).rejects.toThrow(message);
  });

  const responses: readonly [string, readonly [number, unknown], RegExp][] = [
    ["a refusal", [400, { error: "invalid_grant" }], /token: status 400: .*invalid_grant/],
    ["no token", [200, { access_token: "x" }], /returned no id_token; log in again/],
    ["no JSON", [200, "<html>"], /not valid JSON|failed to parse/],
    ["too much", [200, "x".repeat(2 * 1024 * 1024)], /longer than 1048576 bytes/],
  ];
  test.each(responses)(
    "is an error after %s from the provider, and is renewed at the next call",
    async (_, response, message) => {
      setClock(START + 2 * HOUR);
      const token = idTokenOf(settings(), now);
      provider.respond = () => response;
      await expect(token.get()).rejects.toThrow(message);
      const good = idTokenUntil(START + 3 * HOUR, "good");
      provider.respond = () => [200, { id_token: good }];
      expect(await token.get()).toBe(good);
    },
  );

  const claims: readonly [string, object, RegExp][] = [
    ["another audience", { aud: "other" }, /aud/],
    ["another issuer", { iss: "https://other.example" }, /iss/],
    ["an expiry in the past", { exp: START / 1_000 }, /exp/],
  ];
  test.each(claims)("with %s is not used", async (_, more, message) => {
    setClock(START + 2 * HOUR);
    provider.respond = () => [200, { id_token: idTokenUntil(START + 3 * HOUR, "second", more) }];
    await expect(idTokenOf(settings(), now).get()).rejects.toThrow(message);
  });

  test("removes passwords in addresses from its errors", async () => {
    setClock(START + 2 * HOUR);
    const credentials = "me:s3cret@";
    const issuer = `${provider.url.replace("//", `//${credentials}`)}/realm`;
    const failures: (readonly [string, object | undefined, RegExp])[] = [
      [issuer.replace("https", "http"), undefined, /must start with https:\/\/, got http:/],
      [issuer, {}, /realm publishes no token_endpoint/],
      [
        issuer,
        { token_endpoint: `https://${credentials}127.0.0.1:1/token` },
        / https:\/\/127.0.0.1:1\/token: /,
      ],
      [issuer, { token_endpoint: `${issuer}/token` }, /realm\/token: status 500/],
    ];
    for (const [url, discovery, message] of failures) {
      provider.discovery = discovery;
      const error = await idTokenOf(settings({ "idp-issuer-url": url }), now)
        .get()
        .catch((caught: unknown) => caught);
      expect(error instanceof Error && error.message).toMatch(message);
      expect(String(error)).not.toContain("s3cret");
    }
  });

  test("is never requested without TLS, regardless of the discovery document", async () => {
    setClock(START + 2 * HOUR);
    provider.discovery = { token_endpoint: "http://127.0.0.1:1/token" };
    await expect(idTokenOf(settings(), now).get()).rejects.toThrow("publishes no token_endpoint with https");
  });
});

test("a kubeconfig with auth-provider oidc: renewed tokens survive a reload of the file", async () => {
  const folder = await mkdtemp(join(tmpdir(), "usher-oidc-"));
  const file = join(folder, "config");
  const config = {
    "current-context": "a",
    clusters: [{ name: "a", cluster: { server: "https://api.example" } }],
    users: [{ name: "a", user: { "auth-provider": { name: "oidc", config: settings() } } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  };
  await writeFile(file, JSON.stringify(config));
  const credentials = await kubeconfigCredentials({ file, now });
  const authorization = async () => (await credentials.access()).headers["authorization"];
  expect(await authorization()).toBe(`Bearer ${idTokenUntil(START + HOUR, "first")}`);
  provider.respond = () => [200, { id_token: idTokenUntil(START + 3 * HOUR, "second"), refresh_token: "2" }];
  setClock(START + 2 * HOUR);
  expect(await authorization()).toBe(`Bearer ${idTokenUntil(START + 3 * HOUR, "second")}`);
  // Refused before its expiry: renewed with the rotated refresh token, which is in no file.
  provider.respond = () => [200, { id_token: idTokenUntil(START + 4 * HOUR, "third") }];
  expect(await credentials.renew()).toBe(true);
  expect(await authorization()).toBe(`Bearer ${idTokenUntil(START + 4 * HOUR, "third")}`);
  expect(provider.forms.map((form) => form["refresh_token"])).toEqual(["refresh 1", "2"]);
  credentials.close();
  await rm(folder, { recursive: true });
});
