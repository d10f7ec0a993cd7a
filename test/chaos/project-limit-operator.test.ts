// What an operand goes through in its life, with clients that never pause: another image, another topology, its certificate lost.
// `npm run test:long` runs it.
import { expect, test } from "vitest";
import { at } from "../../src/core/json.ts";
import { OPERAND } from "../../src/modules/project-limit/operator/names.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { OperatorStage, PATHS } from "../e2e/fixtures/operator.ts";
import { projectsOf, tenant } from "../e2e/fixtures/project-limits.ts";

const SPEC = { limits: [{ groups: ["limit-10"], maxProjects: 10 }], certificates: "Own" };
const LONG_MS = 10 * 60_000;

describeOwnCluster("the life of an operand", {}, (cluster) => {
  const stage = new OperatorStage(cluster);
  const generation = async () => at(await stage.read(PATHS.limits), "metadata", "generation");

  /** While this happens, 200 requests of one user: exactly the limit, none fails. */
  const exactly = async (user: string, happens: () => Promise<unknown>) => {
    const asked = stage.requests(tenant(user, 10), 200, 3);
    await happens();
    expect(await asked).toEqual({ "201": 10, "403 USHER-Q01": 190 });
    expect(await projectsOf(cluster(), user)).toHaveLength(10);
  };

  test(
    "a new image replaces each pod once, and none fails",
    async () => {
      await stage.prepare();
      await stage.controlPlane("c1", "c2");
      await stage.install("usher:1", "usher:one");
      await stage.create(SPEC);
      await stage.until("Available", "True Ready");
      await stage.rolledOut(await generation());
      const before = await stage.template();
      await exactly("ann", async () => {
        await stage.install("usher:2", "usher:two");
        await eventually("the new image", async () => {
          const { template } = await stage.template();
          return at(template, "spec", "containers", 0, "image") === "usher:two";
        });
        await stage.rolledOut(await generation());
      });
      expect((await stage.template()).generation).toBe(Number(before.generation) + 1);
    },
    LONG_MS,
  );

  test(
    "a lost certificate is made anew and served by all, and none fails",
    async () => {
      const before = await stage.read(PATHS.daemonSet);
      await exactly("bob", async () => {
        await cluster().call("DELETE", PATHS.secret);
        await eventually("another hash", async () => {
          const now = await stage.read(PATHS.daemonSet);
          return stage.hash(now, OPERAND.certificateHash) !== stage.hash(before, OPERAND.certificateHash);
        });
        await stage.rolledOut(await generation());
      });
    },
    LONG_MS,
  );

  test(
    "another topology takes over, and none fails",
    async () => {
      await exactly("cas", async () => {
        const changed = await stage.change({ topology: "Deployment" });
        await stage.rolledOut(changed);
        await eventually("no DaemonSet", async () => (await stage.read(PATHS.daemonSet)) === undefined);
      });
      expect(await stage.read(PATHS.deployment)).toMatchObject({ status: { readyReplicas: 2 } });
    },
    LONG_MS,
  );

  test(
    "where no node is left for it, nothing is registered any more",
    async () => {
      await stage.change({ topology: "DaemonSet", nodeSelector: { pool: "none" } });
      await stage.until("NoNodes", "True NoMatchingNode");
      await eventually("no webhook", async () => (await stage.read(PATHS.webhook)) === undefined);
      expect(await stage.request(tenant("dan", 10), "dan-1")).toBe("201");
    },
    LONG_MS,
  );
});
