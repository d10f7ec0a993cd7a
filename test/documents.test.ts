import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { usher } from "./cli/usher.ts";

/** Every command and manifest in the documents is executed here, so that they stay correct. */
const root = join(import.meta.dirname, "..");
const moduleGuides = readdirSync(join(root, "src", "modules"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `src/modules/${name}/README.md`);
const documents = [
  "README.md",
  ...moduleGuides,
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

/** The blocks of a document with this word after the fence. */
function blocks(file: string, info: string): string[] {
  const found = read(file).matchAll(new RegExp(`^\`\`\`${info}\n([\\s\\S]*?)^\`\`\``, "gm"));
  return [...found].map((match) => match[1] ?? "");
}

/** Lines that begin with `$ `, each with its documented output. */
function commands(file: string): { command: string; prints: string }[] {
  return blocks(file, "console").flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const [command = "", ...prints] = part.split("\n");
        return { command, prints: prints.join("\n").trimEnd() };
      }),
  );
}

const PATH = `${join(root, "bin")}:${join(root, "node_modules", ".bin")}:${process.env["PATH"] ?? ""}`;

const everything = documents.flatMap((file) => commands(file).map((one) => ({ file, ...one })));
const starts = (command: string) => /^npm start|usher (?:serve|dashboard)/.test(command);
const calls = (command: string) => command.startsWith("curl");

function shell(command: string): Printed {
  return spawnSync("sh", ["-c", command], { cwd: root, encoding: "utf8", env: { ...process.env, PATH } });
}

interface Printed {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
}

