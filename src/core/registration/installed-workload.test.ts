import { expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";
import { installedWorkload } from "./installed-workload.ts";
import { type WorkloadOptions, workloadObjects } from "./workload.ts";

/** As it would be read back from a cluster that `version` was installed into. */
function installed(options: WorkloadOptions, version = "1.0.0", next = "1.0.0") {
  const [configMap, , deployment] = workloadObjects(DEFAULT_INSTALLATION, options);
  const metadata = deployment?.["metadata"] as JsonObject;
  const labels = { "app.kubernetes.io/version": version };
  return installedWorkload({ ...deployment, metadata: { ...metadata, labels } }, configMap, next);
}

test("reads back the given options", () => {
  const podLabels = { team: "a", "cloud.example/x": "" };
  const configuration = { openNamespaces: ["a"] };
  const found = installed({ image: "r.example/usher:mine", replicas: 5, podLabels, configuration });
  expect(found).toMatchObject({ image: "r.example/usher:mine", replicas: 5, podLabels });
  expect(JSON.parse(found.configuration ?? "")).toMatchObject({ spec: configuration });
});

test("usher's own labels are not the administrator's pod labels", () => {
  expect(installed({ image: "usher:1.0.0" }).podLabels).toEqual({});
});

test("labels of a chart are not the administrator's either", () => {
  const podLabels = {
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/instance": "door",
    "helm.sh/chart": "usher-1.0.0",
    team: "a",
  };
  expect(installed({ image: "usher:1.0.0", podLabels }).podLabels).toEqual({ team: "a" });
});

test.each([
  ["usher:1.0.0", "usher:1.1.0"],
  ["r.example:5000/tools/usher:1.0.0", "r.example:5000/tools/usher:1.1.0"],
  ["r.example/usher:stable", "r.example/usher:stable"],
  ["r.example/usher:11.0.0", "r.example/usher:11.0.0"],
  ["r.example:5000/usher", "r.example:5000/usher"],
  ["r.example/usher@sha256:abc", "r.example/usher@sha256:abc"],
])("the image %s of 1.0.0 is %s with 1.1.0", (image, expected) => {
  expect(installed({ image }, "1.0.0", "1.1.0").image).toBe(expected);
  expect(installed({ image }).image).toBe(image);
});

test("zero replicas mean that usher is paused, not a setting; without a Deployment nothing is read", () => {
  expect(installed({ image: "usher:1", replicas: 0 }).replicas).toBeUndefined();
  expect(installedWorkload(undefined, undefined, "1.0.0")).toEqual({ podLabels: {} });
});
