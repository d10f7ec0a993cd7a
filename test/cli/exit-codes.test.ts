import { join } from "node:path";
import { Readable } from "node:stream";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { program as commandLine } from "../../src/cli/program.ts";
import { run } from "../../src/cli/run.ts";
import { declarations } from "../../src/modules/index.ts";
import { EXAMPLES, folder, MAIN, program, ROOT, start, usher } from "./usher.ts";

const PODS = join(ROOT, "examples/pods/etcd.yaml");
const FORMATS = ["table", "json", "yaml"];

const BAD_POLICY = `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: PodSchedulingPolicy
metadata: {name: bad, namespace: shop}
spec:
  podSelector: {}
  priority: ten
`;

test.each(FORMATS)("exit codes 0, 1 and 2 do not depend on -o %s", async (format) => {
  const directory = folder({
    "refused.yaml": BAD_POLICY,
    "broken.yaml": "kind: [",
    "source/policies.yaml": BAD_POLICY,
    "source/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
  });
  const code = async (...args: string[]) => (await usher(["review", ...args, "-o", format])).code;
  expect(await code(PODS, "--source", EXAMPLES)).toBe(0);
  expect(await code(join(directory, "refused.yaml"), "--source", EXAMPLES)).toBe(1);
  expect(await code(join(directory, "broken.yaml"), "--source", EXAMPLES)).toBe(2);
  // Unreadable input outweighs denials.
  expect(await code(directory, "--source", EXAMPLES)).toBe(2);
  expect(await code(PODS, "--source", join(directory, "source"))).toBe(2);
});

test("a problem in the source is reported with its position, and the rest is used", async () => {
  const source = folder({
    "policies.yaml": `${BAD_POLICY}---
apiVersion: kupid.gardener.cloud/v1alpha1
kind: PodSchedulingPolicy
metadata: {name: good, namespace: shop}
spec: {podSelector: {}, nodeSelector: {pool: good}}
`,
  });
  const { out, err, code } = await usher(["review", PODS, "--source", source]);
  expect(out).toMatch(/StatefulSet shop\/etcd-main +patch +\+ nodeSelector pool=good +shop\/good/);
  expect(err).toContain(`${source}/policies.yaml:7:13: spec.priority: must be an integer, got "ten"`);
  expect(err).toContain("   7 |   priority: ten\n     |             ^^^\n");
  expect(code).toBe(2);
});

