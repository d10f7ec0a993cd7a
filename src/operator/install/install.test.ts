import { expect, onTestFinished, test, vi } from "vitest";
import { pod } from "../../../test/builders/pod.ts";
import {
  installedObjects,
  pathOf,
  SEATING,
  TestInstallation,
} from "../../../test/support/operator/installation.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { describeObject } from "./apply.ts";
import { applyPlan, NotReadyError } from "./install.ts";
import { type InstallPlan, planInstall } from "./install-plan.ts";
import { namespaceGone } from "./installed.ts";
import { isOurs } from "./ownership-conflict.ts";
import { waitInstalled } from "./wait-installed.ts";

const WANTED = installedObjects();
const [DEPLOYMENT = {}, WATCHDOG = {}] = WANTED.filter((object) => object["kind"] === "Deployment");
const HOOKS = WANTED.filter((object) => String(object["kind"]).endsWith("WebhookConfiguration"));
const READY = { observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };

const planOf = (cluster: TestInstallation): Promise<InstallPlan> =>
  planInstall(cluster.objects, WANTED, [SEATING]);

/** A Deployment as its controller leaves it. */
function deployed(cluster: TestInstallation, status: object, generation = 1, deployment = DEPLOYMENT): void {
  const { metadata, ...rest } = deployment;
  cluster.have({
    ...rest,
    metadata: { ...(metadata as object), generation },
    spec: { replicas: deployment === DEPLOYMENT ? 2 : 1 },
    status: { ...status },
  });
}

/** A running installation: both Deployments are as desired, one replica leads, and has registered both webhooks. */
function running(cluster: TestInstallation): void {
  deployed(cluster, READY);
  deployed(
    cluster,
    { observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1 },
    1,
    WATCHDOG,
  );
  for (const object of HOOKS) cluster.have(object);
  led(cluster, "usher-1");
  cluster.have(podOf("usher-1"));
}

function led(cluster: TestInstallation, holderIdentity: string): void {
  const metadata = { name: "usher", namespace: "usher-system" };
  cluster.have({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec: { holderIdentity } });
}

function podOf(name: string, more: JsonObject = {}): JsonObject {
  return pod({ name, namespace: "usher-system", metadata: more });
}

test("a plan is executed in order; objects that usher writes itself are left to it", async () => {
  const cluster = new TestInstallation();
  const plan = await planOf(cluster);
  const applied: string[] = [];
  await applyPlan(cluster.objects, plan, ({ object }) => applied.push(describeObject(object)));
  const all = WANTED.map(describeObject);
  expect(applied).toEqual(all);
  expect(cluster.written).toEqual(
    all.filter((what) => !what.includes("WebhookConfiguration")).map((what) => `apply ${what}`),
  );
});

test("unchanged objects, and those of other owners, are not written", async () => {
  const cluster = new TestInstallation();
  for (const object of WANTED) cluster.have(object);
  const plan = await planOf(cluster);
  const [first, second] = plan.objects;
  if (first === undefined || second === undefined) throw new Error("an empty plan");
  const objects = [
    { ...first, change: "conflict" as const },
    { ...second, change: "update" as const },
  ];
  await applyPlan(
    cluster.objects,
    { ...plan, objects: [...objects, ...plan.objects.slice(2)] },
    () => undefined,
  );
  expect(cluster.written).toEqual([`apply ${describeObject(second.object)}`]);
});

test("adopted webhooks only get usher's labels: their entries are left to the leader", async () => {
  const cluster = new TestInstallation();
  for (const object of WANTED) cluster.have(object);
  const theirs = { metadata: { name: "usher", labels: { app: "other" } }, webhooks: [{ name: "a.other" }] };
  for (const hook of HOOKS) cluster.have({ ...hook, ...theirs });
  for (const conflicts of ["leave", "take over"] as const) {
    const plan = await planInstall(cluster.objects, WANTED, [SEATING], { conflicts });
    expect(plan.findings.join()).toMatch(
      /MutatingWebhookConfiguration usher belongs to other\n .*changes no objects/,
    );
    await applyPlan(cluster.objects, plan, () => undefined);
    for (const hook of HOOKS) {
      const live = cluster.server.objects.get(pathOf(hook)) ?? {};
      expect(live["webhooks"]).toEqual(theirs.webhooks);
      expect(isOurs(live)).toBe(conflicts === "take over");
    }
  }
});

