import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { TestProvider, tokenUntil } from "../../../test/support/cluster/oidc-provider.ts";
import { makeCertificate } from "../../admission/tls/certificate.ts";
import type { JsonObject } from "../../core/json.ts";
import { kubeconfigCredentials } from "./kubeconfig.ts";
import { idTokenOf } from "./oidc.ts";

const HOUR = 3_600_000;
const START = Date.parse("2026-01-01T00:00:00Z");

let provider: TestProvider;
let ca: string;
let clock = START;
const now = () => clock;

beforeAll(async () => {
  const certificate = await makeCertificate(["127.0.0.1", "localhost"]);
  ca = Buffer.from(certificate.ca).toString("base64");
  provider = new TestProvider(certificate);
  await provider.listen();
});
afterAll(() => provider.close());
beforeEach(() => {
  clock = START;
  provider.asked.length = 0;
  provider.discovery = undefined;
  provider.answer = () => [500, "not asked for in this test"];
});

function settings(more: JsonObject = {}): JsonObject {
  return {
    "idp-issuer-url": `${provider.url}/realm`,
    "idp-certificate-authority-data": ca,
    "client-id": "usher",
    "client-secret": "secret",
    "id-token": tokenUntil(START + HOUR, "first"),
    "refresh-token": "refresh 1",
    ...more,
  };
}

describe("an ID token", () => {
  test("is used as it is while it is good", async () => {
    const token = idTokenOf(settings(), now);
    expect(await token.get()).toBe(tokenUntil(START + HOUR, "first"));
    expect(provider.asked).toEqual([]);
  });

  test("is renewed shortly before it ends, once for all who ask, and then kept", async () => {
    provider.answer = () => [200, { id_token: tokenUntil(START + 2 * HOUR, "second") }];
    const token = idTokenOf(settings(), now);
    clock = START + HOUR - 5_000;
    const second = tokenUntil(START + 2 * HOUR, "second");
    expect(await Promise.all([token.get(), token.get()])).toEqual([second, second]);
    expect(await token.get()).toBe(second);
    expect(provider.asked).toEqual([
      {
        grant_type: "refresh_token",
        refresh_token: "refresh 1",
        client_id: "usher",
        client_secret: "secret",
      },
    ]);
  });

  test("is renewed by the refresh token that came last", async () => {
    let given = 1;
    provider.answer = () => {
      given += 1;
      // Every second time without a new one: then the last counts on.
      const rotated = given % 2 === 0 ? { refresh_token: `refresh ${given}` } : {};
      return [200, { id_token: tokenUntil(START + given * HOUR, `${given}`), ...rotated }];
    };
    const token = idTokenOf(settings({ "id-token": "" }), now);
    for (let hour = 0; hour < 4; hour++) {
      clock = START + (hour + 1.5) * HOUR;
      await token.get();
    }
    expect(provider.asked.map((form) => form["refresh_token"])).toEqual([
      "refresh 1",
      "refresh 2",
      "refresh 2",
      "refresh 4",
    ]);
  });

  test("that was refused is another the next time, where another can be had", async () => {
    provider.answer = () => [200, { id_token: tokenUntil(START + HOUR, "second") }];
    const token = idTokenOf(settings(), now);
    token.refused();
    expect(await token.get()).toBe(tokenUntil(START + HOUR, "second"));
    const last = idTokenOf(settings({ "refresh-token": "" }), now);
    last.refused();
    expect(await last.get()).toBe(tokenUntil(START + HOUR, "first"));
  });

  test.each(["", "no token", "a.b.c", `a.${Buffer.from("{}").toString("base64url")}.c`])(
    "that can't be read (%j) is renewed",
    async (unreadable) => {
      const good = tokenUntil(START + HOUR, "good");
      provider.answer = () => [200, { id_token: good }];
      expect(await idTokenOf(settings({ "id-token": unreadable }), now).get()).toBe(good);
    },
  );

  const refusals: readonly [string, JsonObject, RegExp][] = [
    ["no refresh token", { "refresh-token": "" }, /its id-token has ended.*refresh-token; log in again/],
    ["nothing", { "id-token": "", "refresh-token": "" }, /there is no id-token.*log in again/],
    ["no client", { "client-id": 1 }, /client-id/],
    ["an issuer without TLS", { "idp-issuer-url": "http://127.0.0.1:1" }, /must be https/],
    ["an authority that does not know it", { "idp-certificate-authority-data": "" }, /certificate/],
  ];
  test.each(refusals)("can't be renewed with %s, and it is said why", async (_, more, message) => {
    clock = START + 2 * HOUR;
    await expect(idTokenOf(settings(more), now).get()).rejects.toThrow(message);
  });

  const answers: readonly [string, readonly [number, unknown], RegExp][] = [
    ["a refusal", [400, { error: "invalid_grant" }], /answered 400: .*invalid_grant/],
    ["no token", [200, { access_token: "x" }], /gave no id_token; log in again/],
    ["no JSON", [200, "<html>"], /no JSON/],
    ["too much", [200, "x".repeat(2 * 1024 * 1024)], /too long/],
  ];
  test.each(answers)(
    "from a provider that answers with %s is an error, and not forever",
    async (_, answer, message) => {
      clock = START + 2 * HOUR;
      const token = idTokenOf(settings(), now);
      provider.answer = () => answer;
      await expect(token.get()).rejects.toThrow(message);
      const good = tokenUntil(START + 3 * HOUR, "good");
      provider.answer = () => [200, { id_token: good }];
      expect(await token.get()).toBe(good);
    },
  );

  test("and why it can't be had says no password that stands in an address", async () => {
    clock = START + 2 * HOUR;
    const word = "me:s3cret@";
    const issuer = `${provider.url.replace("//", `//${word}`)}/realm`;
    const failures: (readonly [string, object | undefined, RegExp])[] = [
      [issuer.replace("https", "http"), undefined, /must be https, and is http:/],
      [issuer, {}, /realm names no token endpoint/],
      [issuer, { token_endpoint: `https://${word}127.0.0.1:1/token` }, /^https:\/\/127.0.0.1:1\/token: /],
      [issuer, { token_endpoint: `${issuer}/token` }, /realm\/token answered 500/],
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

  test("is never asked for without TLS, whatever the provider says", async () => {
    clock = START + 2 * HOUR;
    provider.discovery = { token_endpoint: "http://127.0.0.1:1/token" };
    await expect(idTokenOf(settings(), now).get()).rejects.toThrow("names no token endpoint");
  });
});

test("a kubeconfig with auth-provider oidc: what was renewed outlives a look at the file", async () => {
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
  const said = async () => (await credentials.access()).headers["authorization"];
  expect(await said()).toBe(`Bearer ${tokenUntil(START + HOUR, "first")}`);
  provider.answer = () => [200, { id_token: tokenUntil(START + 3 * HOUR, "second"), refresh_token: "2" }];
  clock = START + 2 * HOUR;
  expect(await said()).toBe(`Bearer ${tokenUntil(START + 3 * HOUR, "second")}`);
  // Refused, though by its own words it is good: renewed by the refresh token that is in no file.
  provider.answer = () => [200, { id_token: tokenUntil(START + 4 * HOUR, "third") }];
  expect(await credentials.renew()).toBe(true);
  expect(await said()).toBe(`Bearer ${tokenUntil(START + 4 * HOUR, "third")}`);
  expect(provider.asked.map((form) => form["refresh_token"])).toEqual(["refresh 1", "2"]);
  credentials.close();
  await rm(folder, { recursive: true });
});
