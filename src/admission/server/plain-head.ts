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
const MOST_DIGITS = 9;

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

/** A head, and what stands in it before and behind the digits of its length. */
interface Reading extends PlainHead {
  readonly before: string;
  readonly behind: string;
}

/** Reads the heads of one connection. A client writes the same one again and again but for the length: it is enough to see that it did. */
export class PlainHeads {
  #last: Reading | undefined;

  /**
   * Reads the head of a POST of JSON whose length is told, as API servers send it; `undefined` for everything else, be it HTTP or not.
   * Of two ways to read a head neither is taken: the least that is out of the ordinary (a blank too many, a name twice) makes it no
   * plain one, and Node's parser judges it.
   */
  read(bytes: Buffer): PlainHead | undefined {
    const again = this.#last === undefined ? undefined : readAgain(bytes, this.#last);
    if (again !== undefined) return again;
    this.#last = readHead(bytes);
    return this.#last;
  }
}

function readAgain(bytes: Buffer, { url, before, behind }: Reading): PlainHead | undefined {
  const text = bytes.toString("latin1", 0, before.length + MOST_DIGITS + behind.length);
  if (!text.startsWith(before)) return undefined;
  const digits = text.indexOf("\r", before.length);
  if (!text.startsWith(behind, digits)) return undefined;
  const length = text.slice(before.length, digits);
  return LENGTH.test(length) ? { url, start: digits + behind.length, length: Number(length) } : undefined;
}

function readHead(bytes: Buffer): Reading | undefined {
  const text = bytes.toString("latin1", 0, LONGEST);
  const end = text.indexOf("\r\n\r\n") + 2;
  const line = text.indexOf("\r\n");
  if (end < 2 || line === end - 2 || !text.startsWith(FIRST)) return undefined;
  const version = line - VERSION.length;
  if (!text.startsWith(VERSION, version)) return undefined;
  const url = text.slice(FIRST.length, version);
  if (!ADDRESS.test(url)) return undefined;
  let length: string | undefined;
  let digits = 0;
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
      digits = HEADER.lastIndex - 2 - value.length;
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
  const start = end + 2;
  const before = text.slice(0, digits);
  const behind = text.slice(digits + length.length, start);
  return { url, start, length: Number(length), before, behind };
}
