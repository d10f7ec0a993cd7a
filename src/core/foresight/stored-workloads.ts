import { type AdmissionRequest, resourceName, supposedRequest } from "../decision/request.ts";
import { isObject, type JsonObject } from "../json.ts";
import { admissionDefaults, defaulted } from "../kubernetes/defaults/defaults.ts";
import {
  controllerOf,
  groupVersionOf,
  isBeingDeleted,
  isMirrorPod,
  nameOf,
  namespaceOf,
  SERVER_METADATA,
  withoutMetadata,
} from "../kubernetes/object.ts";
import { isFinished, unboundSpec } from "../kubernetes/pod-state.ts";
import type { WorkloadKind } from "../kubernetes/workloads.ts";
import { beforeUsher } from "../provenance/before.ts";
import { userInfoFor } from "../review/review.ts";
import type { World } from "./world.ts";

/** A stored workload that no other stored one controls, and how many pods it has. */
interface StoredWorkload {
  readonly workload: WorkloadKind;
  readonly object: JsonObject;
  /** Its current pods, through all levels of owners; 1 for a pod itself. */
  readonly pods: readonly JsonObject[];
}

/** Every workload of a world whose pods are still to come or to be replaced. `namespace`: only of this one. */
export function storedWorkloads(world: World, namespace?: string): StoredWorkload[] {
  const { workloads } = world.assembly.installation;
  const ownerOf = (object: JsonObject) => {
    const controller = controllerOf(object);
    if (controller === undefined) return undefined;
    const kind = workloads.byKind(groupVersionOf(controller.apiVersion).group, controller.kind);
    const owner = kind && world.get(resourceName(kind), namespaceOf(object), controller.name);
    return kind === undefined || owner === undefined ? undefined : { workload: kind, object: owner };
  };
  const pods = new Map<JsonObject, JsonObject[]>();
  for (const pod of world.list("pods")) {
    if (isFinished(pod)) continue;
    let root = pod;
    for (let owner = ownerOf(root), steps = 0; owner !== undefined && steps < 8; steps++) {
      root = owner.object;
      owner = ownerOf(root);
    }
    pods.set(root, [...(pods.get(root) ?? []), pod]);
  }
  return workloads.all.flatMap((workload) =>
    world
      .list(resourceName(workload))
      .filter((object) => namespace === undefined || namespaceOf(object) === namespace)
      .filter((object) => !isBeingDeleted(object) && !isMirrorPod(object) && !isFinished(object))
      .filter((object) => ownerOf(object) === undefined)
      .map((object) => ({ workload, object, pods: pods.get(object) ?? [] })),
  );
}

interface RequestOptions {
  readonly priorityClasses: readonly JsonObject[];
  /** The object is a manifest, not a stored object. @default false */
  readonly written?: boolean;
}

/**
 * The request that creates a stored workload without usher's changes. It is a dry run and does not count. The user is
 * an administrator, because the creator of a stored object is unknown.
 */
export function requestFor(
  object: JsonObject,
  workload: WorkloadKind,
  { priorityClasses, written = false }: RequestOptions,
): AdmissionRequest {
  const { status: _status, ...rest } = beforeUsher(object).object;
  const original = withoutMetadata(rest, SERVER_METADATA);
  const isPod = workload.template.length === 0;
  const { spec } = original;
  // The scheduler has set the node of a stored pod; its author that of a manifest.
  const unbound = isPod && !written && isObject(spec) ? { spec: unboundSpec(spec) } : {};
  const filled = defaulted({ ...original, ...unbound }, workload);
  const created = isPod ? admissionDefaults(filled, { priorityClasses, operation: "CREATE" }) : filled;
  return supposedRequest(workload, created, {
    uid: "foresight",
    name: nameOf(object),
    namespace: namespaceOf(object),
    userInfo: userInfoFor("kubernetes-admin", []),
    unvalidated: true,
  });
}
