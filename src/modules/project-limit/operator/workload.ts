import { at, type JsonObject, stringAt } from "../../../core/json.ts";
import {
  CONTAINER_SECURITY,
  fieldVariable,
  POD_SECURITY,
  PRIORITY_CLASS,
  TOKEN_PATH,
} from "../../../core/registration/pods/restricted-pod.ts";
import { OPERAND } from "../operand-names.ts";
import { SERVES_AGGREGATED } from "./aggregated.ts";
import type { LimitOperand } from "./operand.ts";

/** One that is replaced, and one that answers. */
const REPLICAS = 2;

/** Serving after SIGTERM takes 5 s and the longest call 30 s, and then the lease is released. */
const GRACE_SECONDS = 45;

/** Both names of the control plane's taint. */
const TOLERATIONS = ["control-plane", "master"].map((role) => ({
  key: `node-role.kubernetes.io/${role}`,
  operator: "Exists",
  effect: "NoSchedule",
}));

/** A reference to the operand's workload, by its kind alone. */
export function workloadReference(kind: LimitOperand["topology"]): JsonObject {
  const { name, namespace } = OPERAND;
  return { apiVersion: "apps/v1", kind, metadata: { name, namespace } };
}

export interface OperandWorkloadOptions {
  readonly image: string;
  readonly certHash: string;
  /** As it is stored. */
  readonly stored: JsonObject | undefined;
  /** Whether it serves the aggregated API, too. */
  readonly aggregated: boolean;
}

/**
 * The operand's workload. The template depends only on the custom resource, the image and the certificate, so that
 * another version of the operator with the same image replaces no pod.
 */
export function workload(operand: LimitOperand, options: OperandWorkloadOptions): JsonObject {
  const selector = { matchLabels: OPERAND.podLabels };
  const template = {
    metadata: {
      labels: { ...operand.podLabels, ...OPERAND.podLabels },
      annotations: {
        [OPERAND.configurationHash]: operand.configHash,
        [OPERAND.certificateHash]: options.certHash,
      },
    },
    spec: podSpec(operand, options),
  };
  const one = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } };
  // A single pod is replaced by a second one first, otherwise nothing would answer.
  const single = { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } };
  const isSingle = at(options.stored, "status", "desiredNumberScheduled") === 1;
  const spec =
    operand.topology === "Deployment"
      ? { replicas: REPLICAS, strategy: one, selector, template }
      : { updateStrategy: isSingle ? single : one, selector, template };
  return { ...workloadReference(operand.topology), spec };
}

function podSpec(
  { topology, nodeSelector }: LimitOperand,
  { image, aggregated }: OperandWorkloadOptions,
): JsonObject {
  const spread = {
    maxSkew: 1,
    topologyKey: "kubernetes.io/hostname",
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: OPERAND.podLabels },
  };
  return {
    serviceAccountName: OPERAND.name,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    priorityClassName: PRIORITY_CLASS,
    securityContext: POD_SECURITY,
    nodeSelector,
    tolerations: TOLERATIONS,
    ...(topology === "Deployment" ? { topologySpreadConstraints: [spread] } : {}),
    containers: [
      {
        name: OPERAND.name,
        image,
        command: [OPERAND.program],
        args: [`--configuration=$(${OPERAND.configurationVariable})`],
        env: [
          { name: OPERAND.configurationVariable, value: OPERAND.configurationFile },
          ...(aggregated ? [SERVES_AGGREGATED] : []),
          fieldVariable("POD_NAME", "metadata.name"),
          fieldVariable("POD_NAMESPACE", "metadata.namespace"),
          fieldVariable("POD_UID", "metadata.uid"),
          TOKEN_PATH,
        ],
        ports: [
          { name: "https", containerPort: OPERAND.port, protocol: "TCP" },
          { name: "ops", containerPort: OPERAND.opsPort, protocol: "TCP" },
        ],
        startupProbe: { httpGet: { path: "/livez", port: "ops" }, periodSeconds: 1, failureThreshold: 600 },
        readinessProbe: { httpGet: { path: "/readyz", port: "ops" }, periodSeconds: 2, failureThreshold: 2 },
        livenessProbe: { httpGet: { path: "/livez", port: "ops" }, periodSeconds: 10, failureThreshold: 3 },
        resources: { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [
          {
            name: OPERAND.configurationVolume,
            mountPath: OPERAND.configurationFile,
            subPath: OPERAND.configurationKey,
            readOnly: true,
          },
          { name: OPERAND.certificateVolume, mountPath: OPERAND.certificateFolder, readOnly: true },
          { name: "tmp", mountPath: "/tmp" },
        ],
      },
    ],
    volumes: [
      { name: OPERAND.configurationVolume, configMap: { name: OPERAND.configMap } },
      {
        name: OPERAND.certificateVolume,
        secret: {
          secretName: OPERAND.servingSecret,
          // Of an own certificate, only the served part: the next one is not for the pods yet.
          items: ["tls.crt", "tls.key"].map((key) => ({ key, path: key })),
        },
      },
      { name: "tmp", emptyDir: {} },
    ],
  };
}

/** The progress of a workload, according to its controller. */
export interface RollOut {
  readonly desired: number;
  /** Pods of the current template. */
  readonly updated: number;
  readonly ready: number;
}

/** Absent while its controller has not seen the spec. */
export function rollOutOf(live: JsonObject | undefined): RollOut | undefined {
  if (at(live, "status", "observedGeneration") !== at(live, "metadata", "generation")) return undefined;
  const count = (...path: readonly string[]) => Number(at(live, ...path) ?? 0);
  return stringAt(live, "kind") === "Deployment"
    ? {
        desired: count("spec", "replicas"),
        updated: count("status", "updatedReplicas"),
        ready: count("status", "readyReplicas"),
      }
    : {
        desired: count("status", "desiredNumberScheduled"),
        updated: count("status", "updatedNumberScheduled"),
        ready: count("status", "numberReady"),
      };
}

/** The hashes on the template of a stored workload. */
export function storedHash(live: JsonObject | undefined, annotation: string): string | undefined {
  return stringAt(live, "spec", "template", "metadata", "annotations", annotation);
}
