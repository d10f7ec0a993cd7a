import { expect, test } from "vitest";
import { TestAuthority } from "../../../test/support/operator/authority.ts";
import { at, type JsonObject, stringAt } from "../../core/json.ts";
import { serviceNames } from "../../core/registration/certificates.ts";
import { operator } from "../../modules/project-limit/operator/operator.ts";
import { trusts } from "../certificates/certificate-record.ts";
import { parseTokens, REPLACE_EVERY_MS, ROTATE_EVERY_MS, TRUST_MS } from "../certificates/path-tokens.ts";
import { OperandSecrets, type SecretsFound } from "./operand-secrets.ts";

const NOW = Date.now();
const DAY_MS = 86_400_000;
const NAME = "admission-server.openshift-project-request-limit-operator.svc";

function opened(clock: { ms: number } = { ms: 0 }) {
  const secrets = new OperandSecrets(operator, () => clock.ms);
  const plan = (found: Partial<SecretsFound> = {}) =>
    secrets.plan({
      serving: undefined,
      paths: undefined,
      published: undefined,
      registeredToken: undefined,
      issuer: "Own",
      pathsShown: false,
      now: NOW,
      ...found,
    });
  return { plan, clock };
}

const base64 = (text: string) => Buffer.from(text).toString("base64");
const text = (secret: JsonObject | undefined, key: string) =>
  Buffer.from(stringAt(secret, "data", key) ?? "", "base64").toString("utf8");

test("issues an own certificate once, with its CA published", async () => {
  const { plan } = opened();
  const first = await plan();
  const [paths, serving] = first.apply;
  expect(at(serving, "metadata", "name")).toBe("server-serving-cert");
  expect(Object.keys(at(serving, "data") ?? {}).sort()).toEqual(["ca.crt", "tls.crt", "tls.key"]);
  expect(trusts(first.caBundle, text(serving, "ca.crt"))).toBe(true);
  const second = await plan({ serving, paths, published: first.caBundle });
  expect(second).toMatchObject({ certificate: first.certificate, pathToken: first.pathToken });
  expect(second.apply).toEqual(first.apply);
});

test("publishes the next certificate's CA before expiry, and uses it once that is trusted", async () => {
  const { plan, clock } = opened();
  const first = await plan();
  const [paths, serving] = first.apply;
  const later = { paths, now: NOW + 300 * DAY_MS };
  const staged = await plan({ serving, published: first.caBundle, ...later });
  expect(staged.certificate).toEqual(first.certificate);
  expect(staged.caBundle).not.toBe(first.caBundle);
  const next = { serving: staged.apply[1], published: staged.caBundle, ...later };
  expect((await plan(next)).certificate).toEqual(first.certificate);
  clock.ms = TRUST_MS;
  const used = await plan(next);
  expect(used.certificate).not.toEqual(first.certificate);
  expect(trusts(used.caBundle, text(serving, "ca.crt"))).toBe(true);
});

test("if the Secret is lost, the certificate that pods still serve stays trusted", async () => {
  const { plan } = opened();
  const first = await plan();
  await plan({ serving: first.apply[1], published: first.caBundle });
  const again = await plan({ published: first.caBundle });
  expect(again.certificate).not.toEqual(first.certificate);
  for (const { apply } of [first, again]) expect(trusts(again.caBundle, text(apply[1], "ca.crt"))).toBe(true);
});

test("a pair that could not be stored is not issued again, and a Secret of another type is recreated", async () => {
  const { plan } = opened();
  const first = await plan();
  const again = await plan({ published: first.caBundle, serving: { type: "Opaque", data: {} } });
  expect(again).toMatchObject({ certificate: first.certificate, caBundle: first.caBundle });
  expect(again.remove).toEqual([{ type: "Opaque", data: {} }]);
  const [, serving] = again.apply;
  const stored = await plan({ serving, published: again.caBundle });
  expect(stored).toMatchObject({ certificate: first.certificate, remove: [] });
  expect((await plan({ published: again.caBundle })).certificate).not.toEqual(first.certificate);
});

