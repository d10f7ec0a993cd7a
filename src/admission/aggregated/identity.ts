import type { UserInfo } from "../../core/decision/request.ts";
import { type Json, setOwn } from "../../core/json.ts";
import type { FrontProxy } from "./front-proxy.ts";

/** Headers by name in lower case, each line separately: `headersDistinct` of Node. */
export type Headers = Readonly<Record<string, readonly string[] | undefined>>;

/** Node reads headers as Latin-1; the front proxy writes UTF-8. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The user of a request by the front proxy's headers, or an error message. To be called only for a request that the
 * front proxy sent. It sets each header itself, so a request that names two users is not from it.
 */
export function identityOf(headers: Headers, proxy: FrontProxy): UserInfo | string {
  try {
    return readIdentity(headers, proxy);
  } catch {
    return "the headers of the front proxy are not UTF-8";
  }
}

function readIdentity(headers: Headers, proxy: FrontProxy): UserInfo | string {
  const [username = "", ...others] = firstOf(headers, proxy.usernameHeaders);
  if (username === "") return `the front proxy names no user: ${proxy.usernameHeaders.join(", ")} is empty`;
  const [uid = "", ...uids] = firstOf(headers, proxy.uidHeaders);
  if (others.length > 0 || uids.length > 0) return "the headers of the front proxy name more than one user";
  const groups = authenticated(
    username,
    proxy.groupHeaders.flatMap((name) => valuesOf(headers, name)),
  );
  const extra = extraOf(headers, proxy.extraHeaderPrefixes);
  return {
    username,
    groups,
    ...(uid === "" ? {} : { uid }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

const AUTHENTICATED = "system:authenticated";

/** As API servers do for every identity: the aggregator itself downloads OpenAPI as a user without groups. */
function authenticated(username: string, groups: readonly string[]): string[] {
  const isKnown = groups.some((group) => group === AUTHENTICATED || group === "system:unauthenticated");
  return isKnown || username === "system:anonymous" ? [...groups] : [...groups, AUTHENTICATED];
}

/** The lines of the first present header. */
function firstOf(headers: Headers, names: readonly string[]): readonly string[] {
  const name = names.find((one) => valuesOf(headers, one).length > 0);
  return name === undefined ? [] : valuesOf(headers, name);
}

function valuesOf(headers: Headers, name: string): string[] {
  const lines = Object.hasOwn(headers, name) ? (headers[name] ?? []) : [];
  return lines.map(decoded).filter((value) => value !== "");
}

function extraOf(headers: Headers, prefixes: readonly string[]): Record<string, Json> {
  const extra: Record<string, Json> = {};
  for (const name of Object.keys(headers)) {
    const prefix = prefixes.find((one) => name.startsWith(one));
    if (prefix === undefined) continue;
    const key = unescaped(name.slice(prefix.length));
    const before = Object.hasOwn(extra, key) ? (extra[key] as readonly string[]) : [];
    if (key !== "") setOwn(extra, key, [...before, ...valuesOf(headers, name)]);
  }
  return extra;
}

/** Characters that are invalid in a header name are percent-encoded; other systems write keys unencoded. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

function decoded(value: string): string {
  return UTF8.decode(Buffer.from(value, "latin1"));
}
