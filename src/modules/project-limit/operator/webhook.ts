import { isObject, type JsonObject, listAt } from "../../../core/json.ts";
import type { OperandState } from "../../../core/module/operator.ts";
import { webhookConfigurations } from "../../../core/registration/webhooks.ts";
import { hasMatchConditions, projectRequestHook } from "../hooks/hooks.ts";
import { OPERAND } from "./names.ts";
import { OPERAND_INSTALLATION } from "./objects.ts";
import type { Operand } from "./operand.ts";

export const WEBHOOK: JsonObject = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: OPERAND.webhook },
};

/** What asks the operand. */
export function webhook(
  operand: Operand,
  state: Pick<OperandState, "caBundle" | "pathToken" | "serverVersion">,
): JsonObject {
  const { caBundle, pathToken } = state;
  const { validating } = webhookConfigurations(
    [projectRequestHook(operand.limits, hasMatchConditions(state))],
    OPERAND_INSTALLATION,
    {
      endpoint: {
        service: { name: OPERAND.service, namespace: OPERAND.namespace, port: OPERAND.servicePort },
      },
      pathToken,
      ...(caBundle === undefined ? {} : { caBundle }),
    },
  );
  const annotations = injectorAnnotations(operand);
  return {
    ...WEBHOOK,
    metadata: {
      name: OPERAND.webhook,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    webhooks: listAt(validating, "webhooks").map((entry) => ({
      ...(isObject(entry) ? entry : {}),
      name: OPERAND.webhook,
    })),
  };
}

/** By these an injector knows what to write `caBundle` of. */
function injectorAnnotations({ certificates }: Operand): Record<string, string> {
  if (certificates === "ServiceCA") return { "service.beta.openshift.io/inject-cabundle": "true" };
  return certificates === "CertManager"
    ? { "cert-manager.io/inject-ca-from": `${OPERAND.namespace}/${OPERAND.service}` }
    : {};
}
