import { expect, test } from "vitest";
import { assemblyOf } from "../../../test/builders/evaluation.ts";
import { came, clusterPolicy } from "../../../test/builders/policy.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../core/installation/installation.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { parseVersion } from "../../core/kubernetes/versions.ts";
import { hasStandby, managedSets } from "../../core/registration/managed-objects.ts";
import { webhookConfigurations } from "../../core/registration/webhooks.ts";
import { placement } from "./index.ts";

const COMPILED: Installation = {
  ...DEFAULT_INSTALLATION,
  settings: { placement: { fallback: "Compiled" } },
};
const POOL = clusterPolicy("pool", { namespaceSelector: {}, podSelector: {}, nodeSelector: { pool: "a" } });

function desired(installation: Installation, release = "1.37.1", policies: readonly JsonObject[] = [POOL]) {
  const assembly = assemblyOf([placement], policies.map(came), installation);
  const version = parseVersion(release);
  if (version !== undefined) assembly.observeServerVersion({ effective: version, binary: version });
  return {
    standby: hasStandby(assembly),
    objects: managedSets(assembly, assembly.view, 0).flatMap((set) => set.desired),
  };
}

test("each compiled policy has a binding that selects the labelled webhook configuration as its parameter", () => {
  const { objects, standby } = desired(COMPILED);
  expect(standby).toBe(true);
  expect(objects.map((one) => `${one["kind"]} ${nameOf(one)}`)).toEqual([
    "MutatingAdmissionPolicy usher-standby.pool",
    "MutatingAdmissionPolicyBinding usher-standby.pool",
  ]);
  expect(objects.map((one) => at(one, "spec", "paramKind", "kind"))).toEqual([
    "MutatingWebhookConfiguration",
    undefined,
  ]);
  expect(objects[1]?.["spec"]).toEqual({
    policyName: "usher-standby.pool",
    paramRef: {
      selector: { matchLabels: { "usher.dev/standby": "active" } },
      parameterNotFoundAction: "Allow",
    },
  });
});

test("usher's own configuration never has the label of an active standby, and only the mutating one has it at all", () => {
  const options = { endpoint: { url: "https://usher.example" }, standby: true };
  const { mutating, validating } = webhookConfigurations([], COMPILED, options);
  expect(at(mutating, "metadata", "labels")).toEqual({ "usher.dev/standby": "ready" });
  expect(at(validating, "metadata", "labels")).toBeUndefined();
});

test.for<[string, Installation]>([
  ["by default", DEFAULT_INSTALLATION],
  ["with fallback: None", { ...COMPILED, settings: { placement: { fallback: "None" } } }],
  [
    "without the watchdog, which would switch it on",
    { ...COMPILED, watchdog: { enabled: false, openAfterSeconds: 300, open: [] } },
  ],
  ["where another tool writes the webhooks", { ...COMPILED, manageWebhooks: false }],
])("nothing stands in %s", ([, installation]) => {
  expect(desired(installation)).toEqual({ standby: false, objects: [] });
});

test("an API server before 1.36 gets no compiled policies", () => {
  expect(desired(COMPILED, "1.35.9").objects).toEqual([]);
  expect(desired(COMPILED, "none").objects).toEqual([]);
});

test("policies that can't be compiled, or whose objects would have no valid name, are left out; the others stay", () => {
  const templates = clusterPolicy("templates", {
    namespaceSelector: {},
    podSelector: {},
    targets: "Templates",
    nodeSelector: { pool: "a" },
  });
  const long = clusterPolicy("a".repeat(253), {
    namespaceSelector: {},
    podSelector: {},
    nodeSelector: { b: "c" },
  });
  const broken = clusterPolicy("broken", {
    namespaceSelector: {},
    podSelector: {},
    nodeSelector: { "?": "a" },
  });
  const { objects } = desired(COMPILED, "1.37.1", [templates, long, broken, POOL]);
  expect([...new Set(objects.map(nameOf))]).toEqual(["usher-standby.pool"]);
});
