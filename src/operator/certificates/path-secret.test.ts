import { expect, onTestFinished, test } from "vitest";
import { TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { SILENT } from "../../core/log.ts";
import { PathSecret } from "./path-secret.ts";
import { type PathTokens, rotated } from "./path-tokens.ts";

const SECRET = "/api/v1/namespaces/operators/secrets/paths";
const OTHER = "c".repeat(40);

function secret() {
  const server = new TestApiServer();
  const write = (tokens: PathTokens | string) => {
    const text = typeof tokens === "string" ? tokens : JSON.stringify(tokens);
    server.put(SECRET, { data: { "paths.json": Buffer.from(text).toString("base64") } });
  };
  const paths = new PathSecret({
    client: server.client,
    namespace: "operators",
    secret: "paths",
    key: "paths.json",
    log: SILENT,
    pollMs: 3_600_000,
    soonMs: 1,
  });
  onTestFinished(() => paths.stop());
  return { server, write, paths };
}

test("accepts tokens of the Secret, including new ones, and no others", async () => {
  const { server, write, paths } = secret();
  await paths.start();
  expect(await paths.acceptsToken(OTHER)).toBe(false);
  const first = rotated(undefined, 0);
  write(first);
  expect(await paths.acceptsToken(first.current)).toBe(true);
  expect(paths.acceptsToken(first.next)).toBe(true);
  expect(paths.acceptsToken(undefined)).toBe(false);
  const third = rotated(rotated(first, 1), 2);
  write(third);
  expect(await paths.acceptsToken(third.next)).toBe(true);
  expect(await paths.acceptsToken(first.current)).toBe(false);
  expect([...new Set(server.asked)]).toEqual([`GET ${SECRET}`]);
});

test("an unreadable Secret keeps the last tokens, and clients that guess share a read", async () => {
  const { server, write, paths } = secret();
  const tokens = rotated(undefined, 0);
  write(tokens);
  await paths.start();
  const before = server.asked.length;
  expect(await Promise.all(Array.from({ length: 50 }, () => paths.acceptsToken(OTHER)))).not.toContain(true);
  expect(server.asked.length - before).toBe(1);
  write("{");
  expect(await paths.acceptsToken(OTHER)).toBe(false);
  server.fault = () => new Error("connection reset");
  expect(await paths.acceptsToken(OTHER)).toBe(false);
  expect(paths.acceptsToken(tokens.current)).toBe(true);
});
