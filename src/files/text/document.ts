import type { Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";

/** A stretch of a text, by offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Something wrong with a text itself, before anyone asks what it means. */
export interface TextProblem extends Span {
  readonly message: string;
  readonly hint?: string;
}

/** The place of a path in a text. If the path is absent, it is that of the nearest ancestor, and `exact` is false. */
export interface Place {
  readonly key: Span | undefined;
  readonly value: Span;
  readonly exact: boolean;
}

/** One document as it was read. `locate` holds on to the syntax tree, so keep a document no longer than its problems need. */
export interface TextDocument {
  /** `undefined` where the document is empty or can't be read. */
  readonly value: Json | undefined;
  readonly problems: readonly TextProblem[];
  readonly locate: (path: Path) => Place;
}

/**
 * How deep a document may be nested. Kubernetes' deepest objects (a CRD's schema of a pod template) stay below 60; the
 * limit keeps everything that walks an object far away from the end of the stack.
 */
export const MAX_DEPTH = 512;

export const TOO_DEEP = `is nested more than ${MAX_DEPTH} levels deep`;
