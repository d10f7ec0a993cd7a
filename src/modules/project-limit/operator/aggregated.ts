import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { OperandState } from "../../../core/module/operator.ts";
import { OPERAND } from "../operand-names.ts";
import type { LimitOperand } from "./operand.ts";
import type { RollOut } from "./workload.ts";

type Transport = LimitOperand["transport"];

export const API_SERVICE: JsonObject = {
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name: OPERAND.apiService },
};

/** How OpenShift's own API server is reached for ProjectRequests. */
export const OPENSHIFT_PROJECTS: JsonObject = {
  apiVersion: "apiregistration.k8s.io/v1",
  kind: "APIService",
  metadata: { name: "v1.project.openshift.io" },
};

/** As in the original design, if an aggregated API itself serves ProjectRequests: API servers there can reach one. */
export function defaultTransport({ live }: Pick<OperandState, "live">): Transport {
  return isObject(at(live(OPENSHIFT_PROJECTS), "spec", "service")) ? "Aggregated" : "Direct";
}

/** Contains the CAs of the API server itself, in every namespace. */
export const KUBE_CA: JsonObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "kube-root-ca.crt", namespace: OPERAND.namespace },
};

/** Lets the operand read the front proxy's settings. */
export const READER_BINDING: JsonObject = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: OPERAND.name, namespace: "kube-system" },
  roleRef: {
    apiGroup: "rbac.authorization.k8s.io",
    kind: "Role",
    name: "extension-apiserver-authentication-reader",
  },
  subjects: [{ kind: "ServiceAccount", name: OPERAND.name, namespace: OPERAND.namespace }],
};

/**
 * An APIService needs both; they only order groups and versions in lists. As low as extensions of the API have it, so that no name of
 * this group is ever preferred to another's.
 */
const PRIORITY = { groupPriorityMinimum: 1000, versionPriority: 15 };

/** The annotations by which an injector recognizes whose `caBundle` to write. */
export function injectorAnnotations({
  certificates,
}: Pick<LimitOperand, "certificates">): Record<string, string> {
  if (certificates === "ServiceCA") return { "service.beta.openshift.io/inject-cabundle": "true" };
  return certificates === "CertManager"
    ? { "cert-manager.io/inject-ca-from": `${OPERAND.namespace}/${OPERAND.service}` }
    : {};
}

export function apiService(operand: LimitOperand, { caBundle }: Pick<OperandState, "caBundle">): JsonObject {
  const annotations = injectorAnnotations(operand);
  return {
    ...API_SERVICE,
    metadata: {
      name: OPERAND.apiService,
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: {
      group: OPERAND.apiGroup,
      version: OPERAND.apiVersion,
      ...PRIORITY,
      service: { name: OPERAND.service, namespace: OPERAND.namespace, port: OPERAND.servicePort },
      ...(caBundle === undefined ? {} : { caBundle }),
    },
  };
}

/** How API servers reach the operand through themselves: they resolve this Service to their own address and credentials. */
export function aggregatedClient({ live }: Pick<OperandState, "live">): JsonObject | undefined {
  const authorities = stringAt(live(KUBE_CA), "data", "ca.crt");
  if (authorities === undefined) return undefined;
  const path = `/apis/${OPERAND.apiGroup}/${OPERAND.apiVersion}/${OPERAND.reviews}`;
  return {
    service: { name: "kubernetes", namespace: "default", port: 443, path },
    caBundle: Buffer.from(authorities).toString("base64"),
  };
}

/** The transport of a stored webhook. */
export function transportOf(webhook: JsonObject | undefined): Transport | undefined {
  if (webhook === undefined) return undefined;
  const service = at(listAt(webhook, "webhooks")[0], "clientConfig", "service");
  return stringAt(service, "name") === "kubernetes" ? "Aggregated" : "Direct";
}

/** The variable that makes the operand serve the aggregated API. */
export const SERVES_AGGREGATED = { name: OPERAND.transportVariable, value: "Aggregated" };

function servesAggregated(workload: JsonObject | undefined): boolean {
  const [container] = listAt(workload, "spec", "template", "spec", "containers");
  return listAt(container, "env").some(
    (one) =>
      isObject(one) && one["name"] === SERVES_AGGREGATED.name && one["value"] === SERVES_AGGREGATED.value,
  );
}

/** How the operand is called, and the progress of a change. */
export interface Transports {
  /** How the webhook calls from now on. */
  readonly asks: Transport;
  /** Whether pods serve the aggregated API: also as long as a webhook calls it. */
  readonly served: boolean;
  /** Whether the APIService may exist: without a pod behind it, discovery fails and namespaces are not deleted. */
  readonly announced: boolean;
  /** Why the webhook does not follow the spec, as a sentence. */
  readonly waits: string | undefined;
}

/**
 * Pods serve webhooks in either transport, so a webhook that calls directly may stay until the aggregated API is
 * available, and it can change back immediately.
 */
export function transportsOf(
  { transport }: LimitOperand,
  state: OperandState,
  stored: JsonObject | undefined,
  rollOut: RollOut | undefined,
  asked: Transport | undefined,
): Transports {
  const served = transport === "Aggregated" || asked === "Aggregated";
  const isRolledOut = rollOut !== undefined && rollOut.updated >= rollOut.desired && state.ready;
  const announced =
    rollOut?.desired !== 0 &&
    served &&
    (state.live(API_SERVICE) !== undefined || (isRolledOut && servesAggregated(stored)));
  const waits = transport === "Aggregated" ? missing(state) : undefined;
  const isAggregated = transport === "Aggregated" && (asked === "Aggregated" || waits === undefined);
  return { asks: isAggregated ? "Aggregated" : "Direct", served, announced, waits };
}

/** The missing parts of the aggregated transport. */
function missing(state: OperandState): string | undefined {
  if (state.live(KUBE_CA) === undefined)
    return `ConfigMap ${OPERAND.namespace}/kube-root-ca.crt is not there: kube-controller-manager writes it`;
  const service = state.live(API_SERVICE);
  const name = `APIService ${OPERAND.apiService}`;
  if (service === undefined) return `${name} is not there: it comes with the first ready pod`;
  const available = listAt(service, "status", "conditions").find((one) => at(one, "type") === "Available");
  if (at(available, "status") === "True") return undefined;
  return `${name} is not available: ${stringAt(available, "message") ?? "the API server has not asked it yet"}`;
}
