import { describe, expect, test } from "vitest";
import { z } from "zod";
import { at } from "../json.ts";
import { LABEL_VALUE_PATTERN } from "../kubernetes/schemas/bounds.ts";
import { labelMap } from "../kubernetes/schemas.ts";
import type { Kind } from "../policy/kind.ts";
import { customResourceDefinition } from "./crd.ts";

const SEATING: Kind = {
  group: "test.usher.dev",
  kind: "Seating",
  plural: "seatings",
  singular: "seating",
  shortNames: ["seat"],
  scope: "Namespaced",
  standing: "resource",
  summary: "Where pods sit.",
  versions: [
    {
      name: "v1",
      storage: true,
      spec: z.strictObject({
        nodeSelector: labelMap.nullish(),
        rows: z.int().min(1).max(9).describe("How many rows."),
      }),
      status: z.strictObject({ seated: z.int().describe("How many pods sit.") }),
      celRules: [{ rule: "self.rows != 7", message: "There is no row of seven." }],
      columns: [
        { name: "Rows", type: "integer", jsonPath: ".spec.rows", description: "How many rows.", priority: 1 },
        { name: "Seated", type: "integer", jsonPath: ".status.seated", priority: 0 },
      ],
    },
  ],
  prepare: () => ({ policy: undefined, problems: [] }),
};

test("a kind with everything, whole", () => {
  expect(customResourceDefinition(SEATING)).toEqual({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "seatings.test.usher.dev" },
    spec: {
      group: "test.usher.dev",
      names: {
        kind: "Seating",
        listKind: "SeatingList",
        plural: "seatings",
        singular: "seating",
        shortNames: ["seat"],
        categories: ["usher"],
      },
      scope: "Namespaced",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              description: "Where pods sit.",
              type: "object",
              required: ["spec"],
              properties: {
                apiVersion: {
                  description: "The group and version in which this object is written.",
                  type: "string",
                },
                kind: { description: "Always Seating.", type: "string" },
                metadata: { type: "object" },
                spec: {
                  description: "The desired state.",
                  type: "object",
                  required: ["rows"],
                  properties: {
                    nodeSelector: {
                      description: "Labels by key. All of them must match.",
                      type: "object",
                      maxProperties: 1_024,
                      additionalProperties: { type: "string", pattern: LABEL_VALUE_PATTERN, maxLength: 63 },
                    },
                    rows: {
                      description: "How many rows.",
                      type: "integer",
                      format: "int32",
                      minimum: 1,
                      maximum: 9,
                    },
                  },
                  "x-kubernetes-validations": [
                    { rule: "self.rows != 7", message: "There is no row of seven." },
                  ],
                },
                status: {
                  description: "Latest observations of the object's state.",
                  type: "object",
                  required: ["seated"],
                  properties: {
                    seated: { description: "How many pods sit.", type: "integer", format: "int64" },
                  },
                },
              },
            },
          },
          subresources: { status: {} },
          additionalPrinterColumns: [
            {
              name: "Rows",
              type: "integer",
              jsonPath: ".spec.rows",
              description: "How many rows.",
              priority: 1,
            },
            { name: "Seated", type: "integer", jsonPath: ".status.seated" },
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
          ],
        },
      ],
    },
  });
});

describe("a kind with little, as kupid's", () => {
  const kind: Kind = {
    group: "kupid.gardener.cloud",
    kind: "ClusterPodSchedulingPolicy",
    plural: "clusterpodschedulingpolicies",
    singular: "clusterpodschedulingpolicy",
    scope: "Cluster",
    standing: "resource",
    summary: "A policy.",
    versions: [{ name: "v1alpha1", storage: true, spec: z.strictObject({ nodeName: z.string().nullish() }) }],
    prepare: () => ({ policy: undefined, problems: [] }),
  };
  const made = customResourceDefinition(kind);

  test("keeps kupid's names", () => {
    expect(at(made, "metadata", "name")).toBe("clusterpodschedulingpolicies.kupid.gardener.cloud");
    expect(at(made, "spec", "names", "listKind")).toBe("ClusterPodSchedulingPolicyList");
    expect(at(made, "spec", "scope")).toBe("Cluster");
  });
  test("has no status, no columns, no short names, and may lack its spec", () => {
    const version = at(made, "spec", "versions", 0);
    expect(Object.keys(version ?? {})).toEqual(["name", "served", "storage", "schema"]);
    expect(at(version, "schema", "openAPIV3Schema", "required")).toBeUndefined();
    expect(at(version, "schema", "openAPIV3Schema", "properties", "status")).toBeUndefined();
    expect(
      at(version, "schema", "openAPIV3Schema", "properties", "spec", "x-kubernetes-validations"),
    ).toBeUndefined();
    expect(at(made, "spec", "names", "shortNames")).toBeUndefined();
  });
});

test("a column for the age is not doubled", () => {
  const columns = [{ name: "Since", type: "date", jsonPath: ".metadata.creationTimestamp" }] as const;
  const [version] = SEATING.versions;
  const made = customResourceDefinition({
    ...SEATING,
    versions: version === undefined ? [] : [{ ...version, columns }],
  });
  expect(at(made, "spec", "versions", 0, "additionalPrinterColumns")).toEqual(columns);
});

test("no storage version, or two, is a mistake in the declaration", () => {
  const [version] = SEATING.versions;
  const versions = version === undefined ? [] : [version];
  expect(() => customResourceDefinition({ ...SEATING, versions: [] })).toThrow(
    /exactly one storage version, not 0/,
  );
  expect(() => customResourceDefinition({ ...SEATING, versions: [...versions, ...versions] })).toThrow(
    /not 2/,
  );
});
