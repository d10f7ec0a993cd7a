import { STATUS_CODES } from "node:http";
import type { HttpResponse } from "../review/http-response.ts";

/** An answer as it goes over the wire. */
export interface PlainAnswer {
  readonly text: string;
  /** One byte a character means ASCII, which Latin-1 writes alike but faster. */
  readonly encoding: "latin1" | "utf8";
}

/** Head and body in one text, so that they leave in one TLS record. */
export function plainAnswer({ status, type, body }: HttpResponse, closes: boolean): PlainAnswer {
  const length = Buffer.byteLength(body);
  const connection = closes ? "close" : "keep-alive";
  return {
    text: `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\nDate: ${dateNow()}\r\nConnection: ${connection}\r\n\r\n${body}`,
    encoding: length === body.length ? "latin1" : "utf8",
  };
}

/** To whoever was too slow; the connection ends with it. */
export const TOO_SLOW = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n";

const written = { second: Number.NaN, text: "" };

/** The date as HTTP writes it, made once a second. */
function dateNow(): string {
  const now = Date.now();
  const second = Math.floor(now / 1_000);
  if (second !== written.second) {
    written.second = second;
    written.text = new Date(now).toUTCString();
  }
  return written.text;
}
