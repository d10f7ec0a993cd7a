import type { Draft } from "../../core/draft.ts";
import type { Finding, PolicyRef } from "../../core/finding.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { provenanceOf } from "../../core/origin.ts";
import { type Path, pointer, steps } from "../../core/path.ts";

/**
 * On UPDATE nothing new is injected, or a re-apply of an unchanged manifest would roll a fleet the day a policy appears. But such a
 * re-apply also strips what was injected before, and that comes back: what the stored object's provenance names and its
 * spec still carries, unless the new object sets that key itself. The provenance of the new object is never believed.
 */
export function restoreNodeSelector(draft: Draft, old: JsonObject, spec: Path): Finding[] {
  const prefix = `${pointer([...spec, "nodeSelector"])}/`;
  const findings: Finding[] = [];
  for (const { module, policy, uid, generation, set } of provenanceOf(old)) {
    if (module !== "placement") continue;
    const ref = {
      ...refFrom(policy),
      ...(uid === undefined ? {} : { uid }),
      ...(generation === undefined ? {} : { generation }),
    };
    for (const place of set) {
      if (!place.startsWith(prefix)) continue;
      const path = steps(place);
      const value = at(old, ...path);
      const present = draft.get(...path);
      if (typeof value !== "string" || (present !== undefined && present !== null)) continue;
      const key = path.at(-1) ?? "";
      const finding: Finding = {
        policy: ref,
        rule: "restore",
        outcome: "applied",
        path,
        message: `nodeSelector ${key}=${value} put back`,
      };
      if (!draft.set(path, value, finding)) findings.push({ ...finding, outcome: "failed", warn: 80 });
    }
  }
  return findings;
}

/** `PodSchedulingPolicy/shop/etcd` or `ClusterPodSchedulingPolicy/etcd`, as provenance writes it. */
function refFrom(text: string): PolicyRef {
  const [kind = "", first = "", second] = text.split("/");
  return second === undefined ? { kind, name: first } : { kind, namespace: first, name: second };
}
