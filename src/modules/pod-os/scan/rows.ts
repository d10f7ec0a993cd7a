import { compareText } from "../../../core/order.ts";
import { type EvaluatedObject, type ScanViolation, violationKey } from "./evaluated-workload.ts";
import { type Identity, identityKey, topmostOwner } from "./owners.ts";

/** One workload with its violations, in the form of the JSON output. */
export interface WorkloadRow {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
  readonly os: string | null;
  readonly violations: readonly ScanViolation[];
}

interface Group {
  readonly top: Identity;
  readonly pods: EvaluatedObject[];
}

/**
 * Objects by their topmost known owner. A workload is evaluated by its own template and by its pods, which other
 * webhooks may have changed; not by objects in between, where old revisions are kept.
 */
export function workloadRows(objects: readonly EvaluatedObject[]): WorkloadRow[] {
  const known = new Map(objects.map((one) => [identityKey(one.identity), one]));
  const groups = new Map<string, Group>();
  for (const one of objects) {
    const top = topmostOwner(one.identity, (of) =>
      identityKey(of) === identityKey(one.identity) ? one.owner : known.get(identityKey(of))?.owner,
    );
    const key = identityKey(top);
    const group = groups.get(key) ?? { top, pods: [] };
    groups.set(key, group);
    if (one.isPod) group.pods.push(one);
  }
  return [...groups].map(([key, group]) => rowOf(group, known.get(key))).sort(byName);
}

function rowOf({ top, pods }: Group, own: EvaluatedObject | undefined): WorkloadRow {
  const { kind, namespace, name } = top;
  const judged = own === undefined || own.isPod ? pods : [own, ...pods];
  const violations = new Map<string, ScanViolation>();
  for (const one of judged)
    for (const violation of one.violations) {
      const key = violationKey(violation);
      if (!violations.has(key)) violations.set(key, violation);
    }
  return {
    kind,
    namespace,
    name,
    replicas: own?.replicas ?? pods.length,
    os: judged.find(({ os }) => os !== null)?.os ?? null,
    violations: [...violations.values()],
  };
}

function byName(a: WorkloadRow, b: WorkloadRow): number {
  return compareText(a.namespace, b.namespace) || compareText(a.kind, b.kind) || compareText(a.name, b.name);
}
