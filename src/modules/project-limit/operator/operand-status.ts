import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { conditionOf, type ObservedCondition } from "../../../core/policy/condition.ts";
import { asksAboutProjectRequests } from "../hooks/operand-webhook.ts";
import { OPERAND } from "../operand-names.ts";
import type { Found } from "./plan.ts";
import { USHER_WEBHOOK } from "./webhook.ts";
import { storedHash } from "./workload.ts";

/** A rollout takes seconds per pod; after this long something blocks it. */
const STUCK_MS = 10 * 60_000;

/** The operator's part of the status. */
export function operandStatus(found: Found): JsonObject {
  const { operand, state, rollOut, certHash } = found;
  const before = isObject(state.owner["status"]) ? state.owner["status"] : {};
  const progressing = progress(found);
  const observations = [
    availability(found),
    progressing,
    degradation(found, progressing, before),
    certificatePending(found),
    noNodes(found),
  ];
  const generation = at(state.owner, "metadata", "generation");
  const observed = typeof generation === "number" ? generation : undefined;
  return {
    configHash: operand.configHash,
    ...(certHash === undefined ? {} : { certHash }),
    desired: rollOut?.desired ?? 0,
    ready: rollOut?.ready ?? 0,
    conditions: observations.map((one) => conditionOf(one, observed, before, state.now)),
  };
}

function availability({ registered, noNodes: none, state, transports }: Found): ObservedCondition {
  const type = "Available";
  if (!registered || none)
    return { type, holds: false, reason: "NotRegistered", message: "the operand is not asked yet" };
  if (transports.asks === "Aggregated" && transports.waits !== undefined)
    return { type, holds: false, reason: "APIServiceUnavailable", message: transports.waits };
  return state.ready
    ? { type, holds: true, reason: "Ready", message: "the operand is asked, and a pod is ready" }
    : {
        type,
        holds: false,
        reason: "NoReadyPod",
        message: "the operand is asked, and no pod is ready: see its pods",
      };
}

function progress(found: Found): ObservedCondition {
  const { operand, stored, rollOut, certHash, registered, noNodes: none, transports } = found;
  const type = "Progressing";
  const pending = (reason: string, message: string) => ({ type, holds: true, reason, message });
  if (stored === undefined) return pending("Creating", `the ${operand.topology} is not there yet`);
  if (
    storedHash(stored, OPERAND.configurationHash) !== operand.configHash ||
    (certHash !== undefined && storedHash(stored, OPERAND.certificateHash) !== certHash) ||
    rollOut === undefined
  )
    return pending("Updating", `the ${operand.topology} is being updated`);
  const { desired, updated, ready } = rollOut;
  if (updated < desired) return pending("RollingOut", `${updated} of ${desired} pods are up to date`);
  if (ready < desired) return pending("RollingOut", `${ready} of ${desired} pods are ready`);
  if (transports.waits !== undefined && !none) return pending("WaitingForAPIService", transports.waits);
  if (!registered && !none) return pending("Registering", "the webhook is not registered yet");
  return { type, holds: false, reason: "AsDesired", message: "the operand matches the spec" };
}

function degradation(
  { invalid, state }: Found,
  { holds, message }: ObservedCondition,
  before: JsonObject,
): ObservedCondition {
  const type = "Degraded";
  if (invalid !== undefined)
    return {
      type,
      holds: true,
      reason: "InvalidSpec",
      message: `${invalid}; the operand is unchanged`,
    };
  if (state.failure !== undefined) return { type, holds: true, reason: "Failed", message: state.failure };
  const earlier = listAt(before, "conditions").find((one) => at(one, "type") === "Progressing");
  const since = Date.parse(stringAt(earlier, "lastTransitionTime") ?? "");
  if (holds && at(earlier, "status") === "True" && state.now - since >= STUCK_MS)
    return { type, holds: true, reason: "Stuck", message: `for more than 10 minutes ${message}` };
  return { type, holds: false, reason: "AsDesired", message: "nothing fails" };
}

const WRITERS = {
  ServiceCA: "OpenShift's service CA writes it; elsewhere set spec.certificates to CertManager or Own",
  CertManager: "cert-manager writes it: see the Certificate",
  Own: "the operator writes it: see its log",
};

function certificatePending({ operand, state }: Found): ObservedCondition {
  const type = "CertificatePending";
  const secret = `Secret ${OPERAND.namespace}/${OPERAND.servingSecret}`;
  if (state.certificate === undefined)
    return {
      type,
      holds: true,
      reason: "NoCertificate",
      message: `${secret} has no certificate: ${WRITERS[operand.certificates]}`,
    };
  if (!state.certificate.trusted)
    return {
      type,
      holds: true,
      reason: "NotTrusted",
      message: `the authority of the certificate in ${secret} is not in the webhook's caBundle yet`,
    };
  return { type, holds: false, reason: "Found", message: "there is a certificate" };
}

function noNodes({ operand, state, noNodes: none }: Found): ObservedCondition {
  const type = "NoNodes";
  if (!none) return { type, holds: false, reason: "Scheduled", message: "there are nodes for the operand" };
  const labels = Object.entries(operand.nodeSelector).map(([key, value]) => `${key}=${value}`);
  const instead = asksAboutProjectRequests(state.live(USHER_WEBHOOK))
    ? "usher judges ProjectRequests"
    : "no limit holds";
  return {
    type,
    holds: true,
    reason: "NoMatchingNode",
    message: `no node is there for the operand, so nothing is registered, and ${instead}: change spec.nodeSelector (${labels.join(", ")}) or set spec.topology to Deployment`,
  };
}
