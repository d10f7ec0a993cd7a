import { at, equal, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { ownerReference } from "../../../core/kubernetes/object.ts";
import type { OperandPlan, OperandState, OperandStep } from "../../../core/module/operator.ts";
import { isByCertManager } from "../../../core/registration/certificates.ts";
import { OPERAND, OPERATOR } from "../operand-names.ts";
import {
  API_SERVICE,
  apiService,
  defaultTransport,
  READER_BINDING,
  type Transports,
  transportOf,
  transportsOf,
} from "./aggregated.ts";
import {
  accessObjects,
  CERT_MANAGER_OBJECTS,
  certificateObjects,
  configMap,
  SERVING_SECRET,
  serviceObject,
} from "./objects.ts";
import { type LimitOperand, operandOf } from "./operand.ts";
import { operandStatus } from "./operand-status.ts";
import { leave, WEBHOOK, webhook } from "./webhook.ts";
import { type RollOut, rollOutOf, storedHash, workload, workloadReference } from "./workload.ts";

/** The observed state and its consequences, for steps and status. */
export interface Found {
  readonly operand: LimitOperand;
  /** Problems of the spec: then `operand` is the last valid one, if known. */
  readonly invalid: string | undefined;
  readonly state: OperandState;
  /** The workload of the topology, as it is stored. */
  readonly stored: JsonObject | undefined;
  readonly rollOut: RollOut | undefined;
  /** The template's values. Absent while there is no certificate, so that no pod is created twice. */
  readonly certHash: string | undefined;
  readonly registered: boolean;
  readonly transports: Transports;
  /** No pod will ever answer. */
  readonly noNodes: boolean;
}

/**
 * The steps to give a cluster the operand of its custom resource. Certificate, configuration, workload; the webhook
 * comes last, once a pod is ready. A registered one stays: it refuses rather than allows.
 */
export function planOperand(state: OperandState): OperandPlan {
  const operand = operandOf(state.valid, defaultTransport(state));
  if (operand === undefined) return { steps: [], status: {} };
  const stored = state.live(workloadReference(operand.topology));
  const rollOut = stored === undefined ? undefined : rollOutOf(stored);
  const found: Found = {
    operand,
    invalid: operandOf(state.owner)?.limits.invalid,
    state,
    stored,
    rollOut,
    certHash: certHashOf(state, stored),
    registered: state.live(WEBHOOK) !== undefined,
    transports: transportsOf(operand, state, stored, rollOut, transportOf(state.live(WEBHOOK))),
    noNodes: rollOut?.desired === 0 && selectsNodesOf(stored, operand),
  };
  const { apply, remove } = state.secrets;
  const steps = [
    ...formerIssuer(found),
    ...remove.map((reference) => ({ remove: reference })),
    ...apply.filter((secret) => !isServing(secret)).map((secret) => ({ apply: secret })),
    ...(operand.limits.invalid === undefined ? stepsOf(found) : serving(state)),
  ];
  return { steps: steps.map((step) => marked(step, state)), status: operandStatus(found) };
}

/**
 * Without its Certificate, cert-manager no longer writes over the Secret of the next issuer. The Secret goes after it, so
 * that an interrupted removal is repeated.
 */
function formerIssuer({ operand, state }: Found): OperandStep[] {
  const isLeft = operand.certificates !== "CertManager" && isByCertManager(state.live(SERVING_SECRET));
  return isLeft ? CERT_MANAGER_OBJECTS.map((remove) => ({ remove })) : [];
}

function isServing(secret: JsonObject): boolean {
  return stringAt(secret, "metadata", "name") === OPERAND.servingSecret;
}

function serving({ secrets }: OperandState): OperandStep[] {
  return secrets.apply.filter(isServing).map((apply) => ({ apply }));
}

/** An edited selector proves nothing about the nodes: the workload is restored, and the webhook stays. */
function selectsNodesOf(stored: JsonObject | undefined, { nodeSelector }: LimitOperand): boolean {
  return equal(at(stored, "spec", "template", "spec", "nodeSelector"), nodeSelector);
}

/** A certificate that API servers do not accept yet waits, if there is one that they do. */
function certHashOf({ certificate }: OperandState, stored: JsonObject | undefined): string | undefined {
  const before = storedHash(stored, OPERAND.certificateHash);
  if (certificate === undefined) return undefined;
  return certificate.trusted ? certificate.hash : (before ?? certificate.hash);
}

function stepsOf(found: Found): OperandStep[] {
  const { operand, state, stored, rollOut, certHash, registered, noNodes, transports } = found;
  const entry = webhook(operand, state, transports.asks);
  const asks = entry === undefined ? [] : [{ apply: entry }];
  const announces = transports.announced ? [{ apply: apiService(operand, state) }] : [];
  const announcedBefore = state.live(API_SERVICE) !== undefined;
  const { image } = state;
  const runs =
    certHash === undefined
      ? []
      : [workload(operand, { image, certHash, stored, aggregated: transports.served })];
  const serves = stored !== undefined && rollOut !== undefined && state.ready;
  const leaves = registered && noNodes ? [leave(state, entry)] : [];
  const before = [
    ...leaves,
    ...(registered && !noNodes ? asks : []),
    ...(announcedBefore ? announces : []),
    // Before a new certificate is served, its CA must be trusted.
    ...serving(state),
    ...unannounced(
      found,
      leaves.some((step) => "apply" in step),
    ),
  ];
  const isAskedNext = !registered && serves && !noNodes && certHash !== undefined;
  const after = [
    ...(announcedBefore ? [] : announces),
    ...(isAskedNext && transports.waits === undefined ? asks : []),
    ...otherTopology(found),
  ];
  return [
    ...before,
    ...[
      ...accessObjects(transports.served),
      serviceObject(operand),
      ...certificateObjects(operand),
      configMap(operand),
      ...runs,
    ].map((apply) => ({ apply })),
    ...after,
  ];
}

/** The parts of the aggregated transport are removed once nothing calls it; parts without a pod behind them immediately. */
function unannounced({ state, noNodes, transports }: Found, isStillAsked: boolean): OperandStep[] {
  const there = (reference: JsonObject) =>
    state.live(reference) === undefined ? [] : [{ remove: reference }];
  return [
    ...(transports.served && (!noNodes || isStillAsked) ? [] : there(API_SERVICE)),
    ...(transports.served ? [] : there(READER_BINDING)),
  ];
}

/**
 * The workload of the other topology is removed once all pods of this one are ready; if there will be none, once
 * nothing calls it.
 */
function otherTopology({ operand, state, rollOut, registered, noNodes }: Found): OperandStep[] {
  const other = workloadReference(operand.topology === "DaemonSet" ? "Deployment" : "DaemonSet");
  if (state.live(other) === undefined || rollOut === undefined) return [];
  const { desired, updated, ready } = rollOut;
  const isReplaced = desired > 0 && updated >= desired && ready >= desired;
  return isReplaced || (noNodes && !registered) ? [{ remove: other }] : [];
}

/** The CAs by which API servers verify the operand's certificate. */
export function publishedBundle(live: OperandState["live"]): string | undefined {
  const stored = live(WEBHOOK);
  if (transportOf(stored) === "Aggregated") return stringAt(live(API_SERVICE), "spec", "caBundle") ?? "";
  const [entry] = listAt(stored, "webhooks");
  return entry === undefined ? undefined : (stringAt(entry, "clientConfig", "caBundle") ?? "");
}

const LABELS = { "app.kubernetes.io/managed-by": OPERATOR.name };

/** Owned by the custom resource, so that it is deleted with it; also by the webhook, so that the webhook is deleted first. */
function marked(step: OperandStep, { owner, live }: OperandState): OperandStep {
  if (!("apply" in step)) return step;
  const { metadata } = step.apply;
  const asks = live(WEBHOOK);
  const isWebhook = stringAt(step.apply, "kind") === WEBHOOK["kind"];
  const owners = [
    { ...ownerReference(owner), controller: true },
    // The garbage collector keeps objects that still have an owner.
    ...(isWebhook || asks === undefined
      ? []
      : [ownerReference({ ...asks, ...WEBHOOK, metadata: asks["metadata"] ?? {} })]),
  ];
  const given = isObject(metadata) ? metadata : {};
  const labels = { ...(isObject(given["labels"]) ? given["labels"] : {}), ...LABELS };
  return { apply: { ...step.apply, metadata: { ...given, labels, ownerReferences: owners } } };
}
