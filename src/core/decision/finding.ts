import type { Json } from "../json.ts";
import type { Path } from "../path.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";

/**
 * The outcome of one rule of one policy for one request.
 *
 * - `applied`: an edit was made;
 * - `same`: the object already had the value;
 * - `skipped`: a part was left out, the message has the reason;
 * - `violated`: a reason to deny;
 * - `would-violate`: the same, if the policy only informs;
 * - `authorized`: admitted by a named entry;
 * - `failed`: could not be evaluated; the policy's failure mode decided.
 */
export type FindingOutcome =
  | "applied"
  | "same"
  | "skipped"
  | "violated"
  | "would-violate"
  | "authorized"
  | "failed";

/** The object of an event. `kubectl describe` finds an event only by the uid of the object that it describes. */
export interface ObjectReference {
  readonly apiVersion?: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/**
 * An event about the object of the request, or about `regarding` if that object will not exist. An object that is being
 * created has its uid, and a generated name, only in the validating phase.
 */
export interface FindingEvent {
  readonly type: "Normal" | "Warning";
  /** A CamelCase word that can be searched. */
  readonly reason: string;
  readonly regarding?: ObjectReference;
  /** `none`: the finding's policy is not an object. @default the finding's policy */
  readonly related?: PolicyRef | "none";
  /** @default the finding's */
  readonly message?: string;
}

/** An event to be written after the response. */
export interface EventToWrite extends Omit<FindingEvent, "related"> {
  readonly regarding: ObjectReference;
  readonly message: string;
  readonly policy: PolicyRef | undefined;
  /** The rule of the policy, of an event of a review. */
  readonly rule?: string;
  /** No certificate proves that an API server sent the review: the object may not exist. */
  readonly unverified?: true;
}

/** The key is prefixed with the module's name, unless it is `unprefixed` because it is upstream's. */
export interface AuditAnnotation {
  readonly key: string;
  readonly value: string;
  readonly unprefixed?: true;
}

/** The unit of every explanation: warnings, causes, audit values, events, metrics and tallies all follow from it. */
export interface Finding {
  readonly policy?: PolicyRef;
  readonly rule: string;
  readonly outcome: FindingOutcome;
  /** A stable code such as `USHER-P01`, explained by `usher help`. */
  readonly code?: string;
  readonly path?: Path;
  /** With `same`, if the path is a list: the elements that it already has, as the policy has them. */
  readonly elements?: readonly Json[];
  /** The policy's requirement at the path, for a violation. */
  readonly wants?: Json;
  /** One sentence: the problem, its path, and the next step. */
  readonly message: string;
  /** The module itself records its change on the object: the edit is not in the provenance annotation. */
  readonly recordedByModule?: true;
  /** Message and audit value repeat another component's text: they stay whole, and no code follows the message. */
  readonly verbatim?: true;
  /** Shown to the client as a warning; higher ranks come first. */
  readonly warn?: number;
  /** The warning, if it is to be shorter than the message. */
  readonly warning?: string;
  readonly audit?: AuditAnnotation | readonly AuditAnnotation[];
  readonly event?: FindingEvent;
  /** Remembered over restarts and replicas: which fields, how often and when. Not on a dry run. */
  readonly observe?: Readonly<Record<string, string>>;
  /** The error that a module threw: only for the log, clients and audit logs see no internals. */
  readonly error?: unknown;
}

/** A finding with the name of its module. */
export interface ModuleFinding extends Finding {
  readonly module: string;
}

/** `maxSkew is too small (USHER-P12)` */
export function messageWithCode({ message, code, verbatim }: Finding): string {
  return code === undefined || verbatim ? message : `${message} (${code})`;
}
