// Commands that a module declares, run through the real command line.
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { Command, CommandGroup } from "../../src/core/module/command.ts";
import { declarations as all } from "../../src/modules/index.ts";
import { declarations } from "../support/modules/tenancy/declaration.ts";
import { folder, usher } from "./usher.ts";

const tenancy = (args: readonly string[], stdin = "") =>
  usher(["tenancy", ...args], { modules: declarations, stdin });

const CLUSTER = [
  ...["shop", "lab"].map((name) => `{ apiVersion: v1, kind: Namespace, metadata: { name: ${name} } }`),
  "{ apiVersion: v1, kind: Namespace, metadata: { name: home, annotations: { tenancy.usher.dev/owner: alice } } }",
  ...["a", "b", "c"].map(
    (name) =>
      `{ apiVersion: v1, kind: Pod, metadata: { name: ${name}, namespace: shop }, spec: { containers: [{ name: c, image: i }] } }`,
  ),
].join("\n---\n");

const report = (...args: string[]) =>
  tenancy(["report", "--source", folder({ "cluster.yaml": CLUSTER }), ...args]);

test("help lists commands and groups, with arguments, flags, examples and exit codes", async () => {
  const top = await usher(["--help"], { modules: declarations });
  expect(top.out).toMatch(/\n {2}tenancy +made for a test\n/);
  const group = await tenancy(["--help"]);
  for (const line of ["import [options] <file>", "backfill [options] <file>", "report [options]", "override"])
    expect(group.out).toContain(`\n  ${line} `);
  expect(group.out).toContain("\nExamples:\n  usher tenancy import tenants.yaml\n");
  const { out, code } = await tenancy(["report", "--help"]);
  expect(code).toBe(0);
  expect(out).toMatch(/--sort <key> +order of the rows \(choices: "name", "pods",\s+default:/);
  expect(out).toMatch(/--min-pods <n> +leave out smaller namespaces \(default: 0\)/);
  expect(out).toMatch(/-u, --owner <user> +only namespaces of this user; may be repeated/);
  expect(out).toContain("--source <dir>");
  expect(out).toContain("--cluster");
  expect(out).toContain("Examples:\n  usher tenancy report --source cluster/ --sort pods\n");
  expect(out).toMatch(/Exit codes: 0 all namespaces have an owner, 1 some have none,\s2 /);
  const backfill = await tenancy(["backfill", "--help"]);
  expect(backfill.out).toContain("--apply ");
  expect(backfill.out).not.toContain("--source");
  const grant = await tenancy(["override", "grant", "--help"]);
  expect(grant.out).toMatch(/^Usage: usher tenancy override grant /);
  expect(grant.out).toContain("--dry-run ");
  expect(grant.out).toContain("-A, --all-namespaces ");
});

test("a report as table, JSON and YAML, with the same exit code", async () => {
  const table = await report();
  expect(table).toEqual({
    code: 1,
    out: [
      "NAMESPACE   OWNER   PODS",
      "home        alice   0",
      "lab         -       0",
      "shop        -       3",
      "",
      "3 namespaces, 2 without an owner",
      "",
    ].join("\n"),
    err: "Run backfill to set owners.\n",
  });
  const json = await report("-o", "json");
  const yaml = await report("-o", "yaml");
  expect(parse(yaml.out)).toEqual(JSON.parse(json.out));
  expect([json.code, yaml.code, json.err, yaml.err]).toEqual([1, 1, table.err, table.err]);
  expect((await report("-q")).err).toBe("");
});

test("lists are fed page by page", async () => {
  const pods = Array.from(
    { length: 7 },
    (_, i) =>
      `{ apiVersion: v1, kind: Pod, metadata: { name: p${i}, namespace: shop }, spec: { containers: [{ name: c, image: i }] } }`,
  );
  const source = folder({ "cluster.yaml": [CLUSTER, ...pods].join("\n---\n") });
  const { out } = await tenancy(["report", "--source", source, "-o", "json"]);
  expect(JSON.parse(out)).toMatchObject({
    namespaces: [{ pods: 0 }, { pods: 0 }, { name: "shop", pods: 10 }],
    pages: 5,
  });
});

test.each<[string[], string[]]>([
  [
    ["--sort", "pods"],
    ["shop", "lab", "home"],
  ],
  [["--min-pods", "1"], ["shop"]],
  [["-u", "alice", "--owner", "bob"], ["home"]],
  [["--unowned"], ["lab", "shop"]],
])("flags %j", async (args, names) => {
  const { out } = await report(...args, "-o", "json");
  const found = (JSON.parse(out) as { namespaces: { name: string }[] }).namespaces.map(({ name }) => name);
  expect(found.toSorted()).toEqual(names.toSorted());
  if (args[0] === "--sort") expect(found[0]).toBe(names[0]);
});

test("a file argument is read and parsed, from a path or standard input", async () => {
  const text = "users: [alice, bob]\n";
  const file = `${folder({ "tenants.yaml": text })}/tenants.yaml`;
  const fromFile = await tenancy(["import", file]);
  expect(parse(fromFile.out)).toEqual({
    apiVersion: "tenancy.usher.dev/v1",
    kind: "Tenancy",
    spec: { users: ["alice", "bob"] },
  });
  expect(await tenancy(["import", "-"], text)).toEqual(fromFile);
  expect(JSON.parse((await tenancy(["import", file, "-o", "json"])).out)).toEqual(parse(fromFile.out));
});

test.each<[string, string[], string, string]>([
  ["a missing file", ["import", "/no/such.yaml"], "", "/no/such.yaml: does not exist"],
  ["a file that is not YAML", ["import", "-"], "a: [", "stdin:1:"],
  ["input that the command rejects", ["import", "-"], "a: 1\n---\nb: 1\n", "stdin: must be one document"],
  ["input that the check rejects", ["backfill", "-"], "\n", "stdin: no lines"],
  ["a missing argument", ["import"], "", "missing required argument 'file'"],
  ["a choice", ["report", "--sort", "size"], "", "Allowed choices are name, pods"],
  ["an integer", ["report", "--min-pods", "-1"], "", "It must be an integer from 0 to 1000."],
  ["an unknown flag", ["report", "--sorted"], "", "Did you mean --sort?"],
  ["an unknown command", ["rport"], "", 'did you mean "report"?'],
  ["a format that is not offered", ["import", "-", "-o", "table"], "", "Allowed choices are yaml, json"],
  [
    "no source",
    ["report"],
    "",
    "no kubeconfig found: set KUBECONFIG, or pass --kubeconfig; or read files with --source",
  ],
  ["no kubeconfig", ["backfill", "-", "--kubeconfig", "/no/such"], "shop,alice\n", "no such file"],
])("%s is exit code 2, with nothing on stdout", async (_, args, stdin, message) => {
  const { code, out, err } = await tenancy(args, stdin);
  expect(err).toContain(message);
  expect(code).toBe(2);
  expect(out).toBe("");
});

test("a source that could not be read completely is exit code 2, and the rest is reported", async () => {
  const source = folder({ "cluster.yaml": CLUSTER, "broken.yaml": "a: [" });
  const { code, out } = await tenancy(["report", "--source", source]);
  expect(code).toBe(2);
  expect(out).toContain("3 namespaces");
});

test("every command of every module prints its notes on stderr, in every format", async () => {
  const data = { a: 1 };
  const reports = [{ data }, { data, manifests: [data] }, { data, table: { columns: ["A"], rows: [["1"]] } }];
  let calls = 0;
  for (const report of reports) {
    const result = { ...report, notes: ["a note"], exit: "fine" as const };
    const withNotes = (command: Command): Command => {
      const { source: _source, ...rest } = command;
      return { ...rest, load: async () => ({ run: () => result }) };
    };
    const modules = all.map((module) => ({
      ...module,
      commands: (module.commands ?? []).map((group) => mapCommands(group, withNotes)),
    }));
    for (const { commands = [] } of modules)
      for (const { path, command } of commands.flatMap((group) => commandsOf(group))) {
        const args = Object.values(command.args ?? {}).map(({ file }) => (file === undefined ? "a" : "-"));
        for (const format of command.formats) {
          const given = [...path, ...args, "-o", format];
          const { err, code } = await usher(given, { modules, stdin: "{}" });
          expect({ given, err, code }).toEqual({ given, err: "a note\n", code: 0 });
          calls += 1;
        }
        expect((await usher([...path, ...args, "-q"], { modules, stdin: "{}" })).err).toBe("");
      }
  }
  expect(calls).toBeGreaterThan(3 * all.length);
});

type Named = { readonly path: readonly string[]; readonly command: Command };

function commandsOf(group: CommandGroup, above: readonly string[] = []): Named[] {
  const path = [...above, group.name];
  return group.commands.flatMap((one) =>
    "commands" in one ? commandsOf(one, path) : [{ path: [...path, one.name], command: one }],
  );
}

function mapCommands(group: CommandGroup, change: (command: Command) => Command): CommandGroup {
  return {
    ...group,
    commands: group.commands.map((one) => ("commands" in one ? mapCommands(one, change) : change(one))),
  };
}
