import { allow } from "../../../core/decision/decision.ts";
import { exemptNamespaces } from "../../../core/installation/installation.ts";
import { isMirrorPod } from "../../../core/kubernetes/object.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import { SENT_PROVENANCE } from "../../../core/provenance/match-condition.ts";
import { isReapply } from "../../../core/provenance/reapply.ts";
import { takeBack } from "../../../core/provenance/take-back.ts";
import { harden } from "../harden/harden-request.ts";
import { changedTemplate, requestTemplate } from "../request-template.ts";
import { IDENTIFY_POD_OS, MODULE, settingsOf } from "../settings.ts";
import { writeOS } from "../write/write-os.ts";
import { type Handler, workloadRules } from "./handler.ts";
import { MENTIONS_OS } from "./os-contradictions.ts";

const NAME = "pod-os-write";

const MENTIONED = {
  name: "mentions-os",
  expression: `request.resource.resource != "pods" || ${SENT_PROVENANCE} || ${MENTIONS_OS}`,
};

/** Edited only at creation: few fields of a pod, or of the template of a Job, can change afterwards. */
function isImmutable({ group, kind }: WorkloadKind): boolean {
  return (group === "" && kind === "Pod") || (group === "batch" && kind === "Job");
}

/** Writes the OS, its selector and security fields, before evaluation. */
export const write: Handler = {
  name: NAME,
  rule: { kind: "Setting", name: "os.write, os.harden" },
  nothing: "the OS is not known, is already written, or may not be written here",
  hooks: (installation, gates) => {
    const { os } = settingsOf(installation);
    const exempt = exemptNamespaces(installation);
    const hardened = os.harden.filter((name) => !exempt.includes(name));
    if (!gates.enabled(IDENTIFY_POD_OS) || (!os.write && hardened.length === 0)) return [];
    const { all } = installation.workloads;
    return [
      {
        name: NAME,
        module: MODULE,
        phase: "mutate",
        rules: [
          ...workloadRules(all.filter(isImmutable), ["CREATE"]),
          ...workloadRules(
            all.filter((workload) => !isImmutable(workload)),
            ["CREATE", "UPDATE"],
          ),
        ],
        failure: "open",
        tooLarge: "allow",
        timeoutSeconds: 2,
        namespaces: os.write ? { except: exempt } : { only: hardened },
        ...(hardened.length > 0 ? {} : { conditions: [MENTIONED] }),
        sideEffects: "NoneOnDryRun",
        // A later webhook may add a container, or a selector for an OS.
        reinvocation: "IfNeeded",
      },
    ];
  },
  evaluate: (context) => {
    const { request, draft, installation } = context;
    const { os } = settingsOf(installation);
    const workload = requestTemplate(context)?.workload;
    if (workload !== undefined && !isImmutable(workload) && isReapply(draft)) takeBack(draft, MODULE);
    const changed = changedTemplate(context);
    if (changed === undefined || (changed.isPod && isMirrorPod(draft.object))) return allow();
    if (request.operation === "UPDATE" && isImmutable(changed.workload)) return allow();
    const findings = os.write ? writeOS(context, changed) : [];
    // The draft is edited in place, so hardening sees the written OS.
    const written = changedTemplate(context) ?? changed;
    const hardened = os.harden.includes(request.namespace) ? harden(context, written) : [];
    return allow([...findings, ...hardened]);
  },
};
