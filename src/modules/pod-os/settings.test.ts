import { describe, expect, test } from "vitest";
import { accessVerbs } from "../../../test/builders/rights.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import { podOS } from "./index.ts";
import { settingsOf, settingsSchema } from "./settings.ts";

const V1 = {
  apiVersion: "pod-security.admission.config.k8s.io/v1",
  kind: "PodSecurityConfiguration",
};
const replace = (more: object) => ({ podSecurity: { mode: "Replace", ...more } });

test("has the documented defaults", () => {
  const defaults = {
    podSecurity: {
      mode: "Complement",
      templates: "Warn",
      ephemeralContainers: "Whole",
      windowsChecks: false,
    },
    os: { contradictions: "Warn", write: false, harden: [], nodeMismatch: "Warn", repairNodeLabels: false },
  };
  expect(settingsOf(DEFAULT_INSTALLATION)).toMatchObject(defaults);
  const settings = { "pod-os": { podSecurity: { mode: "Replace" } } };
  expect(settingsOf({ ...DEFAULT_INSTALLATION, settings })).toMatchObject({
    ...defaults,
    podSecurity: { ...defaults.podSecurity, mode: "Replace" },
  });
});

describe("accepted", () => {
  test.each<[string, object]>([
    ["nothing", {}],
    [
      "all of Replace",
      replace({
        configuration: V1,
        templates: "Deny",
        ephemeralContainers: "Added",
        windowsChecks: true,
      }),
    ],
    ["v1beta1", replace({ configuration: { ...V1, apiVersion: V1.apiVersion.replace("v1", "v1beta1") } })],
    ["v1alpha1", replace({ configuration: { ...V1, apiVersion: V1.apiVersion.replace("v1", "v1alpha1") } })],
    [
      "defaults and exemptions",
      replace({
        configuration: {
          ...V1,
          defaults: { enforce: "baseline", "enforce-version": "v1.30", warn: "", "warn-version": "" },
          exemptions: { usernames: ["jane doe"], namespaces: ["ci"], runtimeClasses: ["kata.v2"] },
        },
      }),
    ],
    [
      "a configuration for templates of Complement",
      { podSecurity: { templates: "Deny", configuration: V1 } },
    ],
    ["nodeMismatch with write", { os: { nodeMismatch: "Deny", write: true } }],
  ])("%s", (_what, settings) => {
    expect(settingsSchema.safeParse(settings).error?.issues ?? []).toEqual([]);
  });
});

describe("an error at start", () => {
  const configured = (more: object) => replace({ configuration: { ...V1, ...more } });
  test.each<[string, object, string]>([
    ["an unknown setting", { podsecurity: {} }, "Unrecognized key"],
    ["an unknown mode", { podSecurity: { mode: "Off" } }, "Complement"],
    ["a configuration in Complement", { podSecurity: { configuration: V1 } }, "has no effect"],
    ["ephemeralContainers in Complement", { podSecurity: { ephemeralContainers: "Added" } }, "has no effect"],
    ["windowsChecks in Complement", { podSecurity: { windowsChecks: true } }, "has no effect"],
    ["nodeMismatch without write", { os: { nodeMismatch: "Deny" } }, "needs write"],
    ["a name that no namespace has", { os: { harden: ["Shop"] } }, "name of a namespace"],
    ["another version", configured({ apiVersion: "pod-security.admission.config.k8s.io/v2" }), "v1beta1"],
    ["another kind", configured({ kind: "AdmissionConfiguration" }), "PodSecurityConfiguration"],
    ["an unknown field", configured({ default: {} }), "Unrecognized key"],
    ["an unknown default", configured({ defaults: { enforced: "baseline" } }), "Unrecognized key"],
    [
      "an unknown level",
      configured({ defaults: { enforce: "strict" } }),
      "must be one of privileged, baseline, restricted",
    ],
    [
      "an unknown version",
      configured({ defaults: { "warn-version": "1.30" } }),
      'must be "latest" or "v1.x"',
    ],
    ["a user without name", configured({ exemptions: { usernames: [""] } }), "must not be empty"],
    ["an invalid namespace", configured({ exemptions: { namespaces: ["a.b"] } }), "DNS label"],
    ["an invalid class", configured({ exemptions: { runtimeClasses: ["A"] } }), "DNS subdomain"],
    ["a name twice", configured({ exemptions: { namespaces: ["ci", "ci"] } }), "duplicate"],
  ])("%s", (_what, settings, message) => {
    const { error } = settingsSchema.safeParse(settings);
    expect(error?.issues.map((issue) => issue.message).join("\n")).toContain(message);
  });
});

test("usher lists pods only to preview a policy, and patches nodes only to repair them", () => {
  const verbs = (settings: JsonObject) => accessVerbs(podOS, { "pod-os": settings });
  expect(verbs({})).toEqual({ pods: "get", namespaces: "get", nodes: "get" });
  expect(verbs(replace({}))).toMatchObject({ pods: "get,list" });
  expect(verbs({ os: { repairNodeLabels: true } })).toMatchObject({ nodes: "get,patch" });
});
