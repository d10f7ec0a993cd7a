import { expect, test } from "vitest";
import { parse } from "yaml";
import { type Json, listAt } from "../../src/core/json.ts";
import { folder, usher } from "./usher.ts";

const policy = (name: string, pool: string) => `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: { name: ${name} }
spec:
  namespaceSelector: {}
  podSelector: { matchLabels: { app: etcd } }
  nodeSelector: { ${name}: ${pool} }
  tolerations: [{ key: ${pool}, operator: Exists }]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
          - matchExpressions: [{ key: ${name}, operator: In, values: [${pool}] }]
          - matchExpressions: [{ key: rack, operator: Exists }]
`;
const NAMESPACES = ["shop", "lab", "kube-system"]
  .map((name) => `{ apiVersion: v1, kind: Namespace, metadata: { name: ${name} } }`)
  .join("\n---\n");

const workload = (kind: string, name: string, more = "", metadata = "", namespace = "shop") => `
apiVersion: ${kind === "Job" ? "batch" : "apps"}/v1
kind: ${kind}
metadata: { name: ${name}, namespace: ${namespace}${metadata} }
spec:
  ${more}
  template:
    metadata: { labels: { app: etcd } }
    spec:
      containers: [{ name: c, image: app }]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions: [{ key: zone, operator: Exists }]
              - matchExpressions: [{ key: disk, operator: Exists }]
`;
const OWNER =
  ", ownerReferences: [{ apiVersion: apps/v1, kind: Deployment, name: web, uid: u, controller: true }]";

/** The workloads as stored when created under these policies. */
async function storedUnder(policies: string, workloads: string): Promise<string> {
  const source = folder({ "cluster.yaml": [NAMESPACES, policies].join("\n---\n") });
  const { out, code, err } = await usher(["review", "-", "--source", source, "--emit"], { stdin: workloads });
  expect(code, err).toBe(0);
  return out;
}

function status(files: Record<string, string>, ...args: string[]) {
  return usher([
    "placement",
    "status",
    "--source",
    folder({ "namespaces.yaml": NAMESPACES, ...files }),
    ...args,
  ]);
}

/** `web pool current` */
function states(out: string): string[] {
  const json = JSON.parse(out) as { workloads: { object: { name: string }; carries: Json[] }[] };
  return json.workloads.flatMap(({ object, carries }) =>
    carries.map((one) => {
      const { policy: by, state } = one as { policy: string; state: string };
      return `${object.name} ${by.split("/")[1]} ${state}`;
    }),
  );
}

const BOTH = [policy("pool", "etcd"), policy("disk", "nvme")].join("\n---\n");

test("workloads created under current policies are current, with every field", async () => {
  const stored = await storedUnder(BOTH, workload("Deployment", "web"));
  const ran = await status({ "policies.yaml": BOTH, "stored.yaml": stored }, "-n", "shop");
  expect(ran).toMatchObject({ code: 0, err: "" });
  expect(ran.out).toMatch(/^WORKLOAD +STATE +POLICY +FIELDS\nDeployment shop\/web +current +disk +affinity/);
  expect(ran.out).toContain("nodeSelector.disk=nvme");
  expect(ran.out).toContain("tolerations: 1 element");
  expect(ran.out).toContain("\n\n1 workload, by policy: 2 current\n");
});

test("changed, deleted and new policies are reported", async () => {
  const stored = await storedUnder(BOTH, workload("Deployment", "web"));
  const now = [policy("pool", "fast"), policy("zone", "a")].join("\n---\n");
  const files = { "policies.yaml": now, "stored.yaml": stored };
  const { out, code, err } = await status(files, "-n", "shop");
  expect(code, err).toBe(1);
  expect(out).toMatch(/Deployment shop\/web +orphaned +disk \(gone\) +- /);
  expect(out).toMatch(
    / stale +pool +~ affinity.nodeAffinity.required.nodeSelectorTerms: 2 elements outdated/,
  );
  expect(out).toContain("~ nodeSelector.pool etcd -> fast");
  expect(out).toMatch(/ missing +zone +\+ /);
  expect(out).toContain("1 workload, by policy: 1 stale, 1 orphaned, 1 missing");
  const json = await status(files, "-n", "shop", "-o", "json");
  expect(json.code).toBe(1);
  expect(states(json.out)).toEqual(["web disk orphaned", "web pool stale", "web zone missing"]);
  const yaml = await status(files, "-n", "shop", "-o", "yaml");
  expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  expect(parse(yaml.out).summary).toEqual({ current: 0, stale: 1, orphaned: 1, missing: 1 });
});

