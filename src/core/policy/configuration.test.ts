import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { anyKey, jsonWith } from "../../../test/builders/json.ts";
import { kindOf } from "../../../test/builders/kind.ts";
import { isObject, type JsonObject } from "../json.ts";
import { configurationPath, configurationsIn } from "./configuration.ts";
import { describeProblem } from "./problem.ts";

const GUARD = kindOf("scheduling.openshift.io", "NodeSchedulingPolicyConfig", {
  standing: "file",
  configuration: {
    apiVersions: {
      "scheduling.openshift.io/v1alpha1": "v1alpha1",
      "scheduling.openshift.io/alphav1": "v1alpha1",
    },
    wrappers: [
      {
        apiVersions: ["apiserver.config.k8s.io/v1"],
        kind: "AdmissionConfiguration",
        paths: [["plugins", "*", "configuration"]],
        schema: z.strictObject({
          apiVersion: z.string(),
          kind: z.string(),
          plugins: z.array(z.strictObject({ name: z.string(), configuration: z.unknown().optional() })),
        }),
      },
      {
        apiVersions: ["kubecontrolplane.config.openshift.io/v1"],
        kind: "KubeAPIServerConfig",
        paths: [["admission", "pluginConfig", "*", "configuration"]],
      },
    ],
  },
});

const LIMIT = kindOf("project.openshift.io", "ProjectRequestLimitConfig", {
  standing: "file",
  configuration: {
    apiVersions: { v1: "v1", "project.openshift.io/v1": "v1" },
    wrappers: [
      {
        apiVersions: ["v1"],
        kind: "MasterConfig",
        paths: [
          ["admissionConfig", "pluginConfig", "*", "configuration"],
          ["kubernetesMasterConfig", "admissionConfig", "pluginConfig", "*", "configuration"],
        ],
      },
      {
        apiVersions: ["apiserver.config.k8s.io/v1"],
        kind: "AdmissionConfiguration",
        paths: [["plugins", "*", "configuration"]],
      },
    ],
  },
});

const POLICY = kindOf("example.com", "Policy");
const KINDS = [POLICY, GUARD, LIMIT];

const guard = (change: JsonObject = {}): JsonObject => ({
  apiVersion: "scheduling.openshift.io/alphav1",
  kind: "NodeSchedulingPolicyConfig",
  groups: [{ name: "ControlPlane" }],
  ...change,
});
const limit = { apiVersion: "v1", kind: "ProjectRequestLimitConfig", limits: [] };
const admission = (...configurations: (JsonObject | number)[]): JsonObject => ({
  apiVersion: "apiserver.config.k8s.io/v1",
  kind: "AdmissionConfiguration",
  plugins: configurations.map((configuration, i) => ({ name: `p${i}`, configuration })),
});

/** Keys on the way to a configuration, among hostile ones. */
const KEYS = fc.oneof(
  anyKey,
  fc.constantFrom("name", "configuration", "pluginConfig", "kind", "apiVersion", "metadata"),
);

/** `Kind at path`, then the problems. */
function read(document: JsonObject): string[] | undefined {
  const result = configurationsIn(document, KINDS);
  return (
    result && [
      ...result.found.map(({ kind, path }) => `${kind.kind} at ${path.join(".")}`),
      ...result.problems.map((one) => `${one.severity} ${describeProblem(one)}`),
    ]
  );
}

