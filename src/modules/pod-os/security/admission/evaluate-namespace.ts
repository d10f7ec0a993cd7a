import { allow, deny, need, type Result } from "../../../../core/decision/decision.ts";
import type { Finding } from "../../../../core/decision/finding.ts";
import { previewsPolicies } from "../../../../core/installation/installation.ts";
import { own } from "../../../../core/json.ts";
import { labelsOf } from "../../../../core/kubernetes/object.ts";
import type { Context } from "../../../../core/module/module.ts";
import { fieldErrorsMessage } from "../../os/evaluate-fields.ts";
import { settingsOf } from "../../settings.ts";
import type { Exceptions } from "../exceptions/exceptions.ts";
import { compareLevels, LABEL_PREFIX, type LevelVersion, type PodSecurityPolicy } from "../policy.ts";
import { defaultPolicy, type NamespacePolicy, policyOf, policyText } from "./namespace-policy.ts";
import { podsNeed, previewOf } from "./preview.ts";
import { RULE } from "./verdict.ts";

/** Checks the labels of a namespace, and previews a stricter policy on the pods that are there. */
export function evaluateNamespace(context: Context, exceptions: Exceptions): Result {
  const { request, facts, installation } = context;
  if (request.subResource !== "" || request.object === undefined) return allow();
  const settings = settingsOf(installation).podSecurity;
  const { configuration } = settings;
  const policy = policyOf(request.object, configuration);
  const old = request.oldObject === undefined ? undefined : policyOf(request.oldObject, configuration);
  if (policy.errors.length > 0 && (old === undefined || textOf(policy) !== textOf(old))) {
    const findings = policy.errors.map(({ field, message }): Finding => {
      const key = field.slice("metadata.labels[".length, -1);
      return {
        rule: RULE,
        outcome: "violated",
        path: ["metadata", "labels", key],
        message,
        verbatim: true,
      };
    });
    const message = fieldErrorsMessage(request, policy.errors);
    return deny({ code: 422, reason: "Invalid", message }, findings);
  }
  if (old !== undefined && !isStricter(policy.enforce, old.enforce)) return allow();
  const exempt = configuration?.exemptions?.namespaces?.includes(request.name) === true;
  if (exempt) return allow(warningsOf(exemptWarning(context, policy)));
  if (old === undefined || !previewsPolicies(installation)) return allow();
  const pods = podsNeed(request.name);
  const fact = facts.of(pods);
  if (fact === undefined) return need(pods);
  return allow(warningsOf(previewOf(context, exceptions, settings, policy.enforce, fact)));
}

function textOf({ errors }: NamespacePolicy): string {
  return errors.map(({ field, message }) => `${field}: ${message}`).join(", ");
}

/** Whether pods that are admitted under the old policy may be refused under the new one. */
function isStricter(policy: LevelVersion, old: LevelVersion): boolean {
  if (policyText(policy) === policyText(old) || policy.level === "privileged") return false;
  return policy.version !== old.version || compareLevels(policy.level, old.level) > 0;
}

/** In their order. */
function warningsOf(texts: readonly string[]): Finding[] {
  return texts.map((message, i) => ({
    rule: RULE,
    outcome: "would-violate",
    message,
    verbatim: true,
    warn: 1_000_000 - i,
  }));
}

const MODES = ["enforce", "audit", "warn"] as const;

/** Labels of an exempt namespace have no effect, which their author rarely expects. */
function exemptWarning({ request, installation }: Context, policy: PodSecurityPolicy): string[] {
  const defaults = defaultPolicy(settingsOf(installation).podSecurity.configuration);
  if (MODES.every((mode) => policyText(policy[mode]) === policyText(defaults[mode]))) return [];
  const labels = request.object === undefined ? undefined : labelsOf(request.object);
  const isLabelled = (key: string): boolean => own(labels, `${LABEL_PREFIX}${key}`) !== undefined;
  const modes = MODES.filter(
    (mode) => policy[mode].level !== "privileged" && (isLabelled(mode) || isLabelled(`${mode}-version`)),
  );
  if (modes.length === 0) return [];
  const shown = modes.map((mode) => `${mode}=${policyText(policy[mode])}`).join(", ");
  return [
    `namespace ${JSON.stringify(request.name)} is exempt from Pod Security, and the policy (${shown}) will be ignored`,
  ];
}
