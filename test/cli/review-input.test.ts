import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXAMPLES, folder, reviewed, reviewedOne, usher } from "./usher.ts";

const SOURCE = ["--source", EXAMPLES];
const POD = (name: string) =>
  `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n  namespace: shop\n  labels: {kind: batch}\n`;
const ALSO = `---\n${POD("fine")}`;

describe("unreadable input is reported with its position, and the rest is evaluated", () => {
  test.each<[string, string | Buffer, RegExp]>([
    [
      "a duplicate key",
      `apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  name: b\n`,
      /^in\.yaml:5:3: duplicate key "name"$/m,
    ],
    ["a tab", "kind: Pod\nmetadata:\n\tname: a\n", /^in\.yaml:3:\d+: /m],
    ["a text", "hello\n", /^in\.yaml:1:1: not a Kubernetes object/m],
    ["a list", "- a\n", /^in\.yaml:1:1: not a Kubernetes object/m],
    ["no kind", "apiVersion: v1\nmetadata: {name: a}\n", /^in\.yaml:1:1: kind: is required/m],
    ["no apiVersion", "kind: Pod\nmetadata: {name: a}\n", /^in\.yaml:1:1: apiVersion: is required/m],
    [
      "no name",
      "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n",
      /^in\.yaml:3:1: metadata\.name: is required/m,
    ],
    [
      "a name that is a number",
      "apiVersion: v1\nkind: Pod\nmetadata: {name: 7}\n",
      /^in\.yaml:3:18: metadata\.name: must be a string, got 7$/m,
    ],
    [
      "a kind that is a list",
      "apiVersion: v1\nkind: [Pod]\nmetadata: {name: a}\n",
      /^in\.yaml:2:\d+: kind: must be a string/m,
    ],
    [
      "a label that YAML takes for a boolean",
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {on: x, a: yes}}\n",
      /metadata\.labels\.a: must be a string, got true$/m,
    ],
    [
      "a template's label that is a number",
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    metadata: {labels: {app: 1}}\n",
      /^in\.yaml:6:30: spec\.template\.metadata\.labels\.app: must be a string, got 1$/m,
    ],
    [
      "a spec that is a string",
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: none\n",
      /^in\.yaml:4:1: spec: must be a map/m,
    ],
    ["a List without items", "apiVersion: v1\nkind: List\nitems: 5\n", /^in\.yaml:1:1: List without items/m],
    [
      "an alias bomb",
      `a: &a [x, x, x, x, x, x, x, x, x, x]\n${"bcdefgh"
        .split("")
        .map((c, i) => `${c}: &${c} [${Array(10).fill(`*${"abcdefgh"[i]}`).join()}]`)
        .join("\n")}\n`,
      /aliases expand to more than/,
    ],
    [
      "depth",
      `apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: ${"[".repeat(3_000)}${"]".repeat(3_000)}\n`,
      /^in\.yaml:4:\d+: is nested more than 512 levels deep/m,
    ],
  ])("%s", async (_, wrong, message) => {
    const directory = folder({ "in.yaml": `${wrong}${ALSO}` });
    const { results, code, err } = await reviewed([join(directory, "in.yaml"), ...SOURCE]);
    expect(err.replaceAll(`${directory}/`, "")).toMatch(message);
    expect(err).toMatch(/^ +\d+ \| /m);
    expect(err).not.toMatch(/^ +at |\.ts:\d/m);
    expect(results.map(({ object }) => object.name)).toEqual(["fine"]);
    expect(code).toBe(2);
  });

  test.each<[string, Buffer, RegExp]>([
    ["random bytes", Buffer.from([0x80, 0xff, 0, 1, 2, 0xc3, 0x28]), /bad\.yaml:1:1: invalid UTF-8/],
    [
      "UTF-16",
      Buffer.from("\ufeffkind: Pod", "utf16le"),
      /bad\.yaml:1:1: the file is UTF-16; save it as UTF-8/,
    ],
    [
      "control characters",
      Buffer.from("kind: Pod\nname: \u0007"),
      /bad\.yaml:2:7: control character U\+0007/,
    ],
    ["too large", Buffer.alloc(64 * 1024 * 1024 + 1, "#"), /bad\.yaml: is larger than 64 MiB/],
  ])("a file of %s", async (_, bytes, message) => {
    const directory = folder({ "bad.yaml": bytes, "good.yaml": POD("fine") });
    const { results, code, err } = await reviewed([directory, ...SOURCE]);
    expect(err).toMatch(message);
    expect(results.map(({ object }) => object.name)).toEqual(["fine"]);
    expect(code).toBe(2);
  });

  test("a missing file is reported", async () => {
    const directory = folder({ "good.yaml": POD("fine") });
    const names = [join(directory, "good.yaml"), join(directory, "none.yaml"), ...SOURCE];
    const { results, code, err } = await reviewed(names);
    expect(err).toMatch(/none\.yaml: does not exist\n$/);
    expect(results).toHaveLength(1);
    expect(code).toBe(2);
  });

  test("limits the number of problems shown", async () => {
    const { err, code } = await usher(["review", "-", ...SOURCE], { stdin: "hello\n---\n".repeat(300) });
    expect(err.match(/not a Kubernetes object/g)).toHaveLength(20);
    expect(err).toContain("stdin: and 280 more problems");
    expect(code).toBe(2);
  });
});

