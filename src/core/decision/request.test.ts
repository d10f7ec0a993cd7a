import { expect, test } from "vitest";
import { deployment, pod } from "../../../test/builders/pod.ts";
import { namespace } from "../../../test/builders/policy.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { type AdmissionRequest, describeRequest, resourceName } from "./request.ts";

test.each<[string, AdmissionRequest]>([
  ["Pod shop/web-0", requestFor(pod())],
  ["Deployment shop/web", requestFor(deployment())],
  ["Namespace shop", requestFor(namespace("shop"))],
  ["Pod shop/web-*", requestFor(pod({ metadata: { generateName: "web-" } }), { name: "" })],
  ["Pod shop/*", requestFor(pod(), { name: "" })],
  ["Pod shop/*", requestFor({ ...pod(), metadata: null }, { name: "", namespace: "shop" })],
  ["Pod shop/*", requestFor({ ...pod(), metadata: [] }, { name: "", namespace: "shop" })],
  ["Pod shop/x", requestFor(pod(), { name: "x", object: undefined })],
])("describes a request as %s", (text, request) => {
  expect(describeRequest(request)).toBe(text);
});

test("resources by group", () => {
  expect(resourceName({ group: "", resource: "pods" })).toBe("pods");
  expect(resourceName({ group: "apps", resource: "deployments" })).toBe("deployments.apps");
});