/** The words after `usher`, if a shell would only split the line. */
function wordsOf(command: string): string[] | undefined {
  const [, words] = /^(?:bin\/)?usher ([^|&;<>$`*?~\\]*)$/.exec(command.replace(/ \|\| true$/, "")) ?? [];
  if (words === undefined) return undefined;
  return [...words.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, ...found]) => found.join(""));
}

/** In this process, which takes no start. `|| true` is for commands that find something. */
async function inProcess(command: string, words: readonly string[]): Promise<Printed> {
  const { out, err, code } = await usher(words);
  return {
    stdout: out,
    stderr: err,
    status: code === 1 && command.endsWith("|| true") ? 0 : code,
  };
}

describe("commands in the documents", () => {
  const short = everything.filter(({ command }) => !starts(command) && !calls(command));
  const first = new Set(documents.map((file) => short.find((one) => one.file === file)));

  it.each(short)("$file: $command", async (one) => {
    const { command, prints } = one;
    const words = wordsOf(command);
    // The first one of each document, and those with more than words, are run as they are typed.
    const isTyped = first.has(one) || words === undefined;
    const result = isTyped ? shell(command) : await inProcess(command, words);
    expect(result.stderr).not.toMatch(/error|fault/i);
    expect(result.status).toBe(0);
    // Warnings come first, as on a terminal.
    expect(`${result.stderr}${result.stdout}`.trimEnd()).toContain(prints);
    expect(result.stdout).not.toBe("");
  });

  it("most are run in this process, and some in each document as typed", () => {
    expect(first.size).toBeGreaterThan(10);
    expect(short.filter(({ command }) => wordsOf(command) !== undefined).length).toBeGreaterThan(60);
  });
});

describe("commands that serve, and their clients", () => {
  const serving = everything.filter(({ command }) => command.includes("usher serve"));
  const calling = everything.filter(({ command }) => calls(command));
  it.each(serving)("$file: $command", async ({ command }) => {
    const server = spawn("sh", ["-c", `exec ${command}`], { cwd: root, env: { ...process.env, PATH } });
    try {
      const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
      const { ready, webhook } = JSON.parse(line);
      expect(ready).toBe(true);
      expect(calling.length).toBeGreaterThan(0);
      for (const { command: call } of calling) {
        const { stdout, status } = shell(call.replace("https://127.0.0.1:8443", webhook));
        expect(status).toBe(0);
        const { response } = JSON.parse(stdout);
        expect(response.allowed).toBe(true);
        expect(Buffer.from(response.patch, "base64").toString()).toContain('"pool":"etcd"');
      }
    } finally {
      server.kill("SIGINT");
    }
    const [code] = await once(server, "exit");
    expect(code).toBe(0);
  });
});

describe("commands that show the dashboard", () => {
  const showing = everything.filter(({ command }) => command.includes("usher dashboard"));
  it.each(showing)("$file: $command", async ({ command }) => {
    const server = spawn("sh", ["-c", `exec ${command}`], { cwd: root, env: { ...process.env, PATH } });
    try {
      const [line] = (await once(createInterface({ input: server.stdout }), "line")) as [string];
      const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]+/.exec(line) ?? [];
      const opened = await fetch(url, { redirect: "manual" });
      const session = (opened.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
      const origin = new URL(url).origin;
      const page = await fetch(`${origin}/nodes`);
      expect(await page.text()).toContain("/page.js");
      const map = await fetch(`${origin}/api/map`, { headers: { cookie: session } });
      expect(await map.json()).toMatchObject({ whole: true });
    } finally {
      server.kill("SIGINT");
    }
    const [code] = await once(server, "exit");
    expect(code).toBe(0);
  });
});

describe("links in the documents", () => {
  it.each([...documents, "CONTRIBUTING.md", "docs/decisions/README.md"])("%s", (file) => {
    for (const [, target = ""] of read(file).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target)) continue;
      expect(() => readFileSync(join(root, file, "..", target)), `${file} links to ${target}`).not.toThrow();
    }
  });
});

/**
 * Examples of a module's README, by the word after the block's kind: `yaml policy`, or `yaml policy tolerations` for a
 * second one.
 */
function examplesIn(
  file: string,
): { example: string; config: string; given: string; before: string; after: string }[] {
  const names = new Set(
    [...read(file).matchAll(/^```yaml before( [\w-]+)?$/gm)].map(([, name = ""]) => name),
  );
  return [...names].map((name) => {
    const of = (kind: string) => blocks(file, `yaml ${kind}${name}`).join("---\n");
    return {
      example: name.trim() || "the worked example",
      config: of("config") || blocks(file, "yaml config").join(""),
      given: [of("policy"), blocks(file, "yaml namespace").join("---\n")].join("---\n"),
      before: of("before"),
      after: of("after"),
    };
  });
}

describe("each module's README", () => {
  it.each(moduleGuides)("%s has an example", (file) => expect(examplesIn(file)).not.toEqual([]));

  const examples = moduleGuides.flatMap((file) => examplesIn(file).map((one) => ({ file, ...one })));
  it.each(examples)("$file: $example has the documented result", async ({ config, given, before, after }) => {
    const source = mkdtempSync(join(tmpdir(), "usher-readme-"));
    try {
      const cluster = join(source, "cluster.yaml");
      writeFileSync(cluster, given);
      writeFileSync(join(source, "usher.yaml"), config);
      const flags = config === "" ? [] : ["--config", join(source, "usher.yaml")];
      const words = ["review", "-", "--source", cluster, "--emit", ...flags];
      const { out, code } = await usher(words, { stdin: before });
      expect(code).toBe(0);
      expect(after).not.toBe("");
      expect(parse(out)).toMatchObject(parse(after));
    } finally {
      rmSync(source, { recursive: true, force: true });
    }
  });
});

describe("the configuration in docs/cli.md", () => {
  it("is accepted by usher", async () => {
    const folder = mkdtempSync(join(tmpdir(), "usher-config-"));
    try {
      const config = join(folder, "usher.yaml");
      writeFileSync(config, blocks("docs/cli.md", "yaml configuration").join(""));
      const { out, code } = await usher(["manifests", "--config", config]);
      expect(code).toBe(0);
      expect(out).toContain("- rollouts");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
