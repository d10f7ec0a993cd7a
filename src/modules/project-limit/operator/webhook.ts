import { isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { OperandState } from "../../../core/module/operator.ts";
import { webhookConfigurations } from "../../../core/registration/webhooks.ts";
import { hasMatchConditions, projectRequestHook } from "../hooks/hooks.ts";
import { API_SERVICE, aggregatedClient, injectorAnnotations, transportOf } from "./aggregated.ts";
import { OPERAND } from "./names.ts";
import { OPERAND_INSTALLATION } from "./objects.ts";
import type { Operand } from "./operand.ts";

export const WEBHOOK: JsonObject = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: OPERAND.webhook },
};

/** What asks the operand; `undefined` where it can't be said how. */
export function webhook(
  operand: Operand,
  state: Pick<OperandState, "caBundle" | "pathToken" | "serverVersion" | "live">,
  transport: Operand["transport"],
): JsonObject | undefined {
  const aggregated = transport === "Aggregated" ? aggregatedClient(state) : undefined;
  // What is registered stays as it is, rather than to ask without an authority.
  if (transport === "Aggregated" && aggregated === undefined) return undefined;
  const { pathToken } = state;
  const caBundle = state.caBundle ?? announcedBundle(state);
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
  const annotations = aggregated === undefined ? injectorAnnotations(operand) : {};
  return {
    ...WEBHOOK,
    metadata: {
      name: OPERAND.webhook,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    webhooks: listAt(validating, "webhooks").map((entry) => ({
      ...(isObject(entry) ? entry : {}),
      name: OPERAND.webhook,
      ...(aggregated === undefined ? {} : { clientConfig: aggregated }),
    })),
  };
}

/** What an injector wrote for the APIService, when the webhook asks directly again: so no call fails until it has written it here, too. */
function announcedBundle({ live }: Pick<OperandState, "live">): string | undefined {
  if (transportOf(live(WEBHOOK)) !== "Aggregated") return undefined;
  return stringAt(live(API_SERVICE), "spec", "caBundle");
}
