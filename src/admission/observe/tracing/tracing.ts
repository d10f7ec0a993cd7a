import type { IncomingHttpHeaders } from "node:http";
import type { HookObserver } from "../../../core/evaluate/evaluate-hooks.ts";
import type { HttpResponse } from "../../http/http-response.ts";

/** One traced review. */
export interface ReviewTrace extends HookObserver {
  /** To be called once, when the response was handed to the network. */
  readonly end: (response: Pick<HttpResponse, "status" | "phase" | "evaluation">) => void;
}

export interface ReviewTracer {
  /** Undefined if this review is not traced. `started`: of `performance.now()`. */
  readonly begin: (headers: IncomingHttpHeaders, started: number) => ReviewTrace | undefined;
  /** Exports the remaining spans, within a short time. */
  readonly stop: () => Promise<void>;
}
