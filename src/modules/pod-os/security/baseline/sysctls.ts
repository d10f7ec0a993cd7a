import { celValue } from "../../../../core/kubernetes/cel.ts";
import { MOST_LISTED } from "../../go-text.ts";
import { POD_CONTEXT } from "../cel.ts";
import type { Check, Failure, Variant } from "../check.ts";
import { type CheckedPod, elements, isSet, shown } from "../checked-pod.ts";
import { causesAt, removeElements } from "../containers.ts";

/** By the minor version of the policy that first allows them. */
const SAFE: readonly (readonly [since: number, names: readonly string[]])[] = [
  [
    0,
    [
      "kernel.shm_rmid_forced",
      "net.ipv4.ip_local_port_range",
      "net.ipv4.tcp_syncookies",
      "net.ipv4.ping_group_range",
      "net.ipv4.ip_unprivileged_port_start",
    ],
  ],
  [27, ["net.ipv4.ip_local_reserved_ports"]],
  [
    29,
    [
      "net.ipv4.tcp_keepalive_time",
      "net.ipv4.tcp_fin_timeout",
      "net.ipv4.tcp_keepalive_intvl",
      "net.ipv4.tcp_keepalive_probes",
    ],
  ],
  [32, ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]],
  [37, ["net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"]],
];

/**
 * Only sysctls that are namespaced and safe may be set.
 *
 * Fields:  spec.securityContext.sysctls[*].name
 * Allowed: the names above whose version is not newer than that of the policy
 * Fix:     removes the others.
 */
export const sysctls: Check = {
  id: "sysctls",
  level: "baseline",
  os: "linux",
  fix: (causes) => removeElements(causes.map(({ path, message }) => ({ path: path.slice(0, -1), message }))),
  variants: SAFE.map(([since]) => variant(since)),
};

function variant(since: number): Variant {
  const allowed = SAFE.filter(([first]) => first <= since).flatMap(([, names]) => names);
  const later = SAFE.filter(([first]) => first > since).flatMap(([, names]) => names);
  const safe: ReadonlySet<unknown> = new Set(allowed);
  const set = (name: string) => ({ name, value: "1" });
  return {
    since,
    fields: [
      {
        scope: "pod",
        path: ["securityContext", "sysctls"],
        allowed: [null, [], allowed.map(set)],
        forbidden: [
          ...[...later, "kernel.msgmax"].map((name) => [set(name)]),
          [set("kernel.msgmax"), set("kernel.shm_rmid_forced"), set("fs.mqueue.msg_max")],
        ],
      },
    ],
    cel: { pod: `${POD_CONTEXT}.?sysctls.orValue([]).all(s, s.name in ${celValue(allowed)})` },
    evaluate: (pod, mostCauses) => evaluateSysctls(pod, safe, mostCauses),
  };
}

function evaluateSysctls(
  { context }: CheckedPod,
  safe: ReadonlySet<unknown>,
  mostCauses: number,
): Failure | undefined {
  const list = context["sysctls"];
  if (!isSet(list)) return undefined;
  const all = elements(list);
  const found: number[] = [];
  for (let i = 0; i < all.length; i++) if (!safe.has(all[i]?.["name"])) found.push(i);
  if (found.length === 0) return undefined;
  return {
    reason: "forbidden sysctls",
    detail: found
      .slice(0, MOST_LISTED)
      .map((i) => shown(all[i]?.["name"]))
      .join(", "),
    causes: causesAt(
      found.slice(0, mostCauses).map((i) => ["spec", "securityContext", "sysctls", i, "name"]),
      "must be a sysctl that the policy allows",
    ),
  };
}
