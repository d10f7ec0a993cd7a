import { applyPatch } from "rfc6902";
// For tests: an installation controller with an API server, and its log.
import { expect, onTestFinished, vi } from "vitest";
import { Gates } from "../../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../src/core/installation/installation.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { Log } from "../../../src/core/log.ts";
import { Assembly } from "../../../src/core/module/assembly.ts";
import type { Module } from "../../../src/core/module/module.ts";
import type { Trust } from "../../../src/operator/certificates/certificate-plan.ts";
import {
  InstallationController,
  type InstallationControllerOptions,
} from "../../../src/operator/controller/installation-controller.ts";
import { answerOf, TestApiServer } from "../cluster/api-server.ts";
import { SEATING } from "./installation.ts";

export const HOOKS = "/apis/admissionregistration.k8s.io/v1";
export const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
export const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
export const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/seatings.test.usher.dev";
export const SLICE = "/apis/discovery.k8s.io/v1/namespaces/usher-system/endpointslices/usher-1";

export const FOLLOWING: Module = {
  ...SEATING,
  reads: [
    ...SEATING.reads,
    { resource: "namespaces", group: "", version: "v1", kind: "Namespace", scope: "Cluster", keep: [] },
  ],
  // Registered only if a policy exists: hooks follow the objects in the cluster.
  hooks: (_policies, view) =>
    (["mutate", "validate"] as const).map((phase) => ({
      name: phase === "mutate" ? "seating" : "seating-check",
      module: "seating",
      phase,
      rules: [
        {
          groups: [""],
          versions: ["v1"],
          resources: view.count("seatings.test.usher.dev") > 0 ? ["pods", "services"] : ["pods"],
          operations: ["CREATE"],
        },
      ],
      failure: "open",
      tooLarge: "allow",
      timeoutSeconds: 5,
      sideEffects: "None",
    })),
};

export interface Running {
  readonly server: TestApiServer;
  readonly controller: InstallationController;
  readonly assembly: Assembly;
  readonly trusts: Trust[];
  /** Once for each time that the path may have been exposed. */
  readonly shown: readonly string[];
  readonly logged: { readonly message: string; readonly facts: object }[];
  readonly certificates: {
    bundle: string | undefined;
    ownAuthority: string | undefined;
    nextAuthority: string | undefined;
    pathToken: string | undefined;
    reconcile: (trust: Trust) => Promise<void>;
  };
}

/** Discovery, and the two patches that the controller sends; a list in an apply replaces, as the API server does for ours. */
function discovering(server: TestApiServer): void {
  const kinds: Record<string, readonly (readonly [string, string])[]> = {
    [HOOKS]: [
      ["mutatingwebhookconfigurations", "MutatingWebhookConfiguration"],
      ["validatingwebhookconfigurations", "ValidatingWebhookConfiguration"],
    ],
    "/apis/apiextensions.k8s.io/v1": [["customresourcedefinitions", "CustomResourceDefinition"]],
    "/apis/rbac.authorization.k8s.io/v1": [["clusterroles", "ClusterRole"]],
    "/api/v1": [
      ["namespaces", "Namespace"],
      ["configmaps", "ConfigMap"],
    ],
  };
  server.fault = (method, path, { body }) => {
    const served = method === "GET" ? kinds[path] : undefined;
    if (served !== undefined)
      return answerOf(200, {
        resources: served.map(([name, kind]) => ({ name, kind, namespaced: name === "configmaps" })),
      });
    if (method === "PATCH" && Array.isArray(body)) {
      const [key = ""] = path.split("?");
      return answerOf(200, server.put(key, patched(server.objects.get(key) ?? {}, body as readonly Json[])));
    }
    return undefined;
  };
}

function patched(object: JsonObject, operations: readonly Json[]): JsonObject {
  const result = structuredClone(object);
  const errors = applyPatch(result, operations as unknown as Parameters<typeof applyPatch>[1]);
  for (const error of errors) if (error !== null) throw error;
  return result;
}

export const ANCHOR = "/apis/rbac.authorization.k8s.io/v1/clusterroles/usher-installation";
export const HOME = "/api/v1/namespaces/usher-system";
/** The reference that usher's objects have. */
export const ANCHOR_OWNER = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  name: "usher-installation",
  uid: "anchor-1",
};

export function running(
  more: Partial<InstallationControllerOptions> = {},
  modules: readonly Module[] = [FOLLOWING],
  installation: Partial<Installation> = {},
): Running {
  const server = new TestApiServer();
  discovering(server);
  server.put(ANCHOR, { metadata: { uid: "anchor-1" } });
  server.put(HOME, { metadata: { uid: "ns-1" } });
  server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  const assembly = new Assembly(modules, { ...DEFAULT_INSTALLATION, ...installation }, new Gates([]));
  const trusts: Trust[] = [];
  const shown: string[] = [];
  const logged: Running["logged"] = [];
  const write = (facts: object, message: string) => void logged.push({ facts, message });
  const log: Log = { debug: () => undefined, info: write, warn: write, error: write };
  const certificates = {
    bundle: "one" as string | undefined,
    ownAuthority: "one" as string | undefined,
    nextAuthority: undefined as string | undefined,
    pathToken: undefined as string | undefined,
    pathsShown: () => void shown.push("shown"),
    reconcile: async (trust: Trust) => void trusts.push(trust),
    refresh: async () => undefined,
  };
  const controller = new InstallationController({
    client: server.client,
    assembly,
    certificates,
    log,
    version: "1.2.0",
    resyncMs: 20,
    ...more,
  });
  onTestFinished(() => controller.stop());
  return { server, controller, assembly, trusts, shown, logged, certificates };
}

export function rules(server: TestApiServer): readonly Json[] {
  return listAt(server.objects.get(MUTATING), "webhooks", 0, "rules", 0, "resources");
}

export function bundleIn(server: TestApiServer, path = MUTATING): string {
  const entry = at(server.objects.get(path), "webhooks", 0);
  return Buffer.from(stringAt(entry, "clientConfig", "caBundle") ?? "", "base64").toString();
}

/** Edits a published bundle. */
export function publish(server: TestApiServer, path: string, bundle: string): void {
  const live = server.objects.get(path) ?? {};
  const webhooks = listAt(live, "webhooks").map((entry) => ({
    ...(entry as JsonObject),
    clientConfig: {
      ...(at(entry, "clientConfig") as JsonObject),
      caBundle: Buffer.from(bundle).toString("base64"),
    },
  }));
  server.put(path, { ...live, webhooks });
}

/** A policy that the hooks depend on; they do not depend on its row. */
export function seat(run: Running, row: string): void {
  const object = { metadata: { name: "a" }, spec: { row } };
  run.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "a", object }]);
  run.controller.changed();
}

export const rounds = (run: Running, count: number) => {
  const from = run.trusts.length;
  return vi.waitFor(() => expect(run.trusts.length).toBeGreaterThanOrEqual(from + count), 10_000);
};
