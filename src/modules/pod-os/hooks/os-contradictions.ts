import type { Count } from "../../../core/decision/decision.ts";
import { allow, deny } from "../../../core/decision/decision.ts";
import { exemptNamespaces } from "../../../core/installation/installation.ts";
import { POD } from "../../../core/kubernetes/workloads.ts";
import type { Hook } from "../../../core/module/hook.ts";
import type { View } from "../../../core/view/view.ts";
import { PODS } from "../metrics.ts";
import { osFindings } from "../os/contradictions.ts";
import { evaluateFields } from "../os/evaluate-fields.ts";
import { resolvePodOS } from "../os/resolve.ts";
import { runtimeClassOf } from "../os/runtime-class.ts";
import { isChanged, type RequestTemplate, requestTemplate } from "../request-template.ts";
import { ownerOf } from "../security/admission/exemptions.ts";
import { withEvent } from "../security/admission/verdict.ts";
import { IDENTIFY_POD_OS, MODULE, settingsOf } from "../settings.ts";
import { type Handler, workloadRules } from "./handler.ts";

/** A pod of a known OS is counted with its source. */
function podCount(view: View, { template, isPod }: RequestTemplate): Count[] {
  if (!isPod) return [];
  const { os, source } = resolvePodOS(template, runtimeClassOf(view, template.spec));
  return os === undefined ? [] : [{ metric: PODS, labels: { os, source } }];
}

const UPDATES = "pod-os-pod-updates";

/** The API server itself refuses every evaluated change of a pod's update, so it need not call; reviews without one do. */
const OS_CHANGED =
  "has(object.spec.os) != has(oldObject.spec.os) || (has(object.spec.os) && object.spec.os != oldObject.spec.os)";

/** Reports problems about the OS of pods and templates. */
export const osContradictions: Handler = {
  name: MODULE,
  rule: { kind: "Setting", name: "os.contradictions" },
  nothing: "nothing names an OS, or all that names one agrees",
  hooks: (installation, gates) => {
    const common = {
      module: MODULE,
      phase: "validate",
      failure: "open",
      tooLarge: settingsOf(installation).os.contradictions === "Deny" ? "deny" : "allow",
      timeoutSeconds: 2,
      namespaces: { except: exemptNamespaces(installation) },
      sideEffects: "NoneOnDryRun",
    } as const;
    const on = gates.enabled(IDENTIFY_POD_OS);
    const withTemplate = installation.workloads.all.filter(({ template }) => template.length > 0);
    const hooks: Hook[] = [
      {
        ...common,
        name: MODULE,
        rules: on ? workloadRules(withTemplate, ["CREATE", "UPDATE"]) : [],
        conditions: [{ name: "template-mentions-os", expression: TEMPLATE_MENTIONS_OS }],
      },
      {
        ...common,
        name: "pod-os-pods",
        askedAs: MODULE,
        rules: on ? workloadRules([POD], ["CREATE"]) : [],
        conditions: [{ name: "mentions-os", expression: MENTIONS_OS }],
      },
      {
        ...common,
        name: UPDATES,
        askedAs: MODULE,
        rules: on
          ? [
              {
                groups: [""],
                versions: ["v1"],
                resources: ["pods", "pods/ephemeralcontainers", "pods/resize"],
                operations: ["UPDATE"],
                scope: "Namespaced",
              },
            ]
          : [],
        conditions: [{ name: "os-changed", expression: OS_CHANGED }],
      },
    ];
    return hooks;
  },
  evaluate: (context) => {
    if (!context.gates.enabled(IDENTIFY_POD_OS)) return allow();
    const fields = evaluateFields(context);
    if (fields.denial !== undefined) return deny(fields.denial, fields.findings);
    const template = requestTemplate(context);
    if (template === undefined) return allow(fields.findings);
    const { request, view, installation } = context;
    const findings = osFindings(context, template, settingsOf(installation).os.contradictions);
    if (findings.length > 0 && !isChanged(context, template)) return allow(fields.findings);
    const violated = findings.filter(({ outcome }) => outcome === "violated");
    if (violated.length === 0)
      return allow([...fields.findings, ...findings], undefined, podCount(view, template));
    const message = violated.map((one) => one.message).join("; ");
    return deny({ code: 403, reason: "Forbidden" }, [
      ...withEvent(violated, "PodOSNotSupported", message, ownerOf(request, view)),
      ...fields.findings,
    ]);
  },
};

/** Most pods mention no OS at all, and need no evaluation. */
function mentionsOS(pod: string): string {
  return [
    `has(${pod}.spec.os)`,
    `has(${pod}.spec.affinity)`,
    `has(${pod}.spec.runtimeClassName)`,
    `(has(${pod}.spec.nodeSelector) && ${pod}.spec.nodeSelector.exists(key, key.endsWith('kubernetes.io/os')))`,
    `(has(${pod}.metadata.labels) && 'kubernetes.io/os' in ${pod}.metadata.labels)`,
  ].join(" || ");
}

export const MENTIONS_OS = mentionsOS("object");

/**
 * The same for a pod template, before or after an update. Only for Kubernetes' own kinds is the content of
 * `spec.template` known: usher is called for others, because a failing condition lets everything pass.
 */
const TEMPLATE_MENTIONS_OS = [
  "!(request.resource.group in ['', 'apps', 'batch']) || !has(object.spec) || !has(object.spec.template) || !has(object.spec.template.metadata)",
  mentionsOS("object.spec.template"),
  `(request.operation == 'UPDATE' && (${mentionsOS("oldObject.spec.template")}))`,
].join(" || ");
