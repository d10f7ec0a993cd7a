import type { ModuleFinding } from "./finding.ts";

/** Audit annotations are stored with every event of the audit log; longer values are cut. */
export const AUDIT_VALUE_LENGTH = 1_024;

/**
 * The audit annotations of an answer. A key can't be written twice, so values for one key are joined; the API server puts
 * the webhook's name and a slash before it.
 */
export function auditOf(findings: readonly ModuleFinding[]): Record<string, string> {
  const annotations: Record<string, string> = {};
  // Nearly every request: nothing to note.
  if (!findings.some(({ audit }) => audit !== undefined)) return annotations;
  const values = new Map<string, Set<string>>();
  for (const { module, audit } of findings) {
    if (audit === undefined) continue;
    const key = `${module}.${audit.key}`;
    const list = values.get(key) ?? new Set();
    values.set(key, list.add(audit.value));
  }
  for (const [key, list] of values) {
    annotations[key] = [...list].join("; ").slice(0, AUDIT_VALUE_LENGTH).toWellFormed();
  }
  return annotations;
}
