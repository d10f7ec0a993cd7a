import { allow, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { describeRequest } from "../../../core/evaluate/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import { controllerOf, isBeingDeleted, isMirrorPod } from "../../../core/kubernetes/object.ts";
import { isBoundSpec } from "../../../core/kubernetes/pod-state.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { possibleGroups, selectionClaims } from "../claims/selection.ts";
import { judge } from "../decide/judge.ts";
import { decide, groupRef } from "../decide/report.ts";
import { blockingGroups, isDaemonSetController } from "../decide/selection.ts";
import { accountOf, describePod, type Subject } from "../decide/subject.ts";
import type { Group } from "../groups/group.ts";
import { excludesSelector } from "./exclude.ts";
import { excludeGroup } from "./exclude-group.ts";
import { REQUIRED_TERMS } from "./terms.ts";

/**
 * Keeps pods that need not run on protected nodes off them, where they are not authorised there: a scheduler that only learns of it at
 * bind tries again for ever, and preempts others for nothing. Narrows only; idempotent. DaemonSets are steered by their template, and
 * only when they are created: a changed template makes their controller delete pods.
 */
export function steer(context: Context, all: readonly Group[]): Result {
  const { request, object, installation, facts, view } = context;
  const steering = all.filter((group) => group.steering !== "Off");
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (steering.length === 0 || workload === undefined || request.subResource !== "") return allow();
  const isTemplate = workload.template.length > 0;
  if (isTemplate ? workload.kind !== "DaemonSet" : request.operation !== "CREATE") return allow();
  const { spec } = podTemplateOf(object.object, workload) ?? {};
  if (spec === undefined || isBoundSpec(spec) || isBeingDeleted(object.object)) return allow();
  if (!isTemplate && (isMirrorPod(object.object) || isDaemonPod(context))) return allow();
  const stored = request.operation === "UPDATE" ? podTemplateOf(object.old, workload)?.spec : undefined;
  const subject: Subject = {
    request,
    name: isTemplate ? `a pod of ${describeRequest(request)}` : describePod(request),
    namespace: request.namespace,
    account: accountOf(spec),
  };
  const blocking = blockingGroups(steering, subject, { facts }, "pod");
  if ("need" in blocking) return blocking;
  const wanted =
    request.operation === "UPDATE"
      ? blocking.groups.filter(
          (group) => group.steering === "DropToleration" || excludesSelector(stored, group.labelSelector),
        )
      : blocking.groups;
  const taking = possibleGroups(spec, wanted, view);
  if (taking.length === 0) return allow();
  const found = selectionClaims(spec, taking, { view, facts });
  // What can run nowhere else is for the validating phase to refuse.
  if ("need" in found || found.claims.some(({ claim }) => claim.refused)) return allow();
  const findings = taking.flatMap((group) => exclude(context, specPath(workload), group, stored));
  const incidental = found.claims.map(({ claim, group, nodes }) =>
    judge({ claim, groups: [group], nodes }, subject, facts),
  );
  const judgements = incidental.flatMap((judged) => ("judgements" in judged ? judged.judgements : []));
  return judgements.length === 0
    ? allow(findings)
    : decide(judgements, subject, { warnOnly: true }, findings);
}

/** A pod that its controller made for just one node would wait for ever. Where controllers share an identity, by its owner too. */
function isDaemonPod({ request, object }: Context): boolean {
  if (!isDaemonSetController(request)) return false;
  return (
    request.userInfo.username.endsWith(":daemon-set-controller") ||
    controllerOf(object.object)?.kind === "DaemonSet"
  );
}

const STEERED = { tolerations: "tolerations dropped", affinity: "required node affinity added" };

/** Excludes the nodes of one group, and says what could not be done. */
function exclude(context: Context, spec: Path, group: Group, stored: JsonObject | undefined): Finding[] {
  const { object, view, request } = context;
  const policy = groupRef(group);
  const excluded = excludeGroup(object, spec, group, {
    view,
    stored,
    affinity: request.operation !== "UPDATE" || excludesSelector(stored, group.labelSelector),
    finding: (what, path) => ({
      policy,
      rule: "steering",
      outcome: "applied",
      path,
      message: `${STEERED[what]} to keep pods off nodes of protected group ${group.name}`,
      // Schedulers and people see it in the pod; an update compares with the stored template instead.
      recordedByModule: true,
    }),
  });
  if (excluded === "done") return [];
  return [
    {
      policy,
      rule: "steering",
      outcome: "skipped",
      code: "USHER-G13",
      path: [...spec, ...REQUIRED_TERMS],
      message: `required node affinity has too many terms to exclude nodes of protected group ${group.name}`,
      warn: 60,
    },
  ];
}
