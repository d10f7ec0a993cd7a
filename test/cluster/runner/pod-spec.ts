// The fields of a pod that the runner reads. The API server has validated and defaulted them, so the shapes can be
// relied on.
import type { JsonObject } from "../../../src/core/json.ts";

export interface Probe {
  readonly httpGet?: { readonly path?: string; readonly port: number | string; readonly scheme?: string };
  readonly tcpSocket?: { readonly port: number | string };
  readonly exec?: { readonly command: readonly string[] };
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

export interface KeyRef {
  readonly name: string;
  readonly key: string;
  readonly optional?: boolean;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly configMapKeyRef?: KeyRef;
    readonly secretKeyRef?: KeyRef;
  };
}

export interface EnvFrom {
  readonly prefix?: string;
  readonly configMapRef?: { readonly name: string; readonly optional?: boolean };
  readonly secretRef?: { readonly name: string; readonly optional?: boolean };
}

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly EnvFrom[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly subPath?: string;
    readonly readOnly?: boolean;
  }[];
  readonly securityContext?: JsonObject;
  readonly resources?: { readonly limits?: Readonly<Record<string, string>> };
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: {
    readonly preStop?: {
      readonly sleep?: { readonly seconds: number };
      readonly exec?: { readonly command: readonly string[] };
    };
  };
}

export interface Item {
  readonly key: string;
  readonly path: string;
}

/** One source of files: a volume has one, a projected volume has many. */
export interface Source {
  readonly configMap?: {
    readonly name: string;
    readonly items?: readonly Item[];
    readonly optional?: boolean;
  };
  readonly secret?: {
    readonly name?: string;
    readonly secretName?: string;
    readonly items?: readonly Item[];
    readonly optional?: boolean;
  };
  readonly downwardAPI?: {
    readonly items?: readonly { readonly path: string; readonly fieldRef?: { readonly fieldPath: string } }[];
  };
  readonly serviceAccountToken?: {
    readonly audience?: string;
    readonly expirationSeconds?: number;
    readonly path: string;
  };
}

export interface Volume extends Source {
  readonly name: string;
  readonly projected?: { readonly sources?: readonly Source[] };
}

export interface Pod extends JsonObject {
  readonly metadata: JsonObject & {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  readonly spec: JsonObject & {
    readonly nodeName: string;
    readonly restartPolicy: "Always" | "OnFailure" | "Never";
  };
}

// The lists of the spec have optional fields, which JSON's own type can't express; hence these types.
export function containersOf(pod: Pod): readonly ContainerSpec[] {
  return pod.spec["containers"] as unknown as readonly ContainerSpec[];
}

export function initContainersOf(pod: Pod): readonly ContainerSpec[] {
  return (pod.spec["initContainers"] ?? []) as unknown as readonly ContainerSpec[];
}

export function volumesOf(pod: Pod): readonly Volume[] {
  return (pod.spec["volumes"] ?? []) as unknown as readonly Volume[];
}
