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

/** What asks usher, where it is installed. */
export const USHER_WEBHOOK: JsonObject = {
  apiVersion: WEBHOOK["apiVersion"] ?? "",
  kind: WEBHOOK["kind"] ?? "",
  metadata: { name: OWN_NAMES.webhooks },
};

/** Usher may have been about to withdraw its hook when the mark came. */
const SETTLED_MS = 1_000;

/** An usher that does not ask by then never will: its module is off, or nobody leads it. */
const LEAVE_MS = 30_000;

/**
 * How a webhook goes while the limits stay. One at which usher is installed is marked first, and removed once usher asks about
 * ProjectRequests again: API servers see both changes in this order, so that at each of them somebody is asked.
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

/** What asks the operand; `undefined` where it can't be said how. */
export function webhook(
  operand: LimitOperand,
  state: Pick<OperandState, "caBundle" | "pathToken" | "serverVersion" | "live">,
  transport: LimitOperand["transport"],
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
