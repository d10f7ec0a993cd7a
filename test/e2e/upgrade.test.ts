// From the earlier version to this one and back, under a fail-closed webhook and with a client that never pauses; in
// between without any replica: webhooks that may be opened are opened, and closed again.

import { afterAll, beforeAll, expect, test } from "vitest";
import { at, listAt, stringAt } from "../../src/core/json.ts";
import { controlPlanePolicy } from "../builders/guard.ts";
import { clusterPolicy } from "../builders/policy.ts";
import { ended, program, start } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { earlierVersion, NOT_THERE } from "../skew/earlier-version.ts";
import { configured, installWords } from "./fixtures/install.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const NAMESPACED = "/apis/apps/v1/namespaces/usher-system/deployments";

const EVENTS = "/apis/events.k8s.io/v1/namespaces/usher-system/events";

/** Opened early, including project-limit, which stays closed by default and is named; node-guard is not. */
const SETTINGS = {
  featureGates: { OpenShiftNodeSchedulingPolicy: true },
  watchdog: { openAfterSeconds: 5, open: ["project-limit"] },
};
const LIMIT = {
  apiVersion: "operator.project.openshift.io/v1",
  kind: "ProjectRequestLimit",
  metadata: { name: "cluster" },
  spec: { limits: [{ maxProjects: 2 }], namespaces: {} },
};
const GUARD = controlPlanePolicy({ failurePolicy: "Fail" });

const earlier = earlierVersion();
if (earlier === undefined) process.stderr.write(`${NOT_THERE}\n`);
const IMAGES =
  earlier === undefined ? {} : { "usher-earlier": ["node", `${earlier.folder}/src/cli/main.ts`] };

