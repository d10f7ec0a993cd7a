import {
  type AdmissionRequest,
  type GroupVersionKind,
  type GroupVersionResource,
  OPERATIONS,
  type Operation,
  type UserInfo,
} from "../../core/decision/request.ts";
import { nameIn, type StatusDetails } from "../../core/decision/status.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { envelopeOf, parsedBytes, structureProblem } from "./structure.ts";

const REVIEW_VERSION = "admission.k8s.io/v1";

/** The uid is echoed in the response. The API server's has 36 characters. */
const UID_LENGTH = 256;

/** A body without a valid request. With a uid the response is a review, without one an HTTP error. */
export class Undecodable {
  readonly uid: string | undefined;
  /** One line for the client. */
  readonly message: string;

  /** The object of the request, as far as it could be read. */
  readonly details: StatusDetails | undefined;

  constructor(message: string, uid?: string, details?: StatusDetails) {
    this.message = message;
    this.uid = uid;
    this.details = details;
  }
}

/** Ends decoding at the first invalid field. Never leaves this file. */
class InvalidField extends Error {}

/**
 * The admission request in a body. Plain checks, not a schema: this runs for every request, and the fields are few. The
 * last of two equal keys counts, as in Go. Modules, not this function, check objects.
 */
export function decodeReview(bytes: Buffer): AdmissionRequest | Undecodable {
  return decode(bytes, undefined);
}

/**
 * The request in a body that is too large to be parsed, or was truncated: without objects, and without the fields that
 * follow them. Only `dryRun` of these would matter. Undecodable if the body does not have the form that an API server
 * writes.
 */
export function decodeEnvelope(bytes: Buffer, tooLarge: string): AdmissionRequest | Undecodable {
  const envelope = envelopeOf(bytes);
  if (envelope === undefined || structureProblem(parsedBytes(envelope)) !== undefined)
    return new Undecodable(tooLarge);
  const request = decode(envelope, tooLarge);
  return request instanceof Undecodable ? new Undecodable(tooLarge) : request;
}

function decode(bytes: Buffer, tooLarge: string | undefined): AdmissionRequest | Undecodable {
  let review: unknown;
  try {
    review = JSON.parse(bytes.toString());
  } catch (error) {
    const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
    return new Undecodable(
      `the body is not JSON${position === undefined ? "" : `: invalid at character ${position}`}`,
    );
  }
  if (!isObject(review)) return new Undecodable("the body is not an AdmissionReview: not a JSON object");
  const problem = invalidReview(review);
  if (problem !== undefined) return new Undecodable(problem);
  const request = review["request"];
  if (!isObject(request)) return new Undecodable("the AdmissionReview has no request");
  const uid = request["uid"];
  if (typeof uid !== "string" || uid === "") return new Undecodable("request.uid is missing");
  if (uid.length > UID_LENGTH) {
    return new Undecodable(`request.uid is longer than ${UID_LENGTH} characters`);
  }
  try {
    return readRequest(request, uid, tooLarge);
  } catch (error) {
    if (!(error instanceof InvalidField)) throw error;
    return new Undecodable(error.message, uid, detailsIn(request));
  }
}

function invalidReview({ apiVersion, kind }: JsonObject): string | undefined {
  if (kind !== "AdmissionReview") return `the body is not an AdmissionReview: its kind is ${shown(kind)}`;
  if (apiVersion === REVIEW_VERSION) return undefined;
  return `AdmissionReview ${shown(apiVersion)} is not supported, only ${REVIEW_VERSION}: set admissionReviewVersions of the webhook to ["v1"]`;
}

/** A value of the client, short and clean enough for one line. */
function shown(value: unknown): string {
  if (typeof value !== "string") return value === undefined ? "missing" : "not a string";
  return /^[\w./-]{1,64}$/.test(value) ? `"${value}"` : "unreadable";
}

