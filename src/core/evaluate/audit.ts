import type { AuditAnnotation, ModuleFinding } from "../decision/finding.ts";
import { policyKey } from "../policy/policy-ref.ts";

/** Audit annotations are stored with every event of the audit log; longer values are cut. */
export const AUDIT_VALUE_LENGTH = 1_024;

/** For verbatim values: half of the 102,400 bytes beyond which the API server's own audit backend truncates an event. */
export const AUDIT_VERBATIM_LENGTH = 51_200;

/** Which policies refused a request, at which generation and by which rule: the message names only the policy, and policies change. */
export const REFUSED_BY = "refused-by";

/** `ClusterPodSchedulingPolicy/etcd-pool@7 nodeSelector USHER-P30` */
function refusedBy({ event, rule, code, ...finding }: ModuleFinding): string | undefined {
  // A part of a policy may count as one; the event names the object that it is part of.
  const policy = event?.related === "none" ? undefined : (event?.related ?? finding.policy);
  if (policy === undefined || policy.gone === true) return undefined;
  const { generation } = policy;
  const words = [policyKey(policy) + (generation === undefined ? "" : `@${generation}`), rule, code];
  return words.filter((word) => word !== undefined).join(" ");
}

/** A policy that refused a request, as an audit log recorded it. */
export interface RefusingPolicy {
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly generation?: number;
  readonly rule: string;
}

/** Parses the output of `auditOf`, from the annotations of an audit event. */
export function refusingPolicies(annotations: Readonly<Record<string, unknown>>): RefusingPolicy[] {
  return Object.entries(annotations).flatMap(([key, value]) =>
    key.endsWith(`.${REFUSED_BY}`) && typeof value === "string"
      ? value.split("; ").flatMap((text): RefusingPolicy[] => {
          const [, policy = "", generation, rule = ""] = /^([^\s@]+)(?:@(\d+))? (\S+)/.exec(text) ?? [];
          if (policy === "") return [];
          return [{ policy, ...(generation === undefined ? {} : { generation: Number(generation) }), rule }];
        })
      : [],
  );
}

/**
 * The audit annotations of a response. A key can't be written twice, so values for one key are joined; the API server
 * prefixes it with the webhook's name and a slash.
 */
export function auditOf(findings: readonly ModuleFinding[], isDenied = false): Record<string, string> {
  const annotations: Record<string, string> = {};
  // Most requests have none.
  if (!isDenied && !findings.some(({ audit }) => audit !== undefined)) return annotations;
  const values = new Map<string, { readonly texts: Set<string>; limit: number }>();
  for (const finding of findings) {
    const { module, audit, verbatim, outcome } = finding;
    const refusal = isDenied && outcome === "violated" ? refusedBy(finding) : undefined;
    const entries: readonly AuditAnnotation[] = [
      ...(audit === undefined ? [] : [audit].flat()),
      ...(refusal === undefined ? [] : [{ key: REFUSED_BY, value: refusal }]),
    ];
    for (const { key: name, value, unprefixed } of entries) {
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
