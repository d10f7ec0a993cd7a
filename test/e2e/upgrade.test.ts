// From the version before to this one and back, under a closed webhook and with a client that never pauses.
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
const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const NAMESPACED = "/apis/apps/v1/namespaces/usher-system/deployments";

const OPEN_AFTER_SECONDS = 5;

const earlier = earlierVersion();
if (earlier === undefined) process.stderr.write(`${NOT_THERE}\n`);
const IMAGES =
  earlier === undefined ? {} : { "usher-earlier": ["node", `${earlier.folder}/src/cli/main.ts`] };

describeOwnCluster("an upgrade and a downgrade", { images: IMAGES }, (cluster) => {
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
