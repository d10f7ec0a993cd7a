import type { AdmissionRequest } from "../../core/decision/request.ts";
import { detailsOf } from "../../core/decision/status.ts";
import { evaluate, type Host } from "../../core/evaluate/evaluate.ts";
import type { Evaluation, HookObserver } from "../../core/evaluate/evaluate-hooks.ts";
import { responseOf } from "../../core/evaluate/response.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { factsOf, type Log } from "../../core/log.ts";
import { hookWants } from "../../core/module/hook.ts";
import {
  allowedWithWarning,
  denied,
  type HttpResponse,
  reviewResponse,
  textResponse,
} from "../http/http-response.ts";
import { type Caller, RequestDeadline } from "./deadline.ts";
import { decodeEnvelope, decodeReview, Undecodable } from "./decode.ts";
import { PolicyPreview } from "./policy-preview.ts";
import { type AcceptsToken, type Route, Routes } from "./routes.ts";
import { LARGE_REVIEW, PARSED_LIMIT, parsedBytes, structureProblem } from "./structure.ts";

const INTERNAL_ERROR = "internal error handling admission request";
const FAULT = `${INTERNAL_ERROR} (USHER-E01)`;

export interface HandleOptions {
  readonly source: Source;
  readonly log: Log;
  /** The wall clock that modules see. @default Date.now */
  readonly now?: (() => number) | undefined;
  /**
   * Whether a request with this path segment comes from an API server. Any other is answered, but usher writes nothing
   * for it. Never rejects.
   * @default every request does
   */
  readonly acceptsToken?: AcceptsToken | undefined;
}

/** Turns body and URL into the response. Never throws, never rejects. */
export type Handle = (
  body: Buffer,
  url: string,
  client?: Caller,
  /** When the request arrived, of `performance.now()`. @default now */
  started?: number,
  /** @default hooks are not observed */
  observer?: HookObserver,
  /** Why the body is only the beginning of a longer one. @default it is complete */
  tooLong?: string,
) => HttpResponse | Promise<HttpResponse>;

/** Handles admission reviews: routes, decodes, evaluates and encodes. */
export class ReviewHandler {
  readonly #source: Source;
  readonly #log: Log;
  readonly #now: () => number;
  readonly #acceptsToken: AcceptsToken | undefined;
  readonly #preview: PolicyPreview;
  readonly #routes = new Routes();
  /** The memory of large reviews that wait for facts. Parsing is synchronous, so at most one more is being parsed. */
  #waitingBytes = 0;

  constructor({ source, log, now = Date.now, acceptsToken }: HandleOptions) {
    this.#source = source;
    this.#log = log;
    this.#now = now;
    this.#acceptsToken = acceptsToken;
    this.#preview = new PolicyPreview(source, log, now);
  }

