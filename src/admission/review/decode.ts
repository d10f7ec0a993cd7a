import {
  type AdmissionRequest,
  type GroupVersionKind,
  type GroupVersionResource,
  OPERATIONS,
  type Operation,
  type UserInfo,
} from "../../core/evaluate/request.ts";
import { nameIn, type StatusDetails } from "../../core/evaluate/status.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { NESTING_LIMIT, tooDeep } from "./nesting.ts";

const REVIEW_VERSION = "admission.k8s.io/v1";

/** A uid is echoed in the answer. The API server's has 36 characters; a longer one than this is nobody's uid. */
const UID_LENGTH = 256;

/** A body that is no request. With a uid it can be answered as a review, without one only as an HTTP error. */
export class Undecodable {
  readonly uid: string | undefined;
  /** One line for the caller. */
  readonly message: string;

  /** Which object it is about, as far as that could be read. */
  readonly details: StatusDetails | undefined;

  constructor(message: string, uid?: string, details?: StatusDetails) {
    this.message = message;
    this.uid = uid;
    this.details = details;
  }
}

/** Ends the reading of a request at the first field that is wrong. Never leaves this file. */
class WrongField extends Error {}

/**
 * The admission request in a body. Plain checks, not a schema: this runs for every request, and the fields are few. Of two
 * equal keys the last counts, as in Go. Objects are not looked into; those are the modules' business.
 */
export function decodeReview(bytes: Buffer): AdmissionRequest | Undecodable {
  if (tooDeep(bytes)) return new Undecodable(`the body is nested deeper than ${NESTING_LIMIT} levels`);
  let review: unknown;
  try {
    review = JSON.parse(bytes.toString());
  } catch (error) {
    const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
    return new Undecodable(
      `the body is not JSON${position === undefined ? "" : `: it goes wrong at character ${position}`}`,
    );
  }
  if (!isObject(review)) return new Undecodable("the body is not an AdmissionReview: it is no JSON object");
  const problem = wrongReview(review);
  if (problem !== undefined) return new Undecodable(problem);
  const request = review["request"];
  if (!isObject(request)) return new Undecodable("the AdmissionReview has no request");
  const uid = request["uid"];
  if (typeof uid !== "string" || uid === "") return new Undecodable("request.uid is missing");
  if (uid.length > UID_LENGTH) {
    return new Undecodable(`request.uid is longer than ${UID_LENGTH} characters`);
  }
  try {
    return readRequest(request, uid);
  } catch (error) {
    if (!(error instanceof WrongField)) throw error;
    return new Undecodable(error.message, uid, detailsIn(request));
  }
}

function wrongReview({ apiVersion, kind }: JsonObject): string | undefined {
  if (kind !== "AdmissionReview") return `the body is not an AdmissionReview: its kind is ${shown(kind)}`;
  if (apiVersion === REVIEW_VERSION) return undefined;
  return `AdmissionReview ${shown(apiVersion)} is not spoken here, only ${REVIEW_VERSION}: set admissionReviewVersions of the webhook to ["v1"]`;
}

/** What came, short enough and clean enough for one line. */
function shown(value: unknown): string {
  if (typeof value !== "string") return value === undefined ? "missing" : "not a text";
  return /^[\w./-]{1,64}$/.test(value) ? `"${value}"` : "unreadable";
}

function readRequest(request: JsonObject, uid: string): AdmissionRequest {
  const operation = operationOf(request["operation"]);
  const object = objectOf(request, "object");
  if (object === undefined && (operation === "CREATE" || operation === "UPDATE")) {
    throw new WrongField(`request.object is missing for ${operation}`);
  }
  return {
    uid,
    kind: kindOf(request["kind"]),
    resource: resourceOf(request["resource"]),
    subResource: textOf(request, "subResource", "request.subResource"),
    name: textOf(request, "name", "request.name"),
    namespace: textOf(request, "namespace", "request.namespace"),
    operation,
    userInfo: userInfoOf(request["userInfo"]),
    object,
    oldObject: objectOf(request, "oldObject"),
    dryRun: dryRunOf(request["dryRun"]),
    options: objectOf(request, "options"),
  };
}

/** What a denial of an undecodable request is about; `undefined` where not even the resource can be read. */
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
  if (!isObject(value)) throw new WrongField("request.kind is missing");
  return {
    group: textOf(value, "group", "request.kind.group"),
    version: wordOf(value, "version", "request.kind.version"),
    kind: wordOf(value, "kind", "request.kind.kind"),
  };
}

function resourceOf(value: unknown): GroupVersionResource {
  if (!isObject(value)) throw new WrongField("request.resource is missing");
  return {
    group: textOf(value, "group", "request.resource.group"),
    version: wordOf(value, "version", "request.resource.version"),
    resource: wordOf(value, "resource", "request.resource.resource"),
  };
}

function operationOf(value: unknown): Operation {
  for (const operation of OPERATIONS) if (operation === value) return operation;
  throw new WrongField(`request.operation must be one of ${OPERATIONS.join(", ")}`);
}

function userInfoOf(value: unknown): UserInfo {
  if (!isObject(value)) throw new WrongField("request.userInfo is missing");
  const groups = value["groups"] ?? [];
  if (!Array.isArray(groups)) throw new WrongField("request.userInfo.groups must be a list");
  for (const group of groups) {
    if (typeof group !== "string") throw new WrongField("request.userInfo.groups must hold texts only");
  }
  const uid = textOf(value, "uid", "request.userInfo.uid");
  const { extra } = value;
  if (extra !== undefined && extra !== null && !isObject(extra)) {
    throw new WrongField("request.userInfo.extra must be an object");
  }
  const username = textOf(value, "username", "request.userInfo.username");
  const known: UserInfo = uid === "" ? { username, groups } : { username, groups, uid };
  return isObject(extra) ? { ...known, extra } : known;
}

function dryRunOf(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw new WrongField("request.dryRun must be true or false");
  return value;
}

/** Absent, null and empty are one in Kubernetes' JSON. */
function textOf(parent: JsonObject, key: string, path: string): string {
  const value = parent[key];
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new WrongField(`${path} must be a string`);
  return value;
}

function wordOf(parent: JsonObject, key: string, path: string): string {
  const text = textOf(parent, key, path);
  if (text === "") throw new WrongField(`${path} is missing`);
  return text;
}

function objectOf(request: JsonObject, key: "object" | "oldObject" | "options"): JsonObject | undefined {
  const value = request[key];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw new WrongField(`request.${key} must be an object`);
  return value;
}
