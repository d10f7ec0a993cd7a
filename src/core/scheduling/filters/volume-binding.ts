import { at, type Json, type JsonObject, listAt, own, stringAt } from "../../json.ts";
import { annotationsOf, isBeingDeleted, labelsOf, nameOf, namespaceOf } from "../../kubernetes/object.ts";
import { parseQuantity } from "../../kubernetes/quantity.ts";
import { compileSelector, matches } from "../../kubernetes/selectors/label-selector.ts";
import { compileNodeSelector } from "../../kubernetes/selectors/node-selector.ts";
import { type Filter, type FilterOutcome, SKIPS, type Unknown, unknown, unresolvable } from "../filter.ts";
import { labelMatcher, termsMatcher } from "../node-matchers.ts";
import type { NodeTable } from "../node-table.ts";
import type { PreparedWorld } from "../prepared-world.ts";
import {
  accessModesOf,
  claimOf,
  claimVolumesOf,
  classOf,
  migratesVolumes,
  notForPod,
  notFound,
  translatedDriver,
} from "../volumes.ts";

const NAME = "VolumeBinding";
const NO_PLACE = "node(s) didn't match PersistentVolume's node affinity";
const NO_VOLUME = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE = "node(s) did not have enough free storage";
const GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
const MIGRATED = unknown(NAME, "the node translates in-tree volumes to those of a CSI driver");
const NO_PROVISIONER = "kubernetes.io/no-provisioner";
/** The version since which VolumeAttributesClass counts. */
const ATTRIBUTES_CLASS_SINCE = 34;

type Matcher = (node: number) => boolean;

/** Bound volumes that a node can't reach, and claims that wait for a node: volumes that could be bound there, or provisioned. */
export const VOLUME_BINDING: Filter = {
  name: NAME,
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const volumes = claimVolumesOf(pod);
    if (volumes.length === 0) return SKIPS;
    if (world.persistentVolumeClaims === undefined) return unknown(NAME, "the claims are not in the view");
    const claims: JsonObject[] = [];
    for (const { claimName, ephemeral } of volumes) {
      const claim = claimOf(pod, claimName, world);
      const wrong = unusable(claim, claimName, ephemeral, pod);
      if (wrong !== undefined || claim === undefined) return unresolvable(NAME, wrong ?? "");
      claims.push(claim);
    }
    const bound = claims.filter(isBound);
    const waiting = claims.filter((claim) => !isBound(claim));
    const immediate = unboundImmediate(waiting, world);
    if (immediate === "unknown") return unknown(NAME, "the storage classes are not in the view");
    if (immediate) return unresolvable(NAME, "pod has unbound immediate PersistentVolumeClaims");
    if (world.persistentVolumes === undefined) return unknown(NAME, "the volumes are not in the view");
    const judgeBound = boundJudge(bound, world);
    const judgeWaiting = waitingJudge(waiting, world);
    const known = new Map<string, FilterOutcome>();
    return {
      kind: "filters",
      judge: (node) => {
        const found = judgeBound(node);
        if (typeof found === "object") return found;
        const other = judgeWaiting(node);
        if (typeof other === "object")
          return found === "" || found === GONE ? other : failure(known, [found]);
        // The reasons come in the scheduler's order.
        return failure(
          known,
          [NO_PLACE, NO_VOLUME, NO_SPACE, GONE].filter((reason) => reason === found || reason === other),
        );
      },
    };
  },
};

function failure(known: Map<string, FilterOutcome>, reasons: readonly string[]): FilterOutcome {
  if (reasons.length === 0) return undefined;
  const key = reasons.join("\0");
  const outcome = known.get(key) ?? unresolvable(NAME, ...reasons);
  known.set(key, outcome);
  return outcome;
}

/** Why the pod can't use a claim on any node. */
function unusable(
  claim: JsonObject | undefined,
  name: string,
  ephemeral: boolean,
  pod: JsonObject,
): string | undefined {
  if (claim === undefined) {
    return ephemeral
      ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
      : notFound("persistentvolumeclaim", name);
  }
  if (at(claim, "status", "phase") === "Lost") {
    const volume = stringAt(claim, "spec", "volumeName") ?? "";
    return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${volume}"`;
  }
  if (isBeingDeleted(claim)) return `persistentvolumeclaim "${name}" is being deleted`;
  return ephemeral ? notForPod(pod, claim) : undefined;
}

function isBound(claim: JsonObject): boolean {
  if ((stringAt(claim, "spec", "volumeName") ?? "") === "") return false;
  return own(annotationsOf(claim), "pv.kubernetes.io/bind-completed") !== undefined;
}

