import type { Finding } from "../../../core/decision/finding.ts";
import { isObject, listAt } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import { specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { fieldPath } from "../../../core/path.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { noNodeRuns } from "../nodes/node-os.ts";
import { resolvePodOS } from "../os/resolve.ts";
import { runtimeClassOf } from "../os/runtime-class.ts";
import { CONTAINER_LISTS } from "../os/tables.ts";
import { validatePodOS } from "../os/validate.ts";
import type { RequestTemplate } from "../request-template.ts";
import { hardenedFields } from "./harden.ts";

/** Each gets two edits, with a finding each. Real pods have some dozens of containers; an API server accepts tens of thousands. */
const MOST_CONTAINERS = 500;

/** Fills in absent security fields of the pod's OS. A template that has a controller is left to it; its pods are hardened. */
export function harden(context: Context, { workload, template, isPod }: RequestTemplate): Finding[] {
  const { draft, view } = context;
  const { spec } = template;
  if (spec === undefined || (!isPod && controllerOf(draft.object) !== undefined)) return [];
  const containers = CONTAINER_LISTS.reduce((sum, list) => sum + listAt(spec, list).length, 0);
  if (containers > MOST_CONTAINERS) return [notHardened(containers)];
  const resolved = resolvePodOS(template, runtimeClassOf(view, spec));
  if (resolved.contradictions.length > 0) return [];
  // A Linux field prevents a pod from starting on Windows.
  const os = resolved.os ?? (noNodeRuns(view, "windows") ? "linux" : undefined);
  const fields = os === undefined ? [] : hardenedFields(spec, os);
  const path = specPath(workload);
  const absent = fields.filter(({ present }) => !present);
  const before = absent.length === 0 ? 0 : validatePodOS(spec).length;
  const mark = draft.mark();
  const names = absent.map((field) => fieldPath(field.path));
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : "";
  const audit = { key: "hardened", value: `${names.slice(0, LISTED).join(", ")}${more}` };
  for (const [i, field] of absent.entries()) {
    const finding: Finding = {
      policy: OS_HARDEN,
      rule: "harden",
      outcome: "applied",
      message: `set ${names[i] ?? ""} (hardening for ${os})`,
      ...(i === 0 ? { audit } : {}),
    };
    if (!draft.set([...path, ...field.path], field.value, finding)) {
      draft.undo(mark);
      return [];
    }
  }
  const after = absent.length === 0 ? undefined : draft.get(...path);
  if (isObject(after) && validatePodOS(after).length > before) draft.undo(mark);
  // Confirms to the provenance annotation the fields that an earlier call for the same request has filled in.
  return fields.flatMap((field) =>
    field.present
      ? [
          {
            policy: OS_HARDEN,
            rule: "harden",
            outcome: "same",
            path: [...path, ...field.path],
            message: fieldPath(field.path),
          },
        ]
      : [],
  );
}

function notHardened(containers: number): Finding {
  return {
    rule: "harden",
    outcome: "skipped",
    code: "USHER-O06",
    message: `pod not hardened: it has ${containers} containers, at most ${MOST_CONTAINERS} are; set the fields of securityContext yourself`,
    warn: 40,
  };
}

const OS_HARDEN: PolicyRef = { kind: "Setting", name: "os.harden" };

/** Fields named in an audit annotation. */
const LISTED = 20;
