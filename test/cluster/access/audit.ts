import { readFileSync } from "node:fs";
import type { Json } from "../../../src/core/json.ts";

/** The commonly read fields of an entry; the others are present too. */
export interface AuditEntry {
  readonly verb: string;
  readonly user: { readonly username: string; readonly groups?: readonly string[] };
  readonly objectRef?: {
    readonly resource?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly reason?: string; readonly message?: string };
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: Json | undefined | object;
}

/** All complete lines of an audit log; the last line may be half written. */
export function readAuditLog(path: string): readonly AuditEntry[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return [];
  }
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditEntry);
}
