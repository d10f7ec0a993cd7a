import type { Fact } from "../../core/decision/need.ts";
import { stringAt } from "../../core/json.ts";
import { errorMessage, responseMessage } from "./api-response.ts";
import type { ApiResponse } from "./client.ts";
import { DiscoveryError, NotServedError, type ResourceResolver } from "./discovery.ts";

/** The fact of a response other than the requested object, with its status code and reason. */
export function failedFact(what: string, answer: ApiResponse): Fact {
  const reason = stringAt(answer.body, "reason");
  return {
    failed: responseMessage(what, answer),
    status: answer.status,
    ...(reason === undefined || reason === "" ? {} : { reason }),
  };
}

/** The fact of a request without a response. */
export function errorFact(what: string, error: unknown): Fact {
  if (error instanceof NotServedError) return { absent: "NotServed" };
  if (error instanceof DiscoveryError)
    return { ...failedFact(what, error.response), failed: errorMessage(what, error) };
  return { failed: errorMessage(what, error) };
}

/**
 * The fact of a 404 that names no object. The API server sends it, as text, for a resource that it does not serve; a
 * proxy on the way may send it too. Only discovery can tell them apart: a resource that it lists was not absent.
 */
export async function unservedFact(
  what: string,
  resources: ResourceResolver,
  resource: string,
  answer: ApiResponse,
  signal: AbortSignal,
): Promise<Fact> {
  if (answer.status !== 404 || answer.body !== undefined) return failedFact(what, answer);
  const served = await resources.discover(resource, signal);
  return served === undefined ? { absent: "NotServed" } : failedFact(what, answer);
}
