import { expect, test } from "vitest";
import { type PlainHead, PlainHeads } from "./plain-head.ts";

/** The first of a connection. */
function plainHead(bytes: Buffer): PlainHead | undefined {
  const found = new PlainHeads().read(bytes);
  return found === undefined ? undefined : { url: found.url, start: found.start, length: found.length };
}

/** As kube-apiserver 1.37 writes it, byte for byte but for the host. */
const LINES = [
  "POST /mutate/placement?timeout=10s HTTP/1.1",
  "Host: usher.usher-system.svc:443",
  "User-Agent: kube-apiserver-admission",
  "Content-Length: 7",
  "Accept: application/json, */*",
  "Content-Type: application/json",
  "Accept-Encoding: gzip",
];

function headOf(lines: readonly string[], body = '{"a":1}'): Buffer {
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`, "latin1");
}

const without = (name: string) => LINES.filter((line) => !line.startsWith(name));

test("an API server's head is plain", () => {
  const head = headOf(LINES);
  expect(plainHead(head)).toEqual({
    url: "/mutate/placement?timeout=10s",
    start: head.length - 7,
    length: 7,
  });
});

test("the body need not be there yet, and may begin with anything", () => {
  const start = headOf(LINES, "").length;
  for (const body of ["", "{", "\r\n\r\n", "POST / HTTP/1.1\r\n\r\n"]) {
    expect(plainHead(headOf(LINES, body))).toMatchObject({ start, length: 7 });
  }
});

test.each([
  ["an address alone", ["POST / HTTP/1.1", ...LINES.slice(1)], { url: "/" }],
  [
    "names in other letters",
    LINES.map((line, i) => (i > 0 ? line.replace(/^[^:]+/, (name) => name.toUpperCase()) : line)),
    { length: 7 },
  ],
  ["a name that means nothing to us", [...LINES, "Traceparent: 00-1-1-01", "X-Empty: "], { length: 7 }],
  ["no body", LINES.map((line) => line.replace(": 7", ": 0")), { length: 0 }],
])("plain too: %s", (_, lines, found) => {
  expect(plainHead(headOf(lines))).toMatchObject(found);
});

test.each<[string, readonly string[]]>([
  ["another method", ["PUT / HTTP/1.1", ...LINES.slice(1)]],
  ["a method in small letters", ["post / HTTP/1.1", ...LINES.slice(1)]],
  ["an older HTTP", ["POST / HTTP/1.0", ...LINES.slice(1)]],
  ["no version", ["POST /", ...LINES.slice(1)]],
  ["a blank in the address", ["POST /a b HTTP/1.1", ...LINES.slice(1)]],
  ["a blank before the version too many", ["POST /  HTTP/1.1", ...LINES.slice(1)]],
  ["an address with its host", ["POST https://usher/ HTTP/1.1", ...LINES.slice(1)]],
  ["an address beyond ASCII", ["POST /\u00fc HTTP/1.1", ...LINES.slice(1)]],
  ["an empty line first", ["", ...LINES]],
  ["no headers", LINES.slice(0, 1)],
  ["no host", without("Host")],
  ["no length", without("Content-Length")],
  ["no type", without("Content-Type")],
  ["two hosts", [...LINES, "Host: other"]],
  ["two lengths", [...LINES, "content-length: 7"]],
  ["two types", [...LINES, "Content-Type: application/json"]],
  ["a list of lengths", [...without("Content-Length"), "Content-Length: 7, 7"]],
  ["a length with a sign", [...without("Content-Length"), "Content-Length: +7"]],
  ["a length in hexadecimal", [...without("Content-Length"), "Content-Length: 0x7"]],
  ["a length with a zero first", [...without("Content-Length"), "Content-Length: 07"]],
  ["a length with a blank behind", [...without("Content-Length"), "Content-Length: 7 "]],
  ["a length that no number holds", [...without("Content-Length"), `Content-Length: ${"9".repeat(30)}`]],
  ["another type", [...without("Content-Type"), "Content-Type: text/plain"]],
  ["a type with a charset", [...without("Content-Type"), "Content-Type: application/json; charset=utf-8"]],
  ["chunks", [...LINES, "Transfer-Encoding: chunked"]],
  ["chunks instead of a length", [...without("Content-Length"), "Transfer-Encoding: chunked"]],
  ["a word on the connection", [...LINES, "Connection: close"]],
  ["a question before the body", [...LINES, "Expect: 100-continue"]],
  ["another protocol", [...LINES, "Upgrade: websocket"]],
  ["an encoding", [...LINES, "Content-Encoding: gzip"]],
  ["no blank behind a colon", [...LINES, "X-A:b"]],
  ["a tab behind a colon", [...LINES, "X-A:\tb"]],
  ["a blank before a colon", [...LINES, "X-A : b"]],
  ["a folded line", [...LINES, "X-A: b", " c"]],
  ["a line without a colon", [...LINES, "X-A"]],
  ["a name with something strange", [...LINES, "X_A: b"]],
  ["no name", [...LINES, ": b"]],
  ["a control character in a value", [...LINES, "X-A: b\u0000"]],
  ["a bare line feed", [...LINES, "X-A: b\nTransfer-Encoding: chunked"]],
  ["a bare carriage return", [...LINES, "X-A: b\rTransfer-Encoding: chunked"]],
  ["a value beyond ASCII", [...LINES, "X-A: \u00fc"]],
  ["a head that is too long", [...LINES, `X-A: ${"b".repeat(2_048)}`]],
])("not plain: %s", (_, lines) => {
  expect(plainHead(headOf(lines))).toBeUndefined();
});

test("a head that is not whole is not plain", () => {
  const head = headOf(LINES, "");
  for (let length = 0; length < head.length; length++) {
    expect(plainHead(head.subarray(0, length))).toBeUndefined();
  }
});

test("a head that is as the last one but for its length is read alike", () => {
  const heads = new PlainHeads();
  const lengths = [
    "7",
    "0",
    "123456",
    "7",
    "999999999",
    "07",
    "",
    "7 ",
    "+7",
    "1234567890",
    "7\r\nX-A: b",
    "x",
  ];
  const others = [["X-A: b"], ["Connection: close"], []];
  for (const more of others) {
    for (const length of lengths) {
      const head = headOf([...LINES.map((line) => line.replace(/Length: .*/, `Length: ${length}`)), ...more]);
      const alone = plainHead(head);
      const found = heads.read(head);
      expect({ length, more, url: found?.url, start: found?.start, told: found?.length }).toEqual({
        length,
        more,
        url: alone?.url,
        start: alone?.start,
        told: alone?.length,
      });
    }
  }
});

test("a head that was cut off is not taken for the last one", () => {
  const heads = new PlainHeads();
  const head = headOf(LINES, "");
  for (let length = 0; length < head.length; length++) {
    expect(heads.read(head)).toMatchObject({ length: 7 });
    expect(heads.read(head.subarray(0, length))).toBeUndefined();
  }
});
