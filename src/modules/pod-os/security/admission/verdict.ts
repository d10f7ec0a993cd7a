import type { Count } from "../../../../core/decision/decision.ts";
import type { Finding, ObjectReference } from "../../../../core/decision/finding.ts";
import type { JsonObject } from "../../../../core/json.ts";
import type { Context, TraceEntry } from "../../../../core/module/module.ts";
import type { Path } from "../../../../core/path.ts";
import { isValidOS } from "../../os/validate.ts";
import type { PodOSSettings } from "../../settings.ts";
import type { CheckFailure } from "../check.ts";
import { checkedPod } from "../checked-pod.ts";
import { detailOf, evaluateChecks } from "../evaluate.ts";
import { type Exceptions, whyNotInForce } from "../exceptions/exceptions.ts";
import type { LevelVersion, PodSecurityPolicy } from "../policy.ts";
import { windowsFailures } from "../windows-user.ts";
import { evaluationCount } from "./counts.ts";
import { policyText } from "./namespace-policy.ts";
import { waive } from "./waivers.ts";

/** The name of all findings about Pod Security. */
export const RULE = "pod-security";

/** A refusal names as many paths as a client shows. */
const MOST_CAUSES = 64;

/** The evaluated pod, or the pod of a template. */
export interface PodSubject {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
  /** Its path in the object. */
  readonly path: Path;
}

/** The result of Pod Security in the requested modes. */
export interface PodSecurityVerdict {
  /** `violates PodSecurity "restricted:latest": …`; absent if the pod is allowed. */
  readonly refused: string | undefined;
  readonly findings: readonly Finding[];
  readonly counts: readonly Count[];
}

/** Evaluates a pod in the modes of its namespace. Pairs of level and version that are equal are evaluated once. */
export function evaluateModes(
  context: Pick<Context, "request" | "view" | "now" | "trace">,
  exceptions: Exceptions,
  settings: PodOSSettings["podSecurity"],
  policy: Partial<PodSecurityPolicy>,
  subject: PodSubject,
): PodSecurityVerdict {
  const { request, view, now } = context;
  const findings: Finding[] = [];
  const counts: Count[] = [];
  const evaluated = new Map<string, readonly CheckFailure[]>();
  const evaluate = (of: LevelVersion): readonly CheckFailure[] => {
    const known = evaluated.get(policyText(of));
    const found = known ?? violationsOf(context, settings, of, subject);
    evaluated.set(policyText(of), found);
    return found;
  };
  const inForce = exceptions.for(request.namespace, subject.metadata, subject.spec, now);
  const level = (
    mode: keyof PodSecurityPolicy,
    of: LevelVersion,
    violations: readonly CheckFailure[],
  ): void =>
    context.trace?.({
      policy: { kind: "PodSecurityLevel", name: `${mode}=${policyText(of)}` },
      applies: mode === "enforce" && violations.length > 0 ? "refuses" : "applies",
      why: violations.length === 0 ? "nothing is violated" : `violated: ${detailOf(violations)}`,
    });
  const waived = new Map<string, { readonly name: string; readonly finding: Finding }>();
  const remaining = (of: LevelVersion): readonly CheckFailure[] => {
    const { violations, used } = waive(evaluate(of), subject.spec, inForce, (spec, check) =>
      violationsOf(context, settings, of, { ...subject, spec }, check),
    );
    for (const { exception, checks } of used) {
      const value = `${exception.ref.name}: ${checks.join(", ")}`;
      waived.set(value, { name: exception.ref.name, finding: authorized(exception.ref, value) });
    }
    return violations;
  };
  const count = (decision: "allow" | "deny", mode: keyof PodSecurityPolicy, of: LevelVersion): unknown =>
    counts.push(evaluationCount(request, decision, mode, of, view.serverVersion));
  let refused: string | undefined;
  if (policy.enforce !== undefined) {
    const violations = remaining(policy.enforce);
    count(violations.length === 0 ? "allow" : "deny", "enforce", policy.enforce);
    level("enforce", policy.enforce, violations);
    if (violations.length > 0) {
      refused = `violates PodSecurity "${policyText(policy.enforce)}": ${detailOf(violations)}`;
      findings.push(...causesOf(violations, subject.path));
    }
  }
  if (policy.audit !== undefined) {
    // Exceptions do not affect audit: waived violations are still in the audit log.
    const violations = evaluate(policy.audit);
    level("audit", policy.audit, violations);
    if (violations.length > 0) {
      count("deny", "audit", policy.audit);
      findings.push(informing(policy.audit, violations, "audit"));
    }
  }
  if (policy.warn !== undefined && refused === undefined) {
    const violations = remaining(policy.warn);
    level("warn", policy.warn, violations);
    if (violations.length > 0) {
      count("deny", "warn", policy.warn);
      findings.push(informing(policy.warn, violations, "warn"));
    }
  }
  if (context.trace !== undefined) {
    const used = new Set([...waived.values()].map(({ name }) => name));
    for (const entry of exceptionTrace(exceptions, used, context, subject)) context.trace(entry);
  }
  return { refused, findings: [...findings, ...[...waived.values()].map(({ finding }) => finding)], counts };
}

