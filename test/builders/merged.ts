import { Draft } from "../../src/core/evaluate/draft.ts";
import type { Finding, ModuleFinding, PolicyRef } from "../../src/core/evaluate/finding.ts";
import { type PatchOperation, patchOf } from "../../src/core/evaluate/patch.ts";
import { isObject, type Json, type JsonObject } from "../../src/core/json.ts";
import type { Path } from "../../src/core/path.ts";
import { writeProvenance } from "../../src/core/provenance/provenance.ts";
import {
  type Criteria,
  type FieldLimits,
  NO_CRITERIA,
} from "../../src/modules/placement/criteria/criteria.ts";
import { KnownTerms } from "../../src/modules/placement/criteria/node-terms/known-term.ts";
import { KnownLists } from "../../src/modules/placement/criteria/shape/known-list.ts";
import { merge, type PlacementRequest } from "../../src/modules/placement/merge/merge.ts";
import { WorkBudget } from "../../src/modules/placement/merge/work-budget.ts";
import { again } from "./json.ts";
import { pod } from "./pod.ts";

/** A wish of a policy, which by default skips what is in its way. */
export function wish(
  criteria: Partial<Criteria>,
  change: Partial<PlacementRequest> & { readonly name?: string } = {},
): PlacementRequest {
  const { name = "p", ...rest } = change;
  return {
    ref: { kind: "ClusterPodSchedulingPolicy", name },
    criteria: { ...NO_CRITERIA, ...criteria },
    onConflict: "Skip",
    failure: "Ignore",
    restoring: false,
    ...rest,
  };
}

export interface Merging {
  readonly old?: JsonObject;
  readonly limits?: FieldLimits;
  /** A template's. @default that of a pod */
  readonly spec?: Path;
  /** What may be done for the object. @default as much as for any */
  readonly effort?: WorkBudget;
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

/** An object after wishes were merged into it, as the engine would do it. */
export function merged(
  object: JsonObject,
  wishes: readonly PlacementRequest[],
  { old, limits = {}, spec = ["spec"], effort = new WorkBudget(), first }: Merging = {},
): Merged {
  const draft = new Draft(again(object), old === undefined ? undefined : again(old));
  draft.author = "placement";
  first?.(draft);
  const told: Finding[] = [];
  const holders = new Map<string, PolicyRef>();
  const lists = new KnownLists();
  const target = {
    draft,
    spec,
    pod: spec.length === 1,
    limits,
    holders,
    lists,
    terms: new KnownTerms(),
    effort,
  };
  for (const one of wishes) merge(target, one, told);
  const edits = draft.edits.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
  const findings: ModuleFinding[] = [...edits, ...told.map((one) => ({ module: "placement", ...one }))];
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
  wishes: readonly PlacementRequest[],
  merging: Merging = {},
): Merged {
  return merged(pod({ spec }), wishes, merging);
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
