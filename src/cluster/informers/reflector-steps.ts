import type { JsonObject } from "../../core/json.ts";
import type { Change } from "../../core/view/view.ts";

/** What the reflector does next. One action is in progress at any time. */
export type Action =
  /** Discover whether and where the resource is served. */
  | { readonly do: "locate" }
  | { readonly do: "list"; readonly next: string | undefined }
  /** A watch with sendInitialEvents. */
  | { readonly do: "stream list"; readonly timeoutSeconds: number }
  | { readonly do: "watch"; readonly version: string; readonly timeoutSeconds: number }
  | { readonly do: "wait"; readonly ms: number };

/** A received object, reduced to the fields that modules read. */
export interface ReceivedObject {
  readonly namespace: string;
  readonly name: string;
  readonly object: JsonObject;
}

/** What the reflector observed. */
export type ReflectorInput =
  | { readonly saw: "served" }
  | { readonly saw: "not served" }
  | {
      readonly saw: "page";
      readonly items: readonly ReceivedObject[];
      readonly version: string;
      readonly next: string | undefined;
      /** Left out because of its size: it exists, and its last known state stays. */
      readonly skipped?: Omit<ReceivedObject, "object">;
    }
  | { readonly saw: "object" | "deletion"; readonly received: ReceivedObject; readonly version: string }
  | { readonly saw: "bookmark"; readonly version: string; readonly endOfList: boolean }
  /** An error status, of the response or of an ERROR event in a stream. */
  | { readonly saw: "error status"; readonly status: number; readonly retryAfterMs: number | undefined }
  /** The connection failed, or the response could not be read. */
  | { readonly saw: "failure"; readonly tooLarge: boolean }
  /** The server ended the stream. */
  | { readonly saw: "end" }
  | { readonly saw: "idle timeout" }
  | { readonly saw: "timer" };

export interface ReflectorStep {
  readonly changes: readonly Change[];
  /** True if these changes complete a list. */
  readonly synced: boolean;
  /** `undefined`: continue the action in progress. */
  readonly action: Action | undefined;
}
