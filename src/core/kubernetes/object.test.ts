import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../json.ts";
import {
  annotationsOf,
  controllerOf,
  groupVersionOf,
  isBeingDeleted,
  isMirrorPod,
  labelsOf,
  nameOf,
  namespaceOf,
} from "./object.ts";

const pod: JsonObject = {
  metadata: {
    name: "web",
    namespace: "team-a",
    labels: { app: "web" },
    annotations: { "kubernetes.io/config.mirror": "" },
    deletionTimestamp: "2026-01-01T00:00:00Z",
    ownerReferences: [
      { apiVersion: "v1", kind: "ConfigMap", name: "no", uid: "1", controller: false },
      {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        name: "web-1",
        uid: "2",
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  },
};

test("reads an object's metadata", () => {
  expect(nameOf(pod)).toBe("web");
  expect(namespaceOf(pod)).toBe("team-a");
  expect(labelsOf(pod)).toEqual({ app: "web" });
  expect(annotationsOf(pod)).toEqual({ "kubernetes.io/config.mirror": "" });
  expect(controllerOf(pod)).toEqual({ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "2" });
  expect(isBeingDeleted(pod)).toBe(true);
  expect(isMirrorPod(pod)).toBe(true);
});

describe.each<[string, JsonObject]>([
  ["nothing", {}],
  ["null metadata", { metadata: null }],
  ["null members", { metadata: { name: null, labels: null, annotations: null, deletionTimestamp: null } }],
  ["null annotation", { metadata: { annotations: { "kubernetes.io/config.mirror": null } } }],
  [
    "wrong types",
    { metadata: { name: 1, namespace: [], labels: "x", annotations: [], ownerReferences: {} } },
  ],
  ["no controller", { metadata: { ownerReferences: [null, "x", { name: "a" }, { controller: "true" }] } }],
  ["a list", { metadata: [] }],
])("an object with %s", (_what, object) => {
  test("returns nothing for other values", () => {
    expect([nameOf(object), namespaceOf(object)]).toEqual(["", ""]);
    expect(labelsOf(object)).toBeUndefined();
    expect(controllerOf(object)).toBeUndefined();
    expect(isBeingDeleted(object)).toBe(false);
    expect(isMirrorPod(object)).toBe(false);
  });
});

test("inherited members are not there", () => {
  expect(labelsOf(JSON.parse('{"__proto__":{"metadata":{"labels":{"a":"b"}}}}'))).toBeUndefined();
});

test.each<[string | undefined, string, string]>([
  ["v1", "", "v1"],
  ["apps/v1", "apps", "v1"],
  ["kupid.gardener.cloud/v1alpha1", "kupid.gardener.cloud", "v1alpha1"],
  ["", "", ""],
  [undefined, "", ""],
  ["/v1", "", "v1"],
  ["a/b/c", "a", "b/c"],
])("%s is group %j, version %j", (apiVersion, group, version) => {
  expect(groupVersionOf(apiVersion)).toEqual({ group, version });
});

test("nothing throws on any JSON", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom("metadata", "kind", "__proto__"), fc.jsonValue()), (object) => {
      const any = object as JsonObject;
      expect(typeof nameOf(any)).toBe("string");
      expect([undefined, "object"]).toContain(controllerOf(any) === undefined ? undefined : "object");
      expect(typeof isBeingDeleted(any)).toBe("boolean");
    }),
  );
});