describe("configurationsIn", () => {
  test("turns a bare configuration into an object: its fields are the spec", () => {
    expect(configurationsIn(guard(), KINDS)).toEqual({
      found: [
        {
          kind: GUARD,
          path: [],
          object: {
            apiVersion: "scheduling.openshift.io/v1alpha1",
            kind: "NodeSchedulingPolicyConfig",
            metadata: { name: "configuration" },
            spec: { groups: [{ name: "ControlPlane" }] },
          },
        },
      ],
      problems: [],
    });
  });

  test.each<[string, JsonObject, string[] | undefined]>([
    ["a legacy apiVersion without a group", limit, ["ProjectRequestLimitConfig at "]],
    [
      "a wrapper with two modules' configurations and another's",
      admission(guard(), { apiVersion: "v1", kind: "Other" }, limit, 5),
      [
        "NodeSchedulingPolicyConfig at plugins.0.configuration",
        "ProjectRequestLimitConfig at plugins.2.configuration",
      ],
    ],
    [
      "a wrapper whose keys are plugin names",
      {
        apiVersion: "kubecontrolplane.config.openshift.io/v1",
        kind: "KubeAPIServerConfig",
        servingInfo: { bindAddress: "0.0.0.0:6443" },
        admission: {
          pluginConfig: { "scheduling.openshift.io/NodeSchedulingPolicy": { configuration: guard() } },
        },
      },
      [
        "NodeSchedulingPolicyConfig at admission.pluginConfig.scheduling.openshift.io/NodeSchedulingPolicy.configuration",
      ],
    ],
    [
      "the second of two places of a wrapper",
      {
        apiVersion: "v1",
        kind: "MasterConfig",
        kubernetesMasterConfig: {
          admissionConfig: { pluginConfig: { ProjectRequestLimit: { configuration: limit } } },
        },
      },
      [
        "ProjectRequestLimitConfig at kubernetesMasterConfig.admissionConfig.pluginConfig.ProjectRequestLimit.configuration",
      ],
    ],
    [
      "an unknown field of a strict wrapper",
      { ...admission(guard()), plugin: [] },
      [
        "NodeSchedulingPolicyConfig at plugins.0.configuration",
        'warning plugin: unknown field, has no effect; did you mean "plugins"?',
      ],
    ],
    [
      "an unknown version of a configuration",
      guard({ apiVersion: "scheduling.openshift.io/v2" }),
      [
        'error apiVersion: NodeSchedulingPolicyConfig has no version "scheduling.openshift.io/v2"; use scheduling.openshift.io/v1alpha1 or scheduling.openshift.io/alphav1',
      ],
    ],
    [
      "an unknown version inside a wrapper",
      admission(guard({ apiVersion: 2 })),
      [
        "error plugins[0].configuration.apiVersion: NodeSchedulingPolicyConfig has no version 2; use scheduling.openshift.io/v1alpha1 or scheduling.openshift.io/alphav1",
      ],
    ],
    [
      "an unknown version of a wrapper",
      { ...admission(guard()), apiVersion: "apiserver.config.k8s.io/v9" },
      [
        'error apiVersion: AdmissionConfiguration has no version "apiserver.config.k8s.io/v9"; use apiserver.config.k8s.io/v1',
      ],
    ],
    [
      "no apiVersion",
      { kind: "ProjectRequestLimitConfig" },
      ["error apiVersion: is required: use v1 or project.openshift.io/v1"],
    ],
    [
      "a wrapper without a configuration of these kinds",
      admission({ apiVersion: "v1", kind: "Other" }),
      [
        "warning kind: holds no configuration that usher reads: NodeSchedulingPolicyConfig at plugins.*.configuration, ProjectRequestLimitConfig at plugins.*.configuration",
      ],
    ],
    [
      "an API object of another group with the same kind",
      { apiVersion: "example.com/v1", kind: "NodeSchedulingPolicyConfig", metadata: { name: "a" } },
      undefined,
    ],
    ["a policy", { apiVersion: "example.com/v1", kind: "Policy", metadata: { name: "a" } }, undefined],
    ["a document without a kind", { apiVersion: "v1" }, undefined],
  ])("%s", (_, document, expected) => expect(read(document)).toEqual(expected));

  test("never throws for any wrapper", () => {
    fc.assert(
      fc.property(jsonWith(KEYS), jsonWith(KEYS), (plugins, admissionField) => {
        const wrapper = { apiVersion: "apiserver.config.k8s.io/v1", kind: "AdmissionConfiguration", plugins };
        const loose = {
          apiVersion: "kubecontrolplane.config.openshift.io/v1",
          kind: "KubeAPIServerConfig",
          admission: admissionField,
        };
        for (const document of [wrapper, loose])
          for (const { object } of configurationsIn(document, KINDS)?.found ?? [])
            expect(isObject(object["spec"])).toBe(true);
      }),
    );
  });
});

test("configurationPath drops the spec that a configuration does not have", () => {
  expect(configurationPath(["spec", "groups", 0])).toEqual(["groups", 0]);
  expect(configurationPath(["apiVersion"])).toEqual(["apiVersion"]);
});
