import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, ROOT, usher } from "./usher.ts";

const example = (name: string) => join(ROOT, "examples", name);
const CLUSTER = ["--source", example("cluster"), "--source", example("pods/etcd.yaml")];
const EDIT = example("what-if/etcd-pool.yaml");

const policy = (name: string, spec: string) =>
  `apiVersion: kupid.gardener.cloud/v1alpha1\nkind: ClusterPodSchedulingPolicy\nmetadata: {name: ${name}}\nspec: ${spec}\n`;

const POD = `apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers: [{name: web, image: web:1}]
`;

describe("diff", () => {
  test("shows which workloads an edited policy changes, summary first", async () => {
    const { code, out, err } = await usher(["diff", "-f", EDIT, ...CLUSTER]);
    expect(out).toBe(`If ClusterPodSchedulingPolicy etcd-pool is changed:
  1 of 3 workloads differs: 1 changed

OBJECT                       BEFORE     AFTER     CHANGES                         BY
StatefulSet shop/etcd-main   admitted   changed   - nodeSelector pool=etcd        etcd-pool
                                                  + nodeSelector pool=etcd-2027   etcd-pool
`);
    expect(err).toBe("looked at 3 workloads with 2 pods, and 6 nodes\n");
    expect(code).toBe(1);
  });

  test("reports that nothing changes, and exits with 0", async () => {
    const unselective = folder({
      "p.yaml": policy(
        "other",
        "{podSelector: {matchLabels: {app: none}}, namespaceSelector: {}, nodeSelector: {a: b}}",
      ),
    });
    const { code, out } = await usher(["diff", "-f", unselective, ...CLUSTER]);
    expect(out).toBe("If ClusterPodSchedulingPolicy other is added:\n  nothing changes\n");
    expect(code).toBe(0);
  });

  test("removes a policy, with any spelling of its kind", async () => {
    for (const kind of ["ClusterPodSchedulingPolicy", "clusterpodschedulingpolicies", "cpsp"]) {
      const { code, out } = await usher(["diff", "--remove", `${kind}/zone-a`, ...CLUSTER]);
      expect(out).toContain("- nodeSelector topology.kubernetes.io/zone=a   zone-a");
      expect(code).toBe(1);
    }
  });

  test("-o diff shows the changed manifests as a unified diff", async () => {
    const { out } = await usher(["diff", "-f", EDIT, ...CLUSTER, "-o", "diff"]);
    expect(out).toMatch(
      /^--- StatefulSet shop\/etcd-main \(before\)\n\+\+\+ StatefulSet shop\/etcd-main \(after\)\n@@ /,
    );
    expect(out).toContain("\n-        pool: etcd\n+        pool: etcd-2027\n");
  });

  test("-o json has both decisions, the counts and the scope", async () => {
    const { out } = await usher(["diff", "-f", EDIT, ...CLUSTER, "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({
      edits: [{ name: "ClusterPodSchedulingPolicy etcd-pool", what: "changed" }],
      summary: { workloads: 1, changed: 1, newlyRefused: 0 },
      workloads: [
        {
          object: { kind: "StatefulSet", namespace: "shop", name: "etcd-main" },
          effect: "changed",
          before: { refused: false },
          after: { refused: false },
          lines: [
            { sign: "-", message: "nodeSelector pool=etcd", by: "etcd-pool" },
            { sign: "+", message: "nodeSelector pool=etcd-2027", by: "etcd-pool" },
          ],
        },
      ],
      looked: { workloads: 3, pods: 2, nodes: 6 },
      partial: [],
    });
  });

  test("reports workloads that the Pod Security labels of a namespace refuse, and names the running pods", async () => {
    const edit = folder({
      "ns.yaml":
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}\n",
    });
    const { code, out } = await usher(["diff", "-f", edit, ...CLUSTER]);
    expect(code).toBe(1);
    expect(out).toContain("2 of 3 workloads differ: 2 newly refused\n");
    expect(out).toContain("1 running pod of 1 workload would not be admitted again\n");
    // Both have the same result, so they form one entry.
    expect(out).toMatch(
      /Pod shop\/reports +admitted +refused +! spec\.containers\[0\]\.securityContext.*\nStatefulSet shop\/etcd-main +! spec/,
    );
    // Labels of the file are merged into those of the namespace: policies still select it.
    const merged = await usher(["diff", "-f", edit, ...CLUSTER, "-o", "json"]);
    expect(JSON.parse(merged.out).workloads[0].before.changes).not.toEqual([]);
  });

  test("nodes gain and lose labels, annotations and taints by an edited rule", async () => {
    const edit = folder({
      "rule.yaml": `apiVersion: node-labels.openshift.io/v1beta1
kind: Labels
metadata: {name: site-north, namespace: cluster-config}
spec:
  nodeNamePatterns: ["edge-north-.*", "core-.*"]
  labels: {telco.example.com/site: far-north}
`,
    });
    const { code, out } = await usher(["diff", "-f", edit, "--source", example("node-labels"), "-q"]);
    expect(code).toBe(1);
    expect(out).toBe(`If Labels cluster-config/site-north is changed:
  2 of 2 nodes differ

OBJECT              BEFORE   AFTER     CHANGES                                                        BY
Node core-7         -        changed   + label telco.example.com/site=far-north                       cluster-config/site-north
Node edge-north-1   -        changed   - label telco.example.com/site=north                           cluster-config/site-north
                                       + label telco.example.com/site=far-north                       cluster-config/site-north
                                       - annotation telco.example.com/contact=noc-north@example.com   cluster-config/site-north
`);
  });

  test("reports users that an edited limit puts over it", async () => {
    const limits = readFileSync(example("project-limit/limits.yaml"), "utf8");
    const edit = folder({ "limits.yaml": limits.replace("- maxProjects: 2", "- maxProjects: 1") });
    const { code, out } = await usher(["diff", "-f", edit, "--source", example("project-limit")]);
    expect(code).toBe(1);
    expect(out).toContain("1 user over the limit\n");
    expect(out).toMatch(
      /User alice +- +over its limit +\+ 2 projects, at most 1 \(limits\[5\]\) +project-limit/,
    );
  });

  test("groups workloads with the same result into one entry with the first names; -o wide lists all", async () => {
    const many = Array.from({ length: 9 }, (_, i) => POD.replace("name: web,", `name: web-${i},`)).join(
      "---\n",
    );
    const source = folder({ "pods.yaml": many });
    const sources = ["--source", example("cluster"), "--source", source];
    const { out } = await usher(["diff", "--remove", "clusterpodschedulingpolicy/zone-a", ...sources]);
    expect(out).toMatch(/Pod shop\/web-0 .*\nPod shop\/web-1\nPod shop\/web-2\nand 6 more\n/);
    const wide = await usher([
      "diff",
      "--remove",
      "clusterpodschedulingpolicy/zone-a",
      ...sources,
      "-o",
      "wide",
    ]);
    expect(wide.out.match(/^Pod shop\/web-\d /gm)).toHaveLength(9);
  });
});