test.each([
  [["review", PODS], /^usher: no kubeconfig found: .*--source/],
  [["install"], /^usher: no kubeconfig found: set KUBECONFIG, or pass --kubeconfig\n$/],
  [["uninstall"], /^usher: no kubeconfig found: set KUBECONFIG, or pass --kubeconfig\n$/],
  [["cleanup"], /^usher: no kubeconfig found: set KUBECONFIG, or pass --kubeconfig\n$/],
  [["verify"], /^usher: no kubeconfig found: set KUBECONFIG, or pass --kubeconfig\n$/],
  [["watchdog"], /^usher: no kubeconfig found: set KUBECONFIG, or pass --kubeconfig\n$/],
  [
    ["review", "README.md", "--source", EXAMPLES],
    /^README\.md: not YAML or JSON \(line \d+: .*\); specify \.yaml, \.yml or \.json files\n$/,
  ],
  [["nosuch"], /^usher: unknown command 'nosuch'\nAdd --help to see the usage\.\n$/],
  [["diff", "policy.yaml"], /^usher: too many arguments .*\nAdd --help/],
  [["review", "--source", EXAMPLES], /^usher: specify files or directories/],
  [["review", PODS, "--source", "/does/not/exist"], /^usher: --source \/does\/not\/exist: no such/],
  [["review", PODS, "--source", EXAMPLES, "-n", "Shop!"], /^usher: --namespace: "Shop!" is not a DNS label/],
  [
    ["review", PODS, "--source", EXAMPLES, "-o", "xml"],
    /^usher: .*Allowed choices are table, wide, json, yaml/,
  ],
  [
    ["review", PODS, "--source", EXAMPLES, "--operation", "DELETE"],
    /^usher: .*Allowed choices are CREATE, UPDATE/,
  ],
  [["review", PODS, "--sorce", EXAMPLES], /^usher: unknown option '--sorce'\n\(Did you mean --source\?\)/],
  [["reviw", PODS], /^usher: unknown command 'reviw'\n\(Did you mean review\?\)/],
  [["serve", "--kubeconfig", "/no/such/file"], /no\/such\/file/],
  [["serve", "--source", "/does/not/exist"], /^usher: --source \/does\/not\/exist: no such/],
  [
    ["serve", "--source", EXAMPLES, "--kubeconfig", "/no/such/file"],
    /^usher: --kubeconfig can't be combined with --source.*add --cluster/,
  ],
  [
    ["serve", "--source", EXAMPLES, "--context", "staging"],
    /^usher: --context can't be combined with --source/,
  ],
  [
    ["serve", "--source", EXAMPLES, "--cluster", "--operate"],
    /^usher: --operate and --source are mutually exclusive/,
  ],
  [["serve", "--source", EXAMPLES, "--cluster", "--kubeconfig", "/no/such/file"], /no\/such\/file/],
  [["serve", "--source", EXAMPLES, "--port", "70000"], /^usher: option '--port <n>'.*0 to 65535/],
  [["serve", "--source", EXAMPLES, "--drain-seconds", "-1"], /^usher: option '--drain-seconds <n>'/],
  [
    ["serve", "--source", EXAMPLES, "--tls-cert", "x"],
    /^usher: --tls-cert and --tls-key must be specified together/,
  ],
  [
    ["serve", "--source", EXAMPLES, "--tls-cert", "/no/x", "--tls-key", "/no/y"],
    /^usher: can't read the (certificate|key) \/no\//,
  ],
  [["serve", "--source", EXAMPLES, "--client-ca", PODS], /^usher: --client-ca .*: not a PEM certificate/],
  [["manifests", "--webhooks", "--ca-bundle", "/no/x"], /^usher: --ca-bundle \/no\/x: does not exist/],
  [["manifests", "--feature-gates", "Nothing=true"], /^usher: feature gate "Nothing" is not known/],
  [
    ["manifests", "--operator", "placement"],
    /^usher: placement has no operand to keep; these have: project-limit/,
  ],
  [["manifests", "--operator", "project-limit", "--replicas", "3"], /^usher: --operator takes --image alone/],
  [["operator", "placement"], /^usher: placement has no operand to keep/],
  [
    ["operator", "project-limit"],
    /^usher: set RELATED_IMAGE_PROJECT_REQUEST_LIMIT_ADMISSION to the operand's image/,
  ],
])("invalid arguments exit with 2, a message and empty stdout: %j", async (args, message) => {
  const { code, out, err } = await usher(args);
  expect(err).toMatch(message);
  expect(err).not.toMatch(/^ +at /m);
  expect(out).toBe("");
  expect(code).toBe(2);
});

/** Every command with its full name. */
function* commandsOf(command: Command, path: readonly string[] = []): Iterable<[string[], Command]> {
  yield [[...path], command];
  for (const one of command.commands) yield* commandsOf(one, [...path, one.name()]);
}

test("a single-value flag that is given twice is an error, in every command", async () => {
  const io = { name: "usher", modules: declarations } as unknown as Parameters<typeof commandLine>[0];
  const repeated = new Set<string>();
  let seen = 0;
  for (const [path, { options }] of commandsOf(commandLine(io, { code: 0 })))
    for (const option of options) {
      if (option.long === "--version") continue;
      if (/may be repeated/.test(option.description)) {
        repeated.add(option.long ?? "");
        continue;
      }
      const value = option.required ? [option.argChoices?.[0] ?? "1"] : [];
      const once = [option.long ?? "", ...value];
      for (const again of [once, ...(option.short ? [[option.short, ...value]] : [])]) {
        const { code, out, err } = await usher([...path, ...once, ...again]);
        expect([path, code, out, err]).toEqual([
          path,
          2,
          "",
          `usher: option '${option.flags}' is given twice, and counts once\nAdd --help to see the usage.\n`,
        ]);
      }
      seen++;
    }
  expect(seen).toBeGreaterThan(150);
  expect([...repeated].sort()).toEqual([
    "--as-group",
    "--cordon",
    "--filename",
    "--kustomize",
    "--pod-label",
    "--remove",
    "--source",
  ]);
});

