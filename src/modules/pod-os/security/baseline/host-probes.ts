import type { Json } from "../../../../core/json.ts";
import type { Path } from "../../../../core/path.ts";
import { joinQuote, plural, sortedSet } from "../../go-text.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, containerPath, isSet, nameOf, objectOf, shown } from "../checked-pod.ts";
import { causesAt, removeFields } from "../containers.ts";

const PROBES = ["livenessProbe", "readinessProbe", "startupProbe"] as const;
const HANDLERS = ["postStart", "preStop"] as const;
const ACTIONS = ["httpGet", "tcpSocket"] as const;
const HTTP = { httpGet: { path: "/", port: 80 } };
const HTTP_HOST = { httpGet: { path: "/", port: 80, host: "127.0.0.1" } };
const TCP_HOST = { tcpSocket: { port: 80, host: "h" } };

/**
 * Probes and lifecycle handlers may not name a host: the kubelet would call it.
 *
 * Fields:  {livenessProbe,readinessProbe,startupProbe}.{httpGet,tcpSocket}.host and
 *          lifecycle.{postStart,preStop}.{httpGet,tcpSocket}.host of
 *          spec.{containers,initContainers,ephemeralContainers}[*]
 * Allowed: absent, empty
 * Fix:     removes the host.
 */
export const hostProbesAndHostLifecycle: Check = {
  id: "hostProbesAndHostLifecycle",
  level: "baseline",
  os: "any",
  fix: removeFields,
  variants: [
    {
      since: 34,
      fields: [
        ...PROBES.map((probe) => ({
          scope: "container" as const,
          path: [probe],
          allowed: [null, HTTP, { exec: { command: ["true"] } }],
          forbidden: [HTTP_HOST, TCP_HOST],
        })),
        ...HANDLERS.map((handler) => ({
          scope: "container" as const,
          path: ["lifecycle", handler],
          allowed: [null, HTTP],
          forbidden: [HTTP_HOST, TCP_HOST],
        })),
      ],
      cel: {
        container: [...PROBES, ...HANDLERS.map((handler) => `lifecycle.?${handler}`)]
          .flatMap((field) => ACTIONS.map((action) => `c.?${field}.?${action}.?host.orValue("") == ""`))
          .join(" && "),
      },
      evaluate: evaluateProbeHosts,
    },
  ],
};

type Seen = (container: number, host: Json, action: Path) => void;

const IN_PROBES = PROBES.map((probe) => ({ probe, paths: ACTIONS.map((action) => [probe, action, "host"]) }));
const IN_HANDLERS = HANDLERS.map((handler) => ({
  handler,
  paths: ACTIONS.map((action) => ["lifecycle", handler, action, "host"]),
}));

/** Every host that is named, with its place below the container. */
function eachHost({ containers }: CheckedPod, seen: Seen): void {
  const look = (container: number, value: Json | undefined, paths: readonly Path[]): void => {
    const handler = objectOf(value);
    for (let i = 0; i < ACTIONS.length; i++) {
      const host = objectOf(handler[ACTIONS[i] ?? ""])["host"];
      if (isSet(host) && host !== "") seen(container, host, paths[i] ?? []);
    }
  };
  for (let i = 0; i < containers.length; i++) {
    const container = containers[i];
    if (container === undefined) continue;
    for (const { probe, paths } of IN_PROBES) if (isSet(container[probe])) look(i, container[probe], paths);
    const lifecycle = container["lifecycle"];
    if (isSet(lifecycle))
      for (const { handler, paths } of IN_HANDLERS) look(i, objectOf(lifecycle)[handler], paths);
  }
}

function evaluateProbeHosts(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const names: string[] = [];
  const hosts: string[] = [];
  const paths: Path[] = [];
  eachHost(pod, (container, host, below) => {
    names.push(nameOf(pod.containers[container]));
    hosts.push(shown(host));
    if (paths.length < mostCauses) paths.push(containerPath(pod, container, ...below));
  });
  if (hosts.length === 0) return undefined;
  const by = sortedSet(names);
  const forbiddenHosts = sortedSet(hosts);
  return {
    reason: "probe or lifecycle host",
    detail: `${plural("container", "containers", by.length)} ${joinQuote(by)} ${plural("uses", "use", by.length)} ${plural("probe or lifecycle host", "probe or lifecycle hosts", forbiddenHosts.length)} ${joinQuote(forbiddenHosts)}`,
    causes: causesAt(paths, "must be empty or absent"),
  };
}