describe("an object that usher has changed before", () => {
  test("is evaluated without usher's earlier changes, before and after the edit", async () => {
    const edit = folder({
      "p.yaml": policy(
        "etcd-pool",
        "{namespaceSelector: {}, podSelector: {matchLabels: {app: etcd}}, nodeSelector: {pool: etcd-2027}}",
      ),
    });
    const { out } = await usher(["diff", "-f", edit, "--source", example("drift"), "-q"]);
    expect(out).toContain("- nodeSelector pool=nvme");
    expect(out).toContain("+ nodeSelector pool=etcd-2027");
  });
});

describe("what-if", () => {
  test("shows an edit that strands a pod", async () => {
    const { code, out } = await usher(["what-if", EDIT, ...CLUSTER]);
    expect(code).toBe(1);
    expect(out).toBe(`If ClusterPodSchedulingPolicy etcd-pool is changed:
  1 of 3 workloads differs: 1 changed; 1 fits nowhere

OBJECT                       BEFORE         AFTER          CHANGES                                                 BY
StatefulSet shop/etcd-main   1 of 6 nodes   fits nowhere   - nodeSelector pool=etcd                                etcd-pool
                                                           + nodeSelector pool=etcd-2027                           etcd-pool
                                                           - node etcd-0                                           scheduler
                                                           ! 5 node(s) didn't match Pod's node affinity/selector   scheduler
                                                           ! 1 node(s) had untolerated taint(s)                    scheduler
`);
  });

  test("removes and cordons nodes: pods lose them, with the scheduler's reason, and pools empty", async () => {
    const { code, out } = await usher([
      "what-if",
      "--remove",
      "node/etcd-0",
      "--cordon",
      "batch-0",
      ...CLUSTER,
    ]);
    expect(code).toBe(1);
    expect(out).toMatch(/^If Node etcd-0 is removed and Node batch-0 is cordoned:\n/);
    expect(out).toContain("2 of 6 nodes differ\n");
    expect(out).toContain("pool batch empties: no workload may run there\n");
    expect(out).toMatch(/StatefulSet shop\/etcd-main +1 of 6 nodes +fits nowhere +- node etcd-0 /);
    expect(out).toMatch(
      /Pod lab\/scratch +5 of 6 nodes +3 of 5 nodes +- node batch-0: node\(s\) were unschedulable/,
    );
    expect(out).toMatch(/Node batch-0 +- +changed +\+ cordoned/);
  });

  test("adds, relabels and taints nodes by manifests", async () => {
    const edit = folder({
      "nodes.yaml": `apiVersion: v1
kind: Node
metadata: {name: new-0, labels: {pool: etcd, topology.kubernetes.io/zone: a}}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {pool: etcd}}
---
apiVersion: v1
kind: Node
metadata: {name: etcd-0}
spec: {taints: [{key: dedicated, value: etcd, effect: NoSchedule}]}
`,
    });
    const { out } = await usher(["what-if", edit, ...CLUSTER, "-o", "json"]);
    const { workloads, nodes, pools } = JSON.parse(out);
    const [etcd] = workloads.filter((one: { object: { name: string } }) => one.object.name === "etcd-main");
    expect(etcd.nodes.gained).toEqual(["worker-0", "new-0"]);
    expect(etcd.nodes.lost).toEqual([{ node: "etcd-0", reason: expect.stringContaining("taint") }]);
    expect(
      nodes.map((one: { object: { name: string }; effect: string }) => [one.object.name, one.effect]),
    ).toEqual([
      ["etcd-0", "changed"],
      ["new-0", "new"],
      ["worker-0", "changed"],
    ]);
    // A label of the file is merged into the node's labels: the zone stays.
    expect(nodes[2].lines).toEqual([
      { sign: "-", message: "label pool=general", by: "-" },
      { sign: "+", message: "label pool=etcd", by: "-" },
    ]);
    expect(pools.map((one: { pool: string }) => one.pool)).toContain("etcd");
  });

  test("a manifest with a resourceVersion, as kubectl get prints it, is the whole node", async () => {
    const edit = folder({
      "node.yaml":
        "apiVersion: v1\nkind: Node\nmetadata: {name: etcd-0, resourceVersion: '7', labels: {pool: etcd}}\n",
    });
    const { out } = await usher(["what-if", edit, ...CLUSTER]);
    expect(out).toContain("- label topology.kubernetes.io/zone=a");
    expect(out).toMatch(/StatefulSet shop\/etcd-main +1 of 6 nodes +fits nowhere/);
  });

  test("a new workload shows where it may run, and a removed one is gone", async () => {
    const edit = folder({ "pod.yaml": POD });
    const { out } = await usher(["what-if", edit, "--remove", "pod/lab/scratch", ...CLUSTER]);
    expect(out).toMatch(
      /Pod shop\/web +- +3 of 6 nodes +\+ nodeSelector topology\.kubernetes\.io\/zone=a +zone-a/,
    );
    expect(out).toMatch(/Pod lab\/scratch +5 of 6 nodes +- /);
    expect(out).toContain("1 new, 1 gone");
  });

  test("a node without allocatable is unknown, not full", async () => {
    const source = folder({
      "c.yaml": `apiVersion: v1\nkind: Node\nmetadata: {name: bare}\n---\n${POD.replace("namespace: shop", "namespace: lab")}`,
    });
    const edit = folder({ "n.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: other}\n" });
    const { out } = await usher(["what-if", edit, "--source", source]);
    expect(out).toMatch(/Pod lab\/web +perhaps 1 of 1 node +perhaps 2 of 2 nodes +\+ node other/);
  });

  test("compares decisions without nodes, and reports that placement is unknown", async () => {
    const source = folder({
      "c.yaml": POD,
      "p.yaml": policy("zone", "{namespaceSelector: {}, podSelector: {}, nodeSelector: {zone: a}}"),
    });
    const { out, err } = await usher([
      "what-if",
      "--remove",
      "clusterpodschedulingpolicy/zone",
      "--source",
      source,
    ]);
    expect(out).toMatch(/Pod shop\/web +admitted +admitted +- nodeSelector zone=a +zone/);
    expect(err).toContain("where pods may run is not known: there are no nodes here");
  });

  test("-o markdown is a table for a pull request", async () => {
    const { out } = await usher(["what-if", EDIT, ...CLUSTER, "-o", "markdown"]);
    expect(out).toContain(
      "**If ClusterPodSchedulingPolicy etcd-pool is changed**\n\n- 1 of 3 workloads differs",
    );
    expect(out).toContain("| object | before | after | changes | by |\n| --- | --- | --- | --- | --- |\n");
    expect(out).toMatch(
      /\| StatefulSet shop\/etcd-main \| 1 of 6 nodes \| fits nowhere \| `- nodeSelector pool=etcd`<br>/,
    );
  });
});

