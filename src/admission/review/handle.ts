import { evaluate, type Outside } from "../../core/evaluate/evaluate.ts";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import type { AdmissionRequest } from "../../core/evaluate/request.ts";
import { responseOf } from "../../core/evaluate/response.ts";
import { detailsOf } from "../../core/evaluate/status.ts";
import { factsOf, type Log } from "../../core/log.ts";
import { hookWants } from "../../core/module/hook.ts";
import type { Source } from "../../core/view/source.ts";
import { type Caller, RequestDeadline } from "./deadline.ts";
import { decodeReview, Undecodable } from "./decode.ts";
import {
  allowedWithWarning,
  denied,
  type HttpResponse,
  reviewResponse,
  textResponse,
} from "./http-response.ts";
import { type Route, Routes } from "./routes.ts";

const FAULT = "internal error handling admission request (USHER-E01)";

export interface HandleOptions {
  readonly source: Source;
  readonly log: Log;
  /** The wall clock that modules are told. @default Date.now */
  readonly now?: (() => number) | undefined;
  /**
   * Whether a call with this path segment comes from an API server. Any other call is answered, but makes usher write nothing.
   * @default every call does
   */
  readonly acceptsToken?: ((token: string | undefined) => boolean) | undefined;
}

/** A body and an address in, a reply out: everything about a webhook call that is not HTTP. Never throws, never rejects. */
export type Handle = (
  bytes: Buffer,
  url: string,
  caller?: Caller,
  /** When the call came, of `performance.now()`. @default now */
  started?: number,
) => HttpResponse | Promise<HttpResponse>;

export function createHandle({ source, log, now = Date.now, acceptsToken }: HandleOptions): Handle {
  const routes = new Routes();

  function judge(
    route: Route,
    request: AdmissionRequest,
    waiting: RequestDeadline,
  ): HttpResponse | Promise<HttpResponse> {
    const { phase, hooks } = route;
    try {
      const isTrusted = acceptsToken?.(route.token) ?? true;
      const outside = isTrusted ? waiting : readOnly(waiting);
      const result = evaluate({ assembly: source.assembly, phase, hooks, request, now: now() }, outside);
      if (!(result instanceof Promise)) return replyTo(result, route, isTrusted);
      return result
        .then((evaluation) => replyTo(evaluation, route, isTrusted))
        .catch((error: unknown) => broken(error, route, request))
        .finally(() => waiting.end());
    } catch (error) {
      return broken(error, route, request);
    }
  }

  function broken(error: unknown, route: Route, request: AdmissionRequest): HttpResponse {
    log.error(
      { ...factsOf(error), phase: route.phase, kind: request.kind.kind },
      "internal error handling admission request",
    );
    return faultReply(route, request);
  }

  return (bytes, url, caller, started = performance.now()) => {
    try {
      const route = routes.find(url, source.assembly.hooks);
      if ("nowhere" in route) return textResponse(404, route.nowhere);
      // Half a view would let in what a policy not yet read forbids; so the API server does what the webhook says of failures.
      if (!source.ready) return textResponse(503, "usher is still reading its policies", route.phase);
      const request = decodeReview(bytes);
      if (request instanceof Undecodable) {
        if (log.isLevelEnabled?.("debug")) log.debug({ ...request, phase: route.phase }, "no review");
        return undecodableReply(request, route);
      }
      return judge(route, request, new RequestDeadline(source, log, caller, started, route.waitsMs));
    } catch (error) {
      log.error(factsOf(error), "internal error handling HTTP request");
      return textResponse(500, FAULT);
    }
  };
}

/** A call that was not trusted is followed by nothing, as a dry run is. */
function replyTo(evaluation: Evaluation, { phase }: Route, isTrusted: boolean): HttpResponse {
  const { request } = evaluation;
  const counted = isTrusted ? evaluation : { ...evaluation, request: { ...request, dryRun: true } };
  return reviewResponse(responseOf(evaluation), phase, counted);
}

/**
 * Facts may be fetched, nothing may be written. A commit fails: to allow without it would let the request of an API server with an
 * outdated path pass uncounted.
 */
function readOnly(outside: RequestDeadline): Outside {
  return {
    fetch: (needs) => outside.fetch(needs),
    expired: () => outside.expired(),
    commit: async () => ({ failed: "the request did not come by the path of the webhook configuration" }),
  };
}

function undecodableReply({ uid, message, details }: Undecodable, { phase }: Route): HttpResponse {
  if (uid === undefined) return textResponse(400, message, phase);
  return reviewResponse(
    denied(uid, { code: 400, reason: "BadRequest", message, ...(details && { details }) }),
    phase,
  );
}

/** A fault outside every module. What the hooks say of failures counts: one closed hook that wanted the request refuses it. */
function faultReply({ hooks, phase }: Route, request: AdmissionRequest): HttpResponse {
  const wanted = hooks.filter((hook) => hookWants(hook, request));
  if (wanted.some((hook) => hook.failure === "closed")) {
    const reason = "InternalError";
    return reviewResponse(
      denied(request.uid, { code: 500, reason, message: FAULT, details: detailsOf(request, reason) }),
      phase,
    );
  }
  return reviewResponse(allowedWithWarning(request.uid, FAULT), phase);
}
