import type { JsonObject } from "../json.ts";
import type { KubernetesRelease } from "./releases.ts";

type Objects = readonly JsonObject[] | undefined;

/**
 * What is known of a cluster, as objects of the API. A list that is absent is not in the view: a filter that needs it answers unknown. An
 * empty list says that there are none.
 */
export interface SchedulingWorld {
  /** @default the newest */
  readonly release?: KubernetesRelease | undefined;
  readonly nodes: readonly JsonObject[];
  /**
   * Those with a node count; pods that have ended, and those without a node, do not. A pod that is placed already counts against itself:
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