describeOwnCluster("an upgrade, an outage and a downgrade", { images: IMAGES }, (cluster) => {
  let namespace = "";

  afterAll(() => earlier?.remove());

  const old = async (...args: string[]) => {
    const words = await installWords(cluster(), "--image", "usher-earlier:0.1.0", ...args);
    return ended(start(process.execPath, [`${earlier?.folder}/src/cli/main.ts`, ...words]));
  };
  const createPod = () =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      metadata: { generateName: "p-" },
      spec: { containers: [{ name: "c", image: "any" }] },
    });
  /** Creates pods as fast as they are answered while `work` runs; returns those that were not placed. */
  const creating = async <T>(
    work: () => Promise<T>,
  ): Promise<{ done: T; created: number; failed: string[] }> => {
    const failed: string[] = [];
    let created = 0;
    let over = false;
    const client = (async () => {
      while (!over) {
        const { status, body } = await createPod();
        created += 1;
        if (status !== 201 || stringAt(body, "spec", "nodeSelector", "pool") !== "a")
          failed.push(`${status} ${stringAt(body, "message") ?? "not placed"}`);
      }
    })();
    try {
      return { done: await work(), created, failed };
    } finally {
      over = true;
      await client;
    }
  };
  const closed = async (path: string) =>
    listAt(await cluster().call("GET", path), "webhooks").flatMap((entry) =>
      at(entry, "failurePolicy") === "Fail" ? [stringAt(entry, "name") ?? ""] : [],
    );
  const opened = async (path: string) =>
    stringAt(await cluster().call("GET", path), "metadata", "annotations", "usher.dev/opened");
  const scale = (replicas: number) => cluster().call("PATCH", `${NAMESPACED}/usher`, { spec: { replicas } });
  const events = async (reason: string) =>
    listAt(await cluster().call("GET", EVENTS), "items").filter((one) => stringAt(one, "reason") === reason);

  beforeAll(async () => {
    for (const node of ["n1", "n2"]) await cluster().createNode(node);
    const role = "node-role.kubernetes.io/control-plane";
    await cluster().createNode("cp-0", {
      labels: { [role]: "" },
      taints: [{ key: role, effect: "NoSchedule" }],
    });
  });

  test("the earlier version runs with a fail-closed policy", async () => {
    const first = earlier === undefined ? await program(await installWords(cluster())) : await old();
    expect(first, first.err).toMatchObject({ code: 0 });
    namespace = await createNamespace(cluster());
    const { metadata: _none, ...policy } = clusterPolicy("closed", {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { pool: "a" },
      failurePolicy: "Fail",
    });
    await cluster().call("POST", POLICIES, { ...policy, metadata: { name: "closed" } });
    await eventually("the fail-closed webhook", async () => (await closed(MUTATING)).length > 0);
  });

  test.skipIf(earlier === undefined)("a rolling upgrade fails no request", async () => {
    const words = await installWords(cluster(), "--image", "usher:0.1.0", ...configured(SETTINGS));
    const { done, created, failed } = await creating(() => program(words));
    expect(done, done.err).toMatchObject({ code: 0 });
    expect(failed).toEqual([]);
    expect(created).toBeGreaterThan(20);
  });

  test("without a ready replica webhooks that may be opened are opened, and closed once a replica is ready", async () => {
    if (earlier === undefined)
      expect((await program(await installWords(cluster(), ...configured(SETTINGS)))).code).toBe(0);
    await cluster().apply(LIMIT, GUARD);
    const guarding = /^node-guard-/;
    const [guarded, limited] = await eventually("webhooks that stay closed by default", async () => {
      const names = await closed(VALIDATING);
      const parts = [names.filter((one) => guarding.test(one)), names.filter((one) => !guarding.test(one))];
      return parts.every((part) => part.length > 0) && parts;
    });
    for (const name of limited ?? []) expect(name).toMatch(/^project-limit[-.]/);
    expect(await closed(MUTATING)).toEqual(["placement-closed-pods.placement-closed-templates.usher.dev"]);
    await scale(0);
    await eventually("refusals", async () => (await createPod()).status >= 400);
    for (const path of [MUTATING, VALIDATING])
      await eventually("an opened webhook", async () => (await opened(path)) !== undefined);
    expect(await closed(MUTATING)).toEqual([]);
    expect(await closed(VALIDATING)).toEqual(guarded);
    await eventually("a pod without usher", async () => (await createPod()).status === 201);
    const deployment = await cluster().call("GET", `${NAMESPACED}/usher`);
    const written = await eventually("the events", async () => {
      const found = await events("WebhooksOpened");
      return found.length === 2 && found;
    });
    for (const event of written)
      expect(stringAt(event, "regarding", "uid")).toBe(stringAt(deployment, "metadata", "uid"));

    await scale(2);
    const both = [...(guarded ?? []), ...(limited ?? [])].sort();
    await eventually("closed webhooks", async () => {
      const [mutating, validating] = [await closed(MUTATING), (await closed(VALIDATING)).sort()];
      return mutating.length === 1 && validating.join() === both.join();
    });
    for (const path of [MUTATING, VALIDATING])
      await eventually("no note", async () => (await opened(path)) === undefined);
    // On a busy machine a replica that is unready for a moment causes another opening and closing.
    await eventually("the events of the end", async () => {
      const reported = JSON.stringify(await events("WebhooksClosed"));
      return ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].every((kind) =>
        reported.includes(kind),
      );
    });
    await eventually("a placed pod", async () => {
      const { status, body } = await createPod();
      return status === 201 && stringAt(body, "spec", "nodeSelector", "pool") === "a";
    });
    for (const [group, resource] of [
      ["operator.project.openshift.io/v1", "projectrequestlimits"],
      ["scheduling.openshift.io/v1alpha1", "nodeschedulingpolicies"],
    ])
      await cluster().call("DELETE", `/apis/${group}/${resource}/cluster`);
  });

  test.skipIf(earlier === undefined)("a downgrade fails no request", async () => {
    await eventually("both replicas", async () => {
      const live = await cluster().call("GET", `${NAMESPACED}/usher`);
      return at(live, "status", "readyReplicas") === 2;
    });
    // An older version rejects settings that it does not know.
    const refused = await old("--allow-downgrade");
    expect(`${refused.code} ${refused.err}`).toMatch(
      /^2 .*watchdog.*--config FILE, or reset it with --defaults/s,
    );
    const { done, created, failed } = await creating(() => old("--allow-downgrade", "--defaults"));
    expect(done, done.err).toMatchObject({ code: 0 });
    expect(failed).toEqual([]);
    expect(created).toBeGreaterThan(20);
    const live = await cluster().call("GET", `${NAMESPACED}/usher`);
    expect(stringAt(live, "spec", "template", "spec", "containers", 0, "image")).toBe("usher-earlier:0.1.0");
    expect(stringAt(live, "spec", "template", "metadata", "labels", RUN_LABEL)).toBe("true");
  });
});
