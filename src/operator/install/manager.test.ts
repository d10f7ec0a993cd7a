import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../core/json.ts";
import { managerOf } from "./manager.ts";

const NAME = { "app.kubernetes.io/name": "usher" };
const HELM = {
  labels: { ...NAME, "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "usher-1.2.0" },
  annotations: { "meta.helm.sh/release-name": "door", "meta.helm.sh/release-namespace": "ops" },
};
const ARGO = { manager: "argocd-controller", operation: "Update" };

interface Case {
  readonly metadata: JsonObject;
  readonly what: string;
  readonly update: string;
  readonly remove: string;
}

const CASES: Readonly<Record<string, Case>> = {
  Helm: {
    metadata: HELM,
    what: "the Helm release door in namespace ops",
    update: "helm upgrade door CHART -n ops",
    remove: "helm uninstall door -n ops",
  },
  "Argo CD by its annotation": {
    metadata: {
      labels: { ...NAME, "app.kubernetes.io/managed-by": "Helm" },
      annotations: { "argocd.argoproj.io/tracking-id": "door:apps/Deployment:usher-system/usher" },
    },
    what: "the Argo CD application door",
    update: "argocd app sync door",
    remove: "argocd app delete door",
  },
  "Argo CD with an application in a namespace of its own": {
    metadata: {
      annotations: { "argocd.argoproj.io/tracking-id": "team-a_door:apps/Deployment:usher-system/usher" },
    },
    what: "the Argo CD application team-a/door",
    update: "argocd app sync team-a/door",
    remove: "argocd app delete team-a/door",
  },
  "Argo CD by its own label": {
    metadata: { labels: { ...NAME, "argocd.argoproj.io/instance": "door" } },
    what: "the Argo CD application door",
    update: "argocd app sync door",
    remove: "argocd app delete door",
  },
  "Argo CD by the usual label": {
    metadata: { labels: { ...NAME, "app.kubernetes.io/instance": "door" }, managedFields: [ARGO] },
    what: "the Argo CD application door",
    update: "argocd app sync door",
    remove: "argocd app delete door",
  },
  "Flux by a HelmRelease, which is a Helm release too": {
    metadata: {
      ...HELM,
      labels: {
        ...HELM.labels,
        "helm.toolkit.fluxcd.io/name": "door",
        "helm.toolkit.fluxcd.io/namespace": "flux-system",
      },
    },
    what: "Flux's HelmRelease door in namespace flux-system",
    update: "flux reconcile helmrelease door -n flux-system --with-source",
    remove: "flux delete helmrelease door -n flux-system",
  },
  "Flux by a Kustomization": {
    metadata: {
      labels: {
        ...NAME,
        "kustomize.toolkit.fluxcd.io/name": "door",
        "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
      },
    },
    what: "Flux's Kustomization door in namespace flux-system",
    update: "flux reconcile kustomization door -n flux-system --with-source",
    remove: "flux delete kustomization door -n flux-system",
  },
  "Gardener, which renders charts": {
    metadata: {
      labels: { ...NAME, "resources.gardener.cloud/managed-by": "gardener" },
      annotations: {
        "resources.gardener.cloud/origin": "seed-1:garden/usher-x7k2p",
      },
    },
    what: "Gardener's ManagedResource usher-x7k2p in namespace garden",
    update: "change the ControllerDeployment in the garden cluster",
    remove:
      "delete the ControllerRegistration and the ControllerDeployment in the garden cluster, or leave this seed out of the seedSelector; where no gardenlet is left: kubectl delete managedresource usher-x7k2p -n garden",
  },
};

describe("an object is managed by", () => {
  test.each(Object.entries(CASES))("%s", (_, { metadata, ...expected }) => {
    expect(managerOf({ metadata })).toMatchObject(expected);
  });
});

test.each<[string, JsonObject]>([
  [
    "usher install",
    {
      labels: { ...NAME, "app.kubernetes.io/managed-by": "usher" },
      managedFields: [{ manager: "usher", operation: "Apply" }],
    },
  ],
  [
    "kubectl, of the manifests",
    { labels: NAME, annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
  ],
  ["Helm's folder of CRDs", { labels: NAME, managedFields: [{ manager: "helm", operation: "Update" }] }],
  [
    "helm template and kubectl",
    { labels: { ...NAME, "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "door" } },
  ],
  [
    "usher install, which took it from Helm",
    { ...HELM, labels: { ...HELM.labels, "app.kubernetes.io/managed-by": "usher" } },
  ],
  ["usher install, which took it from Argo CD", { labels: NAME, managedFields: [ARGO] }],
])("no tool manages an object of %s", (_, metadata) => {
  expect(managerOf({ metadata })).toBeUndefined();
});

test("without its labels an object is no longer the manager's", () => {
  for (const { metadata } of Object.values(CASES)) {
    const marks = managerOf({ metadata })?.marks ?? [];
    const without = (part: "labels" | "annotations") =>
      Object.fromEntries(Object.entries(metadata[part] ?? {}).filter(([key]) => !marks.includes(key)));
    const rest = { ...metadata, labels: without("labels"), annotations: without("annotations") };
    expect(managerOf({ metadata: rest })).toBeUndefined();
  }
});

test.each(["$(reboot)", "a b", "a;b", "", "-x", "`x`", "a\nb", "x".repeat(300)])(
  "a name that a shell would not read as one word is not part of a command: %j",
  (name) => {
    const annotations = { "meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": name };
    const manager = managerOf({ metadata: { annotations } });
    expect(manager?.update).toBe("helm upgrade NAME CHART -n NAMESPACE");
    expect(manager?.release).toBe("kubectl delete secret -n NAMESPACE -l owner=helm,name=NAME");
  },
);

test.each<JsonObject>([
  {},
  { metadata: null },
  { metadata: { labels: [], annotations: 1, managedFields: {} } },
])("an object without such labels has no manager: %j", (live) => {
  expect(managerOf(live)).toBeUndefined();
});