test("objects that are taken over lose the labels of their manager, and nothing else of others", async () => {
  const cluster = new TestInstallation();
  const marks = { "meta.helm.sh/release-name": "door", "meta.helm.sh/release-namespace": "ops" };
  for (const object of WANTED) {
    const labels = { "app.kubernetes.io/name": "usher", "app.kubernetes.io/managed-by": "Helm" };
    const annotations = { ...marks, "example.com/note": "kept" };
    cluster.have({ ...object, metadata: { ...(object["metadata"] as JsonObject), labels, annotations } });
  }
  const plan = await planInstall(cluster.objects, WANTED, [SEATING], { conflicts: "take over" });
  await applyPlan(cluster.objects, plan, () => undefined);
  for (const object of WANTED.filter(({ kind }) => !/^(Namespace|.*Webhook.*)$/.test(String(kind)))) {
    const live = cluster.server.objects.get(pathOf(object)) ?? {};
    expect(live).toMatchObject({ metadata: { labels: { "app.kubernetes.io/managed-by": "usher" } } });
    expect(at(live, "metadata", "annotations")).toEqual({ "example.com/note": "kept" });
  }
  expect((await planInstall(cluster.objects, WANTED, [SEATING])).refusals).toEqual([]);
});

test("a refusal stops it, is reported, and leaves the rest", async () => {
  const cluster = new TestInstallation();
  const plan = await planOf(cluster);
  cluster.refusing = (method, path) => method === "PATCH" && path.endsWith("/services/usher");
  await expect(applyPlan(cluster.objects, plan, () => undefined)).rejects.toThrow(
    /applying Service usher-system\/usher: .* 403/,
  );
  expect(cluster.written).not.toContain("apply Deployment usher-system/usher");
});

test("nothing is applied after a CRD that is not served, and the API server's reason is reported", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const cluster = new TestInstallation();
  cluster.establishes = false;
  const plan = await planOf(cluster);
  const applied = applyPlan(cluster.objects, plan, () => undefined).catch((error: unknown) => error);
  let over = false;
  void applied.then(() => {
    over = true;
  });
  while (!over) {
    await vi.advanceTimersByTimeAsync(500);
    // The server's own round trips are real.
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await applied).toBeInstanceOf(NotReadyError);
  expect(String(await applied)).toMatch(/seatings\.test\.usher\.dev is not served: the names are taken/);
  expect(cluster.written.at(-1)).toBe("apply CustomResourceDefinition seatings.test.usher.dev");
});

test("it is installed when all pods are ready, a replica that stays leads, and both webhooks are registered", async () => {
  const cluster = new TestInstallation();
  const plan = await planOf(cluster);
  running(cluster);
  const progress: [number, number][] = [];
  await waitInstalled(cluster.objects, plan, { timeoutMs: 0, progress: (...now) => progress.push(now) });
  expect(progress).toEqual([[2, 2]]);
});

const missing: readonly [string, (cluster: TestInstallation) => void, RegExp][] = [
  [
    "too few replicas",
    (it) => deployed(it, { ...READY, readyReplicas: 1 }),
    /0 s: 1 of 2 replicas are ready/,
  ],
  ["an earlier status", (it) => deployed(it, READY, 2), /0 of 2 replicas/],
  [
    "replicas of the previous version",
    (it) => deployed(it, { ...READY, replicas: 3 }),
    /replicas of the previous version/,
  ],
  [
    "no watchdog",
    (it) => deployed(it, { observedGeneration: 1 }, 1, WATCHDOG),
    /0 of 1 pods of usher-watchdog are ready\n {2}pod usher-1: unknown/,
  ],
  ["no leader", (it) => led(it, ""), /no replica leads: Lease usher-system\/usher has no holder/],
  [
    "a leader that ends",
    (it) => it.have(podOf("usher-1", { deletionTimestamp: "2026-11-17T00:00:00Z" })),
    /no replica leads: usher-1 held Lease usher-system\/usher, and ends/,
  ],
  ["a leader that is gone", (it) => led(it, "usher-0"), /no replica leads: usher-0 held/],
  [
    "no webhook",
    (it) => it.server.objects.delete(pathOf(HOOKS[0] ?? {})),
    /has not registered MutatingWebhookConfiguration usher/,
  ],
  [
    "webhooks without entries, which only announce their paths",
    (it) => {
      for (const object of HOOKS) it.have({ ...object, webhooks: [] });
    },
    /has not registered MutatingWebhookConfiguration usher/,
  ],
];
test.each(missing)("it is not installed with %s", async (_, arrange, message) => {
  const cluster = new TestInstallation();
  const plan = await planOf(cluster);
  running(cluster);
  arrange(cluster);
  const waited = waitInstalled(cluster.objects, plan, { timeoutMs: 0, progress: () => undefined });
  await expect(waited).rejects.toThrow(message);
  await expect(waited).rejects.toBeInstanceOf(NotReadyError);
});

