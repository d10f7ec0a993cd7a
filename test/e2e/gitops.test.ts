// Argo CD and Flux find no drift in an installation of the chart, whatever usher writes in the meantime: checked with
// the libraries that they compare with.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { at, type JsonObject, listAt } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster, LONG } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { CHART, Helm, valuesFlag } from "./fixtures/helm.ts";

const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/usher";
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";

const CHANGES = 120;
/** In the long run they take about the default interval of the comparisons of both tools. */
const PAUSE_MS = LONG ? 1_000 : 200;

function policy(name: string, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name },
    spec: {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: name } },
      nodeSelector: { pool: "a" },
      ...spec,
    },
  };
}

/** The result of a comparison, by kind and name; with both sides if they differ. */
async function differences(
  program: string,
  kubeconfig: string,
  objects: readonly JsonObject[],
): Promise<unknown> {
  const child = spawn(program, { env: { KUBECONFIG: kubeconfig, HOME: tmpdir() } });
  child.stdin.end(JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (out === "") throw new Error(err);
  return JSON.parse(out);
}

describeOwnCluster("an installation that Argo CD and Flux look after", {}, (cluster) => {
  const home = mkdtempSync(join(tmpdir(), "usher-helm-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  test(`shows no difference after ${CHANGES} changes of policies, and shows a real one`, {
    timeout: 40 * 60_000,
  }, async () => {
    const helm = new Helm(await ensureTool("helm"), home);
    const argo = await ensureTool("argo-diff");
    const flux = await ensureTool("flux-diff");
    await cluster().createNode("n1");
    await cluster().createNode("n2", { labels: { pool: "a" } });
    const kubeconfig = await cluster().kubeconfig();
    const values: JsonObject = {
      podLabels: { [RUN_LABEL]: "true" },
      policies: [policy("of-the-chart")],
    };
    const install = ["install", "usher", CHART, "--create-namespace", "--wait", "--timeout=100s"];
    const where = ["--kubeconfig", kubeconfig, "--namespace=usher-system"];
    const installed = await helm.run(...install, ...valuesFlag(values), ...where);
    expect(installed, installed.err).toMatchObject({ code: 0 });
    const rendered = await helm.template(values, "--include-crds", "--namespace=usher-system");
    const objects = rendered.filter(
      (object) => at(object, "metadata", "annotations", "helm.sh/hook") === undefined,
    );
    // Helm adds the namespace to objects that do not name it; so do they.
    expect(objects.length).toBeGreaterThan(20);

    for (let i = 0; i < CHANGES; i++) {
      const name = `changing-${i % 7}`;
      if (i < 7) await cluster().call("POST", POLICIES, policy(name));
      else if (i % 11 === 0) {
        await cluster().call("DELETE", `${POLICIES}/${name}`);
        await cluster().call("POST", POLICIES, policy(name));
      }
      // Enforcement registers another hook.
      const spec = { enforcement: i % 2 === 0 ? "Refuse" : "None", nodeSelector: { pool: `p${i}` } };
      await cluster().call("PATCH", `${POLICIES}/${name}`, { spec });
      await pause(PAUSE_MS);
    }
    const live = await eventually("webhooks", () => cluster().call("GET", WEBHOOKS));
    expect(listAt(live, "webhooks").length).toBeGreaterThan(0);
    expect(await differences(argo, kubeconfig, objects)).toEqual([]);
    expect(await differences(flux, kubeconfig, objects)).toEqual([]);

    // The comparison must find a real difference.
    const patch = { spec: { template: { spec: { terminationGracePeriodSeconds: 99 } } } };
    await cluster().call("PATCH", DEPLOYMENT, patch);
    const found = [{ kind: "Deployment", name: "usher" }];
    expect(await differences(argo, kubeconfig, objects)).toMatchObject(found);
    expect(await differences(flux, kubeconfig, objects)).toMatchObject(found);
  });
});