describe("explain", () => {
  test("shows what usher set, what it would be today, the trace, the nodes and the object before usher", async () => {
    const sources = ["--source", example("drift"), "--source", example("cluster/nodes.yaml")];
    const { code, out } = await usher(["explain", "sts/etcd-main", "-n", "shop", ...sources, "-q"]);
    expect(code).toBe(0);
    expect(out).toBe(`StatefulSet shop/etcd-main

Set by usher
  FIELD                                       VALUE   POLICY      GENERATION   TODAY
  nodeSelector.pool                           etcd    etcd-pool   -            nvme
  nodeSelector[topology.kubernetes.io/zone]   a       zone-a      -            the same

If it were created now
  StatefulSet shop/etcd-main  patch
    etcd-pool          applies    namespace shop, template app=etcd
      + nodeSelector pool=nvme
    zone-a             applies    namespace shop, template app=etcd
      + nodeSelector topology.kubernetes.io/zone=a
    os.contradictions  no effect  nothing names an OS, or all that names one agrees

Where it may run
  fails: node(s) didn't match Pod's node affinity/selector (NodeAffinity): batch-0, etcd-0, etcd-1, worker-0, worker-1
  fails: node(s) had untolerated taint(s) (TaintToleration): cp-0

Before usher, and now
  @@ -16,3 +16,6 @@
         containers:
           - name: etcd
             image: registry.example.com/etcd:3.6
  +      nodeSelector:
  +        pool: etcd
  +        topology.kubernetes.io/zone: a
`);
  });

  test("marks a policy that is gone, and one with another generation", async () => {
    const note = JSON.stringify({
      placement: [
        { policy: "ClusterPodSchedulingPolicy/gone", generation: 2, set: ["/spec/nodeSelector/pool"] },
        { policy: "ClusterPodSchedulingPolicy/zone-a", generation: 2, set: ["/spec/nodeSelector/zone"] },
      ],
    });
    const source = folder({
      "policy.yaml": policy(
        "zone-a",
        "{namespaceSelector: {}, podSelector: {}, nodeSelector: {zone: b}}",
      ).replace("{name: zone-a}", "{name: zone-a, generation: 5}"),
      "pod.yaml": `apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  creationTimestamp: "2026-11-01T10:00:00Z"
  annotations: {usher.dev/provenance: '${note}'}
spec:
  nodeName: n1
  nodeSelector: {pool: old, zone: a}
  containers: [{name: web, image: web:1}]
`,
    });
    const { out } = await usher(["explain", "pod/web", "-n", "shop", "--source", source, "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({
      set: [
        {
          field: "spec.nodeSelector.pool",
          value: "old",
          policy: "ClusterPodSchedulingPolicy/gone",
          generation: 2,
          today: "nothing: the policy is gone",
          when: "2026-11-01T10:00:00Z",
        },
        { field: "spec.nodeSelector.zone", value: "a", generation: 2, generationNow: 5, today: "b" },
      ],
      today: { verdict: "patch" },
      before: { metadata: { name: "web" }, spec: { nodeName: "n1" } },
    });
    expect(JSON.parse(out).before.spec.nodeSelector).toBeUndefined();
  });

  test("shows a node's values with the rule that sets each", async () => {
    const record = JSON.stringify({
      labels: { "telco.example.com/pool": "cluster-config/edge-pool" },
      annotations: {},
      taints: {},
    });
    const source = folder({
      "rules.yaml": readFileSync(example("node-labels/rules.yaml"), "utf8"),
      "node.yaml": `apiVersion: v1\nkind: Node\nmetadata:\n  name: edge-north-1\n  managedFields: [{manager: kubelet, time: '2026-11-02T10:00:00Z'}, {manager: usher, time: '2026-11-01T10:00:00Z'}]\n  labels: {telco.example.com/pool: edge}\n  annotations: {usher.dev/node-labels: '${record}'}\n`,
    });
    const { out } = await usher(["explain", "node/edge-north-1", "--source", source, "-q"]);
    expect(out).toContain("Set by usher at 2026-11-01T10:00:00Z\n");
    expect(out).toMatch(/label telco\.example\.com\/pool=edge +cluster-config\/edge-pool +the same\n/);
    expect(out).toMatch(/label telco\.example\.com\/site=north +cluster-config\/site-north +to be set\n/);
    expect(out).toContain("cluster-config/site-north  applies  the name edge-north-1 matches");
  });

  test("explains the codes in a refusal's text, and names the next command", async () => {
    const { code, out, err } = await usher([
      "explain",
      "pod team-a/web may not run on node cp-0 (USHER-G01)",
    ]);
    expect(code).toBe(0);
    expect(out).toMatch(/^USHER-G01: .*\n\n[\s\S]*What to do: /);
    expect(err).toBe('Run "usher explain pod/web -n team-a" to see which policies apply to it.\n');
    // The same words without quotes.
    expect((await usher(["explain", ..."denied (USHER-G01)".split(" ")])).out).toBe(out);
  });

  test("lists refusals of events and of an audit log", async () => {
    const refusal = (name: string, message: string, extra = {}) =>
      JSON.stringify({
        kind: "Event",
        stage: "ResponseComplete",
        verb: "create",
        user: { username: "eve" },
        objectRef: { resource: "pods", namespace: "lab", name },
        requestReceivedTimestamp: "2026-11-16T08:00:00.000000Z",
        responseStatus: { code: 403, message },
        ...extra,
      });
    const now = policy("etcd-pool", "{podSelector: {}, namespaceSelector: {}, nodeSelector: {pool: etcd}}");
    const source = folder({
      "pod.yaml": POD.replace("namespace: shop", "namespace: lab"),
      "policy.yaml": now.replace("{name: etcd-pool}", "{name: etcd-pool, generation: 7}"),
      "events.yaml": `apiVersion: events.k8s.io/v1
kind: Event
metadata:
  name: e1
  namespace: lab
  annotations: {usher.dev/policy-generation: "3", usher.dev/rule: nodeSelector}
eventTime: "2026-11-15T07:00:00.000000Z"
reportingController: usher.dev/usher
regarding: {kind: Pod, name: web, namespace: lab}
related: {kind: ClusterPodSchedulingPolicy, name: etcd-pool}
note: nodeSelector pool is missing (USHER-P30)
series: {count: 4, lastObservedTime: "2026-11-15T09:00:00.000000Z"}
`,
    });
    const log = folder({
      "audit.log": [
        refusal("web", 'admission webhook "x.usher.dev" denied the request: no (USHER-G01)'),
        refusal("web", 'admission webhook "x.usher.dev" denied the request: no zone (USHER-P30)', {
          annotations: {
            "placement.usher.dev/placement.refused-by":
              "ClusterPodSchedulingPolicy/etcd-pool@4 nodeSelector USHER-P30",
          },
        }),
        refusal("other", "denied (USHER-G01)"),
        refusal("web", "exceeded quota: pods=3"),
        refusal("web", "denied (USHER-G02)", { stage: "RequestReceived" }),
        "not json",
      ].join("\n"),
    });
    const { out, err } = await usher([
      "explain",
      "pod/web",
      "-n",
      "lab",
      "--source",
      source,
      "--audit-log",
      join(log, "audit.log"),
    ]);
    const [, recorded = ""] = out.split("Recorded\n");
    expect(recorded.trimEnd().split("\n")).toHaveLength(4);
    expect(recorded).toMatch(
      /2026-11-15T09:00:00\.000000Z +event \(4 times\) +- +ClusterPodSchedulingPolicy\/etcd-pool +3 \(now 7\) +nodeSelector +nodeSelector pool/,
    );
    expect(recorded).toMatch(
      /2026-11-16T08:00:00\.000000Z +audit log +eve +- +- +- +admission webhook .*USHER-G01/,
    );
    expect(recorded).toMatch(
      /audit log +eve +ClusterPodSchedulingPolicy\/etcd-pool +4 \(now 7\) +nodeSelector +admission webhook .*USHER-P30/,
    );
    expect(err).toContain("1 lines are not audit events");
  });
});

