// An installation changes its manager under load: from usher install to Helm and back, with both generations of Helm.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, listAt, stringAt } from "../../src/core/json.ts";
import { program, type Ran } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { CHART, Helm, valuesFlag } from "./fixtures/helm.ts";
import { install } from "./fixtures/install.ts";
import { isClosed, POLICIES, placingPolicy, webhooksGone, whilePlacing } from "./fixtures/placed-pods.ts";

const NAMESPACE = "/api/v1/namespaces/usher-system";
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const BUILD_MS = 30 * 60_000;
const ROLLOUT_MS = 120_000;
const VALUES = { podLabels: { [RUN_LABEL]: "true" } };
const RECORDS = `${NAMESPACE}/secrets?labelSelector=owner%3Dhelm`;

describeOwnCluster("an installation that changes its manager", {}, (cluster) => {
  const tools = new Map<string, Helm>();
  const helm = async (tool: string, ...args: string[]): Promise<Ran> => {
    const found = tools.get(tool);
    if (found === undefined) throw new Error(`${tool} to be built first`);
    return found.run(...args, "-n", "usher-system", "--kubeconfig", await cluster().kubeconfig());
  };
  const usher = async (...args: string[]) => program([...args, "--kubeconfig", await cluster().kubeconfig()]);
  const marks = async () => {
    const live = await cluster().call("GET", DEPLOYMENT);
    return {
      uid: stringAt(live, "metadata", "uid"),
      by: stringAt(live, "metadata", "labels", "app.kubernetes.io/managed-by"),
      release: stringAt(live, "metadata", "annotations", "meta.helm.sh/release-name"),
    };
  };
  const rolledOut = () =>
    eventually(
      "all replicas replaced",
      async () => {
        const live = await cluster().call("GET", DEPLOYMENT);
        const count = (field: string) => Number(at(live, "status", field) ?? 0);
        return (
          at(live, "status", "observedGeneration") === at(live, "metadata", "generation") &&
          count("updatedReplicas") === 2 &&
          count("readyReplicas") === 2 &&
          count("replicas") === 2
        );
      },
      ROLLOUT_MS,
    );

  /** Pods under a fail-closed webhook all the while: every refusal is usher's. */
  const changed = Promise.withResolvers<void>();
  let load: ReturnType<typeof whilePlacing> | undefined;

  const home = mkdtempSync(join(tmpdir(), "usher-helm-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  beforeAll(async () => {
    for (const tool of ["helm", "helm3"] as const) tools.set(tool, new Helm(await ensureTool(tool), home));
  }, BUILD_MS);

  test("usher install creates it, and requests under a fail-closed webhook start", async () => {
    await cluster().createNode("n1");
    await install(cluster());
    await cluster().call("POST", POLICIES, placingPolicy({ failurePolicy: "Fail" }));
    await eventually("a closed webhook", () => isClosed(cluster()));
    load = whilePlacing(cluster(), () => changed.promise);
    expect(await marks()).toMatchObject({ by: "usher", release: undefined });
  });

  const takesOver = async (tool: string, ...flags: string[]) => {
    const { uid } = await marks();
    const ran = await helm(
      tool,
      "install",
      "door",
      CHART,
      "--take-ownership",
      ...flags,
      ...valuesFlag(VALUES),
    );
    expect(ran, ran.err).toMatchObject({ code: 0 });
    await rolledOut();
    expect(await marks()).toEqual({ uid, by: "Helm", release: "door" });
  };

  test("helm takes it over, with the same Deployment", () => takesOver("helm", "--force-conflicts"));

  test("usher install and uninstall then refuse, and name the release", async () => {
    const version = async () => at(await cluster().call("GET", DEPLOYMENT), "metadata", "generation");
    const before = await version();
    const [installed, removed] = await Promise.all([usher("install"), usher("uninstall")]);
    expect([installed.code, removed.code]).toEqual([1, 1]);
    expect(installed.err).toMatch(
      /nothing was changed: \d+ objects, such as .*, are managed by the Helm release door in namespace usher-system\n.*helm upgrade door CHART -n usher-system\n/,
    );
    expect(removed.err).toMatch(/nothing was changed: .*\n.*helm uninstall door -n usher-system\n/);
    expect(await version()).toBe(before);
    expect((await marks()).by).toBe("Helm");
  });

  test("usher install takes it back, and prints how to remove the release's record", async () => {
    const { uid } = await marks();
    const ran = await usher("install", "--take-over");
    expect(ran, ran.err).toMatchObject({ code: 0 });
    const command = "kubectl delete secret -n usher-system -l owner=helm,name=door";
    expect(ran.err).toContain(command);
    expect(await marks()).toEqual({ uid, by: "usher", release: undefined });
    expect((await cluster().kubectl(command.split(" ").slice(1))).stdout).toContain("deleted");
    expect(listAt(await cluster().call("GET", RECORDS), "items")).toEqual([]);
  });

  test("helm 3 takes it over, too", () => takesOver("helm3"));

  test("no request failed", async () => {
    changed.resolve();
    const { asked = 0, failed } = (await load) ?? {};
    console.log(`${asked} requests while it changed hands three times, ${failed?.length} failed`);
    expect(failed).toEqual([]);
    expect(asked).toBeGreaterThan(50);
  });

  test("after helm uninstall --no-hooks no webhooks remain", async () => {
    const ran = await helm("helm3", "uninstall", "door", "--no-hooks");
    expect(ran, ran.err).toMatchObject({ code: 0 });
    await webhooksGone(cluster());
  });
});
