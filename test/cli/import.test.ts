import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { folder, usher } from "./usher.ts";

/** Imports a text; the policies that come of it. */
async function imported(from: "kyverno" | "in-tree", text: string) {
  const { code, out, err } = await usher(["import", from, "-"], { stdin: text });
  const policies = parseAllDocuments(out).flatMap((one) => (one.toJS() === null ? [] : [one.toJS()]));
  return { code, err, out, policies };
}

/** What usher makes of a pod with the imported policies; `undefined` where it is refused. */
async function placed(policies: string, pod: object, labels: object = {}, namespace = "shop") {
  const source = folder({
    "policies.yaml": policies,
    "namespace.yaml": JSON.stringify({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace, labels },
    }),
  });
  const stdin = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace, labels: { app: "web" } },
    spec: { containers: [{ name: "c", image: "i" }], ...pod },
  });
  const { out } = await usher(["review", "-", "--source", source, "--emit", "-q"], { stdin });
  return out === "" ? undefined : parse(out).spec;
}

const kyverno = (rule: string, name = "p") =>
  `apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: ${name}}\nspec:\n  rules:\n    - name: r\n${rule.replace(/^/gm, "      ")}\n`;

const PODS = "match: {any: [{resources: {kinds: [Pod]}}]}";

describe("usher import kyverno converts", () => {
  test("a rule that adds a toleration, with the precondition of the library, and names the difference", async () => {
    const { code, out, err } = await imported(
      "kyverno",
      kyverno(
        `${PODS}\npreconditions: {any: [{key: dedicated, operator: AnyNotIn, value: "{{ request.object.spec.tolerations[].key || \`[]\` }}"}]}\nmutate:\n  patchesJson6902: |-\n    - {op: add, path: /spec/tolerations/-, value: {key: dedicated, operator: Equal, value: batch, effect: NoSchedule}}`,
      ),
    );
    expect(code).toBe(0);
    expect(err).toContain("rule r: differs: kyverno leaves pods alone that tolerate the key with any value");
    expect((await placed(out, {})).tolerations).toEqual([
      { key: "dedicated", operator: "Equal", value: "batch", effect: "NoSchedule" },
    ]);
  });

  test("a rule that adds a node selector where the pod has none, with the same meaning", async () => {
    const { code, out, err } = await imported(
      "kyverno",
      kyverno(`${PODS}\nmutate: {patchStrategicMerge: {spec: {nodeSelector: {+(color): orange}}}}`),
    );
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect((await placed(out, {})).nodeSelector).toEqual({ color: "orange" });
    expect((await placed(out, { nodeSelector: { color: "red" } })).nodeSelector).toEqual({ color: "red" });
  });

  test("a rule that overwrites a node selector, and says that usher keeps the pod's value", async () => {
    const { err, policies } = await imported(
      "kyverno",
      kyverno(`${PODS}\nmutate: {patchStrategicMerge: {spec: {nodeSelector: {color: orange}}}}`),
    );
    expect(policies).toHaveLength(1);
    expect(err).toContain("kyverno replaces a value that the pod has; usher keeps it");
  });

  test("a rule that adds node affinity to templates", async () => {
    const { out, err, policies } = await imported(
      "kyverno",
      kyverno(
        `match: {any: [{resources: {kinds: [Deployment]}}]}\nmutate:\n  patchesJson6902: |-\n    - op: add\n      path: /spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-1/matchExpressions/-1\n      value: {key: weight, operator: Lt, values: ["400"]}`,
      ),
    );
    expect(policies[0].spec).toMatchObject({ targets: "Templates" });
    expect(err).toContain("it was for Deployment alone");
    expect(err).toContain("kyverno adds to one of the terms");
    expect(await placed(out, {})).not.toHaveProperty("affinity");
  });

  test("namespaces by name, by label and without those that are excluded, and labels of pods", async () => {
    const { out } = await imported(
      "kyverno",
      kyverno(
        "match: {all: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {team: data}}, selector: {matchLabels: {app: web}}}}]}\nexclude: {any: [{resources: {namespaces: [lab]}}]}\nmutate: {patchStrategicMerge: {spec: {+(nodeSelector): {a: b}}}}",
      ),
    );
    expect((await placed(out, {}, { team: "data" })).nodeSelector).toEqual({ a: "b" });
    expect(await placed(out, {}, { team: "other" })).not.toHaveProperty("nodeSelector");
    expect(await placed(out, {}, { team: "data" }, "lab")).not.toHaveProperty("nodeSelector");
  });
});

