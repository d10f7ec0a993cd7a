import type { JsonObject } from "../../core/json.ts";
import type { Change } from "../../core/view/view.ts";

/** What the shell is to do next. There is one thing under way at any time. */
export type Action =
  /** Ask whether, and where, the resource is served. */
  | { readonly do: "locate" }
  | { readonly do: "list"; readonly limit: number; readonly next: string | undefined }
  /** A watch that begins with all that exists. */
  | { readonly do: "stream list"; readonly timeoutSeconds: number }
  | { readonly do: "watch"; readonly version: string; readonly timeoutSeconds: number }
  | { readonly do: "wait"; readonly ms: number };

/** An object as it arrived, less what nobody reads. */
export interface Arrival {
  readonly namespace: string;
  readonly name: string;
  readonly object: JsonObject;
}

/** What the shell saw. */
export type Input =
  | { readonly saw: "served" }
  | { readonly saw: "not served" }
  | {
      readonly saw: "page";
      readonly items: readonly Arrival[];
      readonly version: string;
      readonly next: string | undefined;
    }
  | { readonly saw: "object" | "deletion"; readonly arrival: Arrival; readonly version: string }
  | { readonly saw: "bookmark"; readonly version: string; readonly endOfList: boolean }
  /** A refusal: as the answer's status, or as an ERROR in a stream. Both mean the same. */
  | { readonly saw: "refusal"; readonly status: number; readonly retryAfterMs: number | undefined }
  /** The connection broke or never came about, or what came could not be read. */
  | { readonly saw: "failure"; readonly tooLarge: boolean }
  /** The server ended the stream. */
  | { readonly saw: "end" }
  | { readonly saw: "silence" }
  | { readonly saw: "time" };

export interface Step {
  readonly changes: readonly Change[];
  /** True where with these changes everything that exists has been told. */
  readonly synced: boolean;
  /** `undefined`: go on with what is under way. */
  readonly action: Action | undefined;
}
