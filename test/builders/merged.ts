import { Draft } from "../../src/core/decision/draft.ts";
import type { Finding, ModuleFinding } from "../../src/core/decision/finding.ts";
import { type PatchOperation, patchOf } from "../../src/core/decision/patch.ts";
import { isObject, type Json, type JsonObject } from "../../src/core/json.ts";
import { BUILT_IN_WORKLOADS } from "../../src/core/kubernetes/workloads.ts";
import type { Path } from "../../src/core/path.ts";
import { writeProvenance } from "../../src/core/provenance/provenance.ts";
import type { View } from "../../src/core/view/view.ts";
import { mergedObject, type PlacementRequest } from "../../src/modules/placement/criteria/context.ts";
import { type Limits, NO_LIMITS } from "../../src/modules/placement/criteria/criterion.ts";
import { WorkLimit } from "../../src/modules/placement/criteria/work-limit.ts";
import {
  carryInjections,
  keepStoredLists,
  type StalePart,
} from "../../src/modules/placement/place/injections.ts";
import { merge } from "../../src/modules/placement/place/merge-policies.ts";
import { again } from "./json.ts";
import { pod } from "./pod.ts";
import { type Fields, wants } from "./wants.ts";

/** The placement request of a policy; by default it skips conflicts. */
export function placementRequest(
  fields: Fields,
  change: Partial<PlacementRequest> & { readonly name?: string } = {},
): PlacementRequest {
  const { name = "p", ...rest } = change;
  return {
    ref: { kind: "ClusterPodSchedulingPolicy", name },
    criteria: wants(fields),
    onConflict: "Skip",
    failure: "Ignore",
    restoring: false,
    ...rest,
  };
}

export interface Merging {
  readonly old?: JsonObject;
  readonly limits?: Limits;
  /** The workload kind whose template is placed. @default a pod */
  readonly spec?: Path;
}

export interface Merged {
  /** Includes its provenance. */
  readonly object: JsonObject;
  readonly spec: JsonObject;
  readonly findings: readonly Finding[];
  readonly patch: readonly PatchOperation[];
}

/** An object after requests were merged into it, as the engine does it. */
export function merged(
  object: JsonObject,
  requests: readonly PlacementRequest[],
  { old, limits = NO_LIMITS, spec = ["spec"] }: Merging = {},
): Merged {
  const draft = new Draft(again(object), old === undefined ? undefined : again(old));
  draft.author = "placement";
  const reported: Finding[] = [];
  const target = { ...mergedObject(draft, spec, spec.length === 1), limits, limit: new WorkLimit() };
  for (const one of requests) merge(target, one, reported);
  return written(draft, spec, reported);
}

function written(draft: Draft, spec: Path, reported: readonly Finding[]): Merged {
  const edits = draft.edits.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
  const findings: ModuleFinding[] = [...edits, ...reported.map((one) => ({ module: "placement", ...one }))];
  writeProvenance(draft, findings, draft.old);
  const after = draft.get(...spec);
  return {
    object: again(draft.object),
    spec: isObject(after) ? again(after) : {},
    findings,
    patch: patchOf(draft),
  };
}

export interface Carrying {
  readonly limits?: Limits;
  /** The workload kind whose template is placed. @default a pod */
  readonly spec?: Path;
  /** @default all injections are kept */
  readonly stalePart?: StalePart;
  /** The current placement requests of policies. */
  readonly wanting?: readonly PlacementRequest[];
}

const NO_VIEW = { get: () => undefined } as unknown as View;
const TEMPLATE = BUILT_IN_WORKLOADS.find(({ kind }) => kind === "Deployment");

/** An object after an UPDATE that restored the injections of the stored object, removed stale ones and merged requests. */
export function carried(
  object: JsonObject,
  stored: JsonObject,
  { limits = NO_LIMITS, spec = ["spec"], stalePart, wanting = [] }: Carrying = {},
): Merged {
  if (TEMPLATE === undefined) throw new Error("Deployment is a known kind");
  const old = again(stored);
  const draft = new Draft(again(object), old);
  draft.author = "placement";
  const placement = { draft, spec, workload: TEMPLATE, labels: undefined };
  const reported: Finding[] = [];
  const carrying = { placement, view: NO_VIEW, old };
  const { removed } = carryInjections(carrying, reported, stalePart, limits);
  const target = { ...mergedObject(draft, spec, spec.length === 1, removed), limits, limit: new WorkLimit() };
  for (const one of wanting) merge(target, one, reported);
  keepStoredLists(placement, old, 0, "meaning");
  return written(draft, spec, reported);
}

/** The same for a bare spec. */
export function mergedSpec(
  spec: JsonObject,
  requests: readonly PlacementRequest[],
  merging: Merging = {},
): Merged {
  return merged(pod({ spec }), requests, merging);
}

const label = (key: string, operator: string, ...values: string[]): JsonObject => ({
  key,
  operator,
  ...(values.length === 0 ? {} : { values }),
});

/** A requirement in short form: `zone=a|b`, `zone!=a`, `zone`, `!zone`, `cores>4`, and `@node-1` for a node's name. */
function requirement(text: string): JsonObject {
  const [, not = "", key = "", sign = "", value = ""] = /^([!@]?)([^!=<>]*)(!=|=|<|>)?(.*)$/.exec(text) ?? [];
  if (not === "@") return label("metadata.name", "In", key);
  if (not === "!") return label(key, "DoesNotExist");
  if (sign === "") return label(key, "Exists");
  if (sign === "<" || sign === ">") return label(key, sign === ">" ? "Gt" : "Lt", value);
  return label(key, sign === "=" ? "In" : "NotIn", ...value.split("|"));
}

/** A term of requirements in short form. */
export function term(...texts: readonly string[]): JsonObject {
  const fields = texts.filter((text) => text.startsWith("@"));
  const labels = texts.filter((text) => !text.startsWith("@"));
  return {
    ...(labels.length === 0 ? {} : { matchExpressions: labels.map(requirement) }),
    ...(fields.length === 0 ? {} : { matchFields: fields.map(requirement) }),
  };
}

export function requiring(...terms: readonly Json[]): JsonObject {
  const required = { nodeSelectorTerms: terms };
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } };
}