describe("replay", () => {
  const events = (...list: object[]) =>
    folder({ "audit.log": list.map((one) => JSON.stringify(one)).join("\n") });
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "etcd-0", labels: { app: "etcd", role: "main" } },
    spec: { containers: [{ name: "etcd", image: "etcd:3" }] },
  };
  const event = (verb: string, more: object = {}) => ({
    kind: "Event",
    stage: "ResponseComplete",
    verb,
    user: { username: "eve", groups: ["devs"] },
    objectRef: { resource: "pods", apiVersion: "v1", namespace: "shop", name: "etcd-0" },
    requestReceivedTimestamp: "2026-11-16T08:00:00.000000Z",
    ...more,
  });

  test("evaluates recorded AdmissionReviews before and after, and prints only differences", async () => {
    const { code, out } = await usher([
      "replay",
      "--reviews",
      example("reviews"),
      "-f",
      EDIT,
      "--source",
      example("cluster"),
    ]);
    expect(code).toBe(1);
    expect(out).toBe(`If ClusterPodSchedulingPolicy etcd-pool is changed:
  1 of 1 recorded request differs: 1 changed

OBJECT                 BEFORE     AFTER     CHANGES                         BY
Pod shop/etcd-main-0   admitted   changed   - nodeSelector pool=etcd        etcd-pool
                                            + nodeSelector pool=etcd-2027   etcd-pool
`);
  });

  test("evaluates requests of an audit log as their user sent them, and counts skipped ones by reason", async () => {
    const log = events(
      event("create", { requestObject: pod }),
      event("create", { requestObject: { ...pod, metadata: { ...pod.metadata, labels: {} } } }),
      event("create"),
      event("patch", { requestObject: {} }),
      event("update", { requestObject: pod }),
      event("get"),
    );
    const { code, out, err } = await usher([
      "replay",
      "--audit-log",
      join(log, "audit.log"),
      "-f",
      EDIT,
      "--source",
      example("cluster"),
    ]);
    expect(code).toBe(1);
    expect(out).toContain("1 of 2 recorded requests differs: 1 changed");
    expect(err).toContain(
      "not replayed: 1 without the object: the audit level must be Request or RequestResponse",
    );
    expect(err).toContain("not replayed: 1 a patch");
    expect(err).toContain("not replayed: 1 update of an object that is not stored any more");
    const json = await usher([
      "replay",
      "--audit-log",
      join(log, "audit.log"),
      "-f",
      EDIT,
      "--source",
      example("cluster"),
      "-o",
      "json",
    ]);
    expect(JSON.parse(json.out)).toMatchObject({
      summary: { requests: 2, differ: 1 },
      differences: [{ user: "eve", operation: "CREATE" }],
    });
  });

  test("rejects an audit log without a request that can be evaluated", async () => {
    const log = events(event("get"), event("create"));
    const { code, err } = await usher([
      "replay",
      "--audit-log",
      join(log, "audit.log"),
      "-f",
      EDIT,
      "--source",
      example("cluster"),
    ]);
    expect(code).toBe(2);
    expect(err).toContain("no recorded request could be judged");
  });
});

