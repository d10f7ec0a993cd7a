import { joinQuote, plural } from "../../go-text.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet } from "../checked-pod.ts";
import { causesAt, namesOf } from "../containers.ts";

/**
 * hostPath volumes are forbidden.
 *
 * Fields:  spec.volumes[*].hostPath
 * Allowed: absent
 * Fix:     none: only the author knows which volume serves instead.
 */
export const hostPathVolumes: Check = {
  id: "hostPathVolumes",
  level: "baseline",
  os: "any",
  variants: [
    {
      since: 0,
      fields: [
        {
          scope: "volume",
          path: [],
          allowed: [{ emptyDir: {} }, { nfs: { server: "s", path: "/" } }],
          forbidden: [{ hostPath: { path: "/" } }],
        },
      ],
      cel: { pod: "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))" },
      evaluate: evaluateHostPathVolumes,
    },
  ],
};

function evaluateHostPathVolumes({ volumes }: CheckedPod, mostCauses: number): Failure | undefined {
  let found: number[] | undefined;
  for (let i = 0; i < volumes.length; i++) {
    if (!isSet(volumes[i]?.["hostPath"])) continue;
    if (found === undefined) found = [i];
    else found.push(i);
  }
  if (found === undefined) return undefined;
  return {
    reason: "hostPath volumes",
    detail: `${plural("volume", "volumes", found.length)} ${joinQuote(namesOf(volumes, found))}`,
    causes: causesAt(
      found.slice(0, mostCauses).map((i) => ["spec", "volumes", i, "hostPath"]),
      "must be absent",
    ),
  };
}
