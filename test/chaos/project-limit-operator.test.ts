// The changes that an operand goes through, with clients that never pause: another image, another transport and
// topology, a lost certificate.
// `npm run test:long` runs it.
import { expect, test } from "vitest";
import { at, listAt, stringAt } from "../../src/core/json.ts";
import { OPERAND } from "../../src/modules/project-limit/operand-names.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { OperatorStage, PATHS } from "../e2e/fixtures/operator.ts";
import { tenant } from "../e2e/fixtures/project-limits.ts";

const SPEC = { limits: [{ groups: ["limit-100"], maxProjects: 100 }], certificates: "Own" };
const LABEL = encodeURIComponent(`${Object.keys(OPERAND.podLabels)[0]}=true`);
const LONG_MS = 10 * 60_000;

describeOwnCluster("the life cycle of an operand", {}, (cluster) => {
  const stage = new OperatorStage(cluster);
  const generation = async () => at(await stage.read(PATHS.limits), "metadata", "generation");

  /** Of the operand's ready pods, sorted. */
  const readyImages = async () =>
    listAt(await stage.read(`${PATHS.pods}?labelSelector=${LABEL}`), "items")
      .filter((pod) =>
        listAt(pod, "status", "conditions").some(
          (one) => at(one, "type") === "Ready" && at(one, "status") === "True",
        ),
      )
      .map((pod) => stringAt(pod, "spec", "containers", 0, "image") ?? "")
      .sort();

  test(
    "a new image replaces each pod once, and no request fails",
    async () => {
      await stage.prepare();
      await stage.controlPlane("c1", "c2");
      await stage.install("usher:1", "usher:one");
      await stage.create(SPEC);
      await stage.until("Available", "True Ready");
      await stage.rolledOut(await generation());
      const before = await stage.template();
      const seen = new Set<string>();
      await stage.exactlyWhile("ann", async () => {
        await stage.install("usher:2", "usher:two");
        await eventually("only pods of the new image", async () => {
          const images = await readyImages();
          seen.add(images.join());
          return images.join() === "usher:two,usher:two";
        });
        await stage.rolledOut(await generation());
      });
      expect([...seen], "both versions at once").toContain("usher:one,usher:two");
      expect([...seen], "never none").not.toContain("");
      expect((await stage.template()).generation).toBe(Number(before.generation) + 1);
    },
    LONG_MS,
  );

  test(
    "a lost certificate is issued again and served by all pods, and no request fails",
    async () => {
      const before = await stage.read(PATHS.daemonSet);
      await stage.exactlyWhile("bob", async () => {
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
    "over the aggregation layer a rollout fails no request, and a backend that does not answer is reported",
    async () => {
      const asks = async () =>
        at(listAt(await stage.read(PATHS.webhook), "webhooks")[0], "clientConfig", "service", "name");
      await stage.change({ transport: "Aggregated" });
      await eventually("a request through the API server", async () => (await asks()) === "kubernetes");
      await stage.rolledOut(await generation());
      await stage.exactlyWhile("eve", async () => {
        await stage.rolledOut(await stage.change({ maxProjectsForSystemUsers: 7 }));
      });
      await stage.rolledOut(await stage.change({ transport: "Direct" }));
      const api = `/apis/apiregistration.k8s.io/v1/apiservices/${OPERAND.apiService}`;
      await eventually("no APIService", async () => (await stage.read(api)) === undefined);
      // kwok only reports pods without the label as running: nothing listens.
      await stage.change({ transport: "Aggregated", podLabels: { [RUN_LABEL]: "false" } });
      const waits = await eventually("what waits", async () => {
        const said = await stage.said("Progressing");
        return /failing or missing response/.test(said) && said;
      });
      expect(waits).toContain(`WaitingForAPIService: APIService ${OPERAND.apiService} is not available`);
      expect(await asks()).toBe(OPERAND.service);
      await stage.rolledOut(await stage.change({ transport: "Direct", podLabels: { [RUN_LABEL]: "true" } }));
    },
    LONG_MS,
  );

  test(
    "another topology takes over, and no request fails",
    async () => {
      await stage.exactlyWhile("cas", async () => {
        const changed = await stage.change({ topology: "Deployment" });
        await stage.rolledOut(changed);
        await eventually("no DaemonSet", async () => (await stage.read(PATHS.daemonSet)) === undefined);
      });
      expect(await stage.read(PATHS.deployment)).toMatchObject({ status: { readyReplicas: 2 } });
    },
    LONG_MS,
  );

  test(
    "with no node left for it, webhooks are unregistered and then the unused pods go",
    async () => {
      await stage.change({ topology: "DaemonSet", nodeSelector: { pool: "none" } });
      await stage.until("NoNodes", "True NoMatchingNode");
      await eventually("no webhook", async () => (await stage.read(PATHS.webhook)) === undefined);
      expect(await stage.request(tenant("dan", 100), "dan-1")).toBe("201");
      await eventually("no Deployment", async () => (await stage.read(PATHS.deployment)) === undefined);
    },
    LONG_MS,
  );
});
