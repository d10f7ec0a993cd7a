// usher pod-security scan, through the real command line.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { folder, usher } from "./usher.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const POD_SPEC = "containers: [{ name: c, image: i }]";
const owner = (kind: string, name: string) =>
  `ownerReferences: [{ apiVersion: apps/v1, kind: ${kind}, name: ${name}, uid: "1", controller: true }]`;

const CLUSTER = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec: { replicas: 3, template: { spec: { ${POD_SPEC} } } }
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: { name: web-1, namespace: shop, ${owner("Deployment", "web")} }
spec: { replicas: 3, template: { spec: { ${POD_SPEC} } } }
---
apiVersion: v1
kind: Pod
metadata: { name: web-1-a, namespace: shop, ${owner("ReplicaSet", "web-1")} }
spec: { hostPID: true, ${POD_SPEC} }
---
apiVersion: v1
kind: Pod
metadata: { name: orphan-a, namespace: shop, ${owner("ReplicaSet", "gone")} }
spec: { ${POD_SPEC} }
---
apiVersion: v1
kind: Pod
metadata: { name: orphan-b, namespace: shop, ${owner("ReplicaSet", "gone")} }
spec: { ${POD_SPEC} }
---
apiVersion: v1
kind: Pod
metadata: { name: bare, namespace: lab }
spec: { os: { name: windows }, ${POD_SPEC} }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: idle, namespace: lab }
spec: { replicas: 0, template: { spec: { nodeSelector: { kubernetes.io/os: linux }, ${POD_SPEC} } } }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: nightly, namespace: lab }
spec: { jobTemplate: { spec: { template: { spec: { hostNetwork: true, ${POD_SPEC} } } } } }
---
apiVersion: v1
kind: Pod
metadata: { name: fine, namespace: lab }
spec:
  securityContext: { runAsNonRoot: true, seccompProfile: { type: RuntimeDefault } }
  containers: [{ name: c, image: i, securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: [ALL] } } }]
`;

interface Row {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
  readonly os: string | null;
  readonly violations: readonly { readonly check: string; readonly under?: string }[];
}

const scan = (args: readonly string[], stdin = "") => usher(["pod-security", "scan", ...args], { stdin });

async function scanned(...args: string[]) {
  const { code, out, err } = await scan([...args, "-o", "json"]);
  const data = JSON.parse(out);
  return { code, err, rows: data.workloads as Row[], summary: data.summary, unread: data.unread };
}

const source = () => folder({ "cluster.yaml": CLUSTER });

describe("workloads that a policy would refuse", () => {
  test("are listed by the topmost known owner, including CronJobs, zero replicas and bare pods", async () => {
    const { code, rows, summary, unread } = await scanned(
      "--source",
      source(),
      "--policy",
      "restricted:v1.37",
    );
    expect(code).toBe(1);
    expect(unread).toEqual([]);
    expect(
      rows.map(({ kind, namespace, name, replicas, os }) => [kind, `${namespace}/${name}`, replicas, os]),
    ).toEqual([
      ["CronJob", "lab/nightly", 0, null],
      ["Deployment", "lab/idle", 0, "linux"],
      ["Pod", "lab/bare", 1, "windows"],
      ["Deployment", "shop/web", 3, null],
      ["ReplicaSet", "shop/gone", 2, null],
    ]);
    const checks = (name: string) =>
      rows.find((row) => row.name === name)?.violations.map(({ check }) => check);
    expect(checks("bare"), "a Windows pod needs no Linux fields").toEqual(["runAsNonRoot"]);
    expect(checks("web"), "a pod may have what its template has not").toContain("hostNamespaces");
    expect(checks("nightly")).toContain("hostNamespaces");
    expect(summary).toMatchObject({
      policy: "restricted:v1.37",
      workloads: 6,
      violating: 5,
      checks: { runAsNonRoot: 5, hostNamespaces: 2 },
    });
  });

  test("-n with a namespace that the source does not know is an error, not an empty table", async () => {
    const { code, out, err } = await scan(["--source", source(), "-n", "labb"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("--namespace labb: no such namespace in the source, and no workload in it");
    const empty = folder({
      "cluster.yaml": `${CLUSTER}\n---\napiVersion: v1\nkind: Namespace\nmetadata: { name: labb }\n`,
    });
    expect(await scan(["--source", empty, "-n", "labb"])).toMatchObject({ code: 0 });
  });

  test("-n restricts the scan; nothing found is exit code 0", async () => {
    const { rows } = await scanned("--source", source(), "-n", "lab", "--policy", "baseline");
    expect(rows.map(({ name }) => name)).toEqual(["nightly"]);
    const { code, out } = await scan(["--source", source(), "--policy", "privileged"]);
    expect(code).toBe(0);
    expect(out).toBe("0 of 6 workloads violate privileged:latest\n");
  });

  test("the table names each workload once", async () => {
    const { out, err } = await scan(["--source", source(), "-n", "lab", "--policy", "baseline:v1.37"]);
    expect(out).toBe(
      [
        "WORKLOAD              REPLICAS   OS   VIOLATION",
        "CronJob lab/nightly   0          -    host namespaces (hostNetwork=true)",
        "",
        "1 of 4 workloads violates baseline:v1.37",
        "",
      ].join("\n"),
    );
    expect(err).toBe("Add --fix to print the manifests with fixes applied.\n");
  });

  test("include configured kinds", async () => {
    const directory = folder({
      "usher.yaml": `
