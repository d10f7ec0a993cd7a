import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeSource } from "../../bench/fixtures/policies.ts";
import { review } from "../support/admission/example-cluster.ts";
import { hostileLoad } from "./hostile-load.ts";
import { type MemoryCgroup, memoryCgroup, peakBytes } from "./memory-cgroup.ts";
import { post, readyOf, watched } from "./serving.ts";
import { MAIN, start } from "./usher.ts";

/** The memory limit of the Deployment that usher installs. */
const LIMIT = 512 * 1_024 * 1_024;

/** The heap size that Node derives from the limit. The flag is for machines on which no cgroup can be created. */
const HEAP_MB = 256;

const LOAD_MS = 10_000;

const POLICY = {
  apiVersion: "kupid.gardener.cloud/v1alpha1",
  kind: "ClusterPodSchedulingPolicy",
  metadata: { name: "web" },
  spec: {
    namespaceSelector: {},
    podSelector: { matchLabels: { app: "web" } },
    nodeSelector: { pool: "web" },
    tolerations: [{ key: "web", operator: "Exists" }],
  },
};

let folder: string;
let cgroup: MemoryCgroup | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "usher-memory-"));
  cgroup = memoryCgroup(LIMIT);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  cgroup?.remove();
});

test("Node sizes its heap by the limit of the container", () => {
  if (cgroup === undefined) return;
  const [shell = "", ...words] = cgroup.command;
  const script = "console.log(v8.getHeapStatistics().heap_size_limit)";
  const limit = execFileSync(shell, [...words, process.execPath, "-e", script], { encoding: "utf8" });
  expect(Number(limit) / LIMIT).toBeGreaterThan(0.4);
  expect(Number(limit) / LIMIT).toBeLessThan(0.6);
});

test("no mix of requests exceeds the memory limit of the installation", {
  timeout: 120_000,
}, async () => {
  const source = writeSource(folder, 1_000);
  writeFileSync(join(source, "web.yaml"), JSON.stringify(POLICY));
  const flags = [
    "--max-semi-space-size=8",
    ...(cgroup === undefined ? [`--max-old-space-size=${HEAP_MB}`] : []),
  ];
  const serve = [MAIN, "serve", "--port", "0", "--ops-port", "0", "--source", source, "-o", "json"];
  const [program = "", ...args] = [...(cgroup?.command ?? []), process.execPath, ...flags, ...serve];
  const usher = await watched(start(program, args));
  try {
    const { webhook, ca = "" } = readyOf(usher);
    const { hostname, port } = new URL(webhook);
    const statuses = await hostileLoad({ host: hostname, port: Number(port), ca }, LOAD_MS);
    expect(usher.child.exitCode).toBeNull();
    expect(usher.child.signalCode).toBeNull();
    // Some requests were evaluated and some were too large, so the load exercised both paths.
    expect([...statuses.keys()].sort()).toEqual(["200", "200 too large"]);
    expect((await post(`${webhook}/mutate`, ca, review())).status).toBe(200);
    if (process.platform === "linux") expect(peakBytes(usher.child.pid ?? 0)).toBeLessThan(LIMIT);
  } finally {
    usher.child.kill("SIGKILL");
    await usher.end;
  }
});
