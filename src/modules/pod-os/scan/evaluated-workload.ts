import { type JsonObject, own, stringAt } from "../../../core/json.ts";
import { defaulted } from "../../../core/kubernetes/defaults/defaults.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import {
  type PodTemplate,
  podTemplateOf,
  type WorkloadKind,
  type WorkloadTable,
} from "../../../core/kubernetes/workloads.ts";
import type { View } from "../../../core/view/view.ts";
import { resolvePodOS } from "../os/resolve.ts";
import { runtimeClassOf } from "../os/runtime-class.ts";
import type { Violation } from "../security/check.ts";
import { evaluatePodSecurity } from "../security/evaluate.ts";
import type { LevelVersion } from "../security/policy.ts";
import { type Identity, knownOwner } from "./owners.ts";

/** A violation under one of two policies that are compared. */
export interface ScanViolation extends Violation {
  /** The policy that forbids it; present if two are compared. */
  readonly under?: string;
}

/** One object as it was read, with its violations. */
export interface EvaluatedObject {
  readonly identity: Identity;
  readonly owner: Identity | undefined;
  readonly isPod: boolean;
  /** By its spec; absent if it names none. */
  readonly replicas: number | undefined;
  readonly os: string | null;
  readonly violations: readonly ScanViolation[];
}

export interface ScanPolicies {
  readonly policy: LevelVersion;
  readonly against: LevelVersion | undefined;
  /** The minor version that `latest` means. */
  readonly newest: number | undefined;
}

/** Evaluates a workload by its template; `undefined` if it has none. */
export function evaluateObject(
  object: JsonObject,
  workload: WorkloadKind,
  {
    policies,
    view,
    table,
    namespace = namespaceOf(object),
  }: {
    readonly policies: ScanPolicies;
    readonly view: View;
    readonly table: WorkloadTable;
    readonly namespace?: string;
  },
): EvaluatedObject | undefined {
  const template = podTemplateOf(object, workload);
  if (template === undefined) return undefined;
  const { group, kind } = workload;
  return {
    identity: { group, kind, namespace, name: shownName(object) },
    owner: knownOwner(object, namespace, table),
    isPod: workload.template.length === 0,
    replicas: replicasOf(object, kind),
    os: resolvePodOS(template, runtimeClassOf(view, template.spec)).os ?? null,
    violations: violationsOf(template, podTemplateOf(defaulted(object, workload), workload), policies),
  };
}

/**
 * For the pod with the API server's defaults, with the fixes for the manifest. With two policies, only what exactly one
 * forbids.
 */
function violationsOf(
  written: PodTemplate,
  filled: PodTemplate | undefined,
  { policy, against, newest }: ScanPolicies,
): ScanViolation[] {
  const options = newest === undefined ? {} : { newest };
  const violationsBy = (by: LevelVersion): readonly Violation[] => {
    const fixes = new Map(
      evaluatePodSecurity(by, written.metadata, written.spec, { ...options, fixes: true }).violations.map(
        (one) => [violationKey(one), one],
      ),
    );
    const { violations } = evaluatePodSecurity(by, filled?.metadata, filled?.spec, options);
    return violations.map((one) => fixes.get(violationKey(one)) ?? one);
  };
  const violations = violationsBy(policy);
  if (against === undefined) return [...violations];
  const others = violationsBy(against);
  return [...only(violations, others, policy), ...only(others, violations, against)];
}

function only(some: readonly Violation[], others: readonly Violation[], by: LevelVersion): ScanViolation[] {
  const known = new Set(others.map(violationKey));
  return some
    .filter((one) => !known.has(violationKey(one)))
    .map((one) => ({ ...one, under: policyText(by) }));
}

export function violationKey({ check, detail, under = "" }: ScanViolation): string {
  return JSON.stringify([check, detail, under]);
}

export function policyText({ level, version }: LevelVersion): string {
  return `${level}:${version}`;
}

/** Kinds with a default of one replica in the API server. */
const DEFAULT_ONE: ReadonlySet<string> = new Set([
  "Deployment",
  "ReplicaSet",
  "StatefulSet",
  "ReplicationController",
]);

function replicasOf(object: JsonObject, kind: string): number | undefined {
  const replicas = own(object["spec"], "replicas");
  if (typeof replicas === "number") return replicas;
  if (DEFAULT_ONE.has(kind)) return 1;
  const desired = own(object["status"], "desiredNumberScheduled");
  return kind === "DaemonSet" && typeof desired === "number" ? desired : undefined;
}

/** Of an object whose name the API server generates, its beginning: `run-*`. */
export function shownName(object: JsonObject): string {
  const generated = stringAt(object, "metadata", "generateName") ?? "";
  return nameOf(object) === "" && generated !== "" ? `${generated}*` : nameOf(object);
}