apiVersion: usher.dev/v1alpha1
kind: UsherConfiguration
spec:
  workloads:
    - { group: argoproj.io, version: v1alpha1, kind: Rollout, resource: rollouts, template: spec.template }
`,
      "rollout.yaml": `{ apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: { name: web, namespace: shop }, spec: { replicas: 2, template: { spec: { ${POD_SPEC} } } } }`,
    });
    const { rows } = await scanned(`${directory}/rollout.yaml`, "--config", `${directory}/usher.yaml`);
    expect(rows).toMatchObject([{ kind: "Rollout", name: "web", replicas: 2 }]);
  });
});

describe("--against", () => {
  const PROBE = `{ apiVersion: v1, kind: Pod, metadata: { name: p }, spec: { containers: [{ name: c, image: i, livenessProbe: { tcpSocket: { host: localhost, port: 1 } } }] } }`;
  const USERNS = `{ apiVersion: v1, kind: Pod, metadata: { name: u }, spec: { hostUsers: false, securityContext: { runAsUser: 0 }, ${POD_SPEC} } }`;

  test("shows only differences, in both directions", async () => {
    const directory = folder({
      "a.yaml": PROBE,
      "b.yaml": USERNS,
      "c.yaml": `{ apiVersion: v1, kind: Pod, metadata: { name: same }, spec: { ${POD_SPEC} } }`,
    });
    const { code, rows, summary } = await scanned(
      "--source",
      directory,
      "--policy",
      "restricted:v1.37",
      "--against",
      "restricted:v1.33",
    );
    expect(code).toBe(1);
    expect(
      rows.map(({ name, violations }) => [name, violations.map(({ check, under }) => [check, under])]),
    ).toEqual([
      ["p", [["hostProbesAndHostLifecycle", "restricted:v1.37"]]],
      [
        "u",
        [
          ["runAsNonRoot", "restricted:v1.33"],
          ["runAsUser", "restricted:v1.33"],
        ],
      ],
    ]);
    expect(summary).toMatchObject({ against: "restricted:v1.33", workloads: 3, violating: 2 });
    const same = await scan([
      "--source",
      directory,
      "--policy",
      "restricted:v1.37",
      "--against",
      "restricted:v1.36",
    ]);
    expect(same).toMatchObject({
      code: 0,
      out: "0 of 3 workloads differ between restricted:v1.37 and restricted:v1.36\n",
    });
  });
});

describe("files", () => {
  const MANIFEST = `apiVersion: v1
kind: Service
metadata: { name: web }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec: { template: { spec: { ${POD_SPEC} } } }
`;

  test("are scanned without a source, also from stdin", async () => {
    const { code, out } = await scan(["-", "--policy", "restricted:v1.37", "-o", "json"], MANIFEST);
    expect(code).toBe(1);
    expect(JSON.parse(out).workloads).toMatchObject([
      { kind: "Deployment", namespace: "default", name: "web", replicas: 1 },
    ]);
  });

  test("are scanned with the API server's defaults", async () => {
    const text = `{ apiVersion: v1, kind: Pod, metadata: { name: a }, spec: { volumes: [{ name: v }], ${POD_SPEC} } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: b }, spec: { hostNetwork: true, containers: [{ name: c, image: i, ports: [{ containerPort: 80 }] }] } }
