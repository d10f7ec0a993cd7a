import fc from "fast-check";
import { expect, test } from "vitest";
import { yamlText } from "../../src/cli/output/yaml.ts";
import { readManifests } from "../../src/files/reader/read-documents.ts";
import { recordOf } from "./recorded.ts";
import { EXAMPLES, folder, usher } from "./usher.ts";

const EMIT = (more: readonly string[] = []) => ["review", "-", "--source", EXAMPLES, "--emit", ...more];

/** As kubectl reads it. */
function read(text: string) {
  const { manifests, problems } = readManifests(text);
  expect(problems).toEqual([]);
  return manifests.map(({ value }) => value);
}

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "reports", namespace: "shop", labels: { kind: "batch", enabled: "yes", octal: "0777" } },
  spec: { containers: [{ name: "main", image: "a:1", args: ["no", "1e3", "0x1f", "~", "", "a: b", "# c"] }] },
};

const NOTE = JSON.stringify({
  placement: [
    { policy: "ClusterPodSchedulingPolicy/batch-nights", set: ["/spec/nodeSelector/pool"] },
    { policy: "ClusterPodSchedulingPolicy/zone-a", set: ["/spec/nodeSelector/topology.kubernetes.io~1zone"] },
  ],
});

test("prints the manifest with usher's changes only, without defaults", async () => {
  const { out, code } = await usher(EMIT(), { stdin: JSON.stringify(POD) });
  expect(code).toBe(0);
  expect(read(out)).toEqual([
    {
      ...POD,
      metadata: { ...POD.metadata, annotations: { "usher.dev/provenance": NOTE } },
      spec: { ...POD.spec, nodeSelector: { pool: "batch", "topology.kubernetes.io/zone": "a" } },
    },
  ]);
  // A second review of the output changes nothing.
  const again = await usher(["review", "-", "--source", EXAMPLES], { stdin: out });
  expect(again.out).toMatch(/Pod shop\/reports +allow/);
});

test("several documents stay separate, or a List in JSON; denied objects are skipped and reported", async () => {
  const source = folder({
    "p.yaml": `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: {name: strict}
spec: {failurePolicy: Fail, namespaceSelector: {matchLabels: {a: b}}, podSelector: {matchLabels: {kind: batch}}}
`,
  });
  const free = { ...POD, metadata: { name: "free", namespace: "shop" } };
  const other = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { a: "1" } };
  const stdin = [POD, free, other].map((one) => JSON.stringify(one)).join("\n");
  const yaml = await usher(["review", "-", "--source", source, "--emit"], { stdin });
  expect(read(yaml.out)).toEqual([free, other]);
  expect(yaml.code).toBe(1);
  expect(yaml.err).toMatch(/^skipped, denied: Pod shop\/reports: .*\(USHER-P02\)$/m);
  const json = await usher(["review", "-", "--source", source, "--emit", "-o", "json"], { stdin });
  expect(JSON.parse(json.out)).toEqual({ apiVersion: "v1", kind: "List", items: [free, other] });
});

test("a recorded review prints its object, and a deletion prints nothing", async () => {
  const review = (change: object) => JSON.stringify(recordOf("pods", POD, change));
  const stdin = `${review({})}\n${review({ operation: "DELETE", object: null, oldObject: POD })}`;
  const { out, err } = await usher(EMIT(), { stdin });
  expect(read(out)).toMatchObject([{ kind: "Pod", spec: { nodeSelector: { pool: "batch" } } }]);
  expect(err).toContain("skipped, deleted: Pod shop/reports");
});

test("rejects --trace", async () => {
  expect(await usher(EMIT(["--trace"]))).toMatchObject({ code: 2, out: "" });
});

test("multi-line strings stay blocks", () => {
  expect(yamlText({ data: { script: "set -e\nrun\n" } })).toBe("data:\n  script: |\n    set -e\n    run");
});

test("any string, key or value, survives YAML", () => {
  const odd = fc.constantFrom(
    "y",
    "NO",
    "0o14",
    "1_000",
    "12:30:45",
    "2001-01-01",
    "=",
    "<<",
    "!x",
    "---",
    "-",
    ".5",
    "+1",
    "\t",
    " a",
    "a ",
    "&a",
    "*a",
    "\u2028",
    "|",
    "é",
    "\u0085",
    "null",
    "0b1",
    "1.",
    "...",
    "a\nb\n",
    " a\n b",
    "a\n\n",
    "\n a",
    "a\n ",
    "a\n---\nb",
    "a\r\nb",
    "\n",
    "#a\nb",
    "\ta\n\tb\n",
  );
  const text = fc.oneof(odd, fc.string({ unit: "grapheme", maxLength: 12 }), fc.string({ maxLength: 8 }));
  const key = text.filter((one) => one !== "__proto__");
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      text,
      fc.boolean(),
      fc.integer(),
      fc.constant(null),
      tie("map"),
      fc.array(tie("any"), { maxLength: 3 }),
    ),
    map: fc.dictionary(key, tie("any"), { maxKeys: 4, noNullPrototype: true }),
  })).map;
  fc.assert(
    fc.property(value, (one) => {
      const object = { kind: "Thing", data: one };
      expect(read(yamlText(object))).toEqual([object]);
    }),
    { numRuns: 300 },
  );
});