describe("invalid calls and input exit with 2, a message, and empty stdout", () => {
  const bad = () =>
    folder({
      "invalid.yaml": policy("bad", "{podSelector: {}, namespaceSelector: {}, priority: ten}"),
      "unknown-field.yaml": policy("bad", "{podSelector: {}, namespaceSelector: {}, nodeSelectors: {a: b}}"),
      "broken.yaml": "kind: [",
      "empty.yaml": "",
      "service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n",
      "pod.yaml": POD,
      "twice.yaml": `${POD}---\n${POD}`,
      "review.json": readFileSync(example("reviews/pod.json"), "utf8"),
    });
  test.each<[string, (files: string) => readonly string[], RegExp]>([
    [
      "diff without an edit",
      () => ["diff", ...CLUSTER],
      /^usher: specify policies with -f or -k, or --remove/,
    ],
    [
      "an invalid policy",
      (f) => ["diff", "-f", join(f, "invalid.yaml"), ...CLUSTER],
      /invalid\.yaml:4:\d+: spec\.priority: must be an integer, got "ten"\n[\s\S]*nothing was compared/,
    ],
    [
      "an unknown field",
      (f) => ["diff", "-f", join(f, "unknown-field.yaml"), ...CLUSTER],
      /unknown-field\.yaml:4:\d+: spec\.nodeSelectors: .*\n[\s\S]*nothing was compared/,
    ],
    ["broken YAML", (f) => ["diff", "-f", join(f, "broken.yaml"), ...CLUSTER], /broken\.yaml:1:\d+/],
    [
      "an empty file",
      (f) => ["diff", "-f", join(f, "empty.yaml"), ...CLUSTER],
      /empty\.yaml: no objects found/,
    ],
    ["a missing file", () => ["diff", "-f", "/no/such.yaml", ...CLUSTER], /\/no\/such\.yaml: /],
    [
      "a workload in diff",
      (f) => ["diff", "-f", join(f, "pod.yaml"), ...CLUSTER],
      /Pod shop\/web: not a policy and not a namespace: use usher what-if/,
    ],
    [
      "an object that affects no decision",
      (f) => ["what-if", join(f, "service.yaml"), ...CLUSTER],
      /Service shop\/web: has no effect here/,
    ],
    [
      "a duplicate object",
      (f) => ["what-if", join(f, "twice.yaml"), ...CLUSTER],
      /Pod shop\/web is in .*twice\.yaml:1 already/,
    ],
    [
      "a recorded review",
      (f) => ["what-if", join(f, "review.json"), ...CLUSTER],
      /replay it with usher replay --reviews/,
    ],
    [
      "what-if without an edit",
      () => ["what-if", ...CLUSTER],
      /^usher: specify manifests, --remove KIND\/NAME or --cordon NODE/,
    ],
    [
      "a node that does not exist",
      () => ["what-if", "--cordon", "worker-9", ...CLUSTER],
      /--cordon worker-9: there is no Node worker-9; did you mean "worker-0"\?/,
    ],
    [
      "a policy that does not exist",
      () => ["diff", "--remove", "clusterpodschedulingpolicy/zone-b", ...CLUSTER],
      /there is no ClusterPodSchedulingPolicy zone-b; did you mean "zone-a"\?/,
    ],
    ["an unknown kind", () => ["diff", "--remove", "nodes/worker-0", ...CLUSTER], /unknown kind nodes; /],
    [
      "a name without a kind",
      () => ["diff", "--remove", "zone-a", ...CLUSTER],
      /--remove zone-a: must be KIND\/NAME/,
    ],
    [
      "an invalid namespace",
      () => ["diff", "-f", EDIT, "-n", "Shop!", ...CLUSTER],
      /^usher: --namespace: "Shop!"/,
    ],
    [
      "an unknown format",
      () => ["what-if", EDIT, ...CLUSTER, "-o", "html"],
      /Allowed choices are table, wide, json, yaml, junit, sarif, markdown, name, diff/,
    ],
    [
      "explain without an object",
      () => ["explain", ...CLUSTER],
      /^usher: specify KIND\/NAME, -f FILE, -k DIRECTORY, or the text of a refusal/,
    ],
    [
      "an object in another namespace",
      () => ["explain", "pod/scratch", ...CLUSTER],
      /pod\/scratch: not in namespace default, but in lab: add -n lab/,
    ],
    [
      "an object that does not exist",
      () => ["explain", "pod/scratsh", "-n", "lab", ...CLUSTER],
      /there is no such object in namespace lab; did you mean "scratch"\?/,
    ],
    [
      "a kind that can't be explained",
      () => ["explain", "service/web", ...CLUSTER],
      /unknown workload kind service/,
    ],
    [
      "a text without a code",
      () => ["explain", "it does not work"],
      /the text has no code of usher, .*specify KIND\/NAME/,
    ],
    ["a kind without a name", () => ["explain", "pod"], /specify the object as pod\/NAME/],
    ["a kind and a name as two words", () => ["explain", "pod", "web"], /specify the object as pod\/web,/],
    [
      "a code that does not exist",
      () => ["explain", "denied (USHER-X99)"],
      /USHER-X99 is not a code of this version/,
    ],
    [
      "an audit log that does not exist",
      () => ["explain", "pod/scratch", "-n", "lab", "--audit-log", "/no/log", ...CLUSTER],
      /--audit-log \/no\/log: /,
    ],
    [
      "replay of nothing",
      () => ["replay", "-f", EDIT, ...CLUSTER],
      /^usher: specify either --audit-log FILE or --reviews DIR/,
    ],
    [
      "replay without an edit",
      () => ["replay", "--reviews", example("reviews"), ...CLUSTER],
      /^usher: specify the edited policies with -f/,
    ],
  ])("%s", async (_, args, message) => {
    const { code, out, err } = await usher(args(bad()));
    expect(err).toMatch(message);
    expect(out).toBe("");
    expect(code).toBe(2);
  });
});

