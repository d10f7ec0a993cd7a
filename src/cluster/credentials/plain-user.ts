import { readFile } from "node:fs/promises";
import type { JsonObject } from "../../core/json.ts";
import { stringAt } from "../../core/json.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";
import { readToken } from "./token-file.ts";

/** What a connection is made with. */
export interface Tls {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** What to connect with and what to say who we are. */
export interface Material {
  readonly tls: Tls;
  readonly headers: Readonly<Record<string, string>>;
}

/** Whom to be instead is more than a name; less than all of it would be somebody else. */
const PARTS_OF_IMPERSONATION = ["as-uid", "as-groups", "as-user-extra"] as const;

/** Certificates, tokens and passwords, from the entry itself or from files, which are read anew each time. */
export async function plainMaterial({ cluster, user }: KubeconfigEntry): Promise<Material> {
  const other = PARTS_OF_IMPERSONATION.find((field) => user[field] !== undefined);
  if (other !== undefined)
    throw new Error(
      `the kubeconfig's user has ${other}, which usher does not support; without it usher would be somebody else`,
    );
  const ca = await bytesOf(cluster, "certificate-authority");
  const cert = await bytesOf(user, "client-certificate");
  const key = await bytesOf(user, "client-key");
  const servername = stringAt(cluster, "tls-server-name");
  const careless = cluster["insecure-skip-tls-verify"] === true;
  return {
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(servername === undefined || servername === "" ? {} : { servername }),
      ...(careless ? { rejectUnauthorized: false } : {}),
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

/** As kubectl: what stands in the kubeconfig itself counts before a file. */
async function bytesOf(entry: JsonObject, field: string): Promise<Buffer | undefined> {
  const data = stringAt(entry, `${field}-data`);
  if (data) return Buffer.from(data, "base64");
  const file = stringAt(entry, field);
  return file ? readFile(file) : undefined;
}
