/** The head of a request that says all that there is to know about it. */
export interface PlainHead {
  readonly url: string;
  /** Where the body begins. */
  readonly start: number;
  /** How many bytes the body has. */
  readonly length: number;
}

/** An API server's head has some 300 bytes. */
const LONGEST = 2_048;

const FIRST = "POST ";
const VERSION = " HTTP/1.1";

/** One header as Go's client writes it: a name without anything strange, one blank, and what can be seen in print. */
const HEADER = /([A-Za-z0-9-]+): ([ -~]*)\r\n/y;
const ADDRESS = /^\/[!-~]*$/;
const LENGTH = /^(?:0|[1-9][0-9]{0,8})$/;

/** Names that change how a message is read, or what becomes of its connection. */
const MORE = new Set([
  "connection",
  "content-encoding",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Reads the head of a POST of JSON whose length is told, as API servers send it; `undefined` for everything else, be it HTTP or not.
 * Of two ways to read a head neither is taken: the least that is out of the ordinary (a blank too many, a name twice) makes it no plain
 * one, and Node's parser judges it.
 */
export function plainHead(bytes: Buffer): PlainHead | undefined {
  const text = bytes.toString("latin1", 0, LONGEST);
  const end = text.indexOf("\r\n\r\n") + 2;
  const line = text.indexOf("\r\n");
  if (end < 2 || line === end - 2 || !text.startsWith(FIRST)) return undefined;
  const version = line - VERSION.length;
  if (!text.startsWith(VERSION, version)) return undefined;
  const url = text.slice(FIRST.length, version);
  if (!ADDRESS.test(url)) return undefined;
  let length: string | undefined;
  let type: string | undefined;
  let host: string | undefined;
  HEADER.lastIndex = line + 2;
  while (HEADER.lastIndex < end) {
    const [, written, value = ""] = HEADER.exec(text) ?? [];
    if (written === undefined) return undefined;
    const name = written.toLowerCase();
    if (name === "content-length") {
      if (length !== undefined) return undefined;
      length = value;
    } else if (name === "content-type") {
      if (type !== undefined) return undefined;
      type = value;
    } else if (name === "host") {
      if (host !== undefined) return undefined;
      host = value;
    } else if (MORE.has(name)) return undefined;
  }
  if (host === undefined || type !== "application/json") return undefined;
  if (length === undefined || !LENGTH.test(length)) return undefined;
  return { url, start: end + 2, length: Number(length) };
}
