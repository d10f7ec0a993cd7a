import { expect, test } from "vitest";
import { type JsonObject, stringAt } from "../json.ts";
import { nameOf } from "../kubernetes/object.ts";
import { staticFiles } from "./static-manifests.ts";

const API = "admissionregistration.k8s.io/v1";
const policy = (kind: string, name: string, spec: JsonObject = {}): JsonObject => ({
  apiVersion: API,
  kind,
  metadata: { name, labels: { "app.kubernetes.io/managed-by": "usher" } },
  spec,
});
const binding = (kind: string, name: string, spec: JsonObject = {}): JsonObject =>
  policy(`${kind}Binding`, name, { policyName: name, ...spec });

test("policies of each plugin have their own folder, which the configuration names", () => {
  const { files, refused } = staticFiles(
    ["Validating", "Mutating"].flatMap((one) => {
      const kind = `${one}AdmissionPolicy`;
      return [policy(kind, "a"), binding(kind, "a")];
    }),
  );
  expect(refused).toEqual([]);
  expect(files.map(({ path, documents }) => [path, documents.map(nameOf)])).toEqual([
    ["admission.yaml", [""]],
    ["validating-policies/usher.yaml", ["a.static.k8s.io", "a.static.k8s.io"]],
    ["mutating-policies/usher.yaml", ["a.static.k8s.io", "a.static.k8s.io"]],
  ]);
  expect(files[0]?.documents).toEqual([
    {
      apiVersion: "apiserver.config.k8s.io/v1",
      kind: "AdmissionConfiguration",
      plugins: ["Validating", "Mutating"].map((one) => ({
        name: `${one}AdmissionPolicy`,
        configuration: {
          apiVersion: "apiserver.config.k8s.io/v1",
          kind: `${one}AdmissionPolicyConfiguration`,
          staticManifestsDir: `/etc/kubernetes/usher/${one.toLowerCase()}-policies`,
        },
      })),
    },
  ]);
});

test("a plugin without policies is not configured: its folder would not exist, and the API server would not start", () => {
  const kind = "ValidatingAdmissionPolicy";
  const { files } = staticFiles([policy(kind, "a"), binding(kind, "a")]);
  expect(files.map(({ path }) => path)).toEqual(["admission.yaml", "validating-policies/usher.yaml"]);
  expect(JSON.stringify(files[0])).not.toContain("mutating");
});

test("bindings name the renamed policy, and labels of the API are left out", () => {
  const kind = "ValidatingAdmissionPolicy";
  const { files } = staticFiles([policy(kind, "a"), binding(kind, "a", { validationActions: ["Deny"] })]);
  expect(files[1]?.documents[1]).toEqual({
    apiVersion: API,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: "a.static.k8s.io" },
    spec: { policyName: "a.static.k8s.io", validationActions: ["Deny"] },
  });
});

test.for([
  ["a policy with parameters", policy("ValidatingAdmissionPolicy", "a", { paramKind: {} }), "no parameters"],
  ["a binding with parameters", binding("MutatingAdmissionPolicy", "a", { paramRef: {} }), "no parameters"],
  [
    "another kind",
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } },
    "files have only policies",
  ],
  [
    "another version",
    { ...policy("MutatingAdmissionPolicy", "a"), apiVersion: "admissionregistration.k8s.io/v1beta1" },
    "files have only policies",
  ],
  ["a name that the suffix makes too long", policy("ValidatingAdmissionPolicy", "a".repeat(240)), "too long"],
] as const)("refuses %s, with the reason", ([, object, reason]) => {
  expect(staticFiles([object])).toEqual({
    files: [],
    refused: [
      {
        what: expect.stringMatching(new RegExp(`^${stringAt(object, "kind")} a+$`, "u")),
        why: expect.stringContaining(reason),
      },
    ],
  });
});

test("a binding without its policy is left out: the API server would not start", () => {
  const kind = "ValidatingAdmissionPolicy";
  const { files, refused } = staticFiles([
    policy(kind, "a", { paramKind: {} }),
    binding(kind, "a"),
    policy(kind, "b"),
    binding(kind, "b"),
    binding("MutatingAdmissionPolicy", "b"),
  ]);
  expect(refused).toHaveLength(1);
  expect(files.flatMap(({ documents }) => documents.map(nameOf))).toEqual([
    "",
    "b.static.k8s.io",
    "b.static.k8s.io",
  ]);
});
