import { type JsonObject, own, stringAt } from "../../json.ts";
import { labelsOf } from "../../kubernetes/object.ts";
import { labelValue } from "../../kubernetes/selectors/label-selector.ts";
import { type Filter, type FilterFailure, SKIPS, unknown, unresolvable } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";
import { claimOf, claimVolumesOf, classOf, notFound } from "../volumes.ts";

const NAME = "VolumeZone";
const CONFLICT = unresolvable(NAME, "node(s) had no available volume zone");

/** The labels of zones and regions; the beta ones with their successors. */
const LABELS: readonly { readonly key: string; readonly current: string }[] = [
  { key: "failure-domain.beta.kubernetes.io/zone", current: "topology.kubernetes.io/zone" },
  { key: "failure-domain.beta.kubernetes.io/region", current: "topology.kubernetes.io/region" },
  { key: "topology.kubernetes.io/zone", current: "topology.kubernetes.io/zone" },
  { key: "topology.kubernetes.io/region", current: "topology.kubernetes.io/region" },
];

interface Topology {
  readonly key: string;
  readonly current: string;
  readonly values: ReadonlySet<string>;
}

/** Volumes with labels of a zone or region are reachable only from nodes of the same. Nodes without such labels reach all. */
export const VOLUME_ZONE: Filter = {
  name: NAME,
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const claims = claimVolumesOf(pod).filter(({ ephemeral }) => !ephemeral);
    if (claims.length === 0) return SKIPS;
    if (world.persistentVolumeClaims === undefined) return unknown(NAME, "the claims are not in the view");
    const topologies: Topology[] = [];
    for (const { claimName } of claims) {
      if (claimName === "") return unresolvable(NAME, "PersistentVolumeClaim had no name");
      const claim = claimOf(pod, claimName, world);
      if (claim === undefined) return unresolvable(NAME, notFound("persistentvolumeclaim", claimName));
      const volumeName = stringAt(claim, "spec", "volumeName") ?? "";
      if (volumeName === "") {
        const wrong = unbound(claim, world);
        if (wrong !== undefined) return wrong;
        continue;
      }
      if (world.persistentVolumes === undefined) return unknown(NAME, "the volumes are not in the view");
      const volume = world.persistentVolumes.get(volumeName);
      if (volume === undefined) return unresolvable(NAME, notFound("persistentvolume", volumeName));
      topologies.push(...topologiesOf(volume));
    }
    if (topologies.length === 0) return SKIPS;
    const { nodes } = world;
    const columns = topologies.map((topology) => ({
      ...topology,
      own: nodes.label(topology.key),
      other: nodes.label(topology.current),
    }));
    const all = LABELS.map(({ key }) => nodes.label(key));
    return {
      kind: "filters",
      judge: (node) => {
        if (all.every(({ classes, values }) => values[classes[node] ?? 0] === undefined)) return undefined;
        for (const { own: first, other, values } of columns) {
          const value = first.values[first.classes[node] ?? 0] ?? other.values[other.classes[node] ?? 0];
          if (value === undefined || !values.has(value)) return CONFLICT;
        }
        return undefined;
      },
    };
  },
};

/** An unbound claim has no zone yet if its class waits for the first consumer. */
function unbound(
  claim: JsonObject,
  world: PreparedWorld,
): FilterFailure | ReturnType<typeof unknown> | undefined {
  const name = classOf(claim);
  if (name === "") return unresolvable(NAME, "PersistentVolumeClaim had no pv name and storageClass name");
  if (world.storageClasses === undefined) return unknown(NAME, "the storage classes are not in the view");
  const storageClass = world.storageClasses.get(name);
  if (storageClass === undefined) return unresolvable(NAME, notFound("storageclass.storage.k8s.io", name));
  if (own(storageClass, "volumeBindingMode") === "WaitForFirstConsumer") return undefined;
  return unresolvable(NAME, "PersistentVolume had no name");
}

function topologiesOf(volume: JsonObject): readonly Topology[] {
  const topologies: Topology[] = [];
  for (const { key, current } of LABELS) {
    const value = labelValue(labelsOf(volume), key);
    if (value === undefined) continue;
    // A volume of several zones has them in one value.
    const values = value.split("__").map((zone) => zone.trim());
    if (!values.includes("")) topologies.push({ key, current, values: new Set(values) });
  }
  return topologies;
}
