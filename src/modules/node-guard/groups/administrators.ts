import type { Group } from "./group.ts";

/** A user that a platform gives its administrators. */
interface Administrator {
  readonly user: string;
  readonly platform: "Kubernetes" | "OpenShift";
  /** The upstream file of the name, as repository and path. */
  readonly source: string;
}

/** They are in no built-in list: administrators decide who may debug their nodes. */
export const ADMINISTRATORS: readonly Administrator[] = [
  {
    user: "kubernetes-admin",
    platform: "Kubernetes",
    source: "kubernetes/kubernetes cmd/kubeadm/app/phases/kubeconfig/kubeconfig.go",
  },
  {
    user: "system:admin",
    platform: "OpenShift",
    source: "openshift/installer pkg/asset/tls/adminkubeconfig.go",
  },
  {
    user: "kube:admin",
    platform: "OpenShift",
    source: "openshift/library-go pkg/authentication/bootstrapauthenticator/bootstrap.go",
  },
];

export function isAdministrator(username: string): boolean {
  return ADMINISTRATORS.some(({ user }) => user === username);
}

const DEBUGGING = {
  Kubernetes: "kubectl debug node/… is",
  OpenShift: "oc debug node/… and oc adm must-gather --node-name are",
};

/** The consequence of a group without emergency entries, and the entries to add; `undefined` if it has one. */
export function missingEmergency(
  { emergency }: Pick<Group, "emergency">,
  builtIn: "Kubernetes" | "OpenShift" | "None",
): string | undefined {
  if (emergency.length > 0) return undefined;
  const platform = builtIn === "OpenShift" ? "OpenShift" : "Kubernetes";
  const users = ADMINISTRATORS.filter((one) => one.platform === platform).map(({ user }) => user);
  return `no emergency entry: in Enable ${DEBUGGING[platform]} refused to every user, also to ${users.join(" and ")}; list the users that debug nodes, such as emergencyUsers: [${users.map(quoted).join(", ")}]`;
}

/** As YAML: in a flow list, a colon needs quotes. */
function quoted(user: string): string {
  return user.includes(":") ? `"${user}"` : user;
}
