// The effect of a Kubernetes security context on a container, as a kubelet and containerd implement it.
import { at, type Json, listAt } from "../../src/core/json.ts";

export interface Security {
  readonly uid: number;
  readonly gid: number;
  readonly groups: readonly number[];
  readonly readOnlyRoot: boolean;
  readonly noNewPrivileges: boolean;
  readonly capabilities: readonly string[];
  /** The runtime's own seccomp filter. */
  readonly seccomp: boolean;
}

/** The capabilities that containerd gives a container that does not set any. */
const CAPABILITIES = [
  "CHOWN",
  "DAC_OVERRIDE",
  "FSETID",
  "FOWNER",
  "MKNOD",
  "NET_RAW",
  "SETGID",
  "SETUID",
  "SETFCAP",
  "SETPCAP",
  "NET_BIND_SERVICE",
  "SYS_CHROOT",
  "KILL",
  "AUDIT_WRITE",
];

/** The container's settings precede the pod's, and both precede the image's user, whose group is from /etc/passwd. */
export function securityOf(pod: Json | undefined, container: Json | undefined, user: number): Security {
  const either = (field: string): Json | undefined => at(container, field) ?? at(pod, field);
  const uid = Number(either("runAsUser") ?? user);
  if (either("runAsNonRoot") === true && uid === 0)
    throw new Error("container has runAsNonRoot and image will run as root");
  const dropped = listAt(container, "capabilities", "drop").map(String);
  const group = at(pod, "fsGroup");
  return {
    uid,
    // A user that the image does not know is in the root group.
    gid: Number(either("runAsGroup") ?? (uid === user ? user : 0)),
    groups: group === undefined ? [] : [Number(group)],
    readOnlyRoot: at(container, "readOnlyRootFilesystem") === true,
    noNewPrivileges: at(container, "allowPrivilegeEscalation") === false,
    capabilities: dropped.includes("ALL") ? [] : CAPABILITIES.filter((name) => !dropped.includes(name)),
    seccomp: at(either("seccompProfile"), "type") === "RuntimeDefault",
  };
}
