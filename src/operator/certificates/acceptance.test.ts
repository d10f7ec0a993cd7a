import { beforeAll, describe, expect, test } from "vitest";
import { TestAuthority } from "../../../test/support/operator/authority.ts";
import { soundBundle } from "../../admission/tls/bundle.ts";
import { acceptedBy, accepts } from "./acceptance.ts";

const NAME = "usher.hall.svc";
const now = Date.now();
const DAY_MS = 86_400_000;

describe("a certificate is accepted", () => {
  let root: TestAuthority;
  let other: TestAuthority;
  beforeAll(async () => {
    [root, other] = await Promise.all([TestAuthority.create("root"), TestAuthority.create("other")]);
  });
  const signed = (more = {}) => root.sign({ names: [NAME], ...more });

  test("by its CA, alone or among others, and by no other", async () => {
    const { cert } = await signed();
    expect(accepts(root.pem, cert, NAME, now)).toBe(true);
    expect(accepts(`${other.pem}${root.pem}`, cert, NAME, now)).toBe(true);
    expect(acceptedBy(`${other.pem}${root.pem}`, cert, NAME, now)).toEqual([root.pem]);
    expect(accepts(other.pem, cert, NAME, now)).toBe(false);
    for (const bundle of ["", "x", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"])
      expect(accepts(bundle, cert, NAME, now)).toBe(false);
  });

  test("through an intermediate CA that the server sends, by either of both", async () => {
    const between = await TestAuthority.create("between", root);
    const { cert } = await between.sign({ names: [NAME] });
    expect(accepts(root.pem, cert, NAME, now)).toBe(true);
    expect(accepts(between.pem, cert, NAME, now)).toBe(true);
    // Without the intermediate, there is no path to the root.
    const [leaf = ""] = cert.split(/(?<=-----END CERTIFICATE-----\n)/);
    expect(accepts(root.pem, leaf, NAME, now)).toBe(false);
  });

  test("never by a CA of the same name with another key", async () => {
    const twin = await TestAuthority.create("root");
    expect(accepts(twin.pem, (await signed()).cert, NAME, now)).toBe(false);
  });

  test("if it is itself in the bundle", async () => {
    const { cert } = await signed();
    expect(accepts(cert, cert, NAME, now)).toBe(true);
  });

  test("for its names, and only while it and its CA are valid", async () => {
    const { cert } = await signed();
    expect(accepts(root.pem, cert, "usher.elsewhere.svc", now)).toBe(false);
    expect(accepts(root.pem, (await signed({ from: now + DAY_MS })).cert, NAME, now)).toBe(false);
    expect(accepts(root.pem, (await signed({ from: now - 3 * DAY_MS, days: 2 })).cert, NAME, now)).toBe(
      false,
    );
    expect(accepts(root.pem, (await signed({ days: 100 })).cert, NAME, now + 20 * DAY_MS)).toBe(false);
  });

  test("a certificate that may not sign is not a CA", async () => {
    const { cert } = await signed();
    expect(accepts(cert, (await signed()).cert, NAME, now)).toBe(false);
  });
});

test("a bundle has each certificate once, and nothing else", async () => {
  const [a, b] = await Promise.all([TestAuthority.create("a"), TestAuthority.create("b")]);
  expect(soundBundle(`# a\n${a.pem}rubbish\n`, `${b.pem}${a.pem}`)).toBe(`${a.pem}${b.pem}`);
  expect(soundBundle("", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")).toBe("");
});
