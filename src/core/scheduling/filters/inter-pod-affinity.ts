import type { JsonObject } from "../../json.ts";
import { labelsOf, nameOf, namespaceOf } from "../../kubernetes/object.ts";
import { matches } from "../../kubernetes/selectors/label-selector.ts";
import { type Filter, type FilterOutcome, resolvable, SKIPS, unknown, unresolvable } from "../filter.ts";
import type { NodeTable } from "../node-table.ts";
import type { PlacedPods, PlacedTerm } from "../placed-pods.ts";
import {
  type AffinityTerm,
  affinityTerms,
  antiAffinityTerms,
  coversNamespace,
} from "../pod-affinity-terms.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const NAME = "InterPodAffinity";
const NO_AFFINITY = unresolvable(NAME, "node(s) didn't match pod affinity rules");
const ANTI_AFFINITY = resolvable(NAME, "node(s) didn't match pod anti-affinity rules");
const EXISTING = resolvable(NAME, "node(s) didn't satisfy existing pods anti-affinity rules");

/** Required affinity and anti-affinity of the pod, and required anti-affinity of placed pods against it. */
export const INTER_POD_AFFINITY: Filter = {
  name: NAME,
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const affinity = affinityTerms(pod, "pending");
    const antiAffinity = antiAffinityTerms(pod, "pending");
    const { placed, nodes, namespaces } = world;
    if (affinity === undefined || antiAffinity === undefined)
      return unknown(NAME, "a term of the pod's affinity can't be read");
    if (placed === undefined) return unknown(NAME, "the pods of the nodes are not in the view");
    const existing = placed.antiAffinity;
    if (existing.unreadable) return unknown(NAME, "the anti-affinity of a placed pod can't be read");
    const terms = [...affinity, ...antiAffinity, ...existing.terms.map(({ term }) => term)];
    if (
      namespaces === undefined &&
      terms.some(({ namespaceSelector }) => namespaceSelector.kind === "requirements")
    )
      return unknown(NAME, "the namespaces are not in the view");
    const opposed = opposedDomains(existing.terms, pod, world);
    if (affinity.length === 0 && antiAffinity.length === 0 && opposed.size === 0) return SKIPS;
    const own = antiAffinity
      .map((term) => domainsOf([term], [term], placed, world))
      .filter(({ size }) => size > 0);
    const judgeAffinity = affinityJudge(affinity, pod, placed, world);
    const repelled = own.map((domains) => memberOf(domains, nodes));
    const isOpposed = memberOf(opposed, nodes);
    return {
      kind: "filters",
      judge: (node): FilterOutcome => {
        if (!judgeAffinity(node)) return NO_AFFINITY;
        if (repelled.some((isMember) => isMember(node))) return ANTI_AFFINITY;
        return isOpposed(node) ? EXISTING : undefined;
      },
    };
  },
};

/** Topology keys with the domains in which something was found, as a mark per class of the key's column. */
type Domains = ReadonlyMap<string, Uint8Array>;

function memberOf(domains: Domains, nodes: NodeTable): (node: number) => boolean {
  const columns = [...domains].map(([key, marks]) => ({ classes: nodes.label(key).classes, marks }));
  return (node) => columns.some(({ classes, marks }) => marks[classes[node] ?? 0] === 1);
}

/** Marks the domains of nodes. Nodes without the key have none. */
function mark(domains: Map<string, Uint8Array>, key: string, on: readonly number[], nodes: NodeTable): void {
  const { classes, values } = nodes.label(key);
  let marks = domains.get(key);
  for (const node of on) {
    const domain = classes[node] ?? 0;
    if (values[domain] === undefined) continue;
    if (marks === undefined) {
      marks = new Uint8Array(values.length);
      domains.set(key, marks);
    }
    marks[domain] = 1;
  }
}

/** Domains excluded by anti-affinity of placed pods. */
function opposedDomains(terms: readonly PlacedTerm[], pod: JsonObject, world: PreparedWorld): Domains {
  const namespace = namespaceOf(pod);
  const namespaceObject = world.namespaces?.get(namespace);
  const namespaceLabels = namespaceObject === undefined ? undefined : labelsOf(namespaceObject);
  const labels = labelsOf(pod);
  const domains = new Map<string, Uint8Array>();
  for (const { term, nodes: on } of terms) {
    if (!coversNamespace(term, namespace, namespaceLabels) || !matches(term.selector, labels)) continue;
    mark(domains, term.topologyKey, on, world.nodes);
  }
  return domains;
}

/** The domains, by each of `keys`, of placed pods that match all terms. */
function domainsOf(
  terms: readonly AffinityTerm[],
  keys: readonly AffinityTerm[],
  placed: PlacedPods,
  world: PreparedWorld,
): Domains {
  const { nodes } = world;
  const covered = terms.map((term) => namespacesOf(term, world));
  const domains = new Map<string, Uint8Array>();
  for (const [namespace, classes] of placed.byLabels) {
    if (!covered.every((covers) => covers(namespace))) continue;
    for (const { labels, nodes: on, deletedOn } of classes) {
      if (!terms.every(({ selector }) => matches(selector, labels))) continue;
      for (const { topologyKey } of keys) {
        mark(domains, topologyKey, on, nodes);
        mark(domains, topologyKey, deletedOn, nodes);
      }
    }
  }
  return domains;
}

/** From 1.34 to 1.36 a selector that namespaces without labels match selects every namespace. */
const SELECTS_ALL = { since: 34, until: 36 };

/** The namespaces that a term of the pod is about: a selector is resolved to the namespaces that exist. */
function namespacesOf(term: AffinityTerm, { namespaces, minor }: PreparedWorld): (name: string) => boolean {
  const { namespaceSelector } = term;
  if (namespaceSelector.kind !== "requirements")
    return (name) => namespaceSelector.kind === "everything" || term.namespaces.has(name);
  if (minor >= SELECTS_ALL.since && minor <= SELECTS_ALL.until && matches(namespaceSelector, undefined))
    return () => true;
  const names = new Set(term.namespaces);
  for (const namespace of namespaces?.values() ?? [])
    if (matches(namespaceSelector, labelsOf(namespace))) names.add(nameOf(namespace));
  return (name) => names.has(name);
}

function affinityJudge(
  terms: readonly AffinityTerm[],
  pod: JsonObject,
  placed: PlacedPods,
  world: PreparedWorld,
): (node: number) => boolean {
  if (terms.length === 0) return () => true;
  const { nodes } = world;
  const domains = domainsOf(terms, terms, placed, world);
  // The first pod of a self-affine group may go anywhere.
  const isFirst =
    domains.size === 0 &&
    terms.every(
      (term) => namespacesOf(term, world)(namespaceOf(pod)) && matches(term.selector, labelsOf(pod)),
    );
  const columns = terms.map(({ topologyKey }) => ({
    ...nodes.label(topologyKey),
    marks: domains.get(topologyKey),
  }));
  return (node) =>
    columns.every(({ classes, values }) => values[classes[node] ?? 0] !== undefined) &&
    (isFirst || columns.every(({ classes, marks }) => marks?.[classes[node] ?? 0] === 1));
}
