// The files that the components of one cluster read, written once before they start.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/core/json.ts";
import {
  Authority,
  generateKeys,
  type KeyedCertificate,
  privatePem,
  publicPem,
} from "../certificates/authority.ts";
import type { Ports } from "./ports.ts";

export const SERVICE_RANGE = "10.96.0.0/16";
const KUBERNETES_SERVICE = "10.96.0.1";

/** The front proxy's client certificate: an aggregated API server trusts `X-Remote-User` from it. */
export const FRONT_PROXY_USER = "front-proxy-client";

export interface ClusterFiles {
  readonly folder: string;
  readonly authority: Authority;
  readonly caCertificate: string;
  readonly caKey: string;
  readonly servingCertificate: string;
  readonly servingKey: string;
  readonly frontProxyCa: string;
  readonly frontProxyCertificate: string;
  readonly frontProxyKey: string;
  readonly serviceAccountKey: string;
  readonly serviceAccountPublicKey: string;
  readonly auditPolicy: string;
  readonly auditLog: string;
  readonly egressConfiguration: string;
  readonly egressSocket: string;
}

/** Logs users and verbs, without bodies; leases and events are written every second and are useless here. */
const AUDIT_POLICY: JsonObject = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    {
      level: "None",
      resources: [{ group: "coordination.k8s.io" }, { group: "events.k8s.io" }, { resources: ["events"] }],
    },
    { level: "None", nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/openapi*", "/api*"] },
    { level: "Metadata" },
  ],
};

function egressSelection(socket: string): JsonObject {
  return {
    apiVersion: "apiserver.k8s.io/v1beta1",
    kind: "EgressSelectorConfiguration",
    egressSelections: [
      {
        name: "cluster",
        connection: { proxyProtocol: "HTTPConnect", transport: { uds: { udsName: socket } } },
      },
    ],
  };
}

export async function writeFiles(
  folder: string,
  auditPolicy: JsonObject = AUDIT_POLICY,
): Promise<ClusterFiles> {
  const write = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  };
  const pair = (name: string, { certificate, key }: KeyedCertificate): readonly [string, string] => [
    write(`${name}.crt`, certificate),
    write(`${name}.key`, key),
  ];
  const authority = await Authority.create("usher test cluster");
  const frontProxy = await Authority.create("usher test front proxy");
  const names = [
    "127.0.0.1",
    KUBERNETES_SERVICE,
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
  ];
  const serviceAccounts = await generateKeys();
  const [caCertificate, caKey] = pair("ca", authority.pem);
  const [servingCertificate, servingKey] = pair(
    "serving",
    await authority.issue({ user: "kube-apiserver", names }),
  );
  const [frontProxyCertificate, frontProxyKey] = pair(
    "front-proxy",
    await frontProxy.issue({ user: FRONT_PROXY_USER }),
  );
  const egressSocket = join(folder, "egress.sock");
  return {
    folder,
    authority,
    caCertificate,
    caKey,
    servingCertificate,
    servingKey,
    frontProxyCa: write("front-proxy-ca.crt", frontProxy.pem.certificate),
    frontProxyCertificate,
    frontProxyKey,
    serviceAccountKey: write("service-accounts.key", privatePem(serviceAccounts)),
    serviceAccountPublicKey: write("service-accounts.pub", publicPem(serviceAccounts)),
    auditPolicy: write("audit-policy.json", JSON.stringify(auditPolicy)),
    auditLog: join(folder, "audit.log"),
    egressConfiguration: write("egress.json", JSON.stringify(egressSelection(egressSocket))),
    egressSocket,
  };
}

export function serverUrl(ports: Ports): string {
  return `https://127.0.0.1:${ports.apiserver}`;
}
