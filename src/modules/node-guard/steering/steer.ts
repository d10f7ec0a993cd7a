import { allow, type Result } from "../../../core/decision/decision.ts";
import type { Draft } from "../../../core/decision/draft.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { describeRequest } from "../../../core/decision/request.ts";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { isBeingDeleted, isMirrorPod, nameOf } from "../../../core/kubernetes/object.ts";
import { isBoundSpec, isGatedSpec } from "../../../core/kubernetes/pod-state.ts";
import { HARD_EFFECTS, taintsOf } from "../../../core/kubernetes/taints.ts";
import { tolerationMeaning } from "../../../core/kubernetes/tolerations.ts";
import { podTemplateOf, specPath, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { isReapply } from "../../../core/provenance/reapply.ts";
import { takeBack } from "../../../core/provenance/take-back.ts";
import type { View } from "../../../core/view/view.ts";
import { CLAIMS } from "../claims/claim.ts";
import {
  accountOf,
  blockingGroups,
  describePod,
  evaluateClaim,
  type GuardedPod,
} from "../claims/evaluate-claim.ts";
import { excludeNodes, excludeSelector } from "../claims/exclude.ts";
import { PodNodes, REQUIRED, REQUIRED_TERMS, seenBefore, termsOf } from "../claims/pod-nodes.ts";
import { reachableGroups } from "../claims/reachable.ts";
import { decide, groupRef } from "../claims/report.ts";
import { isDaemonPod, selectionClaims } from "../claims/selection.ts";
import { type Group, steers } from "../groups/group.ts";
import { nodesOf } from "../groups/group-nodes.ts";
import { MODULE } from "../settings.ts";

/**
 * Keeps unauthorised pods that need not run on protected nodes off them: a scheduler that only learns of it at bind
 * retries forever, and preempts others for nothing. Narrows only; idempotent. Pods are steered at creation and while
 * they are gated; pods that are too late or too large to steer are refused by the validating phase. DaemonSets are
 * steered by their template, because each of their pods is for one node. An update is steered only off nodes that it
 * makes possible: a changed template makes the DaemonSet controller delete pods.
 */
export function steer(context: Context, all: readonly Group[]): Result {
  const { request, draft, installation, facts, view } = context;
  const steering = all.filter(steers);
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (steering.length === 0 || workload === undefined || request.subResource !== "") return allow();
  if (workload.kind === "DaemonSet" && isReapply(draft)) takeBack(draft, MODULE);
  const { spec } = podTemplateOf(draft.object, workload) ?? {};
  const stored = request.operation === "UPDATE" ? podTemplateOf(draft.old, workload)?.spec : undefined;
  if (spec === undefined || isBoundSpec(spec) || isBeingDeleted(draft.object)) return allow();
  const isTemplate = workload.template.length > 0;
  if (isTemplate ? workload.kind !== "DaemonSet" : !isOpen(context, stored)) return allow();
  const subject: GuardedPod = {
    request,
    name: isTemplate ? `a pod of ${describeRequest(request)}` : describePod(request),
    namespace: request.namespace,
    account: accountOf(spec),
  };
  const blocking = blockingGroups(steering, CLAIMS.reachable, subject, facts);
  if ("need" in blocking) return blocking;
  if (blocking.groups.length === 0) return allow();
  const pod = new PodNodes(spec);
  const before = seenBefore(stored);
  const reachable = reachableGroups(pod, blocking.groups, view, before);
  const confirmed = confirmations(context, workload, pod, blocking.groups);
  if (reachable.length === 0) return allow(confirmed);
  const found = selectionClaims(pod, reachable, { view, facts });
  // The validating phase reads nodes that are unknown here.
  const claims = "need" in found ? [] : found.claims;
  // The validating phase refuses pods that can run nowhere else.
  if (claims.some(({ claim, group }) => claim.refused && group.earlyRefusal === "Deny")) return allow();
  const findings = [
    ...confirmed,
    ...reachable.flatMap((group) =>
      pod.tooLarge
        ? [tooLarge(workload, group)]
        : exclude(context, workload, group, before?.tooLarge ? undefined : stored),
    ),
  ];
  const incidental = claims.map(({ claim, group, nodes }) =>
    evaluateClaim({ claim, groups: [group], nodes }, subject, facts),
  );
  const evaluated = incidental.flatMap((one) => ("evaluated" in one ? one.evaluated : []));
  return evaluated.length === 0 ? allow(findings) : decide(evaluated, subject, { warnOnly: true }, findings);
}

/** Whether the node affinity of a pod may still change: it is created, or waits at a gate. */
function isOpen(context: Context, stored: JsonObject | undefined): boolean {
  const { request, draft } = context;
  if (request.operation === "UPDATE") return isGatedSpec(stored);
  return !isMirrorPod(draft.object) && !isDaemonPod(context);
}

/** Confirms to the provenance annotation the values that an earlier call for the same request has added. */
function confirmations(
  { draft }: Context,
  workload: WorkloadKind,
  pod: PodNodes,
  groups: readonly Group[],
): Finding[] {
  if (pod.tooLarge || !provenanceOf(draft.object).some(({ module }) => module === MODULE)) return [];
  const path = [...specPath(workload), ...REQUIRED];
  const terms = termsOf(draft.get(...specPath(workload)));
  return groups.flatMap((group) =>
    terms !== undefined && excludeSelector(terms, group.labelSelector) === "unchanged"
      ? [{ policy: groupRef(group), rule: "steering", outcome: "same", path, message: STEERED.affinity }]
      : [],
  );
}

const STEERED = { tolerations: "tolerations dropped", affinity: "required node affinity added" };

/** Excludes the nodes of one group, and reports what could not be done. */
function exclude(
  context: Context,
  workload: WorkloadKind,
  group: Group,
  stored: JsonObject | undefined,
): Finding[] {
  const { request, draft, view } = context;
  const isTemplate = workload.template.length > 0;
  const excluded = excludeGroup(draft, specPath(workload), group, {
    view,
    stored,
    sameTerms: !isTemplate && request.operation === "UPDATE",
    finding: (what, path) => ({
      policy: groupRef(group),
      rule: "steering",
      outcome: "applied",
      path,
      message: `${STEERED[what]} to keep pods off nodes of protected group ${group.name}`,
      // The author of a workload chose its nodes, and shall not miss some in silence.
      ...(isTemplate ? { code: "USHER-G14", warn: 60 } : {}),
    }),
  });
  return excluded === "done" ? [] : [tooLarge(workload, group)];
}

function tooLarge(workload: WorkloadKind, group: Group): Finding {
  return {
    policy: groupRef(group),
    rule: "steering",
    outcome: "skipped",
    code: "USHER-G13",
    path: [...specPath(workload), ...REQUIRED_TERMS],
    message: `required node affinity is too large to exclude nodes of protected group ${group.name}`,
    warn: 60,
  };
}

export interface Exclusion {
  readonly view: View;
  /** The stored spec: its tolerations stay. */
  readonly stored?: JsonObject | undefined;
  /**
   * The API server accepts longer terms, but neither more terms nor fewer: this applies to a gated pod. If the group
   * can't be excluded by its labels then, its nodes are excluded by their names.
   */
  readonly sameTerms?: boolean;
  readonly finding: (what: "tolerations" | "affinity", path: Path) => Finding | undefined;
}

/** Keeps pods with this spec off the nodes of a group, by the group's kind of steering. */
export function excludeGroup(
  draft: Draft,
  spec: Path,
  group: Group,
  { view, stored, sameTerms = false, finding }: Exclusion,
): "done" | "too many terms" {
  if (group.steering === "DropToleration") {
    const rest = withoutTolerations(draft.get(...spec), stored, group, view);
    const path = [...spec, "tolerations"];
    if (rest !== "unchanged") draft.set(path, rest, finding("tolerations", path));
    if (reachableGroups(new PodNodes(draft.get(...spec)), [group], view).length === 0) return "done";
  }
  // Written with its parent: the list itself may be placement's, and its provenance stays so.
  const path = [...spec, ...REQUIRED];
  const given = termsOf(draft.get(...spec));
  let terms = excludeSelector(given, group.labelSelector);
  if (terms === "unchanged") return "done";
  if (sameTerms && given !== undefined && terms.length !== given.length) {
    const names = reachableNodes(draft.get(...spec), group, view);
    terms = names === "too many" ? names : excludeNodes(given, group.labelSelector, names);
  }
  if (terms === "too many") return "too many terms";
  const required = draft.get(...path);
  const value = { ...(isObject(required) ? required : {}), nodeSelectorTerms: terms };
  return draft.set(path, value, finding("affinity", path)) ? "done" : "too many terms";
}

function reachableNodes(spec: Json | undefined, group: Group, view: View): string[] | "too many" {
  const pod = new PodNodes(spec);
  const nodes = [...nodesOf(group, view)];
  return pod.exceeds(nodes.length) ? "too many" : nodes.filter((node) => pod.canRunOn(node)).map(nameOf);
}

/**
 * The tolerations of a pod without those that name a taint key of the group's nodes. One without a key stays: it
 * tolerates much else, such as a node that is not ready. Those of the stored template stay too.
 */
export function withoutTolerations(
  podSpec: Json | undefined,
  stored: Json | undefined,
  group: Group,
  view: View,
): readonly Json[] | "unchanged" {
  const tolerations = listAt(podSpec, "tolerations");
  if (!tolerations.some((one) => (stringAt(one, "key") ?? "") !== "")) return "unchanged";
  const keys = taintKeys(group, view);
  const kept = new Set(listAt(stored, "tolerations").map(tolerationMeaning));
  const rest = tolerations.filter(
    (one) => !keys.has(stringAt(one, "key") ?? "") || kept.has(tolerationMeaning(one)),
  );
  return rest.length === tolerations.length ? "unchanged" : rest;
}

function taintKeys(group: Group, view: View): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const node of nodesOf(group, view))
    for (const { key, effect } of taintsOf(node))
      if (key !== "" && (HARD_EFFECTS as readonly string[]).includes(effect)) keys.add(key);
  return keys;
}