`;
    const { out } = await scan(["-", "--policy", "restricted:v1.37", "-o", "json"], text);
    const [a, b]: Row[] = JSON.parse(out).workloads;
    expect(a?.violations.map(({ check }) => check)).not.toContain("restrictedVolumes");
    expect(b?.violations.map(({ check }) => check)).toContain("hostPorts");
    expect(b?.violations).toContainEqual(
      expect.objectContaining({
        check: "runAsNonRoot",
        fix: [expect.objectContaining({ op: "add", path: "/spec/securityContext" })],
      }),
    );
    const fixed = await scan(["-", "--policy", "restricted:v1.37", "--fix"], text);
    expect(fixed).toMatchObject({ code: 0, err: "" });
    expect(fixed.out).not.toContain("emptyDir");
  });

  test("--fix prints all documents, and its output passes", async () => {
    const fixed = await scan(["-", "--policy", "restricted:v1.37", "--fix"], MANIFEST);
    expect(fixed).toMatchObject({ code: 0, err: "" });
    const documents = parseAllDocuments(fixed.out).map((one) => one.toJS());
    expect(documents.map(({ kind }) => kind)).toEqual(["Service", "Deployment"]);
    expect((await scan(["-", "--policy", "restricted:v1.37"], fixed.out)).code).toBe(0);
    const json = JSON.parse((await scan(["-", "--fix", "-o", "json"], MANIFEST)).out);
    expect(json).toMatchObject({ kind: "List", items: [{ kind: "Service" }, { kind: "Deployment" }] });
  });

  test("--fix of a source prints changed workloads only, without owned objects", async () => {
    const { out } = await scan(["--source", source(), "--fix"]);
    const printed = parseAllDocuments(out).map((one) => one.toJS());
    expect(printed.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual([
      "CronJob nightly",
      "Deployment idle",
      "Deployment web",
      "Pod bare",
    ]);
  });

  test("--fix reports violations that have no fix, and exits with 1", async () => {
    const hostile = `{ apiVersion: v1, kind: Pod, metadata: { name: p }, spec: { volumes: [{ name: v, hostPath: { path: / } }], ${POD_SPEC} } }`;
    const { code, err, out } = await scan(["-", "--fix"], hostile);
    expect(parse(out)).toMatchObject({ kind: "Pod" });
    expect({ code, err }).toEqual({
      code: 1,
      err: 'Pod default/p: no fix for restricted volume types (volume "v" uses restricted volume type "hostPath")\n',
    });
  });

  test("hostile documents are not workloads", async () => {
    const text = `{ apiVersion: v1, kind: Pod, metadata: { name: a }, spec: { containers: "x", volumes: 7 } }
---
{ apiVersion: apps/v1, kind: Deployment, metadata: { name: b }, spec: { template: "x" } }
---
{ apiVersion: v1, kind: Pod, metadata: { name: c, __proto__: { x: 1 } }, spec: null }
`;
    expect((await scan(["-"], text)).code).toBeLessThan(2);
  });
});

test.each<[string, string[], string]>([
  [
    "a level",
    ["-", "--policy", "strict:v1.37"],
    '--policy strict:v1.37: level "strict" must be one of privileged, baseline, restricted',
  ],
  [
    "a version",
    ["-", "--against", "baseline:1.37"],
    '--against baseline:1.37: version "1.37" must be "latest" or "v1.x"',
  ],
  ["two modes", ["-", "--fix", "--against", "baseline"], "--fix and --against are mutually exclusive"],
  ["nothing to scan", [], "read files with --source"],
])("%s that is wrong is exit code 2", async (_name, args, message) => {
  const { code, err } = await scan(args, "");
  expect(code).toBe(2);
  expect(err).toContain(message);
});

test("prints the output shown in the guide", async () => {
  const guide = readFileSync(join(ROOT, "src/modules/pod-os/README.md"), "utf8");
  const [, command = "", printed = ""] =
    /^```text scan\n\$ bin\/usher (.*)\n([\s\S]*?)```/m.exec(guide) ?? [];
  const args = command.split(" ").map((word) => (word.startsWith("examples/") ? join(ROOT, word) : word));
  expect((await usher(args)).out).toBe(printed);
});

test("a directory is scanned by its files, and a generated name is shown by its prefix", async () => {
  const job =
    "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: run-, namespace: shop}\nspec: {template: {spec: {hostNetwork: true, containers: [{name: c, image: a}]}}}\n";
  const directory = folder({ "sub/job.yaml": job });
  const { out, code } = await usher(["pod-security", "scan", directory, "--policy", "baseline"]);
  expect(out).toMatch(/^Job shop\/run-\* /m);
  expect(code).toBe(1);
  expect(await usher(["pod-security", "scan", folder({})])).toMatchObject({
    code: 2,
    err: expect.stringContaining("no .yaml, .yml or .json files found"),
  });
});