describe("usher import kyverno does not convert, and says why", () => {
  const mutate = "mutate: {patchStrategicMerge: {spec: {nodeSelector: {+(a): b}}}}";
  test.each([
    [
      "control-plane tolerations",
      `${PODS}\nvalidate: {message: no, pattern: {spec: {"=(tolerations)": [{key: "!node-role.kubernetes.io/control-plane"}]}}}`,
      /usher guards the nodes themselves: set the mode of group ControlPlane/,
    ],
    ["another validation", `${PODS}\nvalidate: {pattern: {spec: {a: b}}}`, /it refuses objects/],
    [
      "users",
      `match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: a}]}]}\n${mutate}`,
      /match.subjects/,
    ],
    [
      "patterns of namespaces",
      `match: {any: [{resources: {kinds: [Pod], namespaces: ["team-*"]}}]}\n${mutate}`,
      /team-\* is a pattern/,
    ],
    ["names", `match: {any: [{resources: {kinds: [Pod], names: [a]}}]}\n${mutate}`, /match.resources.names/],
    [
      "several filters",
      `match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod], namespaces: [a]}}]}\n${mutate}`,
      /several filters/,
    ],
    [
      "an exclusion by labels",
      `${PODS}\nexclude: {any: [{resources: {selector: {matchLabels: {a: b}}}}]}\n${mutate}`,
      /exclude: /,
    ],
    [
      "other preconditions",
      `${PODS}\npreconditions: {all: [{key: a, operator: Equals, value: b}]}\n${mutate}`,
      /preconditions: /,
    ],
    ["context", `${PODS}\ncontext: [{name: a}]\n${mutate}`, /nothing like context/],
    [
      "variables",
      `${PODS}\nmutate: {patchStrategicMerge: {spec: {nodeSelector: {a: "{{ request.namespace }}"}}}}`,
      /variables/,
    ],
    [
      "other fields",
      `${PODS}\nmutate: {patchStrategicMerge: {spec: {hostNetwork: false}}}`,
      /spec.hostNetwork is not a scheduling criterion/,
    ],
    [
      "other operations",
      `${PODS}\nmutate: {patchesJson6902: '[{"op":"remove","path":"/spec/tolerations"}]'}`,
      /usher only adds/,
    ],
    [
      "further terms of node affinity",
      `${PODS}\nmutate: {patchesJson6902: '[{"op":"add","path":"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-","value":{}}]'}`,
      /adds a term, which is an alternative/,
    ],
    [
      "values that usher refuses",
      `${PODS}\nmutate: {patchStrategicMerge: {spec: {nodeSelector: {"+(a b)": c}}}}`,
      /usher refuses the policy/,
    ],
  ])("%s", async (_name, rule, why) => {
    const { code, policies, err } = await imported("kyverno", kyverno(rule));
    expect({ code, policies }).toEqual({ code: 1, policies: [] });
    expect(err).toMatch(/stdin: ClusterPolicy p, rule r: not converted: /);
    expect(err).toMatch(why);
  });

  test("what is no policy of kyverno", async () => {
    expect(await imported("kyverno", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")).toMatchObject(
      {
        code: 1,
        err: expect.stringContaining("ConfigMap is not a ClusterPolicy or Policy of kyverno.io"),
      },
    );
  });
});

describe("usher import in-tree converts", () => {
  const namespace = (name: string, annotations: object) =>
    `${JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name, annotations } })}\n`;

  test.each(["scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"])(
    "%s of a namespace: pods get it, and a pod that contradicts it is refused",
    async (key) => {
      const { code, out } = await imported("in-tree", namespace("shop", { [key]: "env=prod, disk=" }));
      expect(code).toBe(0);
      expect((await placed(out, {})).nodeSelector).toEqual({ env: "prod", disk: "" });
      expect(await placed(out, { nodeSelector: { env: "test" } })).toBeUndefined();
      expect(await placed(out, {}, {}, "other")).not.toHaveProperty("nodeSelector");
    },
  );

  test("default tolerations of a namespace, beside those of the pod", async () => {
    const { out } = await imported(
      "in-tree",
      namespace("shop", {
        "scheduler.alpha.kubernetes.io/defaultTolerations": '[{"key":"a","operator":"Exists"}]',
      }),
    );
    const own = { key: "b", operator: "Exists" };
    expect((await placed(out, { tolerations: [own] })).tolerations).toEqual([
      own,
      { key: "a", operator: "Exists" },
    ]);
  });

  test("OpenShift's default node selector, but not for namespaces with one of their own", async () => {
    const { out, err } = await imported(
      "in-tree",
      `apiVersion: config.openshift.io/v1\nkind: Scheduler\nmetadata: {name: cluster}\nspec: {defaultNodeSelector: "type=user"}\n---\n${namespace("own", { "openshift.io/node-selector": "" })}`,
    );
    expect(err).toContain("own of the files are left out by name");
    expect((await placed(out, {})).nodeSelector).toEqual({ type: "user" });
    expect(await placed(out, {}, {}, "own")).not.toHaveProperty("nodeSelector");
  });

  test("the configuration of both plugins, and names what refuses pods", async () => {
    const { code, out, err, policies } = await imported(
      "in-tree",
      'podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: "pool=any", team: "pool=a"}\n---\napiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\ndefault: [{key: x, operator: Exists}]\nwhitelist: [{key: x}]\n',
    );
    expect(code).toBe(1);
    expect(policies).toHaveLength(2);
    expect(await placed(out, {})).toMatchObject({
      nodeSelector: { pool: "any" },
      tolerations: [{ key: "x" }],
    });
    expect(err).toMatch(/podNodeSelectorPluginConfig.team: not converted/);
    expect(err).toMatch(/whitelist: not converted/);
  });

  test.each([
    [{ "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "[]" }, /refuses pods by their tolerations/],
    [{ "openshift.io/node-selector": "a in (b)" }, /is not a list of key=value/],
    [{ "scheduler.alpha.kubernetes.io/defaultTolerations": "{" }, /is not a JSON list/],
    [{}, /no namespace has an annotation/],
  ])("and names what it can't: %j", async (annotations, why) => {
    const { code, err } = await imported("in-tree", namespace("shop", annotations));
    expect(code).toBe(1);
    expect(err).toMatch(why);
  });
});
