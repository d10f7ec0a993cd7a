import type { JsonObject } from "../../core/json.ts";
import { REVIEW_KIND, type ReviewApi, reviewPath } from "./review-api.ts";

const SCHEMA_NAME = "io.k8s.api.admission.v1.AdmissionReview";

const TEXT = { type: "string" };

const SCHEMA: JsonObject = {
  type: "object",
  description: "An admission request, or the response to one.",
  properties: {
    apiVersion: TEXT,
    kind: TEXT,
    request: { type: "object", description: "Attributes of the admission request." },
    response: { type: "object", description: "The response: whether the request is allowed." },
  },
  "x-kubernetes-group-version-kind": [REVIEW_KIND],
};

function info({ group, version }: ReviewApi): JsonObject {
  return { title: group, version };
}

/** The description of the one operation in both versions. */
function operation({ group, version, resource }: ReviewApi): JsonObject {
  return {
    description: "create an AdmissionReview: the response holds the verdict",
    operationId: `create_${group}_${version}_${resource}`.replace(/\W/g, "_"),
    tags: [`${group}_${version}`.replace(/\W/g, "_")],
    "x-kubernetes-action": "post",
    "x-kubernetes-group-version-kind": REVIEW_KIND,
  };
}

export function openApiV2(api: ReviewApi): JsonObject {
  const schema = { $ref: `#/definitions/${SCHEMA_NAME}` };
  const types = ["application/json"];
  const post = {
    ...operation(api),
    consumes: types,
    produces: types,
    schemes: ["https"],
    parameters: [{ in: "body", name: "body", required: true, schema }],
    responses: { 200: { description: "OK", schema }, 401: { description: "Unauthorized" } },
  };
  return {
    swagger: "2.0",
    info: info(api),
    paths: { [reviewPath(api)]: { post } },
    definitions: { [SCHEMA_NAME]: SCHEMA },
  };
}

export function openApiV3(api: ReviewApi): JsonObject {
  const content = {
    "application/json": { schema: { $ref: `#/components/schemas/${SCHEMA_NAME}` } },
  };
  const post = {
    ...operation(api),
    requestBody: { required: true, content },
    responses: { 200: { description: "OK", content }, 401: { description: "Unauthorized" } },
  };
  return {
    openapi: "3.0.0",
    info: info(api),
    paths: { [reviewPath(api)]: { post } },
    components: { schemas: { [SCHEMA_NAME]: SCHEMA } },
  };
}
