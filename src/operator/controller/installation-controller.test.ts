import { expect, onTestFinished, test, vi } from "vitest";
import { answerOf, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { SEATING } from "../../../test/support/operator/installation.ts";
import { Assembly } from "../../core/evaluate/assembly.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { Gates } from "../../core/module/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/module/installation.ts";
import type { Module } from "../../core/module/module.ts";
import { customResourceDefinition } from "../../core/registration/index.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";
import type { Trust } from "../certificates/certificate-plan.ts";
import { InstallationController, type InstallationControllerOptions } from "./installation-controller.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
const CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/seatings.test.usher.dev";
const SLICE = "/apis/discovery.k8s.io/v1/namespaces/usher-system/endpointslices/usher-1";

const FOLLOWING: Module = {
  ...SEATING,
  reads: [
    ...SEATING.reads,
    { resource: "namespaces", group: "", version: "v1", kind: "Namespace", scope: "Cluster", keep: [] },
  ],
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
  readonly keeper: InstallationController;
  readonly assembly: Assembly;
  readonly trusts: Trust[];
  readonly said: { readonly message: string; readonly facts: object }[];
  readonly certificates: {
    bundle: string | undefined;
    ownAuthority: string | undefined;
    nextAuthority: string | undefined;
    pathToken: string | undefined;
    reconcile: (trust: Trust) => Promise<void>;
  };
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

function keeping(more: Partial<InstallationControllerOptions> = {}): Kept {
  const server = new TestApiServer();
  discovering(server);
  server.put(SLICE, { endpoints: [{ conditions: { ready: true } }] });
  const assembly = new Assembly([FOLLOWING], DEFAULT_INSTALLATION, new Gates([]));
  const trusts: Trust[] = [];
  const said: Kept["said"] = [];
  const say = (facts: object, message: string) => void said.push({ facts, message });
  const log: Log = { debug: () => undefined, info: say, warn: say, error: say };
  const certificates = {
    bundle: "one" as string | undefined,
    ownAuthority: "one" as string | undefined,
    nextAuthority: undefined as string | undefined,
    pathToken: undefined as string | undefined,
    reconcile: async (trust: Trust) => void trusts.push(trust),
    refresh: async () => undefined,
  };
  const keeper = new InstallationController({
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

function bundleIn(server: TestApiServer, path = MUTATING): string {
  const entry = at(server.objects.get(path), "webhooks", 0);
  return Buffer.from(stringAt(entry, "clientConfig", "caBundle") ?? "", "base64").toString();
}

/** Sets what is published, as an edit by anybody would. */
function publish(server: TestApiServer, path: string, bundle: string): void {
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

/** A policy that the hooks follow; they do not follow its row. */
function seat(kept: Kept, row: string): void {
  const object = { metadata: { name: "a" }, spec: { row } };
  kept.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "a", object }]);
  kept.keeper.changed();
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
  expect(kept.trusts.at(-1)).toBe("no webhooks");
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

  seat(kept, "1");
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
  const kept = keeping({ clock: () => now });
  kept.keeper.start();
  await vi.waitFor(() => expect(kept.server.objects.has(VALIDATING)).toBe(true), 10_000);
  await rounds(kept, 2);
  expect(kept.trusts.at(-1)).toBe("not yet");
  kept.certificates.nextAuthority = "three";
  await rounds(kept, 2);
  expect(kept.trusts.at(-1)).toBe("not yet");
  kept.certificates.bundle = "onethree";
  await vi.waitFor(() => expect(kept.trusts.at(-1)).toEqual({ forMs: 0 }), 10_000);
  now = 9_000;
  await rounds(kept, 2);
  expect(kept.trusts.at(-1)).toEqual({ forMs: 8_000 });
});

test("without anything sound to trust the published bundle stays, as long as it has what is served here", async () => {
  const kept = keeping();
  kept.keeper.start();
  await vi.waitFor(() => expect(kept.server.objects.has(VALIDATING)).toBe(true), 10_000);
  // Another leader knew more than this one does.
  kept.certificates.bundle = undefined;
  for (const path of [MUTATING, VALIDATING]) publish(kept.server, path, "zero, one");
  await rounds(kept, 2);
  expect(bundleIn(kept.server)).toBe("zero, one");
  // Hooks follow the policies all the same.
  seat(kept, "1");
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods", "services"]), 10_000);
  expect(bundleIn(kept.server)).toBe("zero, one");

  publish(kept.server, MUTATING, "");
  await vi.waitFor(() => expect(bundleIn(kept.server)).toBe("one"), 10_000);

  // Nothing is registered that nobody could trust for sure.
  kept.server.objects.delete(VALIDATING);
  await rounds(kept, 3);
  expect(kept.server.objects.has(VALIDATING)).toBe(false);

  // And a replica that has nothing itself leaves what it finds.
  kept.certificates.ownAuthority = undefined;
  publish(kept.server, MUTATING, "zero");
  await rounds(kept, 2);
  expect(bundleIn(kept.server)).toBe("zero");
});

test("a webhook configuration of someone else's with our name is left, which is said once", async () => {
  const kept = keeping();
  const theirs = { metadata: { labels: { app: "ushers-guild" } }, webhooks: [{ name: "a.example.com" }] };
  kept.server.put(MUTATING, theirs);
  kept.keeper.start();
  await vi.waitFor(() => expect(kept.server.objects.has(VALIDATING)).toBe(true), 10_000);
  await rounds(kept, 2);
  expect(kept.server.objects.get(MUTATING)).toMatchObject(theirs);
  const told = kept.said.filter(({ message }) => message.includes("is someone else's and is left"));
  expect(told).toHaveLength(1);
  expect(told[0]?.message).toMatch(/^a webhook configuration .*usher install --take-over/);
  expect(JSON.stringify(told[0]?.facts)).toMatch(
    /MutatingWebhookConfiguration usher belongs to ushers-guild/,
  );

  // As install marks what it takes over.
  kept.server.put(MUTATING, { ...theirs, metadata: { labels: OWN_LABELS } });
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods"]), 10_000);
});

test("what fails is told when it begins, when it begins again, and every hour in between", async () => {
  let now = 0;
  const kept = keeping({ clock: () => now });
  let why: string | undefined = "no";
  kept.certificates.reconcile = async (trust) => {
    kept.trusts.push(trust);
    if (why !== undefined) throw new Error(why);
  };
  const told = () => kept.said.filter(({ message }) => message.startsWith("can't keep")).length;
  kept.keeper.start();
  await rounds(kept, 3);
  expect(told()).toBe(1);
  why = undefined;
  await rounds(kept, 2);
  why = "no";
  await rounds(kept, 3);
  expect(told()).toBe(2);
  why = "never";
  await rounds(kept, 3);
  expect(told()).toBe(3);
  now += 3_600_000;
  await rounds(kept, 3);
  expect(told()).toBe(4);
});

test("a field that the API server does not keep is written once, and told once", async () => {
  const kept = keeping();
  const { fault } = kept.server;
  const pruned = (webhooks: Json | undefined) =>
    listAt({ webhooks: webhooks ?? null }, "webhooks").map((entry) => {
      const { timeoutSeconds: _dropped, ...rest } = entry as JsonObject;
      return rest;
    });
  kept.server.fault = async (method, path, options) => {
    const { body } = options;
    const [key = ""] = path.split("?");
    if (method !== "PATCH" || !key.startsWith(HOOKS)) return fault(method, path, options);
    const webhooks = Array.isArray(body) ? at(body as Json, 1, "value") : at(body as Json, "webhooks");
    const more = Array.isArray(body) ? {} : (body as JsonObject);
    return answerOf(
      200,
      kept.server.put(key, { ...kept.server.objects.get(key), ...more, webhooks: pruned(webhooks) }),
    );
  };
  kept.keeper.start();
  await rounds(kept, 3);
  const settled = kept.server.count("PATCH 200");
  const said = kept.said.length;
  await rounds(kept, 3);
  expect(kept.server.count("PATCH 200")).toBe(settled);
  expect(kept.said.length).toBe(said);
  const told = kept.said.filter(({ message }) => message.includes("does not keep"));
  expect(told.map(({ facts }) => facts)).toEqual([
    { object: "MutatingWebhookConfiguration usher", lost: ["webhooks[0].timeoutSeconds"] },
    { object: "ValidatingWebhookConfiguration usher", lost: ["webhooks[0].timeoutSeconds"] },
  ]);

  // An edit beside it is still set right, and hooks still follow.
  publish(kept.server, MUTATING, "edited");
  await vi.waitFor(() => expect(bundleIn(kept.server)).toBe("one"), 10_000);
  seat(kept, "1");
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods", "services"]), 10_000);
});

test("webhooks belong to usher's namespace: who deletes that does not leave a door without a doorman", async () => {
  const kept = keeping();
  kept.keeper.start();
  await rounds(kept, 2);
  const owners = (path: string) => listAt(kept.server.objects.get(path), "metadata", "ownerReferences");
  expect(owners(MUTATING)).toEqual([]);
  const object = { metadata: { name: "usher-system", uid: "ns-1" } };
  kept.assembly.apply([{ resource: "namespaces", namespace: "", name: "usher-system", object }]);
  kept.keeper.changed();
  const owner = { apiVersion: "v1", kind: "Namespace", name: "usher-system", uid: "ns-1" };
  await vi.waitFor(() => {
    for (const path of [MUTATING, VALIDATING]) expect(owners(path)).toEqual([owner]);
  }, 10_000);
});

test("what others wrote beside ours and the API server refuses together with it goes", async () => {
  const kept = keeping();
  kept.keeper.start();
  await rounds(kept, 2);
  const { fault } = kept.server;
  const foreign = { url: "https://example.com/x" };
  const urlOf = (path: string) =>
    stringAt(kept.server.objects.get(path), "webhooks", 0, "clientConfig", "url");
  kept.server.fault = async (method, path, options) => {
    const [key = ""] = path.split("?");
    const mixed = method === "PATCH" && !Array.isArray(options.body) && urlOf(key) !== undefined;
    return mixed ? refuse(422, "Invalid") : fault(method, path, options);
  };
  const live = kept.server.objects.get(MUTATING) ?? {};
  const [entry] = listAt(live, "webhooks");
  kept.server.put(MUTATING, { ...live, webhooks: [{ ...(entry as JsonObject), clientConfig: foreign }] });
  publish(kept.server, VALIDATING, "edited");
  await vi.waitFor(() => {
    expect(urlOf(MUTATING)).toBeUndefined();
    expect(bundleIn(kept.server)).toBe("one");
    expect(bundleIn(kept.server, VALIDATING)).toBe("one");
  }, 10_000);
});

test("one webhook configuration that can't be set right does not keep the other wrong", async () => {
  const kept = keeping();
  kept.keeper.start();
  await rounds(kept, 2);
  const { fault } = kept.server;
  kept.server.fault = async (method, path, options) =>
    method === "PATCH" && path.startsWith(MUTATING)
      ? refuse(500, "InternalError")
      : fault(method, path, options);
  publish(kept.server, MUTATING, "edited");
  publish(kept.server, VALIDATING, "edited");
  await vi.waitFor(() => expect(bundleIn(kept.server, VALIDATING)).toBe("one"), 10_000);
  expect(bundleIn(kept.server)).toBe("edited");
});

test("a change of the view asks the API server for nothing that hooks do not follow", async () => {
  const kept = keeping({ lookEveryMs: 3_600_000 });
  kept.keeper.start();
  await vi.waitFor(() => expect(kept.server.asked.at(-1)).toContain("customresourcedefinitions"), 10_000);
  await vi.waitFor(() => expect(kept.server.objects.has(CRD)).toBe(true), 10_000);
  seat(kept, "1");
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods", "services"]), 10_000);
  const asked = kept.server.asked.length;
  // Each is a round of its own; the last one shows that they have been.
  for (let row = 2; row < 6; row++) {
    seat(kept, String(row));
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  kept.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "a", object: undefined }]);
  kept.keeper.changed();
  await vi.waitFor(() => expect(rules(kept.server)).toEqual(["pods"]), 10_000);
  const later = kept.server.asked.slice(asked);
  expect(later.filter((one) => one.startsWith("GET") && one.includes("webhookconfigurations"))).toHaveLength(
    2,
  );
  expect(later.filter((one) => !one.includes("webhookconfigurations"))).toEqual([]);
  expect(kept.trusts).toHaveLength(1);
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

test("the webhooks' paths follow the path token", async () => {
  const kept = keeping();
  const path = () =>
    stringAt(kept.server.objects.get(MUTATING), "webhooks", 0, "clientConfig", "service", "path");
  kept.certificates.pathToken = "a".repeat(40);
  kept.keeper.start();
  await vi.waitFor(() => expect(path()).toMatch(new RegExp(`^/${"a".repeat(40)}/mutate/`)));
  kept.certificates.pathToken = "b".repeat(40);
  await vi.waitFor(() => expect(path()).toMatch(new RegExp(`^/${"b".repeat(40)}/mutate/`)));
});
