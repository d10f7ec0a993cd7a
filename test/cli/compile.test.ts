import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { EXAMPLES, folder, ROOT, usher } from "./usher.ts";

const policy = (name: string, spec: string) =>
  `apiVersion: kupid.gardener.cloud/v1alpha1\nkind: ClusterPodSchedulingPolicy\nmetadata: {name: ${name}}\nspec: {podSelector: {}, namespaceSelector: {}, ${spec}}\n`;

async function report(text: string, ...flags: string[]) {
  const source = folder({ "policies.yaml": text });
  const { out, err, code } = await usher(["compile", "--source", source, "--report", "-o", "json", ...flags]);
  const { policies } = JSON.parse(out) as {
    policies: { name: string; result: string; leftOut: { what: string; why: string }[] }[];
  };
  return {
    err,
    code,
    policies,
    lines: policies.map((one) => [one.name, one.result, ...one.leftOut.map(({ what }) => what)]),
  };
}

describe("usher compile", () => {
  test("prints the objects on stdout and the report on stderr", async () => {
    const { out, err, code } = await usher(["compile", "--source", EXAMPLES]);
    expect(code).toBe(1);
    const kinds = parseAllDocuments(out).map((one) => one.get("kind"));
    expect(kinds.slice(0, 2)).toEqual(["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]);
    expect(kinds).toHaveLength(8);
    expect(err).toContain("4 policies: 0 compiled whole, 4 in part, 0 not");
  });

  test("prints only the report with -o table, and only the objects with --quiet", async () => {
    const { out } = await usher(["compile", "--source", EXAMPLES, "-o", "table"]);
    expect(out).toMatch(
      /^MODULE +POLICY +COMPILED +LEFT OUT\nplacement +ClusterPodSchedulingPolicy batch-nights +in part/,
    );
    const silent = await usher(["compile", "--source", EXAMPLES, "--quiet", "-o", "json"]);
    expect(silent.err).toBe("");
    expect(JSON.parse(silent.out).items).toHaveLength(8);
  });

  test("exits with 0 where every policy is compiled whole", async () => {
    const { code, lines } = await report(policy("a", "targets: Pods, nodeSelector: {pool: a}"));
    expect([code, lines]).toEqual([0, [["a", "whole"]]]);
  });

  test.each<[string, string, string[]]>([
    ["templates", "nodeSelector: {pool: a}", ["in part", "templates"]],
    [
      "conflicts that refuse",
      "targets: Pods, onConflict: Refuse, nodeSelector: {pool: a}",
      ["in part", "onConflict: Refuse"],
    ],
    ["updates", "targets: Pods, onUpdate: Inject, nodeSelector: {pool: a}", ["in part", "onUpdate: Inject"]],
    ["references", "targets: Pods, priorityClassName: high", ["in part", "the check of priorityClassName"]],
    [
      "a default that counts as unset",
      "targets: Pods, schedulerName: packing",
      ["in part", "a chosen default-scheduler"],
    ],
    ["a policy for templates", "targets: Templates, nodeSelector: {pool: a}", ["not", "templates"]],
    ["a policy without criteria", "targets: Pods", ["not", "criteria"]],
  ])("names what is left out of %s", async (_case, spec, expected) => {
    const { code, lines } = await report(policy("a", spec));
    expect([code, lines]).toEqual([1, [["a", ...expected]]]);
  });

  test("reads values of the namespace when a pod is created", async () => {
    const text = policy(
      "a",
      "targets: Pods, enforcement: Refuse, fromNamespace: {nodeSelector: {pool: {label: team}}, tolerations: [{key: team, annotation: example.com/team}]}",
    );
    const { out } = await usher(["compile", "-f", folder({ "policies.yaml": text }), "-o", "json"]);
    const [first, , third] = (JSON.parse(out) as { items: { spec: { variables: { name: string }[] } }[] })
      .items;
    for (const object of [first, third])
      expect(object?.spec.variables.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["fromNamespace0", "fromNamespace1", "namespaceHasAll"]),
      );
    expect(out).toContain("pool=the label team of the namespace");
    // No mark is left in place of a value.
    expect(out).not.toMatch(/\\"fromNamespace\d/);
  });

  test.each([
    [
      "a label of nodes",
      "fromNamespace: {nodeSelector: {pool: {label: team}}, nodeAffinity: [{key: pool, label: pool}]}",
      "the policy names label pool twice, and whether both fit depends on the namespace",
    ],
    [
      "a toleration",
      "tolerations: [{key: team, value: red, effect: NoSchedule}], fromNamespace: {tolerations: [{key: team, effect: NoSchedule, label: team}]}",
      "the policy names a toleration of team:NoSchedule twice, and whether both fit depends on the namespace",
    ],
    [
      "the text of a mark",
      "nodeSelector: {pool: fromNamespace0}, fromNamespace: {tolerations: [{key: team, label: team}]}",
      "the policy has a text that stands for values while it is compiled; change it",
    ],
  ])("compiles no policy that has %s beside a value of the namespace", async (_case, spec, why) => {
    const { policies } = await report(policy("a", `targets: Pods, ${spec}`));
    expect(policies).toMatchObject([{ result: "not", leftOut: [{ what: "fromNamespace", why }] }]);
  });

  test("adds a ValidatingAdmissionPolicy for what a policy enforces", async () => {
    const text = policy("a", "targets: Pods, enforcement: Warn, nodeSelector: {pool: a}");
    const { out } = await usher(["compile", "-f", folder({ "policies.yaml": text }), "-o", "json"]);
    const { items } = JSON.parse(out) as {
      items: { kind: string; spec: { validationActions?: string[] } }[];
    };
    expect(items.map(({ kind }) => kind)).toEqual([
      "MutatingAdmissionPolicy",
      "MutatingAdmissionPolicyBinding",
      "ValidatingAdmissionPolicy",
      "ValidatingAdmissionPolicyBinding",
    ]);
    expect(items[3]?.spec.validationActions).toEqual(["Warn"]);
  });

  test("refuses a policy over the budget of the API server, with its estimate", async () => {
    const term = (i: number) => `{matchExpressions: [{key: k${i}, operator: Exists}]}`;
    const terms = Array.from({ length: 32 }, (_, i) => term(i)).join(", ");
    const { policies } = await report(
      policy(
        "a",
        `targets: Pods, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [${terms}]}}}`,
      ),
    );
    expect(policies).toMatchObject([
      {
        result: "not",
        cost: 1_409_024,
        leftOut: [
          {
            why: "its estimated cost for a large pod is 1409024, and the API server stops at 1000000; use fewer terms",
          },
        ],
      },
    ]);
  });

  test("has a reason for every policy of every module that is not compiled whole", async () => {
    const { out } = await usher([
      "compile",
      ...["every-module", "node-labels", "project-limit"].flatMap((one) => [
        "--source",
        join(ROOT, "examples", one),
      ]),
      "--report",
      "-o",
      "json",
    ]);
    const { policies } = JSON.parse(out) as {
      policies: { module: string; result: string; leftOut: unknown[] }[];
    };
    expect(new Set(policies.map(({ module }) => module))).toEqual(
      new Set(["placement", "node-labels", "project-limit"]),
    );
    for (const one of policies) expect(one.leftOut.length === 0).toBe(one.result === "whole");
  });

  test("names the order of policies only where it may count", async () => {
    const { lines } = await report(
      [
        policy("a", "targets: Pods, nodeSelector: {pool: a}"),
        policy("b", "targets: Pods, nodeSelector: {pool: b}"),
        policy("c", "targets: Pods, schedulingGates: [{name: example.com/c}]"),
      ].join("---\n"),
    );
    expect(lines).toEqual([
      ["a", "in part", "the order of policies"],
      ["b", "in part", "the order of policies"],
      ["c", "whole"],
    ]);
  });

  const EXCEPTION = (expires: string) =>
    `apiVersion: usher.dev/v1alpha1\nkind: PodSecurityException\nmetadata: {name: a}\nspec: {checks: [hostPorts], namespaces: [shop], expires: "${expires}"}\n`;
  const REPLACE =
    "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {modules: {pod-os: {podSecurity: {mode: Replace}}}}\n";
  const SOON = new Date(Date.now() + 86_400_000).toISOString();

  test("compiles an exception of Pod Security, and says which namespaces the plugin must leave alone", async () => {
    const config = join(folder({ "usher.yaml": REPLACE }), "usher.yaml");
    const { policies } = await report(EXCEPTION(SOON), "--config", config);
    expect(policies).toMatchObject([
      {
        result: "in part",
        objects: [{ name: "usher-pod-security.a" }, { name: "usher-pod-security.a" }],
        leftOut: [
          {
            what: "the plugin PodSecurity",
            why: expect.stringContaining("must have shop in exemptions.namespaces"),
          },
          { what: "audit and warn" },
          { what: "pods that exist" },
        ],
      },
    ]);
  });

  test("compiles no exception of Pod Security that expired, or that no pod is judged by", async () => {
    const config = join(folder({ "usher.yaml": REPLACE }), "usher.yaml");
    const expired = await report(EXCEPTION("2020-01-01T00:00:00Z"), "--config", config);
    const unjudged = await report(EXCEPTION(SOON));
    expect([expired, unjudged].map(({ policies }) => policies[0]?.leftOut[0]?.why)).toEqual([
      "it expired at 2020-01-01T00:00:00.000Z",
      "it counts only with podSecurity.mode: Replace",
    ]);
  });

  test("says that there is nothing to compile in a source without policies", async () => {
    const source = folder({ "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n" });
    const { out, err, code } = await usher(["compile", "--source", source]);
    expect([code, out]).toEqual([0, ""]);
    expect(err).toContain("no policies: there is nothing to compile");
  });

  test("exits with 2 for a source that does not exist", async () => {
    const { code, err } = await usher(["compile", "-f", "missing.yaml"]);
    expect([code, err]).toEqual([2, expect.stringContaining("missing.yaml: no such file or directory")]);
  });

  describe("--static", () => {
    const GUARD = ["--feature-gates", "OpenShiftNodeSchedulingPolicy=true"];
    const ENABLED = `apiVersion: scheduling.openshift.io/v1alpha1
kind: NodeSchedulingPolicy
metadata: { name: cluster }
spec: { groups: [{ name: ControlPlane, mode: Enable, emergencyUsers: [kubernetes-admin] }] }
---
apiVersion: v1
kind: Node
metadata: { name: w-0 }
`;
    const NODE = (name: string) => `---
apiVersion: v1
kind: Node
metadata: { name: ${name}, labels: { node-role.kubernetes.io/control-plane: "" } }
`;
    const written = (into: string) =>
      readdirSync(into, { recursive: true, encoding: "utf8" })
        .filter((one) => one.endsWith(".yaml"))
        .sort();
    const documents = (file: string) =>
      parseAllDocuments(readFileSync(file, "utf8")).map((one) => one.toJS());

    test("writes files that name the known nodes, and an AdmissionConfiguration that names their folder", async () => {
      const source = folder({ "policy.yaml": `${ENABLED}${NODE("cp-1")}${NODE("cp-0")}` });
      const into = join(folder({}), "static");
      const { out, err, code } = await usher(["compile", "--source", source, ...GUARD, "--static", into]);
      expect(code, err).toBe(1);
      expect(out.trim().split("\n")).toEqual([
        `wrote ${join(into, "admission.yaml")}`,
        `wrote ${join(into, "validating-policies/usher.yaml")}`,
      ]);
      expect(written(into)).toEqual(["admission.yaml", "validating-policies/usher.yaml"]);
      const [configuration] = documents(join(into, "admission.yaml"));
      expect(configuration.plugins).toEqual([
        {
          name: "ValidatingAdmissionPolicy",
          configuration: {
            apiVersion: "apiserver.config.k8s.io/v1",
            kind: "ValidatingAdmissionPolicyConfiguration",
            staticManifestsDir: "/etc/kubernetes/usher/validating-policies",
          },
        },
      ]);
      const objects = documents(join(into, "validating-policies/usher.yaml"));
      expect(objects).toHaveLength(6);
      for (const { metadata, spec } of objects) {
        expect(metadata.name).toMatch(
          /^usher-node-guard-controlplane-(assign|bind|labels)[.]static[.]k8s[.]io$/,
        );
        expect(spec).not.toHaveProperty("paramKind");
        expect(spec).not.toHaveProperty("paramRef");
      }
      expect(JSON.stringify(objects[0])).toContain('in [\\"cp-0\\",\\"cp-1\\"]');
      expect(err).toContain("files name the 2 nodes of the group that are known now");
    });

    test("writes nothing from a source with errors", async () => {
      const source = folder({ "policy.yaml": ENABLED.replace("Enable", "Enabled") });
      const into = join(folder({}), "static");
      const { code, err } = await usher(["compile", "--source", source, ...GUARD, "--static", into]);
      expect([code, err]).toEqual([
        2,
        expect.stringContaining("no file was written, because the source has errors"),
      ]);
      expect(existsSync(into)).toBe(false);
    });

    test("a group without a known node keeps its labels alone, and the report says what to do", async () => {
      const source = folder({ "policy.yaml": ENABLED });
      const into = join(folder({}), "static");
      const { err } = await usher(["compile", "--source", source, ...GUARD, "--static", into]);
      expect(documents(join(into, "validating-policies/usher.yaml"))).toHaveLength(2);
      expect(err).toContain("no node of the group is known, and files name nodes: add Nodes to the source");
    });

    test("writes policies of other modules, and removes files that have no content any more", async () => {
      const into = join(folder({}), "static");
      const pool = folder({ "a.yaml": policy("a", "targets: Pods, nodeSelector: {pool: a}") });
      const first = await usher([
        "compile",
        "--source",
        pool,
        "--static",
        into,
        "--static-path",
        "/srv/usher",
      ]);
      expect(first.code, first.err).toBe(0);
      expect(written(into)).toEqual(["admission.yaml", "mutating-policies/usher.yaml"]);
      expect(JSON.stringify(documents(join(into, "admission.yaml")))).toContain(
        "/srv/usher/mutating-policies",
      );
      const names = documents(join(into, "mutating-policies/usher.yaml")).map(
        ({ metadata }) => metadata.name,
      );
      expect(names).toEqual(["usher-placement.a.static.k8s.io", "usher-placement.a.static.k8s.io"]);
      const none = folder({ "a.yaml": policy("a", "targets: Templates, nodeSelector: {pool: a}") });
      const nothing = await usher(["compile", "--source", none, "--static", into]);
      expect(nothing.err).toContain("nothing can be a file of an API server, so no file was written");
      expect(written(into)).toEqual([]);
    });

    test.each([
      [["--static", "d", "-o", "json"], "leave out -o and --report"],
      [["--static", "d", "--report"], "leave out -o and --report"],
      [["--static-path", "/srv"], "--static-path belongs to --static"],
      [["--static", "d", "--static-path", "srv"], "must be an absolute path"],
      [["--static", "/dev/null/d"], "--static /dev/null/d: "],
    ])("%j is a wrong call", async (flags, message) => {
      const { code, err } = await usher(["compile", "--source", EXAMPLES, ...flags]);
      expect([code, err]).toEqual([2, expect.stringContaining(message)]);
    });
  });
});
