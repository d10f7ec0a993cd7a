import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nameFrom } from "../../src/cli/io.ts";
import { CORE_CODES, codesOf } from "../../src/core/module/codes.ts";
import { modules } from "../../src/modules/all.ts";
import { ended, folder, ROOT, start, usher } from "./usher.ts";

const COMMANDS = ["serve", "review", "manifests", "watchdog", "placement", "version", "help"];

test("the bare name, help and --help print the same, on stdout", async () => {
  const [bare, help, flag] = await Promise.all([usher([]), usher(["help"]), usher(["--help"])]);
  expect(bare).toMatchObject({ code: 0, err: "" });
  expect(help).toEqual(bare);
  expect(flag).toEqual(bare);
  for (const command of COMMANDS) expect(bare.out).toContain(`\n  ${command} `);
  expect(bare.out).toContain("Exit codes: 0 success, 1 found something, 2 ");
});

test.each(COMMANDS)("help %s prints the same as --help, with examples", async (command) => {
  const help = await usher(["help", command]);
  expect(help).toMatchObject({ code: 0, err: "" });
  expect(await usher([command, "--help"])).toEqual(help);
  expect(help.out).toMatch(new RegExp(`^Usage: usher ${command} `));
  if (command !== "help") expect(help.out).toMatch(/\nExamples?:\n {2}usher /);
  // Descriptions fit a terminal of 80 columns.
  for (const line of help.out.split("\n").filter((one) => !/usher \w/.test(one)))
    expect(line.length).toBeLessThanOrEqual(80);
});

test("the name of a group alone prints its help, as the bare name does", async () => {
  for (const group of ["placement", "node-labels"]) {
    const bare = await usher([group]);
    expect(bare).toMatchObject({ code: 0, err: "" });
    expect(bare).toEqual(await usher([group, "--help"]));
    expect(bare).toEqual(await usher(["help", group]));
  }
});

test("help takes the name of a command inside a group", async () => {
  for (const path of [
    ["placement", "status"],
    ["placement", "reapply"],
    ["node-labels", "plan"],
  ])
    expect(await usher(["help", ...path])).toEqual(await usher([...path, "--help"]));
});

test.each([
  [["help", "placement", "stauts"], 'unknown command usher placement stauts; did you mean "status"?'],
  [["placement", "stauts"], 'unknown command usher placement stauts; did you mean "status"?'],
  [["placement", "x"], "unknown command usher placement x; known: status, reapply"],
  [
    ["placement", "stauts", "--source", "x"],
    'unknown command usher placement stauts; did you mean "status"?',
  ],
  [["placement", "--sauce"], "unknown option '--sauce'"],
  [["help", "review", "x"], "unknown command usher review x\n"],
])("%j is wrong", async (args, message) => {
  const { code, out, err } = await usher(args);
  expect(err).toContain(message);
  expect(out).toBe("");
  expect(code).toBe(2);
});

test("explains every code, in any spelling", async () => {
  const codes = codesOf(modules);
  expect(codes.length).toBeGreaterThan(CORE_CODES.length);
  for (const { code, title } of codes) {
    const { out, code: exit } = await usher(["help", code]);
    expect(out).toMatch(new RegExp(`^${code}: `));
    expect(out).toContain(title);
    expect(out).toContain("What to do: ");
    expect(exit).toBe(0);
    expect((await usher(["help", code.toLowerCase()])).out).toBe(out);
    expect((await usher(["help", code.replace("USHER-", "")])).out).toBe(out);
    expect((await usher(["help", "codes"])).out).toContain(`${code}  ${title}\n`);
  }
});

test.each([
  ["reviw", 'unknown command reviw; did you mean "review"?'],
  ["USHER-Z99", 'unknown code USHER-Z99; "usher help codes" lists all\n'],
  ["USHER-P99", 'unknown code USHER-P99; "usher help codes" lists all, such as:\n  USHER-P01  '],
  [
    "seating",
    "known topics: serve, dashboard, review, test, lint, compile, diff, what-if, explain, replay, manifests, install, uninstall, cleanup, verify, watchdog, operator, placement, ",
  ],
])("help %s", async (topic, message) => {
  const { code, out, err } = await usher(["help", topic]);
  expect(err).toContain(message);
  expect(out).toBe("");
  expect(code).toBe(2);
});

test("version prints the same, and as JSON", async () => {
  const { out } = await usher(["--version"]);
  expect(await usher(["version"])).toEqual({ code: 0, out, err: "" });
  expect(JSON.parse((await usher(["version", "-o", "json"])).out)).toEqual({ version: out.trim() });
});

test("--version is one line", async () => {
  expect(await usher(["--version"])).toEqual({
    code: 0,
    out: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/),
    err: "",
  });
});

test.each([
  ["/usr/local/bin/usher", "usher"],
  ["/home/a/.krew/bin/kubectl-usher", "kubectl usher"],
  ["kubectl-usher", "kubectl usher"],
  ["C:\\bin\\kubectl-usher.mjs", "kubectl usher"],
  ["/src/cli/main.ts", "usher"],
  ["/kubectl-usher/main.ts", "usher"],
])("called as %s it prints %s", (path, name) => {
  expect(nameFrom(path)).toBe(name);
});

test("bin/usher runs from any directory, through links, and as kubectl's plugin", async () => {
  const directory = folder({});
  symlinkSync(join(ROOT, "bin/usher"), join(directory, "usher"));
  symlinkSync("usher", join(directory, "kubectl-usher"));
  const [plain, plugin] = await Promise.all(
    ["usher", "kubectl-usher"].map((name) =>
      ended(start(join(directory, name), ["review", "--help"], { cwd: directory })),
    ),
  );
  expect(plain).toMatchObject({ code: 0, out: expect.stringMatching(/^Usage: usher review /) });
  expect(plugin).toMatchObject({ code: 0, out: expect.stringMatching(/^Usage: kubectl usher review /) });
  expect(plugin?.out).toContain("  kubectl usher review examples/pods/etcd.yaml --source ");
});
