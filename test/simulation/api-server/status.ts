import type { Json, JsonObject } from "../../../src/core/json.ts";
import type { Resource } from "./resources.ts";

/** A refused request: thrown by the parts of the API server, sent as a Status. */
export class Refusal extends Error {
  readonly code: number;
  readonly body: JsonObject | string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: number, body: JsonObject | string, headers: Readonly<Record<string, string>> = {}) {
    super(typeof body === "string" ? body : String(body["message"]));
    this.code = code;
    this.body = body;
    this.headers = headers;
  }
}

type Named = Pick<Resource, "group" | "resource" | "kind">;

export function refusal(
  code: number,
  reason: string,
  message: string,
  details?: JsonObject,
  metadata: JsonObject = {},
): Refusal {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    metadata,
    status: "Failure",
    message,
    ...(reason === "" ? {} : { reason }),
    ...(details === undefined ? {} : { details }),
    code,
  };
  return new Refusal(code, body);
}

function detailsOf({ group, resource }: Named, name: string): JsonObject {
  return { ...(name === "" ? {} : { name }), ...(group === "" ? {} : { group }), kind: resource };
}

export function qualified({ group, resource }: Named): string {
  return group === "" ? resource : `${resource}.${group}`;
}

export function notFound(resource: Named, name: string): Refusal {
  const message = `${qualified(resource)} ${JSON.stringify(name)} not found`;
  return refusal(404, "NotFound", message, detailsOf(resource, name));
}

/** A resource or subresource that a served group does not have. */
export function noSuchResource(): Refusal {
  return refusal(404, "NotFound", "the server could not find the requested resource", {});
}

/** A path that no group has. */
export function pageNotFound(): Refusal {
  return new Refusal(404, "404 page not found\n");
}

export function alreadyExists(resource: Named, name: string): Refusal {
  const message = `${qualified(resource)} ${JSON.stringify(name)} already exists`;
  return refusal(409, "AlreadyExists", message, detailsOf(resource, name));
}

const MODIFIED =
  "the object has been modified; please apply your changes to the latest version and try again";

export function conflict(resource: Named, name: string, why = MODIFIED): Refusal {
  const message = `Operation cannot be fulfilled on ${qualified(resource)} ${JSON.stringify(name)}: ${why}`;
  return refusal(409, "Conflict", message, detailsOf(resource, name));
}

export function applyConflict(conflicts: readonly { manager: string; operation: string; field: string }[]) {
  const message = `Apply failed with ${conflicts.length} conflict${conflicts.length === 1 ? "" : "s"}`;
  const causes = conflicts.map(({ manager, operation, field }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${JSON.stringify(manager)}${operation === "Update" ? " using v1" : ""}`,
    field,
  }));
  return refusal(409, "Conflict", message, { causes });
}

/** A field that can't have its value. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
  /** @default FieldValueInvalid */
  readonly reason?: string;
}

export function invalid({ group, kind }: Named, name: string, ...problems: readonly FieldProblem[]): Refusal {
  const texts = problems.map(({ field, message }) => `${field}: ${message}`);
  const all = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  const full = `${group === "" ? kind : `${kind}.${group}`} ${JSON.stringify(name)} is invalid: ${all}`;
  return refusal(422, "Invalid", full, {
    ...(name === "" ? {} : { name }),
    ...(group === "" ? {} : { group }),
    kind,
    causes: problems.map(({ reason = "FieldValueInvalid", message, field }) => ({ reason, message, field })),
  });
}

export function badRequest(message: string): Refusal {
  return refusal(400, "BadRequest", message);
}

export function forbidden(resource: Named, name: string, why: string, causes?: Json): Refusal {
  const message = `${qualified(resource)} ${JSON.stringify(name)} is forbidden: ${why}`;
  const details = { ...detailsOf(resource, name), ...(causes === undefined ? {} : { causes }) };
  return refusal(403, "Forbidden", message, details);
}

export function internalError(why: string): Refusal {
  const message = `Internal error occurred: ${why}`;
  return refusal(500, "InternalError", message, { causes: [{ message: why }] });
}

/** A state that the store no longer has. */
export function expired(message: string, token?: string): Refusal {
  return refusal(410, "Expired", message, undefined, token === undefined ? {} : { continue: token });
}

export function tooLargeVersion(wanted: number, current: number): Refusal {
  const message = `Timeout: Too large resource version: ${wanted}, current: ${current}`;
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  return refusal(504, "Timeout", message, { causes, retryAfterSeconds: 1 });
}