function readRequest(request: JsonObject, uid: string, tooLarge: string | undefined): AdmissionRequest {
  const operation = operationOf(request["operation"]);
  const object = objectOf(request, "object");
  if (object === undefined && tooLarge === undefined && (operation === "CREATE" || operation === "UPDATE")) {
    throw new InvalidField(`request.object is missing for ${operation}`);
  }
  return {
    uid,
    kind: kindOf(request["kind"]),
    resource: resourceOf(request["resource"]),
    subResource: stringIn(request, "subResource", "request.subResource"),
    name: stringIn(request, "name", "request.name"),
    namespace: stringIn(request, "namespace", "request.namespace"),
    operation,
    userInfo: userInfoOf(request["userInfo"]),
    object,
    oldObject: objectOf(request, "oldObject"),
    dryRun: dryRunOf(request["dryRun"]),
    options: objectOf(request, "options"),
    ...(tooLarge === undefined ? {} : { tooLarge }),
  };
}

/** The object in a denial of an undecodable request; `undefined` if not even the resource can be read. */
function detailsIn({ resource, name, object }: JsonObject): StatusDetails | undefined {
  const kind = stringAt(resource, "resource");
  if (kind === undefined || kind === "") return undefined;
  return {
    name: nameIn(typeof name === "string" ? name : "", isObject(object) ? object : undefined),
    group: stringAt(resource, "group") ?? "",
    kind,
  };
}

function kindOf(value: unknown): GroupVersionKind {
  if (!isObject(value)) throw new InvalidField("request.kind is missing");
  return {
    group: stringIn(value, "group", "request.kind.group"),
    version: requiredStringIn(value, "version", "request.kind.version"),
    kind: requiredStringIn(value, "kind", "request.kind.kind"),
  };
}

function resourceOf(value: unknown): GroupVersionResource {
  if (!isObject(value)) throw new InvalidField("request.resource is missing");
  return {
    group: stringIn(value, "group", "request.resource.group"),
    version: requiredStringIn(value, "version", "request.resource.version"),
    resource: requiredStringIn(value, "resource", "request.resource.resource"),
  };
}

function operationOf(value: unknown): Operation {
  for (const operation of OPERATIONS) if (operation === value) return operation;
  throw new InvalidField(`request.operation must be one of ${OPERATIONS.join(", ")}`);
}

function userInfoOf(value: unknown): UserInfo {
  if (!isObject(value)) throw new InvalidField("request.userInfo is missing");
  const groups = value["groups"] ?? [];
  if (!Array.isArray(groups)) throw new InvalidField("request.userInfo.groups must be a list");
  for (const group of groups) {
    if (typeof group !== "string")
      throw new InvalidField("request.userInfo.groups must be a list of strings");
  }
  const uid = stringIn(value, "uid", "request.userInfo.uid");
  const { extra } = value;
  if (extra !== undefined && extra !== null && !isObject(extra)) {
    throw new InvalidField("request.userInfo.extra must be an object");
  }
  const username = stringIn(value, "username", "request.userInfo.username");
  const known: UserInfo = uid === "" ? { username, groups } : { username, groups, uid };
  return isObject(extra) ? { ...known, extra } : known;
}

function dryRunOf(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw new InvalidField("request.dryRun must be true or false");
  return value;
}

/** Absent, null and empty are equivalent in Kubernetes' JSON. */
function stringIn(parent: JsonObject, key: string, path: string): string {
  const value = parent[key];
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new InvalidField(`${path} must be a string`);
  return value;
}

function requiredStringIn(parent: JsonObject, key: string, path: string): string {
  const text = stringIn(parent, key, path);
  if (text === "") throw new InvalidField(`${path} is missing`);
  return text;
}

function objectOf(request: JsonObject, key: "object" | "oldObject" | "options"): JsonObject | undefined {
  const value = request[key];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new InvalidField(`request.${key} must be an object`);
  return value;
}
