import { controlPlaneOf, type Installation } from "./installation.ts";

/** A resource without which a cluster can't heal: no closed hook may stand before it, whatever its subresource. */
export interface ProtectedResource {
  readonly group: string;
  readonly resource: string;
  readonly scope: "Cluster" | "Namespaced";
}

/**
 * Nodes join and renew themselves by nodes, leases and certificate requests; the API server and usher itself ask by reviews who
 * someone is and what they may; and CRDs, API services and webhook configurations are what one repairs usher with. Rules can't
 * name single objects, so it is all CRDs and not only ours. The API server does not ask webhooks about configurations of
 * webhooks; that is its promise and these are ours. They are protected in all versions; in groups other than these the
 * same names are other things, and none of those is an equivalent that matchPolicy would bring here.
 */
export const PROTECTED_RESOURCES: readonly ProtectedResource[] = [
  { group: "", resource: "nodes", scope: "Cluster" },
  { group: "coordination.k8s.io", resource: "leases", scope: "Namespaced" },
  { group: "coordination.k8s.io", resource: "leasecandidates", scope: "Namespaced" },
  { group: "certificates.k8s.io", resource: "certificatesigningrequests", scope: "Cluster" },
  { group: "authentication.k8s.io", resource: "tokenreviews", scope: "Cluster" },
  { group: "authentication.k8s.io", resource: "selfsubjectreviews", scope: "Cluster" },
  { group: "authorization.k8s.io", resource: "subjectaccessreviews", scope: "Cluster" },
  { group: "authorization.k8s.io", resource: "selfsubjectaccessreviews", scope: "Cluster" },
  { group: "authorization.k8s.io", resource: "selfsubjectrulesreviews", scope: "Cluster" },
  { group: "authorization.k8s.io", resource: "localsubjectaccessreviews", scope: "Namespaced" },
  { group: "apiextensions.k8s.io", resource: "customresourcedefinitions", scope: "Cluster" },
  { group: "apiregistration.k8s.io", resource: "apiservices", scope: "Cluster" },
  { group: "admissionregistration.k8s.io", resource: "mutatingwebhookconfigurations", scope: "Cluster" },
  { group: "admissionregistration.k8s.io", resource: "validatingwebhookconfigurations", scope: "Cluster" },
];

/**
 * Namespaces that no closed hook may reach: usher's own, or its pods could not come back, and the control plane's. That an
 * installation opened some of them lets usher work there, not stand in the way.
 */
export function protectedNamespaces(installation: Installation): string[] {
  return [...new Set([...controlPlaneOf(installation), installation.namespace])].sort();
}
