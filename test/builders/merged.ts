import { Draft } from "../../src/core/evaluate/draft.ts";
import type { Finding, ModuleFinding } from "../../src/core/evaluate/finding.ts";
import { type PatchOperation, patchOf } from "../../src/core/evaluate/patch.ts";
import { isObject, type Json, type JsonObject } from "../../src/core/json.ts";
import type { Path } from "../../src/core/path.ts";
import { writeProvenance } from "../../src/core/provenance/provenance.ts";
import { type Limits, NO_LIMITS } from "../../src/modules/placement/criteria/criterion.ts";
import { merge } from "../../src/modules/placement/merge/merge.ts";
import { mergedObject, type PlacementRequest } from "../../src/modules/placement/merge/target.ts";
import { WorkBudget } from "../../src/modules/placement/merge/work-budget.ts";
import { again } from "./json.ts";
import { pod } from "./pod.ts";
import { type Fields, wants } from "./wants.ts";

/** What a policy wants of an object; by default it skips conflicts. */
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
  /** A template's. @default that of a pod */
  readonly spec?: Path;
  /** What may be done for the object. @default as much as for any */
  readonly budget?: WorkBudget;
  /** Done to the draft before anything is merged. */
  readonly first?: (draft: Draft) => void;
}

export interface Merged {
  /** With its provenance. */
  readonly object: JsonObject;
  readonly spec: JsonObject;
  readonly findings: readonly Finding[];
  readonly patch: readonly PatchOperation[];
}

/** An object after requests were merged into it, as the engine would do it. */
export function merged(
  object: JsonObject,
  requests: readonly PlacementRequest[],
  { old, limits = NO_LIMITS, spec = ["spec"], budget = new WorkBudget(), first }: Merging = {},
): Merged {
  const draft = new Draft(again(object), old === undefined ? undefined : again(old));
  draft.author = "placement";
  first?.(draft);
  const reported: Finding[] = [];
  const target = { ...mergedObject(draft, spec, spec.length === 1), limits, budget };
  for (const one of requests) merge(target, one, reported);
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

/** A requirement in short: `zone=a|b`, `zone!=a`, `zone`, `!zone`, `cores>4`, and `@node-1` for the name of a node. */
function requirement(text: string): JsonObject {
  const [, not = "", key = "", sign = "", value = ""] = /^([!@]?)([^!=<>]*)(!=|=|<|>)?(.*)$/.exec(text) ?? [];
  if (not === "@") return label("metadata.name", "In", key);
  if (not === "!") return label(key, "DoesNotExist");
  if (sign === "") return label(key, "Exists");
  if (sign === "<" || sign === ">") return label(key, sign === ">" ? "Gt" : "Lt", value);
  return label(key, sign === "=" ? "In" : "NotIn", ...value.split("|"));
}

/** A term of such requirements. */
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