/** Whether a claim that is not bound does not wait for a node. */
function unboundImmediate(claims: readonly JsonObject[], world: PreparedWorld): boolean | "unknown" {
  for (const claim of claims) {
    const name = classOf(claim);
    if (name === "" || (stringAt(claim, "spec", "volumeName") ?? "") !== "") return true;
    if (world.storageClasses === undefined) return "unknown";
    const storageClass = world.storageClasses.get(name);
    if (storageClass === undefined || own(storageClass, "volumeBindingMode") !== "WaitForFirstConsumer")
      return true;
  }
  return false;
}

/** The node affinity of a volume; without one every node reaches it. */
function volumeMatcher(volume: JsonObject, nodes: NodeTable): Matcher {
  const required = at(volume, "spec", "nodeAffinity", "required");
  if (required === undefined || required === null) return () => true;
  const { terms } = compileNodeSelector(required, []);
  // The scheduler shows the terms a node without a name, so that requirements on names do not count.
  return termsMatcher(
    terms.map((term) => (term.kind === "usable" ? { ...term, names: [] } : term)),
    nodes,
  );
}

/** The reason for a node, empty if there is none. */
type Judge = (node: number) => string | Unknown;

function boundJudge(claims: readonly JsonObject[], world: PreparedWorld): Judge {
  const { nodes } = world;
  const volumes = claims.map((claim) =>
    world.persistentVolumes?.get(stringAt(claim, "spec", "volumeName") ?? ""),
  );
  const matchers = volumes.map((volume) => (volume === undefined ? undefined : volumeMatcher(volume, nodes)));
  const translated = volumes.map(
    (volume) => volume !== undefined && translatedDriver(own(volume, "spec")) !== undefined,
  );
  return (node) => {
    for (const [i, reaches] of matchers.entries()) {
      if (reaches === undefined) return GONE;
      if (translated[i] === true) {
        if (world.csiNodes === undefined) return unknown(NAME, "the CSINodes are not in the view");
        if (migratesVolumes(world.csiNodes.get(nodes.names[node] ?? ""))) return MIGRATED;
      }
      if (!reaches(node)) return NO_PLACE;
    }
    return "";
  };
}

interface Waiting {
  readonly selectedNode: string | undefined;
  readonly candidates: readonly Candidate[];
  readonly provision: Judge;
}

interface Candidate {
  /** The volume was created for the claim: no other is considered. */
  readonly reserved: boolean;
  readonly reaches: Matcher;
}

function waitingJudge(claims: readonly JsonObject[], world: PreparedWorld): Judge {
  const waiting = claims.map((claim): Waiting => {
    const selected = own(annotationsOf(claim), "volume.kubernetes.io/selected-node");
    return {
      selectedNode: typeof selected === "string" ? selected : undefined,
      candidates: candidatesFor(claim, world),
      provision: provisionJudge(claim, world),
    };
  });
  const searching = waiting.filter(({ selectedNode }) => selectedNode === undefined);
  // Two claims could bind one volume, and which of them gets it depends on the order of the scheduler's cache.
  const contended = searching.length > 1 && searching.some(({ candidates }) => candidates.length > 0);
  return (node) => {
    const name = world.nodes.names[node] ?? "";
    if (waiting.some(({ selectedNode }) => selectedNode !== undefined && selectedNode !== name))
      return NO_VOLUME;
    if (contended) return unknown(NAME, "several claims of the pod could bind the same volumes");
    const provisioned = [
      ...waiting.filter(({ selectedNode }) => selectedNode !== undefined),
      ...searching.filter(({ candidates }) => !binds(candidates, node)),
    ];
    for (const { provision } of provisioned) {
      const found = provision(node);
      if (found !== "") return found;
    }
    return "";
  };
}

function binds(candidates: readonly Candidate[], node: number): boolean {
  const reserved = candidates.find((candidate) => candidate.reserved);
  if (reserved !== undefined) return reserved.reaches(node);
  return candidates.some(({ reaches }) => reaches(node));
}

