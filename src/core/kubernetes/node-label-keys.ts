/** The two halves of a label key: `node-role.kubernetes.io/edge`; the domain is absent without a slash. */
export function partsOf(key: string): { readonly domain: string | undefined; readonly name: string } {
  const slash = key.indexOf("/");
  return slash < 0
    ? { domain: undefined, name: key }
    : { domain: key.slice(0, slash), name: key.slice(slash + 1) };
}

export function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}

/** Domains that belong to Kubernetes itself. */
export function isKubernetesDomain(domain: string): boolean {
  return isWithin(domain, "kubernetes.io") || isWithin(domain, "k8s.io");
}

/** Labels that the kubelet itself manages, under their stable and their beta names. */
const MANAGED_BY_KUBELET: ReadonlySet<string> = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "failure-domain.beta.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
]);

export function isKubeletLabel(key: string): boolean {
  return MANAGED_BY_KUBELET.has(key);
}

const ROLE_DOMAIN = "node-role.kubernetes.io";

/** The roles that OpenShift's API server lets a node set when it registers. */
const OPENSHIFT_ROLES: ReadonlySet<string> = new Set(["control-plane", "master", "worker", "etcd"]);

export function isRole(key: string): boolean {
  return partsOf(key).domain === ROLE_DOMAIN;
}

/**
 * Whether the admission plugin NodeRestriction lets a node register with this label. It runs after webhooks and can't distinguish
 * their changes from the kubelet's: one label that it refuses keeps the node out of the cluster.
 */
export function admittedAtRegistration(key: string, openshift: boolean): boolean {
  const { domain, name } = partsOf(key);
  if (domain === undefined) return true;
  if (isWithin(domain, "node-restriction.kubernetes.io")) return false;
  if (!isKubernetesDomain(domain)) return true;
  if (MANAGED_BY_KUBELET.has(key)) return true;
  if (isWithin(domain, "kubelet.kubernetes.io") || isWithin(domain, "node.kubernetes.io")) return true;
  return openshift && domain === ROLE_DOMAIN && OPENSHIFT_ROLES.has(name);
}