  readonly handle: Handle = (body, url, client, started = performance.now(), observer, tooLong) => {
    try {
      const source = this.#source;
      const route = this.#routes.find(url, source.assembly.hooks);
      if ("notFound" in route) return textResponse(404, route.notFound);
      // Not synced yet: answer 503, so that failurePolicy decides. A partial view could admit what an unread policy forbids.
      if (!source.ready) return textResponse(503, "policies are not synced yet", route.phase);
      const parsed = tooLong === undefined ? parsedBytes(body) : 0;
      const tooLarge = tooLong ?? structureProblem(parsed, PARSED_LIMIT - this.#waitingBytes);
      const request = tooLarge === undefined ? decodeReview(body) : decodeEnvelope(body, tooLarge);
      if (request instanceof Undecodable) return this.#undecodable(request, route, tooLarge);
      const deadline = new RequestDeadline(source, this.#log, client, started, route.timeoutMs);
      const isTrusted = this.#acceptsToken?.(route.token) ?? true;
      const response =
        typeof isTrusted === "boolean"
          ? this.#respond(isTrusted, route, request, deadline, observer)
          : isTrusted.then((found) => this.#respond(found, route, request, deadline, observer));
      if (!(response instanceof Promise) || tooLarge !== undefined || parsed <= LARGE_REVIEW) return response;
      this.#waitingBytes += parsed;
      return response.finally(() => {
        this.#waitingBytes -= parsed;
      });
    } catch (error) {
      this.#log.error(factsOf(error), INTERNAL_ERROR);
      return textResponse(500, FAULT);
    }
  };

  #undecodable(request: Undecodable, route: Route, tooLarge: string | undefined): HttpResponse {
    const { phase } = route;
    if (this.#log.isLevelEnabled?.("debug"))
      this.#log.debug({ ...request, phase }, "invalid admission review");
    // An API server writes the envelope first, so a large body without a readable envelope comes from another client.
    return tooLarge === undefined ? undecodableResponse(request, route) : textResponse(413, tooLarge, phase);
  }

  #respond(
    isTrusted: boolean,
    route: Route,
    request: AdmissionRequest,
    deadline: RequestDeadline,
    observer: HookObserver | undefined,
  ): HttpResponse | Promise<HttpResponse> {
    const { phase, hooks } = route;
    try {
      const host = isTrusted ? deadline : readOnly(deadline);
      const { assembly } = this.#source;
      const evaluated = evaluate({ assembly, phase, hooks, request, now: this.#now(), observer }, host);
      // A caller that is not trusted must not cause the work.
      const wanted = isTrusted && phase === "validate";
      const result = wanted ? this.#previewed(evaluated, host) : evaluated;
      if (!(result instanceof Promise)) return evaluatedResponse(result, route, isTrusted);
      return result
        .then((evaluation) => evaluatedResponse(evaluation, route, isTrusted))
        .catch((error: unknown) => this.#failed(error, route, request))
        .finally(() => deadline.end());
    } catch (error) {
      return this.#failed(error, route, request);
    }
  }

  #previewed(evaluated: Evaluation | Promise<Evaluation>, host: Host): Evaluation | Promise<Evaluation> {
    const preview = this.#preview;
    if (evaluated instanceof Promise)
      return evaluated.then((one) => (preview.wants(one) ? preview.of(one, host) : one));
    return preview.wants(evaluated) ? preview.of(evaluated, host) : evaluated;
  }

  #failed(error: unknown, route: Route, request: AdmissionRequest): HttpResponse {
    this.#log.error({ ...factsOf(error), phase: route.phase, kind: request.kind.kind }, INTERNAL_ERROR);
    return internalErrorResponse(route, request);
  }
}

/** A request that is not trusted has no effects, like a dry run. */
function evaluatedResponse(evaluation: Evaluation, { phase }: Route, isTrusted: boolean): HttpResponse {
  const { request } = evaluation;
  const counted = isTrusted
    ? evaluation
    : { ...evaluation, request: { ...request, dryRun: true }, unverified: true as const };
  return reviewResponse(responseOf(evaluation), phase, counted);
}

/**
 * Facts may be fetched, but nothing may be written. A commit fails: allowing without it would let the request of an API
 * server with an outdated path pass uncounted.
 */
function readOnly(host: RequestDeadline): Host {
  return {
    fetch: (needs) => host.fetch(needs),
    expired: () => host.expired(),
    commit: async () => ({ failed: "the request did not come by the path of the webhook configuration" }),
  };
}

function undecodableResponse({ uid, message, details }: Undecodable, { phase }: Route): HttpResponse {
  if (uid === undefined) return textResponse(400, message, phase);
  return reviewResponse(
    denied(uid, { code: 400, reason: "BadRequest", message, ...(details && { details }) }),
    phase,
  );
}

/** An error outside of all modules. The hooks' failure modes decide: one fail-closed hook that matches the request denies it. */
function internalErrorResponse({ hooks, phase }: Route, request: AdmissionRequest): HttpResponse {
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
