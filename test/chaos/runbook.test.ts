// Runs the runbook's commands in the order of the page, with usher down, off and back.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, listAt } from "../../src/core/json.ts";
import { ROOT } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured, install } from "../e2e/fixtures/install.ts";
import { CONFIGURATION, FLAGS, Installation } from "./installation.ts";
import { failuresNow } from "./load.ts";

const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/** These need a kubelet or the metrics API, which test clusters do not have. */
const NOT_HERE = [/ logs /, / top /];

const page = readFileSync(join(ROOT, "docs/runbook.md"), "utf8");
const [, hand = ""] = /^([\s\S]*?)<!-- generated: alerts -->/.exec(page) ?? [];
const blocks = [...hand.matchAll(/^( *)```sh\n([\s\S]*?)^ *```/gm)].map(([, , block = ""]) => block);
const typed = new Set<string>();

/** The only block that contains this, without commands that can't be answered here. */
function block(like: RegExp): string {
  const found = blocks.filter((text) => like.test(text));
  expect(found, String(like)).toHaveLength(1);
  const [text = ""] = found;
  typed.add(text);
  return text
    .split("\n")
    .filter((line) => !NOT_HERE.some((pattern) => pattern.test(line)))
    .join("\n");
}

describeOwnCluster("the runbook", { flags: FLAGS }, (cluster) => {
  const usher = new Installation(cluster);
  const folder = mkdtempSync(join(tmpdir(), "usher-runbook-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeAll(() => symlinkSync(cluster().info.kubectl, join(folder, "kubectl")));

  /** As typed at a prompt; every line must succeed. */
  const type = async (text: string): Promise<string> => {
    const PATH = `${folder}:${join(ROOT, "bin")}:${process.env["PATH"]}`;
    const env = { ...process.env, PATH, HOME: folder, KUBECONFIG: await cluster().kubeconfig() };
    return new Promise((resolve, reject) => {
      execFile("bash", ["-euo", "pipefail", "-c", text], { env, cwd: ROOT }, (error, out, err) => {
        if (error === null) resolve(out);
        else reject(new Error(`${text}\n${out}${err}`));
      });
    });
  };
  const scale = async (replicas: number) => {
    await cluster().call("PATCH", `${DEPLOYMENT}/scale`, { spec: { replicas } });
    await eventually("the number of replicas", async () => {
      const live = await cluster().call("GET", DEPLOYMENT);
      return (
        Number(at(live, "status", "readyReplicas") ?? 0) === replicas &&
        (await usher.replicas()).length === replicas
      );
    });
  };
  const closed = () =>
    eventually("fail-closed webhooks that refuse", async () => (await failuresNow(cluster())).length === 4);
  /** Checks that four requests, which usher would accept or refuse, are all answered without it. */
  const passing = async () =>
    (await failuresNow(cluster())).every((text) => !text.includes("failed calling"));

  test("usher is down: the runbook's commands show the state", async () => {
    await usher.prepare();
    await install(
      cluster(),
      ...configured({
        ...CONFIGURATION,
        modules: { "pod-os": { podSecurity: { mode: "Replace" } }, "node-guard": { fallback: true } },
      }),
    );
    await usher.applyPolicies();
    await scale(0);
    await closed();
    expect(await type(block(/get deployment,pods/))).toContain("deployment.apps/usher");
  }, 300_000);

  test("usher is down: webhooks are opened by hand, and usher closes them again", async () => {
    await type(block(/failurePolicy: Ignore/));
    expect(await usher.closed()).toEqual([]);
    await eventually("requests pass", passing);
    await scale(2);
    await eventually("closed again", async () => (await usher.closed()).length > 0);
    await usher.inForce();
  }, 300_000);

  test("usher is down: webhooks are deleted, and come back with usher", async () => {
    await scale(0);
    await closed();
    await type(block(/^ *kubectl delete mutating/));
    await eventually("requests pass", passing);
    expect(await usher.isRegistered()).toBe(false);
    await type(block(/validatingadmissionpolicybinding/));
    expect(listAt(await cluster().call("GET", BINDINGS), "items")).toEqual([]);
    await scale(2);
    await usher.inForce();
  }, 300_000);

  test("usher is down: a node is freed by hand", async () => {
    await scale(0);
    const taints = [{ key: "usher.dev/starting", effect: "NoSchedule" }];
    await cluster().call("PATCH", "/api/v1/nodes/w-0", { spec: { taints } });
    await type(block(/kubectl taint/).replace("NODE", "w-0"));
    expect(at(await cluster().call("GET", "/api/v1/nodes/w-0"), "spec", "taints")).toBeUndefined();
    await scale(2);
    await usher.inForce();
  }, 300_000);

  test("turning all of usher off refuses nothing, and usher install brings it back", async () => {
    await type(block(/--replicas=0/));
    await eventually("no replicas", async () => (await usher.replicas()).length === 0);
    expect(await usher.isRegistered()).toBe(false);
    expect(await passing()).toBe(true);
    await install(cluster());
    await usher.inForce();
  }, 300_000);

  test("an upgrade is reviewed before, and verified after", async () => {
    expect(await type(block(/rollout status/))).toContain("successfully rolled out");
  });

  test("runs every command of the page, except the one that reviews the reader's files", () => {
    expect(blocks.filter((text) => !typed.has(text)).map((text) => text.trim())).toEqual([
      "usher review manifests/ --source policies/",
    ]);
  });
});