test("reports a source with errors, compares the rest, and exits with 2", async () => {
  const source = folder({
    "p.yaml": policy("bad", "{podSelector: {}, namespaceSelector: {}, priority: ten}"),
    "pod.yaml": POD,
  });
  const { code, out, err } = await usher(["diff", "-f", EDIT, "--source", source]);
  expect(err).toContain("spec.priority");
  expect(out).toContain("If ClusterPodSchedulingPolicy etcd-pool is added:");
  expect(code).toBe(2);
});

test("exit codes do not depend on the format", async () => {
  for (const format of ["table", "wide", "json", "yaml", "markdown", "diff"]) {
    expect((await usher(["diff", "-f", EDIT, ...CLUSTER, "-o", format])).code).toBe(1);
    expect(
      (await usher(["diff", "-f", example("cluster/policies.yaml"), ...CLUSTER, "-o", format])).code,
    ).toBe(0);
  }
});

test("never writes to a source without a cluster", async () => {
  const source = folder({
    "pod.yaml": POD,
    "policies.yaml": readFileSync(example("cluster/policies.yaml"), "utf8"),
  });
  const snapshot = () => readdirSync(source).map((name) => [name, statSync(join(source, name)).mtimeMs]);
  const before = snapshot();
  await usher(["diff", "-f", EDIT, "--source", source]);
  await usher(["what-if", EDIT, "--remove", "pod/shop/web", "--source", source]);
  expect(snapshot()).toEqual(before);
});
