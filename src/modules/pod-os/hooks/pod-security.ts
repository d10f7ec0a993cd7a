import type { Hook, Rule } from "../../../core/module/hook.ts";
import { CONTAINER_LISTS } from "../os/tables.ts";
import { evaluateNamespace } from "../security/admission/evaluate-namespace.ts";
import { evaluatePod } from "../security/admission/evaluate-pod.ts";
import { MODULE, settingsOf } from "../settings.ts";
import type { Handler } from "./handler.ts";

const NAME = "pod-security";

const rule = (operations: Rule["operations"], scope: Rule["scope"], ...resources: string[]): Rule => ({
  groups: [""],
  versions: ["v1"],
  resources,
  operations,
  ...(scope === undefined ? {} : { scope }),
});

function changed(field: string): string {
  return `has(object.${field}) != has(oldObject.${field}) || (has(object.${field}) && object.${field} != oldObject.${field})`;
}

/**
 * While usher is down, labels and finalizers of pods must change, scheduling gates must be removable and tolerations be
 * added: only changes that Pod Security evaluates wait for it.
 */
const CONTAINERS_CHANGED = CONTAINER_LISTS.map((list) => changed(`spec.${list}`)).join(" || ");

const LABELS_CHANGED = `request.operation == 'CREATE' || ${changed("metadata.labels")}`;

/** Evaluates pods and namespaces in place of the API server's plugin PodSecurity. */
export const podSecurity: Handler = {
  name: NAME,
  rule: { kind: "PodSecurity", name: NAME },
  nothing: "the request changes nothing that Pod Security judges",
  hooks: (installation) => {
    if (settingsOf(installation).podSecurity.mode === "Complement") return [];
    const hook = (name: string, rules: readonly Rule[], condition?: string): Hook => ({
      name,
      askedAs: NAME,
      module: MODULE,
      phase: "validate",
      rules,
      failure: "closed",
      // The enforced level is not looked up for a pod that no level applies to.
      tooLarge: "deny",
      // Labels of the control plane's namespaces apply too, and usher must not block them.
      openShadow: true,
      timeoutSeconds: 5,
      sideEffects: "NoneOnDryRun",
      ...(condition === undefined ? {} : { conditions: [{ name: "changes", expression: condition }] }),
    });
    return [
      hook(NAME, [rule(["CREATE"], "Namespaced", "pods")]),
      hook(
        `${NAME}-pod-updates`,
        [rule(["UPDATE"], "Namespaced", "pods", "pods/ephemeralcontainers")],
        CONTAINERS_CHANGED,
      ),
      hook(`${NAME}-namespaces`, [rule(["CREATE", "UPDATE"], "Cluster", "namespaces")], LABELS_CHANGED),
    ];
  },
  evaluate: (context, exceptions) =>
    context.request.resource.resource === "namespaces"
      ? evaluateNamespace(context, exceptions)
      : evaluatePod(context, exceptions),
};
