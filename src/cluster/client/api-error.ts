import { isObject, type Json, stringAt } from "../../core/json.ts";
import { type ApiResponse, ConnectionError } from "./client.ts";

/** A message of the API server may quote a whole object; a person needs its beginning. */
const LONGEST_QUOTE = 300;

/** Why something could not be had, as a sentence for a person. */
export function responseMessage(what: string, answer: ApiResponse): string {
  const said = stringAt(answer.body, "message") ?? answer.text.trim();
  const quote = said.length > LONGEST_QUOTE ? `${said.slice(0, LONGEST_QUOTE)}…` : said;
  return `${what}: the API server answered ${answer.status}${quote === "" ? "" : `: ${quote}`}`;
}

export function errorMessage(what: string, error: unknown): string {
  const why = error instanceof Error ? error.message : String(error);
  return error instanceof ConnectionError ? `${what}: no answer: ${why}` : `${what}: ${why}`;
}

/** The API server refused a request, or answered with something else than was asked for. The message says what and why. */
export class StatusError extends Error {
  readonly answer: ApiResponse;

  constructor(what: string, answer: ApiResponse) {
    super(responseMessage(what, answer));
    this.answer = answer;
  }

  get status(): number {
    return this.answer.status;
  }
}

/**
 * Whether an answer says that just this object does not exist. A missing API, a missing subresource or a proxy on the way answer
 * with 404 too, as text or without a name: nothing is known of the object then, and taking that for its absence would be a lie.
 */
export function isNotFound(answer: ApiResponse, name: string): boolean {
  return (
    answer.status === 404 &&
    stringAt(answer.body, "kind") === "Status" &&
    stringAt(answer.body, "reason") === "NotFound" &&
    stringAt(answer.body, "details", "name") === name
  );
}

/** An object without the record of who wrote which field: half of its bytes, and nothing that a decision looks at. */
export function withoutManagedFields(object: Json): Json {
  if (!isObject(object) || !isObject(object["metadata"])) return object;
  const { managedFields: _managers, ...metadata } = object["metadata"];
  return { ...object, metadata };
}
