import type { Kind } from "../../src/core/policy/kind.ts";

/** A kind of the whole cluster of which nothing is used; `change` says what is different. */
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
