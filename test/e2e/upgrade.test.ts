// From the version before to this one and back, under a closed webhook and with a client that never pauses; and between both, no replica
// at all: what may be opened is opened, and closed again.
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, listAt, stringAt } from "../../src/core/json.ts";
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
const LIMITS = "/apis/operator.project.openshift.io/v1/projectrequestlimits";
const NAMESPACED = "/apis/apps/v1/namespaces/usher-system/deployments";
const EVENTS = "/apis/events.k8s.io/v1/namespaces/usher-system/events";

const OPEN_AFTER_SECONDS = 5;
/** Of the default: two minutes after five. Detection does not grow with the limit, so this is what is left to a loaded machine. */
const OPENED_WITHIN_SECONDS = OPEN_AFTER_SECONDS + 30;

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
  /** Creates pods as fast as they are answered while `work` runs; returns what was not placed. */
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

  beforeAll(async () => {
    for (const node of ["n1", "n2"]) await cluster().createNode(node);
  });

  test("the version before runs with a closed policy", async () => {
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
    await eventually("the closed webhook", async () => (await closed(MUTATING)).length > 0);
  });

  test.skipIf(earlier === undefined)("a rolling upgrade fails no request", async () => {
    const words = await installWords(
      cluster(),
      "--image",
      "usher:0.1.0",
      ...configured({ watchdog: { openAfterSeconds: OPEN_AFTER_SECONDS } }),
    );
    const { done, created, failed } = await creating(() => program(words));
    expect(done, done.err).toMatchObject({ code: 0 });
    expect(failed).toEqual([]);
    expect(created).toBeGreaterThan(20);
  });

  test("without a ready replica what may be opened is opened, and closed once one is ready", async () => {
    if (earlier === undefined) {
      const words = await installWords(
        cluster(),
        ...configured({ watchdog: { openAfterSeconds: OPEN_AFTER_SECONDS } }),
      );
      expect((await program(words)).code).toBe(0);
    }
    await cluster().call("POST", LIMITS, {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      metadata: { name: "cluster" },
      spec: { limits: [{ maxProjects: 2 }], namespaces: {} },
    });
    const before = await eventually("what stays closed", async () => {
      const names = await closed(VALIDATING);
      return names.length > 0 && names;
    });
    expect(await closed(MUTATING)).toEqual(["placement-closed-pods-placement-closed-templates.usher.dev"]);
    await scale(0);
    await eventually("refusals", async () => (await createPod()).status >= 400);
    const since = Date.now();
    await eventually("an opened webhook", async () => (await opened(MUTATING)) !== undefined);
    const seconds = (Date.now() - since) / 1_000;
    expect(seconds).toBeLessThan(OPENED_WITHIN_SECONDS);
    expect(await closed(MUTATING)).toEqual([]);
    await eventually("a pod without usher", async () => (await createPod()).status === 201);
    // Never those of project-limit, unless configured.
    expect(await closed(VALIDATING)).toEqual(before);
    expect(await opened(VALIDATING)).toBeUndefined();
    const deployment = await cluster().call("GET", `${NAMESPACED}/usher`);
    const events = async (reason: string) =>
      listAt(await cluster().call("GET", EVENTS), "items").filter(
        (one) => stringAt(one, "reason") === reason,
      );
    const written = await eventually("the event", async () => {
      const found = await events("WebhooksOpened");
      return found.length > 0 && found;
    });
    expect(stringAt(written[0], "regarding", "uid")).toBe(stringAt(deployment, "metadata", "uid"));

    await scale(2);
    await eventually("a ready replica", async () => {
      const live = await cluster().call("GET", `${NAMESPACED}/usher`);
      return Number(at(live, "status", "readyReplicas") ?? 0) > 0;
    });
    const ready = Date.now();
    await eventually("a closed webhook", async () => (await closed(MUTATING)).length > 0);
    expect((Date.now() - ready) / 1_000).toBeLessThan(30);
    await eventually("the end of the note", async () => (await opened(MUTATING)) === undefined);
    await eventually("the event of the end", async () => (await events("WebhooksClosed")).length > 0);
    await cluster().call("DELETE", `${LIMITS}/cluster`);
  });

  test.skipIf(earlier === undefined)("a downgrade fails no request", async () => {
    await eventually("both replicas", async () => {
      const live = await cluster().call("GET", `${NAMESPACED}/usher`);
      return at(live, "status", "readyReplicas") === 2;
    });
    // An older version refuses settings that it does not know.
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
