import type { Kind } from "../../src/core/policy/kind.ts";

/** A cluster-scoped kind with no fields used; `change` overrides fields. */
export function kindOf(group: string, kind: string, change: Partial<Kind> = {}): Kind {
  const singular = kind.toLowerCase();
  return {
    group,
    kind,
    plural: `${singular}s`,
    singular,
    scope: "Cluster",
    standing: "resource",
    summary: "made for a test",
    versions: [],
    prepare: () => ({ policy: undefined, problems: [] }),
    ...change,
  };
}
