import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";

/** Renews a token this long before it expires, so that none expires in flight. */
const RENEW_BEFORE_MS = 10_000;

/** The ID token of a kubeconfig's `auth-provider: oidc`. */
export interface IdToken {
  /** A token that has not expired, renewed if necessary. Rejects where it can't be renewed. */
  readonly get: () => Promise<string>;
  /** The API server answered 401: the next `get` renews, whatever the expiry, where there is a refresh token. */
  readonly invalidate: () => void;
}

/** The settings of a user's auth provider, where that is OpenID Connect. */
export function oidcSettings(user: JsonObject): JsonObject | undefined {
  const provider = user["auth-provider"];
  if (stringAt(provider, "name") !== "oidc") return undefined;
  const settings = isObject(provider) ? provider["config"] : undefined;
  return isObject(settings) ? settings : {};
}

/** Renews an ID token by its refresh token. Renewed tokens stay in this process: usher does not write to kubeconfigs. */
export function idTokenOf(settings: JsonObject, now: () => number): IdToken {
  let token = stringAt(settings, "id-token") ?? "";
  let refresh = stringAt(settings, "refresh-token") ?? "";
  let renewing: Promise<void> | undefined;
  const renew = async (): Promise<void> => {
    // Loaded only here: most ID tokens are valid for as long as a command runs.
    const { refreshIdToken } = await import("./oidc-refresh.ts");
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
