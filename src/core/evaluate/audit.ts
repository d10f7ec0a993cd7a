import type { ModuleFinding } from "./finding.ts";

/** Audit annotations are stored with every event of the audit log; longer values are cut. */
export const AUDIT_VALUE_LENGTH = 1_024;

/** Of verbatim values: half of the 102,400 bytes beyond which the API server's own audit backend truncates an event. */
export const AUDIT_VERBATIM_LENGTH = 51_200;

/**
 * The audit annotations of a response. A key can't be written twice, so values for one key are joined; the API server puts the
 * webhook's name and a slash before it.
 */
export function auditOf(findings: readonly ModuleFinding[]): Record<string, string> {
  const annotations: Record<string, string> = {};
  // Nearly every request has none.
  if (!findings.some(({ audit }) => audit !== undefined)) return annotations;
  const values = new Map<string, { readonly texts: Set<string>; limit: number }>();
  for (const { module, audit, verbatim } of findings) {
    for (const { key: name, value, unprefixed } of audit === undefined ? [] : [audit].flat()) {
      const key = unprefixed ? name : `${module}.${name}`;
      const entry = values.get(key) ?? { texts: new Set(), limit: AUDIT_VALUE_LENGTH };
      entry.texts.add(value);
      if (verbatim) entry.limit = AUDIT_VERBATIM_LENGTH;
      values.set(key, entry);
    }
  }
  for (const [key, { texts, limit }] of values) {
    annotations[key] = [...texts].join("; ").slice(0, limit).toWellFormed();
  }
  return annotations;
}