test.each([
  ["an empty file", ""],
  ["only comments", "# a\n---\n# b\n"],
  ["an empty List", "apiVersion: v1\nkind: List\nitems: []\n"],
])("%s has no objects", async (_, stdin) => {
  const { code, out, err } = await usher(["review", "-", ...SOURCE], { stdin });
  expect(err).toMatch(/^usher: stdin: no objects found/);
  expect(out).toBe("");
  expect(code).toBe(2);
});

test("byte order marks, CRLF, comments between documents and JSON streams are accepted", async () => {
  const windows = `\ufeff${POD("a")}---\r\n# nothing\r\n---\r\n${POD("b")}`.replaceAll(/\r?\n/g, "\r\n");
  const { results, code, err } = await reviewed(["-", ...SOURCE], windows);
  expect(err).toBe("");
  expect(code).toBe(0);
  expect(results.map(({ object, patch }) => [object.name, patch.length > 0])).toEqual([
    ["a", true],
    ["b", true],
  ]);
  const json = (name: string) => JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name } });
  expect((await reviewed(["-", ...SOURCE], `${json("a")}\n${json("b")}`)).results).toHaveLength(2);
});

test("the items of a List are evaluated, each with its own position", async () => {
  const list = `apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- 5\n- apiVersion: v1\n  kind: Pod\n  metadata: {}\n`;
  const { results, err, code } = await reviewed(["-", ...SOURCE], list);
  expect(results.map(({ object }) => object.name)).toEqual(["a"]);
  expect(err).toContain("stdin:7:3: not a Kubernetes object");
  expect(err).toContain("stdin:10:3: metadata.name: is required");
  expect(code).toBe(2);
});

test("directories are read recursively, following links, without hidden files, in order", async () => {
  const directory = folder({
    "b.yaml": POD("b"),
    "a/1.yml": POD("a1"),
    "c.json": JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "c" } }),
    "notes.txt": "no manifest",
    ".hidden.yaml": "broken: [",
  });
  symlinkSync(join(folder({ "target.yaml": POD("linked") }), "target.yaml"), join(directory, "link.yaml"));
  const { results, code } = await reviewed([`${directory}/`, ...SOURCE]);
  expect(results.map(({ object }) => object.name)).toEqual(["a1", "b", "c", "linked"]);
  expect(code).toBe(0);
  const none = await usher(["review", folder({ "notes.txt": "x" }), ...SOURCE]);
  expect(none.err).toMatch(/no \.yaml, \.yml or \.json files found/);
  expect(none.code).toBe(2);
});

test("keys such as __proto__ are ordinary keys", async () => {
  const stdin = `apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: shop
  __proto__: {labels: {kind: batch}}
  labels: {constructor: x, __proto__: z}
spec: {__proto__: {nodeSelector: {pool: evil}}, containers: []}
`;
  const { changes } = await reviewedOne(["-", ...SOURCE], stdin);
  // The label that would make batch-nights apply is not one of the pod's.
  expect(changes.map(({ policy }) => policy)).toEqual(["zone-a"]);
  const { out } = await usher(["review", "-", ...SOURCE, "--emit"], { stdin });
  expect(out).toContain("__proto__:\n    labels:\n      kind: batch\n");
  expect(out).toContain("pool: evil");
});

test("-f works as in kubectl, and standard input can be read only once", async () => {
  const directory = folder({ "a.yaml": POD("a"), "b.yaml": POD("b") });
  const files = ["-f", join(directory, "a.yaml"), "-f", join(directory, "b.yaml")];
  expect((await reviewed([...files, ...SOURCE])).results).toHaveLength(2);
  const twice = await usher(["review", "-", "-f", "-", ...SOURCE], { stdin: POD("a") });
  expect(twice).toMatchObject({ code: 2, err: expect.stringContaining("once") });
});

test.each([
  ["v1", "Deployment", "v1 has no kind Deployment; use apps/v1"],
  ["apps/v1", "Deploymnt", 'apps/v1 has no known kind Deploymnt; did you mean "Deployment"?'],
  ["apps/v2", "Deployment", "Deployment is evaluated only as apps/v1"],
  ["batch/v2", "CronJob", "a review does not convert batch/v2; write apiVersion: batch/v1"],
  [
    "apps/v1beta1",
    "Deployment",
    "no apps/v1beta1 Deployment since Kubernetes 1.16; write apiVersion: apps/v1",
  ],
  ["batch/v1beta1", "CronJob", "no batch/v1beta1 CronJob since Kubernetes 1.25; write apiVersion: batch/v1"],
])("%s %s passes with a hint", async (apiVersion, kind, hint) => {
  const stdin = `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: a}\n`;
  const { err, code } = await reviewed(["-", ...SOURCE], stdin);
  expect(err).toContain(hint);
  expect(code).toBe(0);
});
