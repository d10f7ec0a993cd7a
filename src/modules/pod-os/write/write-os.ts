import type { Finding } from "../../../core/decision/finding.ts";
import { isObject, own } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import { specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { selectsOS } from "../os/contradictions.ts";
import { OS_LABEL, resolvePodOS } from "../os/resolve.ts";
import { runtimeClassOf } from "../os/runtime-class.ts";
import { validatePodOS } from "../os/validate.ts";
import type { RequestTemplate } from "../request-template.ts";

/**
 * Writes `spec.os` and its node selector together, if one is known and the other is missing.
 *
 * - Nothing if sources contradict each other, or if the API server would refuse the pod for that OS.
 * - Nothing into pods of a DaemonSet: its controller creates pods for nodes that its template selects, and would
 *   forever replace a pod that the selector keeps off its node.
 * - Nothing into objects with a controller: a Deployment compares its ReplicaSets' templates with its own.
 */
export function writeOS(context: Context, { workload, template, isPod }: RequestTemplate): Finding[] {
  const { draft, view } = context;
  const { spec } = template;
  const controller = controllerOf(draft.object);
  if (spec === undefined || (isPod ? isDaemonSet(controller) : controller !== undefined)) return [];
  const runtimeClass = runtimeClassOf(view, spec);
  const { os, source, contradictions } = resolvePodOS(template, runtimeClass);
  if (os === undefined || contradictions.length > 0) return [];
  const path = specPath(workload);
  const mark = draft.mark();
  const osPath = [...path, "os"];
  const selectorPath = [...path, "nodeSelector", OS_LABEL];
  // Confirms to the provenance annotation the values that an earlier call for the same request has written.
  const present = (at: Path, what: string): Finding => ({
    policy: OS_WRITE,
    rule: "os-write",
    outcome: "same",
    path: at,
    message: what,
  });
  const written = (what: string): Finding => ({
    policy: OS_WRITE,
    rule: "os-write",
    outcome: "applied",
    message: `set ${what} (OS from ${source})`,
    audit: { key: "os-written", value: `${os} (${source})` },
  });
  if (source !== "explicit") {
    const wrong = validatePodOS({ ...spec, os: { name: os } }, path.join("."), 1);
    if (wrong.length > 0) {
      const [first] = wrong;
      return [
        {
          rule: "os-write",
          outcome: "skipped",
          code: "USHER-O02",
          message: `spec.os not set to ${os}: ${first?.field ?? ""}: ${first?.message ?? ""}`,
          warn: 40,
        },
      ];
    }
    if (!draft.set(osPath, { name: os }, written(`spec.os.name=${os}`))) return [];
  }
  const known = source === "explicit" ? [present(osPath, `spec.os.name=${os}`)] : [];
  if (selectsOS(spec, os, runtimeClass))
    return draft.get(...selectorPath) === os
      ? [...known, present(selectorPath, `nodeSelector ${OS_LABEL}=${os}`)]
      : known;
  const selector = own(spec, "nodeSelector") ?? undefined;
  const fits = selector === undefined || selector === null || isObject(selector);
  const finding = written(`nodeSelector ${OS_LABEL}=${os}`);
  // Without the selector, spec.os alone would make a kubelet refuse the pod permanently.
  if (!fits || !draft.set(selectorPath, os, finding)) draft.undo(mark);
  return known;
}

const OS_WRITE: PolicyRef = { kind: "Setting", name: "os.write" };

/** Of any API group: other systems have similar DaemonSets of their own. */
function isDaemonSet(controller: ReturnType<typeof controllerOf>): boolean {
  return controller?.kind === "DaemonSet";
}
