import { isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { hasMatchConditions } from "../../../core/kubernetes/versions.ts";
import type { OperandState, OperandStep } from "../../../core/module/operator.ts";
import { OWN_NAMES } from "../../../core/registration/names.ts";
import { webhookConfigurations } from "../../../core/registration/webhooks.ts";
import { projectRequestHook } from "../hooks/hooks.ts";
import { asksAboutProjectRequests } from "../hooks/operand-webhook.ts";
import { OPERAND } from "../operand-names.ts";
import { API_SERVICE, aggregatedClient, injectorAnnotations, transportOf } from "./aggregated.ts";
import { OPERAND_INSTALLATION } from "./objects.ts";
import type { LimitOperand } from "./operand.ts";

export const WEBHOOK: JsonObject = {
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: { name: OPERAND.webhook },
};

/** Usher's webhook, if installed. */
export const USHER_WEBHOOK: JsonObject = {
  apiVersion: WEBHOOK["apiVersion"] ?? "",
  kind: WEBHOOK["kind"] ?? "",
  metadata: { name: OWN_NAMES.webhooks },
};

/** Usher may have been about to withdraw its hook when the mark was set. */
const SETTLED_MS = 1_000;

/** An usher that has not registered by then never will: its module is off, or it has no leader. */
const LEAVE_MS = 30_000;

/**
 * How a webhook is removed while the limits stay. If usher is installed it is marked first, and removed once usher
 * covers ProjectRequests again: API servers see both changes in this order, so that one of them is always called.
 */
export function leave({ live, now }: OperandState, asks: JsonObject | undefined): OperandStep {
  const usher = live(USHER_WEBHOOK);
  if (usher === undefined || asks === undefined) return { remove: WEBHOOK };
  const marked = stringAt(live(WEBHOOK), "metadata", "annotations", OPERAND.leaving) ?? "";
  const waited = now - Date.parse(marked);
  if (waited >= LEAVE_MS || (waited >= SETTLED_MS && asksAboutProjectRequests(usher)))
    return { remove: WEBHOOK };
  // One of the future is of another clock.
  const since = waited >= 0 ? marked : new Date(now).toISOString();
  const metadata = isObject(asks["metadata"]) ? asks["metadata"] : {};
  const given = metadata["annotations"];
  const annotations = { ...(isObject(given) ? given : {}), [OPERAND.leaving]: since };
  return { apply: { ...asks, metadata: { ...metadata, annotations } } };
}

/** The webhook of the operand; `undefined` if it can't be built. */
export function webhook(
  operand: LimitOperand,
  state: Pick<OperandState, "caBundle" | "pathToken" | "serverVersion" | "live">,
  transport: LimitOperand["transport"],
): JsonObject | undefined {
  const aggregated = transport === "Aggregated" ? aggregatedClient(state) : undefined;
  // A registered webhook stays unchanged, rather than call without a CA.
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

/**
 * The injector's bundle of the APIService, when the webhook calls directly again: so no call fails until it has written
 * it here, too.
 */
function announcedBundle({ live }: Pick<OperandState, "live">): string | undefined {
  if (transportOf(live(WEBHOOK)) !== "Aggregated") return undefined;
  return stringAt(live(API_SERVICE), "spec", "caBundle");
}
