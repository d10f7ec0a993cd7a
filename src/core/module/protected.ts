import { controlPlaneOf, type Installation } from "../installation/installation.ts";

/** A resource without which a cluster can't recover: no fail-closed hook may match it, with any subresource. */
export interface ProtectedResource {
  readonly group: string;
  readonly resource: string;
  readonly scope: "Cluster" | "Namespaced";
}

/**
 * Nodes join and renew themselves with nodes, leases and certificate requests; the API server and usher itself
 * authenticate and authorize with reviews; and CRDs, API services and webhook configurations are needed to repair
 * usher. Rules can't name single objects, so all CRDs are included and not only usher's. The API server itself never
 * calls webhooks for webhook configurations; this list does not rely on it. They are protected in all versions; in
 * other groups the same names are other resources, and none of those is an equivalent that matchPolicy would convert.
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
 * Namespaces that no fail-closed hook may match: usher's own, otherwise its pods could not come back, and the control
 * plane's. If an installation opens some of them, usher works there, but must not block them.
 */
export function protectedNamespaces(installation: Installation): string[] {
  return [...new Set([...controlPlaneOf(installation), installation.namespace])].sort();
}
