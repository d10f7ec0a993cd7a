// Heads that two HTTP parsers could read differently must not let one request hide in another.
import { afterAll, beforeAll, expect, test } from "vitest";
import { bodyOf, exchange, serve } from "../../../test/support/admission/raw-connections.ts";
import type { AdmissionServer } from "../admission-server.ts";

let server: AdmissionServer;
beforeAll(async () => {
  server = await serve();
});
afterAll(() => server.close());

const BODY = bodyOf("x");

/** Byte for byte as kube-apiserver 1.37 writes it, except for the host. */
const LINES = [
  "POST /validate/welcome?timeout=10s HTTP/1.1",
  "Host: usher.usher-system.svc:443",
  "User-Agent: kube-apiserver-admission",
  `Content-Length: ${BODY.length}`,
  "Accept: application/json, */*",
  "Content-Type: application/json",
  "Accept-Encoding: gzip",
];

const without = (name: string) => LINES.filter((line) => !line.startsWith(name));
const first = (line: string) => [line, ...LINES.slice(1)];
const length = (text: string) => [...without("Content-Length"), `Content-Length: ${text}`];

/** The statuses of the responses to these heads, each followed by a complete body. */
async function statuses(lines: readonly string[]): Promise<string[]> {
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  const got = await exchange(server, (socket) => socket.write(Buffer.concat([head, Buffer.from(BODY)])));
  return [...got.matchAll(/HTTP\/1\.1 (\d+) /g)].map((match) => match[1] ?? "");
}

test.concurrent.each<[string, readonly string[]]>([
  ["the API server's own", LINES],
  [
    "header names in upper case",
    LINES.map((line, i) => (i > 0 ? line.replace(/^[^:]+/, (name) => name.toUpperCase()) : line)),
  ],
  ["no version, which is HTTP/0.9", first("POST /validate/welcome")],
  ["unknown headers", [...LINES, "Traceparent: 00-1-1-01", "X-Empty: "]],
  ["a charset", [...without("Content-Type"), "Content-Type: application/json; charset=utf-8"]],
  ["a header value beyond ASCII", [...LINES, "X-A: \u00fc"]],
])("answers %s", async (_, lines) => {
  expect(await statuses(lines)).toEqual(["200"]);
});

test.concurrent.each<[string, readonly string[]]>([
  ["another method", first("PUT /validate/welcome HTTP/1.1")],
  ["a method in lower case", first("post /validate/welcome HTTP/1.1")],
  ["a space in the path", first("POST /validate/ welcome HTTP/1.1")],
  ["no headers", LINES.slice(0, 1)],
  ["no host", without("Host")],
  ["no content type", without("Content-Type")],
  ["another content type", [...without("Content-Type"), "Content-Type: text/plain"]],
  ["a content encoding", [...LINES, "Content-Encoding: gzip"]],
  ["two lengths", [...LINES, `content-length: ${BODY.length}`]],
  ["two different lengths", [...LINES, "content-length: 7"]],
  ["a list of lengths", length(`${BODY.length}, ${BODY.length}`)],
  ["a length with a sign", length(`+${BODY.length}`)],
  ["a length in hexadecimal", length(`0x${BODY.length.toString(16)}`)],
  ["a length beyond any number", length("9".repeat(30))],
  ["a length and chunks", [...LINES, "Transfer-Encoding: chunked"]],
  ["chunks instead of a length, and no chunk", [...without("Content-Length"), "Transfer-Encoding: chunked"]],
  [
    "a transfer encoding that is not chunked",
    [...without("Content-Length"), "Transfer-Encoding: chunked, identity"],
  ],
  ["a space before a colon", [...LINES, "X-A : b"]],
  ["a line without a colon", [...LINES, "X-A"]],
  ["no header name", [...LINES, ": b"]],
  ["a control character in a value", [...LINES, "X-A: b\u0000"]],
  ["a bare line feed", [...LINES, "X-A: b\nTransfer-Encoding: chunked"]],
  ["a bare carriage return", [...LINES, "X-A: b\rTransfer-Encoding: chunked"]],
])("refuses once, and reads nothing behind it as a request: %s", async (_, lines) => {
  expect(await statuses(lines)).toEqual([expect.stringMatching(/^4\d\d$/)]);
});
