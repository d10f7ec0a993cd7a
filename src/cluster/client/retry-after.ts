import { at } from "../../core/json.ts";
import type { ApiResponse } from "./client.ts";

/** Nobody is made to wait longer by a header: the API server's own are some seconds, and a wrong one must not stop us for a day. */
const LONGEST_MS = 60_000;

/** How long the API server asks to wait, by its header or its Status; `undefined` where it does not ask. */
export function retryAfterMs(answer: Pick<ApiResponse, "headers" | "body">): number | undefined {
  const details = at(answer.body, "details", "retryAfterSeconds");
  const header = answer.headers["retry-after"];
  // The header may also be a date. The API server never sends one, and a proxy that does is served by our own back-off.
  const seconds = header !== undefined && /^\d+$/.test(header) ? Number(header) : details;
  return typeof seconds === "number" && seconds > 0 ? Math.min(seconds * 1000, LONGEST_MS) : undefined;
}
