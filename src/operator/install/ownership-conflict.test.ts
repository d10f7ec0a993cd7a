import { expect, test } from "vitest";
import type { JsonObject } from "../../core/json.ts";
import {
  conflictingCrd,
  describeConflictingCrd,
  isOurs,
  isWrittenByUsher,
  ownerOf,
} from "./ownership-conflict.ts";

function schema(spec: JsonObject, more: JsonObject = {}): JsonObject {
  return { openAPIV3Schema: { type: "object", properties: { ...more, spec } } };
}

function crd(versions: readonly JsonObject[], scope = "Cluster", metadata: JsonObject = {}): JsonObject {
  return { metadata: { name: "seatings.example.com", ...metadata }, spec: { scope, versions } };
}

const TEXT = { type: "string" };
const OURS = crd([
  {
    name: "v1",
    served: true,
    subresources: { status: {} },
    schema: schema(
      {
        type: "object",
        properties: {
          priority: TEXT,
          seats: { type: "array", items: { type: "object", properties: { row: TEXT, column: TEXT } } },
          labels: { type: "object", additionalProperties: TEXT },
        },
      },
      { apiVersion: TEXT, kind: TEXT, metadata: { type: "object" }, status: { type: "object" } },
    ),
  },
]);

test("an older CRD: the fields that it drops, and its missing status", () => {
  const older = crd([
    {
      name: "v1",
      served: true,
      schema: schema({
        type: "object",
        properties: {
          seats: { type: "array", items: { type: "object", properties: { row: TEXT } } },
          labels: { type: "object", additionalProperties: TEXT },
        },
      }),
    },
  ]);
  const found = conflictingCrd(OURS, older);
  expect(found).toEqual({
    name: "seatings.example.com",
    owner: "an unknown owner",
    pruned: ["spec.priority", "spec.seats[].column"],
    versions: [],
    noStatus: true,
    otherScope: false,
  });
  const text = describeConflictingCrd(found).join("\n");
  expect(text).toMatch(/spec\.priority, spec\.seats\[\]\.column: the API server prunes these/);
  expect(text).toMatch(/no status subresource/);
});

test("a schema that preserves unknown fields drops nothing", () => {
  const loose = crd([
    {
      name: "v1",
      served: true,
      subresources: { status: {} },
      schema: schema({ type: "object", "x-kubernetes-preserve-unknown-fields": true }),
    },
  ]);
  expect(conflictingCrd(OURS, loose)).toMatchObject({ pruned: [], noStatus: false });
  expect(describeConflictingCrd(conflictingCrd(OURS, loose))).toHaveLength(2);
});

test("an unserved version is missing, and another scope is reported", () => {
  const other = crd(
    [
      { name: "v1", served: false },
      { name: "v0", served: true },
    ],
    "Namespaced",
  );
  expect(conflictingCrd(OURS, other)).toMatchObject({ versions: ["v1"], pruned: [], otherScope: true });
  expect(describeConflictingCrd(conflictingCrd(OURS, other)).join()).toMatch(/does not serve v1/);
});

test("an equal CRD can hold everything", () => {
  expect(conflictingCrd(OURS, OURS)).toMatchObject({
    pruned: [],
    versions: [],
    noStatus: false,
    otherScope: false,
  });
});

test("usher's objects are those with its label, or that it has applied", () => {
  const labels = { "app.kubernetes.io/name": "usher", "app.kubernetes.io/managed-by": "usher" };
  const applied = { manager: "usher", operation: "Apply" };
  expect(isOurs({ metadata: { labels } })).toBe(true);
  expect(isOurs({ metadata: { managedFields: [applied] } })).toBe(true);
  expect(isOurs({ metadata: { managedFields: [{ ...applied, operation: "Update" }] } })).toBe(false);
  expect(isOurs({ metadata: {} })).toBe(false);
});

test.each<[string, JsonObject]>([
  ["Helm", { labels: { "app.kubernetes.io/managed-by": "Helm" } }],
  ["Helm's folder of CRDs", {}],
  ["Argo CD", { annotations: { "argocd.argoproj.io/tracking-id": "usher:a/b:/c" } }],
  ["Flux", { labels: { "helm.toolkit.fluxcd.io/name": "usher" } }],
  ["Gardener", { labels: { "resources.gardener.cloud/managed-by": "gardener" } }],
])(
  "an object of an installation by %s is usher's too; objects that usher writes at run time have both labels",
  (_, more) => {
    const labels = { "app.kubernetes.io/name": "usher", ...(more["labels"] as JsonObject | undefined) };
    const live = { metadata: { ...more, labels } };
    expect(isOurs(live)).toBe(true);
    expect(isWrittenByUsher(live)).toBe(false);
  },
);

test("names the owner, as far as it can be found", () => {
  const by = (metadata: JsonObject) => ownerOf({ metadata });
  const annotations = { "meta.helm.sh/release-name": "kupid", "meta.helm.sh/release-namespace": "garden" };
  expect(by({ annotations })).toBe("the Helm release kupid in namespace garden");
  expect(by({ labels: { app: "kupid", "app.kubernetes.io/managed-by": "Flux" } })).toBe(
    "kupid, managed by Flux",
  );
  expect(
    by({ managedFields: [{ manager: "kube-apiserver" }, { manager: "kubectl-client-side-apply" }] }),
  ).toBe("field manager kubectl-client-side-apply");
  expect(by({})).toBe("an unknown owner");
});
