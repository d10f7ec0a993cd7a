import type { JsonObject } from "../json.ts";
import type { KubernetesRelease } from "./releases.ts";

/**
 * What is known of a cluster, as objects of the API. A list that is `undefined` is not in the view: a filter that needs it answers
 * unknown. An empty list says that there are none.
 */
export interface SchedulingWorld {
  /** @default the newest */
  readonly release?: KubernetesRelease;
  readonly nodes: readonly JsonObject[];
  /** Those with a node count; pods that have ended, and those without a node, are left out. */
  readonly pods: readonly JsonObject[] | undefined;
  readonly namespaces: readonly JsonObject[] | undefined;
  readonly persistentVolumes: readonly JsonObject[] | undefined;
  readonly persistentVolumeClaims: readonly JsonObject[] | undefined;
  readonly storageClasses: readonly JsonObject[] | undefined;
  readonly csiNodes: readonly JsonObject[] | undefined;
  readonly csiDrivers: readonly JsonObject[] | undefined;
  readonly csiStorageCapacities: readonly JsonObject[] | undefined;
  /** Only where the scheduler has another configuration than the default profile under this name. @default default-scheduler */
  readonly schedulerName?: string;
}
