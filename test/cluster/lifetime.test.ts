import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { stringAt } from "../../src/core/json.ts";
import { runKubectl } from "./access/kubectl.ts";
import { eventually } from "./access/wait.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { COMPONENTS } from "./components/flags.ts";
import { describeCluster, describeOwnCluster } from "./describe.ts";
import { isRunning } from "./processes/owner.ts";

const SMALL = { without: ["kube-controller-manager", "kube-scheduler"] } as const;

function alive(pid: number | undefined): boolean {
  return pid !== undefined && isRunning(pid);
}

function pidsOf(cluster: Cluster): readonly (number | undefined)[] {
  return COMPONENTS.map((name) => cluster.component(name).pid);
}

function start(script: URL): ChildProcess {
  return spawn(process.execPath, [fileURLToPath(script)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** The output up to the first line that matches. */
async function linesUntil(child: ChildProcess, wanted: RegExp): Promise<string> {
  if (child.stdout === null) throw new Error("no output to read");
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (wanted.test(line)) return lines.join("\n");
  }
  throw new Error(`ended without a line like ${wanted}`);
}

// Under `describeCluster`, although they start their own: without a cluster they can't run either.
describeCluster("the life cycle of a cluster", () => {
  test("two clusters are independent, and stopping one leaves no process and no file", async () => {
    const [one, other] = await Promise.all([startCluster(), startCluster()]);
    const pids = [...pidsOf(one), ...pidsOf(other)];
    try {
      expect(pids.every(alive)).toBe(true);
      expect(one.server).not.toBe(other.server);
      await one.call("POST", "/api/v1/namespaces", { metadata: { name: "only-in-one" } });
      expect((await other.request("GET", "/api/v1/namespaces/only-in-one")).status).toBe(404);
    } finally {
      await Promise.all([one.stop(), other.stop()]);
    }
    expect(pids.filter(alive)).toEqual([]);
    expect([one, other].filter(({ info }) => existsSync(info.folder))).toEqual([]);
  });

  test("killing the owner ends its cluster, including pods that run for real", async () => {
    const owner = start(new URL("./fixtures/owner.ts", import.meta.url));
    const { folder, pids } = JSON.parse(await linesUntil(owner, /^\{/)) as { folder: string; pids: number[] };
    expect(pids.map(alive)).toEqual([true, true, true, true, true, true]);
    owner.kill("SIGKILL");
    await eventually("all of it gone", () => !pids.some(alive) && !existsSync(folder));
  });

  test("`npm run cluster` prints how to use it, and Ctrl-C ends it and cleans up", async () => {
    const kept = start(new URL("./keep.ts", import.meta.url));
    const said = await linesUntil(kept, /Ctrl-C/);
    const kubeconfig = /export KUBECONFIG=(.*)/.exec(said)?.[1] ?? "";
    const kubectl = /alias kubectl=(.*)/.exec(said)?.[1] ?? "";
    const { stdout } = await runKubectl(kubectl, ["get", "nodes"], kubeconfig, dirname(kubeconfig));
    expect(stdout.match(/node-\d +Ready/g)).toHaveLength(3);
    kept.kill("SIGINT");
    const [code] = await once(kept, "exit");
    expect(code).toBe(0);
    expect(existsSync(kubeconfig)).toBe(false);
  });

  test("a component that does not start is named with the end of its log, and the rest is stopped", async () => {
    const broken = startCluster({ flags: { "kube-apiserver": ["--no-such-flag"] } });
    await expect(broken).rejects.toThrow(
      /kube-apiserver ended with code 1; its log .*unknown flag: --no-such-flag/s,
    );
  });

  test("stops even while its API server is frozen", async () => {
    const other = await startCluster(SMALL);
    other.component("kube-apiserver").freeze();
    await other.stop();
    expect(existsSync(other.info.folder)).toBe(false);
  });
});

describeOwnCluster("an own cluster", SMALL, (cluster) => {
  test("runs without the components that were left out", () => {
    expect(() => cluster().component("kube-scheduler")).toThrow("without kube-scheduler");
    expect(alive(cluster().component("kwok").pid)).toBe(true);
  });

  test("its API server can be stopped, and comes back with all data", async () => {
    await cluster().call("POST", "/api/v1/namespaces", { metadata: { name: "stays" } });
    const server = cluster().component("kube-apiserver");
    await server.stop("at once");
    // A connection from before may fail first.
    await expect(cluster().request("GET", "/api/v1/namespaces/stays")).rejects.toThrow(
      /ECONNREFUSED|ECONNRESET|hang up/,
    );
    await server.start();
    expect(stringAt(await cluster().call("GET", "/api/v1/namespaces/stays"), "metadata", "name")).toBe(
      "stays",
    );
  });
});
