import { readFile } from "node:fs/promises";
import type { JsonObject } from "../../core/json.ts";
import { stringAt } from "../../core/json.ts";
import { readToken } from "./credentials.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";

/** TLS options of a connection. */
export interface Tls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** TLS options and headers that authenticate. */
export interface Material {
  readonly tls: Tls;
  readonly headers: Readonly<Record<string, string>>;
}

/** Not supported. Impersonating by name alone would be another identity than the kubeconfig demands. */
const UNSUPPORTED_IMPERSONATION = ["as-uid", "as-groups", "as-user-extra"] as const;

/** Certificates, tokens and passwords, inline or from files, which are read at each call. */
export async function staticMaterial({ cluster, user }: KubeconfigEntry): Promise<Material> {
  const unsupported = UNSUPPORTED_IMPERSONATION.find((field) => user[field] !== undefined);
  if (unsupported !== undefined)
    throw new Error(
      `the kubeconfig's user has ${unsupported}, which usher does not support; use a user without it`,
    );
  const ca = await bytesOf(cluster, "certificate-authority");
  const cert = await bytesOf(user, "client-certificate");
  const key = await bytesOf(user, "client-key");
  const servername = stringAt(cluster, "tls-server-name");
  const insecure = cluster["insecure-skip-tls-verify"] === true;
  return {
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(servername === undefined || servername === "" ? {} : { servername }),
      ...(insecure ? { rejectUnauthorized: false } : {}),
    },
    headers: { ...(await authorization(user)), ...impersonation(user) },
  };
}

async function authorization(user: JsonObject): Promise<Record<string, string>> {
  const file = stringAt(user, "tokenFile");
  const token = file ? await readToken(file) : stringAt(user, "token");
  if (token) return { authorization: `Bearer ${token}` };
  const name = stringAt(user, "username");
  if (!name) return {};
  const pair = `${name}:${stringAt(user, "password") ?? ""}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

function impersonation(user: JsonObject): Record<string, string> {
  const name = stringAt(user, "as");
  return name ? { "impersonate-user": name } : {};
}

/** As for kubectl, inline data takes precedence over a file. */
async function bytesOf(entry: JsonObject, field: string): Promise<Buffer | undefined> {
  const data = stringAt(entry, `${field}-data`);
  if (data) return Buffer.from(data, "base64");
  const file = stringAt(entry, field);
  return file ? readFile(file) : undefined;
}
