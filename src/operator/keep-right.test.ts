import { expect, onTestFinished, test, vi } from "vitest";
import { answerOf, TestApiServer } from "../cluster/test-api-server.ts";
import { Assembly } from "../core/assembly.ts";
import { Gates } from "../core/gates.ts";
import { DEFAULT_INSTALLATION } from "../core/installation.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import type { Module } from "../core/module.ts";
import { customResourceDefinition } from "../core/registration/index.ts";
import { OWN_LABELS } from "../core/registration/names.ts";
import type { Trust } from "./certificate-plan.ts";
import { Keeper, type KeeperOptions } from "./keep-right.ts";
import { SEATING } from "./test-installation.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/seatings.test.usher.dev";
const SLICE = "/apis/discovery.k8s.io/v1/namespaces/usher-system/endpointslices/usher-1";

const FOLLOWING: Module = {
  ...SEATING,
  // Asked for only where there is a policy: hooks follow what is in the cluster.
  hooks: (view) =>
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
      timeoutSeconds: 5,
      sideEffects: "None",
    })),
};

interface Kept {
  readonly server: TestApiServer;
  readonly keeper: Keeper;
  readonly assembly: Assembly;
  readonly trusts: Trust[];
  readonly said: { readonly message: string; readonly facts: object }[];
  readonly certificates: { bundle: string; nextAuthority: string | undefined };
}

/** Discovery, and the two patches that the keeper sends; a list in an apply replaces, as the API server does for ours. */
function discovering(server: TestApiServer): void {
  const kinds: Record<string, readonly (readonly [string, string])[]> = {
    [HOOKS]: [
      ["mutatingwebhookconfigurations", "MutatingWebhookConfiguration"],
      ["validatingwebhookconfigurations", "ValidatingWebhookConfiguration"],
    ],
    "/apis/apiextensions.k8s.io/v1": [["customresourcedefinitions", "CustomResourceDefinition"]],
  };
  server.fault = (method, path, { body }) => {
    const served = method === "GET" ? kinds[path] : undefined;
    if (served !== undefined)
      return answerOf(200, { resources: served.map(([name, kind]) => ({ name, kind, namespaced: false })) });
    if (method === "PATCH" && Array.isArray(body)) {
      const [key = ""] = path.split("?");
      const value = at(body as Json, 1, "value") ?? null;
      return answerOf(200, server.put(key, { ...server.objects.get(key), webhooks: value }));
    }
    return undefined;
  };
}

function keeping(more: Partial<KeeperOptions> = {}): Kept {
  const server = new TestApiServer();
  discovering(server);
  server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  const assembly = new Assembly([FOLLOWING], DEFAULT_INSTALLATION, new Gates([]));
  const trusts: Trust[] = [];
  const said: Kept["said"] = [];
  const say = (facts: object, message: string) => void said.push({ facts, message });
  const log: Log = { debug: () => undefined, info: say, warn: say, error: say };
  const certificates = {
    bundle: "one",
    nextAuthority: undefined as string | undefined,
    keep: async (trust: Trust) => void trusts.push(trust),
    look: async () => undefined,
  };
  const keeper = new Keeper({
    client: server.client,
    assembly,
    certificates,
    log,
    version: "1.2.0",
    lookEveryMs: 20,
    ...more,
  });
  onTestFinished(() => keeper.stop());
  return { server, keeper, assembly, trusts, said, certificates };
}

function rules(server: TestApiServer): readonly Json[] {
  return listAt(server.objects.get(MUTATING), "webhooks", 0, "rules", 0, "resources");
}

const rounds = (kept: Kept, count: number) => {
  const from = kept.trusts.length;
  return vi.waitFor(() => expect(kept.trusts.length).toBeGreaterThanOrEqual(from + count), 10_000);
};

test("webhooks are registered once the Service leads to a ready replica, not before", async () => {
  const kept = keeping();
  kept.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }] });
  kept.keeper.start();
  await rounds(kept, 2);
  expect(kept.server.objects.has(MUTATING)).toBe(false);
  expect(kept.trusts.at(-1)).toBe("nobody calls");
  kept.server.put(SLICE, { endpoints: [{ conditions: { ready: false } }, { conditions: { ready: true } }] });
  await vi.waitFor(() => {
    expect(kept.server.objects.has(VALIDATING)).toBe(true);
    expect(stringAt(kept.server.objects.get(MUTATING), "webhooks", 0, "clientConfig", "caBundle")).toBe(
      "b25l",
    );
  }, 10_000);
});