/** Every exception that names the namespace, and why it waives something or does not. */
function exceptionTrace(
  exceptions: Exceptions,
  used: ReadonlySet<string>,
  { request, now }: Pick<Context, "request" | "now">,
  { metadata, spec }: PodSubject,
): TraceEntry[] {
  return exceptions.of(request.namespace).map((exception) => {
    const why = whyNotInForce(exception, metadata, spec, now);
    const waives = used.has(exception.ref.name);
    return {
      policy: exception.ref,
      applies: waives ? "applies" : "not",
      why: why ?? (waives ? "it waives a check that is violated" : "no check that it waives is violated"),
    };
  });
}

/** The violations of a pod: of all checks, or of one. */
export function violationsOf(
  { view }: Pick<Context, "view">,
  { windowsChecks }: PodOSSettings["podSecurity"],
  policy: LevelVersion,
  { metadata, spec }: Pick<PodSubject, "metadata" | "spec">,
  check?: string,
): readonly CheckFailure[] {
  const version = view.serverVersion?.effective;
  const pod = checkedPod(metadata, spec);
  const { failures } = evaluateChecks(policy, pod, {
    ...(version?.major === 1 ? { newest: version.minor } : {}),
    ...(check === undefined ? {} : { check }),
    mostCauses: MOST_CAUSES,
  });
  const windows = windowsChecks && policy.level === "restricted" && isValidOS(spec);
  return windows ? [...failures, ...windowsFailures(pod, MOST_CAUSES)] : failures;
}

function informing(
  policy: LevelVersion,
  violations: readonly CheckFailure[],
  mode: "audit" | "warn",
): Finding {
  const message = `would violate PodSecurity "${policyText(policy)}": ${detailOf(violations)}`;
  return {
    rule: RULE,
    outcome: "would-violate",
    message,
    verbatim: true,
    ...(mode === "warn"
      ? { warn: 80 }
      : { audit: { key: "audit-violations", value: message, unprefixed: true } }),
  };
}

function authorized(policy: Finding["policy"], value: string): Finding {
  return {
    ...(policy === undefined ? {} : { policy }),
    rule: RULE,
    outcome: "authorized",
    message: `waived by PodSecurityException ${value}`,
    audit: { key: "exception", value, unprefixed: true },
  };
}

function causesOf(violations: readonly CheckFailure[], template: Path): Finding[] {
  return violations
    .flatMap(({ check, reason, causes }): Finding[] =>
      causes.length === 0
        ? [{ rule: check, outcome: "violated", message: reason, verbatim: true }]
        : causes.map(({ path, message }) => ({
            rule: check,
            outcome: "violated",
            path: [...template, ...path],
            message,
            verbatim: true,
          })),
    )
    .slice(0, MOST_CAUSES);
}

/** Attaches the event of a refusal to its first finding: on the controlling owner, because users do not look at a refused pod. */
export function withEvent(
  findings: readonly Finding[],
  reason: string,
  message: string,
  regarding: ObjectReference,
): Finding[] {
  const [first, ...rest] = findings;
  if (first === undefined) return [];
  return [{ ...first, event: { type: "Warning", reason, regarding, message } }, ...rest];
}