test("owned, deleted and exempt workloads are skipped, immutable ones are reported", async () => {
  const workloads = [
    workload("Deployment", "web"),
    workload("ReplicaSet", "owned", "", OWNER),
    workload("Job", "started", "suspend: false"),
    workload("Job", "waiting", "suspend: true"),
    workload("Deployment", "going", "", ", deletionTimestamp: 2026-01-01T00:00:00Z"),
    workload("Deployment", "system", "", "", "kube-system"),
    workload("Deployment", "elsewhere", "", "", "lab"),
  ].join("\n---\n");
  const files = { "policies.yaml": policy("pool", "etcd"), "stored.yaml": workloads };
  expect(states((await status(files, "-n", "shop", "-o", "json")).out)).toEqual([
    "web pool missing",
    "started pool missing",
    "waiting pool missing",
  ]);
  const { out } = await status(files, "-n", "shop");
  expect(out.match(/! can't be reapplied: the object is immutable/g)).toHaveLength(1);
  expect(states((await status(files, "-A", "-o", "json")).out)).toEqual([
    "elsewhere pool missing",
    "web pool missing",
    "started pool missing",
    "waiting pool missing",
  ]);
});

test("--policy selects one policy by name, even if it is deleted; a typo gets a suggestion", async () => {
  const stored = await storedUnder(BOTH, workload("Deployment", "web"));
  const files = {
    "policies.yaml": [policy("pool", "etcd"), policy("idle", "x").replace("etcd", "none")].join("\n---\n"),
    "stored.yaml": stored,
  };
  expect(states((await status(files, "pool", "-n", "shop", "-o", "json")).out)).toEqual(["web pool current"]);
  expect(states((await status(files, "disk", "-n", "shop", "-o", "json")).out)).toEqual([
    "web disk orphaned",
  ]);
  const idle = await status(files, "idle", "-n", "shop");
  expect(idle).toMatchObject({ code: 0, out: "no workloads are affected by a policy\n" });
  const slip = await status(files, "disc", "-n", "shop");
  expect(slip).toMatchObject({ code: 2, out: "" });
  expect(slip.err).toContain(
    'policy disc not found, and no workload has an injection of it; did you mean "disk"?',
  );
});

test("several hundred workloads are all scanned", async () => {
  const workloads = Array.from({ length: 250 }, (_, i) => workload("Deployment", `web-${i}`)).join("\n---\n");
  const files = { "policies.yaml": policy("pool", "etcd"), "stored.yaml": workloads };
  const { out } = await status(files, "-n", "shop", "-o", "json");
  expect(listAt(JSON.parse(out) as Json, "workloads")).toHaveLength(250);
});

test("control characters in names are not printed", async () => {
  const stored = (await storedUnder(policy("pool", "etcd"), workload("Deployment", "web"))).replaceAll(
    "ClusterPodSchedulingPolicy/pool",
    "ClusterPodSchedulingPolicy/\\\\u001b[31mred",
  );
  const { out } = await status({ "stored.yaml": stored }, "-n", "shop");
  expect(out).toContain("red (gone)");
  expect(out).not.toContain("\u001b");
});

test.each([
  [["status", "-n", "shop", "-A"], "-n and -A are mutually exclusive"],
  [["status", "-n", "No_Label"], "--namespace: "],
  [["reapply"], "specify workloads as KIND/NAME, --policy or --all"],
  [["reapply", "deployment/web", "--all"], "KIND/NAME, --policy and --all are mutually exclusive"],
  [["reapply", "--policy", "a", "--all"], "KIND/NAME, --policy and --all are mutually exclusive"],
  [["reapply", "deployment/web", "-A"], "-A can't be combined with KIND/NAME"],
  [["reapply", "deploymnet/web"], 'did you mean "deployment"?'],
  [["reapply", "--all", "--parallel", "0"], "It must be an integer from 1 to 99."],
  [["reapply", "--all", "--pause", "soon"], "It must be an integer from 0 to 3600."],
  [["status", "--outptu", "json"], "Did you mean --output?"],
  [["stauts"], 'did you mean "status"?'],
  [["status", "--kubeconfig", "/nowhere"], "no such file"],
])("invalid calls fail before anything is read: %s", async (args, message) => {
  const ran = await usher(["placement", ...args]);
  expect(ran.err).toContain(message);
  expect(ran.code).toBe(2);
  expect(ran.out).toBe("");
});

test.each(["status", "reapply"])(
  "placement %s --help fits a terminal, with examples and exit codes",
  async (command) => {
    const { out, code } = await usher(["placement", command, "--help"]);
    expect(code).toBe(0);
    expect(out).toMatch(/\nExamples:\n {2}usher placement /);
    expect(out).toContain("Exit codes: 0 ");
    for (const line of out.split("\n").filter((one) => !/usher \w/.test(one)))
      expect(line.length).toBeLessThanOrEqual(80);
  },
);
