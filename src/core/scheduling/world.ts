import type { JsonObject } from "../json.ts";
import type { KubernetesRelease } from "./releases.ts";

type Objects = readonly JsonObject[] | undefined;

/**
 * The known state of a cluster, as API objects. An absent list is not in the view: a filter that needs it returns
 * unknown. An empty list means that there are none.
 */
export interface SchedulingWorld {
  /** @default the newest */
  readonly release?: KubernetesRelease | undefined;
  readonly nodes: readonly JsonObject[];
  /**
   * Pods with a node count; ended pods, and those without a node, do not. An already placed pod counts against itself:
   * leave it out to ask where else it could run.
   */
  readonly pods?: Objects;
  readonly namespaces?: Objects;
  readonly persistentVolumes?: Objects;
  readonly persistentVolumeClaims?: Objects;
  readonly storageClasses?: Objects;
  readonly csiNodes?: Objects;
  readonly csiDrivers?: Objects;
  readonly csiStorageCapacities?: Objects;
  readonly volumeAttachments?: Objects;
  readonly deviceClasses?: Objects;
  /** The name of the scheduler with the default profile. @default default-scheduler */
  readonly schedulerName?: string | undefined;
}