test("they follow the policies, the bundle, and are left alone where they are right", async () => {
  const kept = keeping();
  kept.keeper.start();
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods"]), 10_000);
  await rounds(kept, 2);
  const settled = kept.server.count("PATCH 200");
  await rounds(kept, 3);
  expect(kept.server.count("PATCH 200")).toBe(settled);

  const object = { metadata: { name: "a" }, spec: { row: "1" } };
  kept.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "a", object }]);
  kept.keeper.changed();
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods", "services"]), 10_000);

  kept.certificates.bundle = "two";
  await vi.waitFor(
    () =>
      expect(stringAt(kept.server.objects.get(VALIDATING), "webhooks", 0, "clientConfig", "caBundle")).toBe(
        "dHdv",
      ),
    10_000,
  );
});

test("who leads no longer writes nothing, and who is not ready neither", async () => {
  for (const more of [{ leading: () => false }, { ready: () => false }]) {
    const kept = keeping(more);
    kept.server.put(CRD, { ...customResourceDefinition(first(SEATING)), metadata: { labels: OWN_LABELS } });
    kept.keeper.start();
    await rounds(kept, 2);
    expect(kept.server.objects.has(MUTATING)).toBe(false);
  }
});

test("trust counts from when every published bundle has the next authority", async () => {
  let now = 1_000;
  const kept = keeping({ now: () => now });
  kept.keeper.start();
  await vi.waitFor(() => expect(kept.server.objects.has(VALIDATING)).toBe(true), 10_000);
  await rounds(kept, 2);
  expect(kept.trusts.at(-1)).toBe("not yet");
  kept.certificates.nextAuthority = "three";
  await rounds(kept, 2);
  expect(kept.trusts.at(-1)).toBe("not yet");
  kept.certificates.bundle = "onethree";
  await vi.waitFor(() => expect(kept.trusts.at(-1)).toEqual({ since: 1_000 }), 10_000);
  now = 9_000;
  await rounds(kept, 2);
  expect(kept.trusts.at(-1)).toEqual({ since: 1_000 });
});

test("a CRD that is missing or edited is set right; a newer usher's and someone else's are left", async () => {
  const wanted = customResourceDefinition(first(SEATING));
  const edited = { ...wanted, spec: { ...(wanted["spec"] as JsonObject), scope: "Namespaced" } };
  const labelled = (version: string) => ({
    ...edited,
    metadata: { labels: { ...OWN_LABELS, "app.kubernetes.io/version": version } },
  });
  const cases: [string, JsonObject | undefined, string][] = [
    ["missing", undefined, "Cluster"],
    ["edited", labelled("1.2.0"), "Cluster"],
    ["older", labelled("1.1.9"), "Cluster"],
    ["newer", labelled("1.3.0"), "Namespaced"],
    ["foreign", { ...edited, metadata: {} }, "Namespaced"],
  ];
  for (const [what, live, scope] of cases) {
    const kept = keeping();
    if (live !== undefined) kept.server.put(CRD, live);
    kept.keeper.start();
    await vi.waitFor(() => expect(kept.server.objects.has(VALIDATING)).toBe(true), 10_000);
    await rounds(kept, 1);
    await kept.keeper.stop();
    expect(stringAt(kept.server.objects.get(CRD), "spec", "scope"), what).toBe(scope);
    const told = kept.said.filter(({ message }) => message.startsWith("a CRD is someone else's"));
    expect(told.length, what).toBe(what === "foreign" ? 1 : 0);
  }
});

test("what others left here is said once: a predecessor, and a stored policy that breaks the rules", async () => {
  const kept = keeping();
  kept.server.put(`${HOOKS}/mutatingwebhookconfigurations/old-seating`, {});
  const object = {
    apiVersion: "test.usher.dev/v1",
    kind: "Seating",
    metadata: { name: "bad" },
    spec: { rows: 3 },
  };
  kept.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "bad", object }]);
  kept.keeper.start();
  await rounds(kept, 3);
  const messages = kept.said.map(({ message }) => message);
  expect(messages.filter((one) => one.startsWith("another system"))).toHaveLength(1);
  expect(kept.said.find(({ message }) => message.startsWith("a stored policy"))?.facts).toMatchObject({
    name: "bad",
  });
});

function first({ kinds }: Module) {
  const [kind] = kinds;
  if (kind === undefined) throw new Error("no kind");
  return kind;
}
