import { createHash } from "node:crypto";
import { serviceAccountOf } from "../../core/kubernetes/principals.ts";

/** Whose projects are counted together: a user or service account by its user name, or all service accounts of a namespace. */
export type LimitSubject = { readonly username: string } | { readonly serviceAccountsOf: string };

/** The subject of a request. Only well-formed service accounts count by namespace: a malformed one is a system user. */
export function subjectOf(username: string, serviceAccountsPer: "Account" | "Namespace"): LimitSubject {
  const account = serviceAccountsPer === "Namespace" ? serviceAccountOf(username) : undefined;
  return account === undefined ? { username } : { serviceAccountsOf: account.namespace };
}

/** The subject's readable name; for a namespace the name of the group of its service accounts. */
export function describeSubject(subject: LimitSubject): string {
  return "username" in subject ? subject.username : `system:serviceaccounts:${subject.serviceAccountsOf}`;
}

/** Names of objects have 253 characters; longer ones are hashed. */
const LONGEST = 200;

/**
 * The name of the subject's ledger: readable, and injective for any characters. Lower-case letters and digits are
 * unchanged, everything else is escaped by its code unit; `-` begins an escape and `u` is not a hexadecimal digit, so
 * no two strings collide. The prefix separates users from namespaces, and hashed names from escaped ones.
 */
export function ledgerName(subject: LimitSubject): string {
  const [prefix, text] =
    "username" in subject ? (["u", subject.username] as const) : (["n", subject.serviceAccountsOf] as const);
  // A long string need not be escaped completely to know that it is too long.
  const escaped = text.length > LONGEST ? undefined : text.replace(/[^a-z0-9]/g, escapeUnit);
  if (escaped !== undefined && escaped.length <= LONGEST && escaped !== "") return `${prefix}-${escaped}`;
  // By code units: as UTF-8, all unpaired surrogates would be the same.
  return `${prefix}h-${createHash("sha256").update(Buffer.from(text, "utf16le")).digest("hex")}`;
}

function escapeUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  return code < 0x100 ? `-${code.toString(16).padStart(2, "0")}` : `-u${code.toString(16).padStart(4, "0")}`;
}
