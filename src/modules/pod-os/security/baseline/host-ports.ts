import { plural, sortedSet } from "../../go-text.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, containerPath, elements, isSet, shown } from "../checked-pod.ts";
import { causesAt, containerNames, removeFields } from "../containers.ts";

/**
 * Host ports are forbidden.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].ports[*].hostPort
 * Allowed: absent, 0
 * Fix:     removes the field.
 *
 * The API server sets hostPort of a pod with hostNetwork to containerPort before this check; templates keep it absent.
 */
export const hostPorts: Check = {
  id: "hostPorts",
  level: "baseline",
  os: "any",
  fix: removeFields,
  variants: [
    {
      since: 0,
      fields: [
        {
          scope: "container",
          path: ["ports"],
          allowed: [null, [], [{ containerPort: 80 }], [{ containerPort: 80, hostPort: 0 }]],
          forbidden: [
            [{ containerPort: 80, hostPort: 80 }],
            [
              { containerPort: 9, hostPort: 9 },
              { containerPort: 80, hostPort: 80 },
            ],
          ],
        },
      ],
      cel: { container: "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0)" },
      evaluate: evaluateHostPorts,
    },
  ],
};

function evaluateHostPorts(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const { containers } = pod;
  let found: [container: number, port: number][] | undefined;
  const indexes: number[] = [];
  const numbers: string[] = [];
  for (let i = 0; i < containers.length; i++) {
    const list = containers[i]?.["ports"];
    if (!isSet(list)) continue;
    const ports = elements(list);
    for (let j = 0; j < ports.length; j++) {
      const port = ports[j]?.["hostPort"];
      if (!isSet(port) || port === 0) continue;
      found ??= [];
      found.push([i, j]);
      numbers.push(shown(port));
      if (indexes.at(-1) !== i) indexes.push(i);
    }
  }
  if (found === undefined) return undefined;
  const ports = sortedSet(numbers);
  return {
    reason: "hostPort",
    detail: `${containerNames(pod, indexes)} ${plural("uses", "use", indexes.length)} ${plural("hostPort", "hostPorts", ports.length)} ${ports.join(", ")}`,
    causes: causesAt(
      found.slice(0, mostCauses).map(([i, j]) => containerPath(pod, i, "ports", j, "hostPort")),
      "must be 0 or absent",
    ),
  };
}
