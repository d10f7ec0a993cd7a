// The command lines of the components.
import { join } from "node:path";
import { type ClusterFiles, FRONT_PROXY_USER, SERVICE_RANGE, serverUrl } from "./files.ts";
import type { Ports } from "./ports.ts";

export const COMPONENTS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kwok",
] as const;
export type ComponentName = (typeof COMPONENTS)[number];

type Flags = Readonly<Record<string, string | number | boolean>>;

function list(flags: Flags): readonly string[] {
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
}

function etcd(files: ClusterFiles, ports: Ports): Flags {
  const client = `http://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return {
    "data-dir": join(files.folder, "etcd"),
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `default=${peer}`,
    // The data does not outlive the machine: waiting for the disk would only slow the tests.
    "unsafe-no-fsync": true,
    "log-level": "warn",
  };
}

function apiserver(files: ClusterFiles, ports: Ports): Flags {
  return {
    "etcd-servers": `http://127.0.0.1:${ports.etcd}`,
    "bind-address": "127.0.0.1",
    "advertise-address": "127.0.0.1",
    "secure-port": ports.apiserver,
    "tls-cert-file": files.servingCertificate,
    "tls-private-key-file": files.servingKey,
    "client-ca-file": files.caCertificate,
    "authorization-mode": "Node,RBAC",
    "enable-admission-plugins": "NodeRestriction",
    "allow-privileged": true,
    "service-cluster-ip-range": SERVICE_RANGE,
    // Otherwise it would publish the loopback address, which an EndpointSlice rejects.
    "endpoint-reconciler-type": "none",
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-account-signing-key-file": files.serviceAccountKey,
    "service-account-key-file": files.serviceAccountPublicKey,
    "requestheader-client-ca-file": files.frontProxyCa,
    "requestheader-allowed-names": FRONT_PROXY_USER,
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
    "proxy-client-cert-file": files.frontProxyCertificate,
    "proxy-client-key-file": files.frontProxyKey,
    "audit-policy-file": files.auditPolicy,
    "audit-log-path": files.auditLog,
    "egress-selector-config-file": files.egressConfiguration,
  };
}

/** Flags of the components that talk to the API server and serve their own health over TLS. */
function serving(files: ClusterFiles, port: number, kubeconfig: string): Flags {
  return {
    kubeconfig,
    "authentication-kubeconfig": kubeconfig,
    "authorization-kubeconfig": kubeconfig,
    "bind-address": "127.0.0.1",
    "secure-port": port,
    "tls-cert-file": files.servingCertificate,
    "tls-private-key-file": files.servingKey,
    // There is one instance of each, and an election would only delay it.
    "leader-elect": false,
  };
}

function controllers(files: ClusterFiles, ports: Ports, kubeconfig: string): Flags {
  return {
    ...serving(files, ports.controllers, kubeconfig),
    "use-service-account-credentials": true,
    "service-account-private-key-file": files.serviceAccountKey,
    "root-ca-file": files.caCertificate,
    "cluster-signing-cert-file": files.caCertificate,
    "cluster-signing-key-file": files.caKey,
    "service-cluster-ip-range": SERVICE_RANGE,
  };
}

function kwok(files: ClusterFiles, kubeconfig: string): Flags {
  return {
    kubeconfig,
    config: join(files.folder, "kwok.yaml"),
    "manage-all-nodes": true,
    // Without leases the nodes turn NotReady after some minutes.
    "node-lease-duration-seconds": 40,
    cidr: "10.244.0.0/16",
    "node-ip": "10.0.0.1",
  };
}

/** Arguments of one component; `extra` comes last, and the last one of a flag counts. */
export function componentArguments(
  name: ComponentName,
  files: ClusterFiles,
  ports: Ports,
  kubeconfig: string,
  extra: readonly string[],
): readonly string[] {
  const flags: Record<ComponentName, () => Flags> = {
    etcd: () => etcd(files, ports),
    "kube-apiserver": () => apiserver(files, ports),
    "kube-controller-manager": () => controllers(files, ports, kubeconfig),
    "kube-scheduler": () => serving(files, ports.scheduler, kubeconfig),
    kwok: () => kwok(files, kubeconfig),
  };
  return [...list(flags[name]()), ...extra];
}

/**
 * The users of the components; RBAC's default bindings give them their permissions. kwok simulates every node, so it
 * may do everything.
 */
export function componentIdentity(name: ComponentName): { user: string; groups: readonly string[] } {
  if (name === "kwok") return { user: "kwok", groups: ["system:masters"] };
  return { user: `system:${name}`, groups: [] };
}

/** The health endpoint of a component; kwok has none unless it listens on all addresses. */
export function healthUrl(name: ComponentName, ports: Ports): string | undefined {
  const urls: Partial<Record<ComponentName, string>> = {
    etcd: `http://127.0.0.1:${ports.etcd}/health`,
    "kube-apiserver": `${serverUrl(ports)}/readyz`,
    "kube-controller-manager": `https://127.0.0.1:${ports.controllers}/healthz`,
    "kube-scheduler": `https://127.0.0.1:${ports.scheduler}/healthz`,
  };
  return urls[name];
}
