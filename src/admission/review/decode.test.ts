import { expect, test } from "vitest";
import { review } from "../../../test/support/admission/example-cluster.ts";
import type { AdmissionRequest } from "../../core/decision/request.ts";
import type { Json, JsonObject } from "../../core/json.ts";
import { decodeEnvelope, decodeReview, Undecodable } from "./decode.ts";

const UID = "705ab4f5-6393-11e8-b7cc-42010a800002";

function decode(body: string | JsonObject) {
  return decodeReview(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)));
}

function failure(body: string | JsonObject): Undecodable {
  const decoded = decode(body);
  if (!(decoded instanceof Undecodable)) throw new Error("decoded");
  expect(decoded.message).not.toMatch(/[\n\r]/);
  return decoded;
}

test("decodes a review as the API server sends it", () => {
  expect(decode(review({ dryRun: true, options: { kind: "CreateOptions" } }))).toEqual({
    uid: UID,
    kind: { group: "", version: "v1", kind: "Pod" },
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: "",
    name: "web",
    namespace: "shop",
    operation: "CREATE",
    userInfo: { username: "ann", uid: "7", groups: ["system:authenticated"] },
    object: (review()["request"] as JsonObject)["object"],
    oldObject: undefined,
    dryRun: true,
    options: { kind: "CreateOptions" },
  });
});

test("accepts missing or null fields, which Go omits when empty", () => {
  const bare = decode(
    review({
      operation: "DELETE",
      name: null,
      namespace: null,
      object: null,
      dryRun: null,
      userInfo: { groups: null, extra: null, uid: null, username: null },
      resource: { version: "v1", resource: "pods" },
    }),
  );
  expect(bare).toMatchObject({
    name: "",
    namespace: "",
    object: undefined,
    dryRun: false,
    userInfo: { username: "", groups: [] },
    resource: { group: "" },
  });
});

test.each<[string, string | JsonObject, RegExp]>([
  ["nothing", "", /not JSON/],
  ["half", '{"apiVersion":', /not JSON/],
  ["text", "hello there", /not JSON/],
  ["a list", "[]", /not a JSON object/],
  ["null", "null", /not a JSON object/],
  ["no kind", {}, /kind is missing/],
  ["another kind", review({}, { kind: "Pod" }), /its kind is "Pod"/],
  ["an odd kind", review({}, { kind: "a\nb" }), /its kind is unreadable/],
  [
    "v1beta1",
    review({}, { apiVersion: "admission.k8s.io/v1beta1" }),
    /"admission.k8s.io\/v1beta1" is not supported/,
  ],
  ["no version", review({}, { apiVersion: 1 }), /not a string is not supported/],
  ["no request", review({}, { request: null }), /no request/],
  ["no uid", review({ uid: null }), /uid is missing/],
  ["an empty uid", review({ uid: "" }), /uid is missing/],
  ["a number as uid", review({ uid: 7 }), /uid is missing/],
  ["an endless uid", review({ uid: "x".repeat(257) }), /longer than 256/],
  ["a request in the prototype", `{"__proto__":${JSON.stringify(review())}}`, /kind is missing/],
])("rejects a body without a usable uid: %s", (_name, body, message) => {
  const { uid, message: said } = failure(body);
  expect(uid).toBeUndefined();
  expect(said).toMatch(message);
});

test.each<[string, Json, RegExp]>([
  ["kind", null, /request.kind is missing/],
  ["kind", [], /request.kind is missing/],
  ["kind", { group: "", version: "v1" }, /request.kind.kind is missing/],
  ["resource", null, /request.resource is missing/],
  ["resource", { group: 1, version: "v1", resource: "pods" }, /request.resource.group must be a string/],
  ["resource", { group: "", version: "", resource: "pods" }, /request.resource.version is missing/],
  ["operation", "PATCH", /request.operation must be one of/],
  ["operation", null, /request.operation must be one of/],
  ["operation", "constructor", /request.operation must be one of/],
  ["userInfo", null, /request.userInfo is missing/],
  ["userInfo", { username: {} }, /request.userInfo.username must be a string/],
  ["userInfo", { groups: "admins" }, /groups must be a list/],
  ["userInfo", { groups: [1] }, /groups must be a list of strings/],
  ["userInfo", { extra: [] }, /extra must be an object/],
  ["object", null, /request.object is missing for CREATE/],
  ["object", "pod", /request.object must be an object/],
  ["oldObject", [], /request.oldObject must be an object/],
  ["options", 1, /request.options must be an object/],
  ["dryRun", "true", /request.dryRun must be true or false/],
  ["name", 1, /request.name must be a string/],
  ["namespace", {}, /request.namespace must be a string/],
  ["subResource", false, /request.subResource must be a string/],
])("answers to its uid: a wrong %s (%j)", (field, value, message) => {
  const { uid, message: said } = failure(review({ [field]: value }));
  expect(uid).toBe(UID);
  expect(said).toMatch(message);
});