/** Webhooks of an installation whose bundle cert-manager's cainjector writes. */
function injected(failurePolicy: string, caBundle?: string): JsonObject[] {
  return HOOKS.map((object) => ({
    ...object,
    metadata: {
      ...(object["metadata"] as JsonObject),
      annotations: { "cert-manager.io/inject-ca-from": "a/b", "usher.dev/openable": "seating.usher.dev" },
    },
    webhooks: [
      { name: "seating.usher.dev", failurePolicy, clientConfig: caBundle === undefined ? {} : { caBundle } },
    ],
  }));
}

test.each([
  ["Ignore", undefined, /has no caBundle.*: cert-manager's cainjector writes it/],
  ["Ignore", "eA==", /seating\.usher\.dev of MutatingWebhookConfiguration usher is open/],
  ["Fail", "eA==", undefined],
] as const)("if a bundle is injected, entries must be fail-closed: %s with caBundle %s", async (...entry) => {
  const [failurePolicy, caBundle, message] = entry;
  const cluster = new TestInstallation();
  const others = WANTED.filter((object) => !HOOKS.includes(object));
  const plan = await planInstall(cluster.objects, [...others, ...injected("Fail")], [SEATING]);
  running(cluster);
  for (const object of injected(failurePolicy, caBundle)) cluster.have(object);
  const waited = waitInstalled(cluster.objects, plan, { timeoutMs: 0, progress: () => undefined });
  if (message === undefined) await waited;
  else await expect(waited).rejects.toThrow(message);
});

const problems: readonly [string, object | undefined, RegExp][] = [
  ["no pod", undefined, /no pods were created/],
  [
    "an image that can't be pulled",
    { containerStatuses: [{ state: { waiting: { reason: "ErrImagePull", message: "not found" } } }] },
    /pod usher-1: ErrImagePull: not found/,
  ],
  [
    "a process that ended",
    { containerStatuses: [{ state: { terminated: { reason: "Error" } } }] },
    /pod usher-1: Error$/,
  ],
  [
    "no node for it",
    { conditions: [{ type: "PodScheduled", status: "False", message: "0/3 nodes are available" }] },
    /0\/3 nodes are available/,
  ],
  ["no reason", { phase: "Pending" }, /pod usher-1: Pending/],
];
test.each(problems)("reports why replicas are not ready: %s", async (_, status, message) => {
  const cluster = new TestInstallation();
  const plan = await planOf(cluster);
  deployed(cluster, {});
  const pod = podOf("usher-1");
  if (status !== undefined) cluster.have({ ...pod, status: { ...status } });
  await expect(
    waitInstalled(cluster.objects, plan, { timeoutMs: 0, progress: () => undefined }),
  ).rejects.toThrow(message);
  expect(cluster.server.objects.has(pathOf(pod))).toBe(status !== undefined);
});

test("waits for a namespace that is being deleted, and leaves one that stays", async () => {
  const cluster = new TestInstallation();
  const home = { apiVersion: "v1", kind: "Namespace", metadata: { name: "usher-system" } };
  const waiting = vi.fn();
  const gone = (timeoutMs: number) => namespaceGone(cluster.objects, "usher-system", { timeoutMs, waiting });
  expect(await gone(0)).toBe(false);
  cluster.have(home);
  expect(await gone(0)).toBe(false);
  expect(waiting).not.toHaveBeenCalled();

  cluster.have({ ...home, metadata: { ...home.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
  await expect(gone(0)).rejects.toThrow(
    /nothing was changed: namespace usher-system is being deleted and is not gone within 0 s\n.*kubectl get namespace usher-system -o yaml/,
  );
  waiting.mockImplementation(() => cluster.server.objects.delete(pathOf(home)));
  expect(await gone(10_000)).toBe(true);
  expect(waiting).toHaveBeenCalledTimes(2);
  expect(cluster.written).toEqual([]);
});
