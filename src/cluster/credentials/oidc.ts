import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { type CustomFetch, customFetch, discovery, refreshTokenGrant } from "openid-client";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { redactedUrl } from "./credentials.ts";

/** Renews a token this long before it expires, so that none expires in flight. */
const RENEW_BEFORE_MS = 10_000;

/** The ID token of a kubeconfig's `auth-provider: oidc`. */
export interface IdToken {
  /** A token that has not expired, renewed if necessary. Rejects if it can't be renewed. */
  readonly get: () => Promise<string>;
  /** The API server answered 401: the next `get` renews, regardless of the expiry, if there is a refresh token. */
  readonly invalidate: () => void;
}

/** The settings of a user's auth provider, if it is OpenID Connect. */
export function oidcSettings(user: JsonObject): JsonObject | undefined {
  const provider = user["auth-provider"];
  if (stringAt(provider, "name") !== "oidc") return undefined;
  const settings = isObject(provider) ? provider["config"] : undefined;
  return isObject(settings) ? settings : {};
}

/** Renews an ID token with its refresh token. Renewed tokens stay in this process: usher does not write to kubeconfigs. */
export function idTokenOf(settings: JsonObject, now: () => number): IdToken {
  let token = stringAt(settings, "id-token") ?? "";
  let refresh = stringAt(settings, "refresh-token") ?? "";
  let renewing: Promise<void> | undefined;
  const renew = async (): Promise<void> => {
    // Loaded only here: most ID tokens are valid for as long as a command runs.
    const { refreshIdToken } = await import("./oidc.ts");
    const renewed = await refreshIdToken(settings, refresh, token !== "");
    token = renewed.idToken;
    // Some providers rotate refresh tokens at each use.
    refresh = renewed.refreshToken ?? refresh;
  };
  return {
    get: async () => {
      if (token === "" || expiryOf(token) - RENEW_BEFORE_MS <= now()) {
        renewing ??= renew().finally(() => {
          renewing = undefined;
        });
        await renewing;
      }
      return token;
    },
    invalidate: () => {
      if (refresh !== "") token = "";
    },
  };
}

/** Milliseconds since 1970; 0, which is expired, for a token that can't be decoded. */
function expiryOf(token: string): number {
  try {
    const payload = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Json;
    const expiry = isObject(payload) ? payload["exp"] : undefined;
    return typeof expiry === "number" ? expiry * 1_000 : 0;
  } catch {
    return 0;
  }
}

/** For each of the two requests. */
const TIMEOUT_SECONDS = 10;

/** A discovery document or a token has a few kilobytes. */
const RESPONSE_LIMIT_BYTES = 1024 * 1024;

const WHERE = "the kubeconfig's auth-provider oidc";

export interface RenewedTokens {
  readonly idToken: string;
  /** Set if the provider rotated it. */
  readonly refreshToken: string | undefined;
}

/**
 * Gets a new ID token from the issuer. Loaded only when a token must be renewed, together with openid-client, which
 * checks the token's issuer, audience, algorithm and expiry.
 */
export async function refreshIdToken(
  settings: JsonObject,
  refreshToken: string,
  expired: boolean,
): Promise<RenewedTokens> {
  const issuer = stringAt(settings, "idp-issuer-url");
  const clientId = stringAt(settings, "client-id");
  if (issuer === undefined || clientId === undefined || refreshToken === "") {
    const state = expired ? "its id-token has expired" : "there is no id-token";
    throw new Error(
      `${WHERE}: ${state}, and renewing it needs idp-issuer-url, client-id and refresh-token; log in again`,
    );
  }
  if (!issuer.startsWith("https://"))
    throw new Error(`${WHERE}: idp-issuer-url must start with https://, got ${redactedUrl(issuer)}`);
  try {
    // The whole address, so that the issuer in the document need not match idp-issuer-url: kubectl does not compare them either.
    const address = new URL(`${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`);
    const clientSecret = stringAt(settings, "client-secret") || undefined;
    const options = { [customFetch]: fetchTrusting(await caOf(settings)), timeout: TIMEOUT_SECONDS };
    const provider = await discovery(address, clientId, clientSecret, undefined, options);
    const { token_endpoint: endpoint = "" } = provider.serverMetadata();
    if (!endpoint.startsWith("https://"))
      throw new Error(`${redactedUrl(issuer)} publishes no token_endpoint with https`);
    const tokens = await refreshTokenGrant(provider, refreshToken);
    if (tokens.id_token === undefined)
      throw new Error(`${redactedUrl(endpoint)} returned no id_token; log in again with the scope openid`);
    return { idToken: tokens.id_token, refreshToken: tokens.refresh_token };
  } catch (error) {
    // No cause: the library's errors carry responses with their tokens.
    throw new Error(`${WHERE}: renewing the id-token: ${reasonOf(error)}`);
  }
}

async function caOf(settings: JsonObject): Promise<Buffer | undefined> {
  const data = stringAt(settings, "idp-certificate-authority-data");
  if (data) return Buffer.from(data, "base64");
  const file = stringAt(settings, "idp-certificate-authority");
  return file ? readFile(file) : undefined;
}

/** A `fetch` that trusts a private CA, which Node's own does not support, follows no redirects, and limits the response's size. */
function fetchTrusting(ca: Buffer | undefined): CustomFetch {
  return async (url, { method, headers, body, signal }) => {
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        const options = {
          method,
          headers,
          ...(ca === undefined ? {} : { ca }),
          ...(signal ? { signal } : {}),
        };
        // Stays attached: without a listener an error after the response would end the process.
        request(url, options, resolve)
          .on("error", reject)
          .end(body ? String(body) : undefined);
      });
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) {
        text += String(chunk);
        if (text.length > RESPONSE_LIMIT_BYTES)
          throw new Error(`response is longer than ${RESPONSE_LIMIT_BYTES} bytes`);
      }
      const status = response.statusCode ?? 0;
      if (status !== 200) throw new Error(`status ${status}: ${text.slice(0, 200)}`);
      return new Response(text, { headers: { "content-type": "application/json" } });
    } catch (error) {
      // As in the standard: fetch throws a TypeError for a failed request.
      throw new TypeError(`${redactedUrl(url)}: ${reasonOf(error)}`);
    }
  };
}

/** The library's errors name the check; their cause has the value. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
