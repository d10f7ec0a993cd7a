// Identities of tests towards the API server. A client certificate can name any user, so a test can be a node, a user
// in a group or a controller.
import { createHash } from "node:crypto";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Authority, type KeyedCertificate } from "../certificates/authority.ts";

export interface Identity {
  readonly user: string;
  readonly groups?: readonly string[];
}

/** May do everything, like the first kubeconfig of any cluster. */
export const ADMIN: Identity = { user: "usher-test-admin", groups: ["system:masters"] };

/** The identity of a kubelet. */
export function nodeIdentity(node: string): Identity {
  return { user: `system:node:${node}`, groups: ["system:nodes"] };
}

function keyOf({ user, groups = [] }: Identity): string {
  return JSON.stringify([user, ...groups]);
}

/** A file name that is readable and unique per identity. */
function fileName(identity: Identity): string {
  const hash = createHash("sha256").update(keyOf(identity)).digest("hex").slice(0, 8);
  return `${identity.user.replace(/[^\w.-]+/g, "-").slice(0, 80)}-${hash}.kubeconfig`;
}

/** Issues each identity's certificate once. */
export class Identities {
  readonly #authority: Promise<Authority>;
  readonly #issued = new Map<string, Promise<KeyedCertificate>>();
  readonly #folder: string;
  readonly #server: string;
  readonly #ca: KeyedCertificate;

  constructor(folder: string, server: string, ca: KeyedCertificate) {
    this.#folder = folder;
    this.#server = server;
    this.#ca = ca;
    this.#authority = Authority.load(ca);
  }

  certificate(identity: Identity): Promise<KeyedCertificate> {
    const key = keyOf(identity);
    const known = this.#issued.get(key) ?? this.#authority.then((authority) => authority.issue(identity));
    this.#issued.set(key, known);
    return known;
  }

  /** Writes a kubeconfig for an identity and returns its path. */
  async kubeconfig(identity: Identity): Promise<string> {
    const pair = await this.certificate(identity);
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    const { user } = identity;
    const content = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "test",
          cluster: { server: this.#server, "certificate-authority-data": base64(this.#ca.certificate) },
        },
      ],
      users: [
        {
          name: user,
          user: { "client-certificate-data": base64(pair.certificate), "client-key-data": base64(pair.key) },
        },
      ],
      contexts: [{ name: "test", context: { cluster: "test", user } }],
      "current-context": "test",
    };
    const path = join(this.#folder, fileName(identity));
    // Test files of the shared cluster write the same file; the rename lets readers see only whole files.
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, JSON.stringify(content), { mode: 0o600 });
    renameSync(draft, path);
    return path;
  }
}
