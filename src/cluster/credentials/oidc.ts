import { readFile } from "node:fs/promises";
import { request } from "node:https";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { shownAddress } from "./shown-address.ts";

/** Before it ends, so that none is refused on its way. */
const EARLY_MS = 10_000;

const ANSWER_MS = 10_000;
/** A discovery document or a token has some kilobytes. */
const ANSWER_LIMIT_BYTES = 1024 * 1024;

/** The ID token of a kubeconfig's `auth-provider: oidc`. */
export interface IdToken {
  /** One that is still good, renewed where it must be. Rejects where it can't be. */
  readonly get: () => Promise<string>;
  /** The server refused it, whatever it says of itself: the next one is another, where another can be had. */
  readonly refused: () => void;
}

/** The settings of a user's auth provider, where that is OpenID Connect. */
export function oidcSettings(user: JsonObject): JsonObject | undefined {
  const provider = user["auth-provider"];
  if (stringAt(provider, "name") !== "oidc") return undefined;
  const settings = isObject(provider) ? provider["config"] : undefined;
  return isObject(settings) ? settings : {};
}

/**
 * Renews an ID token by its refresh token. What is renewed stays in this process: a kubeconfig is its owner's, and usher does not
 * write to it.
 */
export function idTokenOf(settings: JsonObject, now: () => number): IdToken {
  let token = stringAt(settings, "id-token") ?? "";
  let refresh = stringAt(settings, "refresh-token") ?? "";
  let renewing: Promise<void> | undefined;
  const renew = async (): Promise<void> => {
    const answer = await renewed(settings, refresh, token);
    token = answer.token;
    // Some providers give a new one each time, and take the old one no more.
    refresh = answer.refresh ?? refresh;
  };
  return {
    get: async () => {
      if (token === "" || endOf(token) - EARLY_MS <= now()) {
        renewing ??= renew().finally(() => {
          renewing = undefined;
        });
        await renewing;
      }
      return token;
    },
    refused: () => {
      if (refresh !== "") token = "";
    },
  };
}

/** Milliseconds since 1970. A token that can't be read has ended: the provider gives another. */
function endOf(token: string): number {
  try {
    const payload = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Json;
    const end = isObject(payload) ? payload["exp"] : undefined;
    return typeof end === "number" ? end * 1_000 : 0;
  } catch {
    return 0;
  }
}

async function renewed(settings: JsonObject, refresh: string, token: string) {
  const issuer = stringAt(settings, "idp-issuer-url");
  const client = stringAt(settings, "client-id");
  if (issuer === undefined || client === undefined || refresh === "") {
    const state = token === "" ? "there is no id-token" : "its id-token has ended";
    throw new Error(
      `the kubeconfig's auth-provider oidc: ${state}, and to get another it must have idp-issuer-url, client-id and refresh-token; log in again`,
    );
  }
  if (!issuer.startsWith("https://"))
    throw new Error(
      `the kubeconfig's auth-provider oidc: idp-issuer-url must be https, and is ${shownAddress(issuer)}`,
    );
  const ca = await authorityOf(settings);
  const discovery = await ask(`${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`, { ca });
  const endpoint = stringAt(discovery, "token_endpoint") ?? "";
  if (!endpoint.startsWith("https://")) throw new Error(`${shownAddress(issuer)} names no token endpoint`);
  const secret = stringAt(settings, "client-secret");
  const form = new URLSearchParams({
    grant_type: "refresh_token",
    refresh_token: refresh,
    client_id: client,
    ...(secret ? { client_secret: secret } : {}),
  });
  const answer = await ask(endpoint, { ca, form });
  const renewedToken = stringAt(answer, "id_token");
  if (renewedToken === undefined) throw new Error(`${shownAddress(endpoint)} gave no id_token; log in again`);
  return { token: renewedToken, refresh: stringAt(answer, "refresh_token") };
}

async function authorityOf(settings: JsonObject): Promise<Buffer | undefined> {
  const data = stringAt(settings, "idp-certificate-authority-data");
  if (data) return Buffer.from(data, "base64");
  const file = stringAt(settings, "idp-certificate-authority");
  return file ? readFile(file) : undefined;
}

interface Question {
  readonly ca: Buffer | undefined;
  readonly form?: URLSearchParams;
}

/** What the provider answers; its own words where it refuses. */
async function ask(url: string, { ca, form }: Question): Promise<Json> {
  const shown = shownAddress(url);
  const text = await new Promise<string>((resolve, reject) => {
    const body = form?.toString();
    const sent = request(
      url,
      {
        method: body === undefined ? "GET" : "POST",
        signal: AbortSignal.timeout(ANSWER_MS),
        headers: {
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        },
        ...(ca === undefined ? {} : { ca }),
      },
      async (response) => {
        try {
          let got = "";
          for await (const chunk of response.setEncoding("utf8")) {
            got += String(chunk);
            if (got.length > ANSWER_LIMIT_BYTES) throw new Error("its answer is too long");
          }
          if (response.statusCode === 200) resolve(got);
          else reject(new Error(`${shown} answered ${response.statusCode}: ${got.slice(0, 200)}`));
        } catch (error) {
          reject(error);
        }
      },
    );
    sent.once("error", (error) => reject(new Error(`${shown}: ${error.message}`, { cause: error })));
    sent.end(body);
  });
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new Error(`${shown} answered with something that is no JSON`);
  }
}