test("a path token that may have been exposed is replaced, a minute after the last rotation at the earliest", async () => {
  const { plan } = opened();
  const first = await plan();
  const [paths] = first.apply;
  const soon = await plan({ paths, pathsShown: true, now: NOW + REPLACE_EVERY_MS - 1 });
  expect(soon.pathToken).toBe(first.pathToken);
  // It waits for that minute, however often it was read since.
  const later = await plan({ paths, now: NOW + REPLACE_EVERY_MS });
  expect(later.pathToken).toBe(parseTokens(text(paths, "webhook-paths.json"))?.next);
  const [replaced] = later.apply;
  const last = await plan({ paths: replaced, now: NOW + 5 * REPLACE_EVERY_MS });
  expect(last.pathToken).toBe(later.pathToken);
});

test("path tokens change with time; a lost Secret keeps the registered one", async () => {
  const { plan } = opened();
  const first = await plan();
  const [paths] = first.apply;
  const later = await plan({ paths, now: NOW + ROTATE_EVERY_MS });
  expect(later.pathToken).toBe(parseTokens(text(paths, "webhook-paths.json"))?.next);
  expect((await plan({ registeredToken: first.pathToken })).pathToken).toBe(first.pathToken);
});

test("an issuer's certificate waits until API servers accept it, or waiting does not help", async () => {
  const [one, other] = await Promise.all([TestAuthority.create("one"), TestAuthority.create("other")]);
  const { cert, key } = await one.sign({ names: [NAME] });
  const serving = { data: { "tls.crt": base64(cert), "tls.key": base64(key) } };
  const { plan, clock } = opened();
  const issued = (found: Partial<SecretsFound>) => plan({ issuer: "ServiceCA", serving, ...found });
  expect((await issued({ serving: undefined })).certificate).toBeUndefined();
  expect((await issued({ serving: { data: { "tls.crt": "" } } })).certificate).toBeUndefined();
  expect((await issued({})).certificate?.trusted).toBe(true);
  expect((await issued({ published: base64(one.pem) })).certificate?.trusted).toBe(true);
  const waiting = await issued({ published: base64(other.pem) });
  expect(waiting.certificate?.trusted).toBe(false);
  expect(waiting.caBundle).toBeUndefined();
  expect(waiting.apply).toHaveLength(1);
  clock.ms = TRUST_MS;
  expect((await issued({ published: base64(other.pem) })).certificate?.trusted).toBe(true);
});

test("an own certificate is not left to an issuer, which would not write to it", async () => {
  const { plan } = opened();
  const [, serving] = (await plan()).apply;
  const issued = await plan({ issuer: "ServiceCA", serving });
  expect(issued.remove).toEqual([serving]);
  expect(issued.certificate).toBeUndefined();
});

test("a Secret of cert-manager is left to no other issuer, and one of another issuer is left to cert-manager", async () => {
  const authority = await TestAuthority.create("cert-manager");
  const names = serviceNames("admission-server", "openshift-project-request-limit-operator");
  const { cert, key } = await authority.sign({ names, days: 300 });
  const data = { "tls.crt": base64(cert), "tls.key": base64(key), "ca.crt": base64(authority.pem) };
  const annotations = { "cert-manager.io/certificate-name": "admission-server" };
  const byCertManager = { type: "kubernetes.io/tls", metadata: { annotations }, data };
  const byServiceCa = { type: "kubernetes.io/tls", metadata: {}, data };
  const { plan } = opened();
  expect((await plan({ issuer: "ServiceCA", serving: byCertManager })).remove).toEqual([byCertManager]);
  expect((await plan({ issuer: "CertManager", serving: byCertManager })).remove).toEqual([]);
  expect((await plan({ issuer: "CertManager", serving: byServiceCa })).remove).toEqual([]);
  // The operator goes on with the certificate, which is valid, in a Secret without the mark.
  const own = await plan({ issuer: "Own", serving: byCertManager });
  expect(own.remove).toEqual([byCertManager]);
  expect(own.apply[1]).toMatchObject({ data });
  expect(own.apply[1]?.["metadata"]).not.toHaveProperty("annotations");
});
