import { beforeAll, expect, test } from "vitest";
import {
  makeCertificate,
  OWN_CERTIFICATE_DAYS,
  type OwnCertificate,
} from "../../admission/tls/certificate.ts";
import { planCertificates, planStart, RENEW_BEFORE_MS, type Trust } from "./certificate-plan.ts";
import {
  bundleOf,
  type CertificateRecord,
  dataOf,
  EMPTY_RECORD,
  expiryOf,
  recordOf,
  trusts,
} from "./certificate-record.ts";
import { ROTATE_EVERY_MS, rotated, TRUST_MS } from "./path-tokens.ts";

const DAY = 86_400_000;
const NAMES = ["usher.hall.svc"];
const now = Date.now();
const pairs: OwnCertificate[] = [];

beforeAll(async () => {
  for (let i = 0; i < 3; i++) pairs.push(await makeCertificate(NAMES, now + (i === 1 ? 275 * DAY : 0)));
});

function pair(index: number): OwnCertificate {
  const found = pairs[index];
  if (found === undefined) throw new Error("no such pair");
  return found;
}

function record(more: Partial<CertificateRecord> = {}): CertificateRecord {
  return { ...EMPTY_RECORD, current: pair(0), paths: rotated(undefined, now), ...more };
}

function step(what: CertificateRecord, { at = now, trust = "not yet" as Trust, names = NAMES } = {}): string {
  const paths = what.paths && { ...what.paths, rotatedAt: at };
  return planCertificates({ record: { ...what, paths }, names, now: at }, trust).step;
}

test("an unusable certificate is replaced immediately, by any starting replica", () => {
  const other = pair(1);
  const cases: [string, CertificateRecord, number, RegExp][] = [
    ["none", EMPTY_RECORD, now, /there is none/],
    ["another's key", record({ current: { ...pair(0), key: other.key } }), now, /key/],
    ["another authority", record({ current: { ...pair(0), ca: other.ca } }), now, /authority/],
    ["no certificate", record({ current: { cert: "x", key: "y", ca: "z" } }), now, /not a certificate/],
    ["not valid yet", record({ current: pair(1) }), now, /it is valid only from/],
    ["expired", record(), now + (OWN_CERTIFICATE_DAYS + 1) * DAY, /expired/],
  ];
  for (const [what, held, at, why] of cases) {
    const plan = planStart({ record: held, names: NAMES, now: at });
    expect(plan, what).toMatchObject({ step: "replace", why: expect.stringMatching(why) });
    expect(planCertificates({ record: held, names: NAMES, now: at }, "not yet")).toEqual(plan);
  }
  const renamed = planStart({ record: record(), names: ["other.hall.svc"], now });
  expect(renamed).toMatchObject({ step: "replace", why: "it is not for other.hall.svc" });
  expect(planStart({ record: record(), names: NAMES, now })).toEqual({ step: "nothing" });
});

test("the next certificate is staged a quarter of a year before expiry, and not a day earlier", () => {
  const end = expiryOf(pair(0));
  expect(step(record(), { at: end - RENEW_BEFORE_MS - DAY })).toBe("nothing");
  expect(step(record(), { at: end - RENEW_BEFORE_MS })).toBe("stage");
  // Only the leader does it.
  expect(planStart({ record: record(), names: NAMES, now: end - RENEW_BEFORE_MS }).step).toBe("nothing");
});

test("it is used only once API servers have trusted it for long enough, or there are no webhooks", () => {
  const staged = record({ next: pair(2) });
  expect(step(staged, { trust: "not yet" })).toBe("nothing");
  expect(step(staged, { trust: { forMs: TRUST_MS - 1 } })).toBe("nothing");
  expect(step(staged, { trust: { forMs: TRUST_MS } })).toBe("promote");
  expect(step(staged, { trust: "no webhooks" })).toBe("promote");
});

test("an unusable next certificate is dropped, and then issued again", () => {
  expect(step(record({ next: { ...pair(2), key: pair(1).key } }))).toBe("drop");
  // An API server would refuse it.
  expect(step(record({ next: pair(1) }), { trust: "no webhooks" })).toBe("drop");
});

test("the old CA is trusted until its certificate has expired", () => {
  const renewed = record({ previous: pair(1).ca });
  expect(step(renewed)).toBe("nothing");
  // A current certificate that outlives the previous one, as after a renewal.
  expect(step(record({ previous: "not a certificate" }))).toBe("drop");
});

test("path tokens are created at start, and rotated only by the leader once their period is over", () => {
  const without = record({ paths: undefined });
  expect(planStart({ record: without, names: NAMES, now }).step).toBe("rotate-paths");
  expect(planCertificates({ record: without, names: NAMES, now }, "not yet").step).toBe("rotate-paths");
  for (const [passed, expected] of [
    [ROTATE_EVERY_MS - 1, "nothing"],
    [ROTATE_EVERY_MS, "rotate-paths"],
    [-ROTATE_EVERY_MS, "nothing"],
    // Written by a clock that was far ahead.
    [-ROTATE_EVERY_MS - 1, "rotate-paths"],
  ] as const) {
    const state = { record: record({ paths: rotated(undefined, now - passed) }), names: NAMES, now };
    expect(planCertificates(state, "not yet").step, String(passed)).toBe(expected);
    expect(planStart(state).step).toBe("nothing");
  }
});

test("no step serves an untrusted certificate", () => {
  let held = record();
  const end = expiryOf(pair(0));
  let published = bundleOf(held);
  let trust: Trust = "not yet";
  let since: number | undefined;
  const served = [pair(0).cert];
  for (let at = end - RENEW_BEFORE_MS - DAY, n = 0; n < 400; at += DAY / 100, n++) {
    const plan = planCertificates({ record: held, names: NAMES, now: at }, trust);
    if (plan.step === "stage") held = { ...held, next: pair(1) };
    if (plan.step === "promote")
      held = { ...held, current: pair(1), next: undefined, previous: held.current?.ca };
    expect(plan.step).not.toBe("replace");
    const ca = held.current?.ca ?? "";
    expect(published).toContain(ca.trim());
    // Replicas lag behind the Secret: the certificate that they still serve must be trusted too.
    expect(published).toContain(pair(0).ca.trim());
    published = bundleOf(held);
    const base64 = Buffer.from(published).toString("base64");
    const next = held.next?.ca;
    since = next !== undefined && trusts(base64, next) ? (since ?? at) : undefined;
    trust = since === undefined ? "not yet" : { forMs: at - since };
    if (held.current !== undefined && served.at(-1) !== held.current.cert) served.push(held.current.cert);
  }
  expect(served).toEqual([pair(0).cert, pair(1).cert]);
});

test("a record survives the Secret, and a bundle has each CA once", () => {
  const held = record({ next: pair(1), previous: pair(2).ca });
  expect(recordOf({ data: dataOf(held) })).toEqual(held);
  expect(recordOf(undefined)).toEqual(EMPTY_RECORD);
  expect(recordOf({ data: { "tls.crt": "eA==" } })).toEqual(EMPTY_RECORD);
  expect(recordOf({ data: "nonsense" })).toEqual(EMPTY_RECORD);
  expect(bundleOf(held).match(/BEGIN CERTIFICATE/g)).toHaveLength(3);
  expect(bundleOf(record({ previous: pair(0).ca })).match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
  expect(trusts(undefined, pair(0).ca)).toBe(false);
});