test("--source may be given twice: both are read", async () => {
  const policy = BAD_POLICY.replace("ten", "10").replace("priority", "nodeSelector: {pool: web}\n  priority");
  const a = folder({ "policy.yaml": policy });
  const b = folder({ "ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n" });
  const pod = { stdin: "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {}\n" };
  const both = await usher(["review", "-", "--source", a, "--source", `${b}/ns.yaml`], pod);
  expect(both).toMatchObject({ code: 0, err: "" });
  expect(both.out).toContain("nodeSelector pool=web");
  const copy = folder({ "copy.yaml": policy });
  const twice = await usher(["review", "-", "--source", a, "--source", b, "--source", copy], pod);
  expect(twice.code).toBe(2);
  expect(twice.err).toMatch(/(policy|copy).yaml:4:18: .* is defined in /);
  expect(await usher(["review", "-", "--source", a, "--source", "/does/not/exist"], pod)).toMatchObject({
    code: 2,
    err: "usher: --source /does/not/exist: no such file or directory\n",
  });
});

test("an object in two sources counts from the first, and both places are named", async () => {
  const policy = (pool: string) =>
    BAD_POLICY.replace("ten", "10").replace("priority", `nodeSelector: {pool: ${pool}}\n  priority`);
  const root = folder({ "a/policy.yaml": policy("a"), "b/policy.yaml": policy("b") });
  const pod = { stdin: "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {}\n" };
  for (const [first, second] of [
    ["a", "b"],
    ["b", "a"],
  ]) {
    const args = ["--source", `${root}/${first}/`, "--source", `${root}/${second}`];
    const { code, out, err } = await usher(["review", "-", ...args], pod);
    expect(out, err).toContain(`nodeSelector pool=${first}`);
    expect(err).toMatch(
      new RegExp(`/${second}/policy.yaml:4:18: .* is defined in .*/${first}/policy.yaml:4:18 already`),
    );
    expect(code).toBe(2);
  }
});

test("an internal error exits with 3", async () => {
  let err = "";
  const stdout = {
    write: () => {
      throw new TypeError("boom");
    },
  };
  const io = {
    stdin: Readable.from([]),
    stdout,
    stderr: { write: (part: string) => (err += part) },
    env: {},
    modules: declarations,
    name: "usher",
  };
  expect(await run(["review", PODS, "--source", EXAMPLES, "-q"], io)).toBe(3);
  expect(err).toMatch(/^usher: internal error, please report it: TypeError: boom/);
});

test("the real program: exit code, streams, and a closed pipe", async () => {
  const [fine, wrong, cut] = await Promise.all([
    program(
      ["review", "-", "--source", EXAMPLES, "-o", "json"],
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: lab}\n",
    ),
    program(["reviw"]),
    headOf(["manifests", "-q"]),
  ]);
  expect(JSON.parse(fine.out)).toMatchObject({ summary: { allowed: 1, denied: 0, patched: 0 } });
  expect(fine).toMatchObject({ code: 0, err: "" });
  expect(wrong).toMatchObject({ code: 2, out: "" });
  expect(cut).toEqual({ code: 0, err: "" });
});

/** Closes the pipe before anything is written to it. */
async function headOf(args: readonly string[]): Promise<{ code: number | null; err: string }> {
  const child = start(process.execPath, [MAIN, ...args]);
  child.stdout.destroy();
  let err = "";
  child.stderr.on("data", (part: Buffer) => (err += part.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, err };
}
