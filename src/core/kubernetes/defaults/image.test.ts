import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultPullPolicy, imageTag } from "./image.ts";

const digest = `sha256:${"0f".repeat(32)}`;

test.each<[string, string | undefined]>([
  ["nginx", "latest"],
  ["nginx:latest", "latest"],
  ["nginx:1.27", "1.27"],
  ["library/nginx", "latest"],
  ["registry.example.com/team/web", "latest"],
  ["registry.example.com:5000/web", "latest"],
  ["registry.example.com:5000/web:v1", "v1"],
  ["localhost/web", "latest"],
  ["localhost:5000/web:v1", "v1"],
  ["[2001:db8::1]:5000/web:v1", "v1"],
  ["Registry/web:V1", "V1"],
  ["a__b/c-d_e.f", "latest"],
  [`nginx@${digest}`, undefined],
  [`nginx:latest@${digest}`, "latest"],
  [`nginx:1.27@${digest}`, "1.27"],
  [`registry.example.com:5000/web@${digest}`, undefined],
  ["nginx:latest@sha256:abc", undefined],
  [`nginx:latest@md5:${"0".repeat(32)}`, undefined],
  [`nginx:latest@${digest.toUpperCase().replace("SHA", "sha")}`, undefined],
  ["", undefined],
  [" nginx", undefined],
  ["nginx:", undefined],
  ["nginx:-x", undefined],
  ["nginx:a b", undefined],
  ["Nginx", undefined],
  ["team/Web", undefined],
  ["a//b", undefined],
  ["a/", undefined],
  ["a___b", undefined],
  ["https://example.com/web", undefined],
  [`web:${"a".repeat(128)}`, "a".repeat(128)],
  [`web:${"a".repeat(129)}`, undefined],
  ["a".repeat(247), "latest"],
  ["a".repeat(248), undefined],
  ["0f".repeat(32), undefined],
  ["latest", "latest"],
])("%#: the tag of %s", (image, tag) => {
  expect(imageTag(image)).toBe(tag);
  expect(defaultPullPolicy(image)).toBe(tag === "latest" ? "Always" : "IfNotPresent");
});

test("a composed reference parses into its parts", () => {
  const part = fc.stringMatching(/^[a-z0-9]{1,4}([._-][a-z0-9]{1,4})?$/);
  const tags = fc.option(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}$/), { nil: undefined });
  const registry = fc.constantFrom("", "localhost/", "example.com/", "example.com:443/", "HOST/");
  fc.assert(
    fc.property(
      registry,
      fc.array(part, { minLength: 1, maxLength: 3 }),
      tags,
      fc.boolean(),
      (host, path, tag, pinned) => {
        const image = `${host}${path.join("/")}${tag === undefined ? "" : `:${tag}`}${pinned ? `@${digest}` : ""}`;
        expect(imageTag(image)).toBe(tag ?? (pinned ? undefined : "latest"));
      },
    ),
  );
});

test("handles a long string", () => {
  expect(defaultPullPolicy(`${"a-".repeat(500_000)}!`)).toBe("IfNotPresent");
  expect(defaultPullPolicy("a.".repeat(500_000))).toBe("IfNotPresent");
});
