import fc from "fast-check";
import { expect, test } from "vitest";
import { redactedUrl } from "./credentials.ts";

test.each([
  ["https://api.example:6443", "https://api.example:6443"],
  ["https://rancher.example/k8s/clusters/c-1", "https://rancher.example/k8s/clusters/c-1"],
  ["socks4://me:s3cret@proxy:1080", "socks4://proxy:1080"],
  ["http://me@[fd00::1]:3128/", "http://[fd00::1]:3128/"],
  ["me:s3cret@proxy:1080", "proxy:1080"],
  ["http://me:s3/cr#e?t@proxy", "http://proxy"],
  ["http://me:s3\ncret@proxy", "http://proxy"],
  ["http://me:s3@cret@proxy", "http://proxy"],
  ["http://me:s3cret@:x:1", "http://:x:1"],
  ["https://idp.example/token?secret=s3cret#more", "https://idp.example/token"],
  ["", ""],
])("%j is redacted to %j", (url, redacted) => {
  expect(redactedUrl(url)).toBe(redacted);
});

test("never keeps a password", () => {
  const scheme = fc.constantFrom("", "http://", "socks5://", "//", ":");
  fc.assert(
    fc.property(scheme, fc.string(), fc.string(), (start, before, after) => {
      expect(redactedUrl(`${start}me:${before}s3cret${after}@proxy:1080`)).not.toContain("s3cret");
    }),
  );
});
