import type { Draft } from "../../../core/decision/draft.ts";
import { canonical, type Json, type JsonObject } from "../../../core/json.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import { type Path, pointer } from "../../../core/path.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import type { Criteria, Limits } from "./criterion.ts";
import { KnownLists } from "./known-list.ts";
import { ParsedTerms } from "./node-term.ts";
import type { WorkLimit } from "./work-limit.ts";

/** An object to be placed, and the path of its pod spec. */
export interface PlacementContext {
  readonly draft: Draft;
  readonly workload: WorkloadKind;
  readonly spec: Path;
  readonly labels: JsonObject | undefined;
}

/** The placement request of one policy for one object, and its reaction to a conflict. */
export interface PlacementRequest {
  readonly ref: PolicyRef;
  readonly criteria: Criteria;
  readonly onConflict: "Skip" | "Refuse";
  readonly failure: "Ignore" | "Fail";
  /** It restores the stored object's value: limits do not apply, and a value that the user sets wins without a finding. */
  readonly restoring: boolean;
}

/** The object that placement requests are merged into, with its precomputed parts. Shared by all requests of one merge. */
export interface MergedObject {
  readonly draft: Draft;
  /** The path of the pod's spec. */
  readonly spec: Path;
  /** A Pod itself, not a template. */
  readonly pod: boolean;
  /** The policy that set a place in this merge. */
  readonly holders: Map<string, PolicyRef>;
  /** Injections that were removed in this evaluation, to be written again if still required: see `injectionText`. */
  readonly removed: ReadonlySet<string>;
  /** Its lists, each read once. */
  readonly lists: KnownLists;
  /** Its required terms, each read once. */
  readonly terms: ParsedTerms;
}

/** The same for one request. */
export interface MergeContext extends MergedObject {
  readonly limits: Limits;
  readonly limit: WorkLimit;
}

export function mergedObject(
  draft: Draft,
  spec: Path,
  pod: boolean,
  removed: ReadonlySet<string> = new Set(),
): MergedObject {
  return { draft, spec, pod, holders: new Map(), removed, lists: new KnownLists(), terms: new ParsedTerms() };
}

/** A value that a policy injected at a place, or an element in a list. */
export function injectionText(place: Path, value: Json): string {
  return `${pointer(place)} ${canonical(value)}`;
}