test("the last of two equal keys counts", () => {
  const body = JSON.stringify(review()).replace('"name":"web",', '"name":"first","name":"last",');
  expect(decode(body)).toMatchObject({ name: "last" });
});

test("treats __proto__ and constructor as ordinary keys of an object", () => {
  const body = JSON.stringify(review()).replace(
    '"spec":',
    '"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"spec":',
  );
  const decoded = decode(body);
  expect(decoded).not.toBeInstanceOf(Undecodable);
  expect(Object.hasOwn((decoded as { object: object }).object, "__proto__")).toBe(true);
  expect("polluted" in {}).toBe(false);
});

const WHY = "the body is nested deeper than 1000 levels";

function envelope(text: string) {
  return decodeEnvelope(Buffer.from(text), WHY);
}

test("the envelope of a review is its request without objects and the fields after them", () => {
  const sent = review({ dryRun: true, options: { kind: "CreateOptions" } });
  const { object, oldObject, dryRun, options, ...rest } = decode(sent) as AdmissionRequest;
  expect([object, dryRun, options]).not.toContain(undefined);
  expect(envelope(JSON.stringify(sent))).toEqual({
    ...rest,
    object: undefined,
    oldObject,
    dryRun: false,
    options: undefined,
    tooLarge: WHY,
  });
});

const TEXT = JSON.stringify(review());
const DEEP = `${"[".repeat(9_900)}${"]".repeat(9_900)}`;
const { request: REQUEST, ...REVIEW } = review() as { request: JsonObject };
const { object: OBJECT, ...ENVELOPE } = REQUEST;

test.each<[string, string]>([
  ["an envelope after its object", JSON.stringify({ ...REVIEW, request: { object: OBJECT, ...ENVELOPE } })],
  ["a review after its request", JSON.stringify({ request: REQUEST, ...REVIEW })],
  ["a text that ends before the object", TEXT.slice(0, TEXT.indexOf('"object"') + 4)],
  ["a uid that is too long", TEXT.replace("705ab4f5", "x".repeat(300))],
  ["no uid", TEXT.replace('"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",', "")],
  ["an unknown operation", TEXT.replace('"CREATE"', '"PATCH"')],
  ["nesting in the envelope", TEXT.replace('"userInfo":{', `"userInfo":{"extra":{"a":${DEEP}},`)],
  [
    "more in the envelope than may be parsed",
    TEXT.replace('"userInfo":{', `"userInfo":{"a":[${"{},".repeat(1e6)}1],`),
  ],
  ["spaces around the key", TEXT.replace('"object":', ' "object" :')],
  ["a list", `[[1,"object":`],
  ["half of a text", '{"request":{"uid":"x'],
  ["no object at all", JSON.stringify({ ...REVIEW, request: ENVELOPE })],
])("finds no envelope: %s", (_, text) => {
  expect(envelope(text)).toEqual(new Undecodable(WHY));
});

test.each<[string, string]>([
  ["nesting in the object", TEXT.replace('"object":', `"object":${DEEP},"object":`)],
  ["another object", TEXT.replace('"object":', '"object":{"first":1},"object":')],
  ["a text that ends in the object", TEXT.slice(0, TEXT.indexOf('"object"') + 20)],
  ["invalid JSON in the object", `${TEXT.slice(0, TEXT.indexOf('"object"') + 9)}}}]]"`],
])("keeps the envelope: %s", (_, text) => {
  expect(envelope(text)).toEqual(envelope(TEXT));
});