/** The volumes that could be bound to a claim, on nodes that reach them. */
function candidatesFor(claim: JsonObject, world: PreparedWorld): readonly Candidate[] {
  const wanted = parseQuantity(at(claim, "spec", "resources", "requests", "storage")) ?? 0n;
  const className = classOf(claim);
  const selector = own(claim["spec"], "selector") ?? null;
  const compiled = compileSelector(selector, []).selector;
  const candidates: Candidate[] = [];
  for (const volume of world.persistentVolumes?.values() ?? []) {
    if (classOf(volume) !== className) continue;
    const reserved = isReservedFor(volume, claim);
    if ((at(volume, "spec", "claimRef") ?? null) !== null && !reserved) continue;
    const size = parseQuantity(at(volume, "spec", "capacity", "storage")) ?? 0n;
    if (size < wanted || volumeModeOf(volume) !== volumeModeOf(claim)) continue;
    if (!sameAttributesClass(volume, claim, world.minor) || isBeingDeleted(volume)) continue;
    if (!reserved) {
      if (at(volume, "status", "phase") !== "Available") continue;
      if (selector !== null && !matches(compiled, labelsOf(volume))) continue;
      if (!accessModesOf(claim).every((mode: Json) => accessModesOf(volume).includes(mode))) continue;
    }
    candidates.push({ reserved, reaches: volumeMatcher(volume, world.nodes) });
  }
  return candidates;
}

function isReservedFor(volume: JsonObject, claim: JsonObject): boolean {
  const reference = at(volume, "spec", "claimRef");
  if (stringAt(reference, "name") !== nameOf(claim)) return false;
  if ((stringAt(reference, "namespace") ?? "") !== namespaceOf(claim)) return false;
  const uid = stringAt(reference, "uid") ?? "";
  return uid === "" || uid === (stringAt(claim, "metadata", "uid") ?? "");
}

function volumeModeOf(object: JsonObject): string {
  return stringAt(object, "spec", "volumeMode") ?? "Filesystem";
}

function sameAttributesClass(volume: JsonObject, claim: JsonObject, minor: number): boolean {
  const [mine, other] = [claim, volume].map(
    (object) => stringAt(object, "spec", "volumeAttributesClassName") ?? "",
  );
  return minor >= ATTRIBUTES_CLASS_SINCE ? mine === other : other === "";
}

function provisionJudge(claim: JsonObject, world: PreparedWorld): Judge {
  const className = classOf(claim);
  const storageClass = world.storageClasses?.get(className);
  const provisioner = stringAt(storageClass, "provisioner") ?? "";
  if (provisioner === "" || provisioner === NO_PROVISIONER) return () => NO_VOLUME;
  const inTopology = topologyMatcher(listAt(storageClass, "allowedTopologies"), world.nodes);
  const hasSpace = capacityJudge(claim, className, provisioner, world);
  return (node) => (inTopology(node) ? hasSpace(node) : NO_VOLUME);
}

function topologyMatcher(terms: readonly Json[], nodes: NodeTable): Matcher {
  if (terms.length === 0) return () => true;
  const matchers = terms.map((term): Matcher => {
    const requirements = listAt(term, "matchLabelExpressions").map((expression) => {
      const values = new Set<Json | undefined>(listAt(expression, "values"));
      return labelMatcher(
        nodes,
        stringAt(expression, "key") ?? "",
        (value) => value !== undefined && values.has(value),
      );
    });
    return (node) => requirements.length > 0 && requirements.every((requirement) => requirement(node));
  });
  return (node) => matchers.some((matcher) => matcher(node));
}

/** Whether the driver reports enough capacity. Drivers that publish none always have it. */
function capacityJudge(
  claim: JsonObject,
  className: string,
  provisioner: string,
  world: PreparedWorld,
): Judge {
  const size = parseQuantity(at(claim, "spec", "resources", "requests", "storage"));
  if (size === undefined) return () => "";
  if (world.csiDrivers === undefined) return () => unknown(NAME, "the CSIDrivers are not in the view");
  const driver = world.csiDrivers.get(provisioner);
  if (driver === undefined || at(driver, "spec", "storageCapacity") !== true) return () => "";
  const capacities = world.world.csiStorageCapacities;
  if (capacities === undefined) return () => unknown(NAME, "the CSIStorageCapacities are not in the view");
  const { nodes } = world;
  const places: Matcher[] = [];
  for (const capacity of capacities) {
    if (stringAt(capacity, "storageClassName") !== className) continue;
    const limit = parseQuantity(own(capacity, "maximumVolumeSize") ?? own(capacity, "capacity"));
    if (limit === undefined || limit < size) continue;
    const { selector } = compileSelector(own(capacity, "nodeTopology"), []);
    if (selector.kind === "nothing") continue;
    places.push((node) => matches(selector, labelsOf(nodes.objects[node] ?? {})));
  }
  return (node) => (places.some((place) => place(node)) ? "" : NO_SPACE);
}
