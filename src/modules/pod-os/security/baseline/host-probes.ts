import type { JsonObject } from "../../../../core/json.ts";
import type { Path } from "../../../../core/path.ts";
import { joinQuote, plural, sortedSet } from "../../go-text.ts";
import type { Check, Failure } from "../check.ts";
import { placesAt } from "../containers.ts";
import { containerPath, isSet, type JudgedPod, nameOf, objectOf, shown } from "../judged-pod.ts";

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
      evaluate: forbidden,
    },
  ],
};

/** Looks before it collects: hardly any container has a host here. */
function forbidden(pod: JudgedPod): Failure | undefined {
  const { containers } = pod;
  let found: [container: number, below: Path][] | undefined;
  const names: string[] = [];
  const hosts: string[] = [];
  const collect = (container: number, at: JsonObject, field: string, ...before: string[]): void => {
    const handler = objectOf(at[field]);
    for (const action of ACTIONS) {
      const host = objectOf(handler[action])["host"];
      if (!isSet(host) || host === "") continue;
      found ??= [];
      found.push([container, [...before, field, action, "host"]]);
      names.push(nameOf(containers[container]));
      hosts.push(shown(host));
    }
  };
  for (let i = 0; i < containers.length; i++) {
    const container = containers[i];
    if (container === undefined) continue;
    for (const probe of PROBES) if (isSet(container[probe])) collect(i, container, probe);
    const lifecycle = container["lifecycle"];
    if (isSet(lifecycle))
      for (const handler of HANDLERS) collect(i, objectOf(lifecycle), handler, "lifecycle");
  }
  if (found === undefined) return undefined;
  const by = sortedSet(names);
  const forbiddenHosts = sortedSet(hosts);
  const places: readonly [number, Path][] = found;
  return {
    reason: "probe or lifecycle host",
    detail: `${plural("container", "containers", by.length)} ${joinQuote(by)} ${plural("uses", "use", by.length)} ${plural("probe or lifecycle host", "probe or lifecycle hosts", forbiddenHosts.length)} ${joinQuote(forbiddenHosts)}`,
    places: (most) =>
      placesAt(
        places.slice(0, most).map(([i, below]) => containerPath(pod, i, ...below)),
        "must be empty or absent",
      ),
  };
}
