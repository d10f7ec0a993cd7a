import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { watched } from "./cli/serving.ts";
import { folder, RECORD, start } from "./cli/usher.ts";
import { ensureTool } from "./cluster/binaries.ts";
import { installLocked } from "./support/locked-packages.ts";

/** The published package: packed, unpacked elsewhere, compiled against and run. */
const root = join(import.meta.dirname, "..");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
let consumer = "";
let installed = "";
let archive = "";

interface Manifest {
  readonly version: string;
  readonly homepage: string;
  readonly engines: { readonly node: string };
  readonly bin: Readonly<Record<"usher" | "kubectl-usher", string>>;
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

function manifest(): Manifest {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
}

function node(...args: string[]): string {
  return execFileSync(process.execPath, args, {
    cwd: consumer,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

beforeAll(() => {
  consumer = mkdtempSync(join(tmpdir(), "usher-consumer-"));
  execFileSync("npm", ["pack", "--pack-destination", consumer, "--loglevel=error"], {
    cwd: root,
    stdio: "pipe",
  });
  installed = join(consumer, "node_modules", "@usher-dev", "usher");
  mkdirSync(installed, { recursive: true });
  const { version } = manifest();
  archive = join(consumer, `usher-dev-usher-${version}.tgz`);
  execFileSync("tar", ["-xzf", archive, "--strip-components=1", "-C", installed]);
  // In place of the registry: the package's dependencies, copied from this clone.
  const { dependencies } = manifest();
  for (const dependency of [...Object.keys(dependencies), "@types", "undici-types"]) {
    const target = join(root, "node_modules", dependency);
    if (existsSync(target)) symlinkSync(target, join(consumer, "node_modules", dependency));
  }
  writeFileSync(
    join(consumer, "package.json"),
    JSON.stringify({ name: "consumer", type: "module", private: true }),
  );
}, 120_000);

afterAll(() => rmSync(consumer, { recursive: true, force: true }), 60_000);

/** On platforms other than Linux x64, for which the registry has none, the Node at hand. */
function lowestNode(): string {
  const found = join(
    installLocked(join(root, "test", "support", "lowest-node")),
    "node_modules",
    ".bin",
    "node",
  );
  return existsSync(found) ? found : process.execPath;
}

/** The checks that the bundled command line must pass on any Node that it supports. */
function smoke(node: string): void {
  const program = join(installed, manifest().bin.usher);
  const run = (...args: string[]) =>
    execFileSync(node, [program, ...args], { cwd: consumer, encoding: "utf8" });
  expect(run("--version").trim()).toBe(manifest().version);
  const objects = join(root, "examples/pods/etcd.yaml");
  const reviewed = run("review", objects, "--source", join(root, "examples/cluster"), "-o", "json");
  expect(JSON.parse(reviewed).summary).toEqual({ allowed: 3, unchanged: 1, patched: 2, denied: 0 });
}

/** The files of the bundle that a process has loaded when it serves. */
async function filesOfServe(...args: string[]): Promise<string[]> {
  const hook = join(folder({ "record.mjs": RECORD }), "record.mjs");
  const main = join(installed, "dist", "main.mjs");
  const source = join(root, "examples", "cluster");
  const ports = ["--port", "0", "--ops-port", "0", "-o", "json"];
  const child = start(process.execPath, [
    "--import",
    hook,
    main,
    "serve",
    "--source",
    source,
    ...ports,
    ...args,
  ]);
  const { end } = await watched(child);
  child.kill("SIGINT");
  const { err } = await end;
  return [...err.matchAll(/^loaded file:\S*\/dist\/(\S+)$/gm)].map(([, name = ""]) => name);
}

function bytesIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

describe("the packed package", () => {
  it("compiles and runs as docs/library.md shows, under the strictest settings", () => {
    const library = readFileSync(join(root, "docs", "library.md"), "utf8");
    const examples = [...library.matchAll(/^```ts example\n([\s\S]*?)^```/gm)].map(([, text = ""]) => text);
    expect(examples.length).toBeGreaterThan(2);
    for (const [i, text] of examples.entries()) writeFileSync(join(consumer, `example-${i}.ts`), text);
    const options = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      module: "nodenext",
      target: "es2024",
      types: ["node"],
      outDir: "out",
    };
    writeFileSync(
      join(consumer, "tsconfig.json"),
      JSON.stringify({ compilerOptions: options, files: examples.map((_, i) => `example-${i}.ts`) }),
    );
    expect(node(tsc, "-p", "tsconfig.json")).toBe("");
    for (const [i, text] of examples.entries()) {
      // The expected output is in its comments.
      const expected = [...text.matchAll(/^\/\/ ([{[].*)$/gm)].map(([, line]) => line);
      expect(node(`out/example-${i}.js`).trim()).toBe(expected.join("\n"));
    }
  });

  it("rejects code that does not match its types", () => {
    writeFileSync(
      join(consumer, "wrong.ts"),
      'import { Gates } from "@usher-dev/usher";\nnew Gates("alpha");\n',
    );
    expect(() =>
      node(tsc, "--noEmit", "--strict", "--module", "nodenext", "--types", "node", "wrong.ts"),
    ).toThrow();
  });

  it("has the command line, bundled, under both names", () => {
    expect(Object.keys(manifest().bin)).toEqual(["usher", "kubectl-usher"]);
    smoke(process.execPath);
  });

  it("runs on the lowest supported Node, and an older one gets an error and exit code 2", () => {
    const [, lowest = ""] = /^>=(\d+)$/.exec(manifest().engines.node) ?? [];
    const node = lowestNode();
    const found = execFileSync(node, ["--version"], { encoding: "utf8" });
    if (process.platform === "linux" && process.arch === "x64") expect(found.trim()).toBe(`v${lowest}.0.0`);
    smoke(node);
    const program = readFileSync(join(installed, manifest().bin.usher), "utf8");
    expect(program).toContain(`const lowest = ${lowest};`);
    const older = program
      .replace("process.versions.node", '"20.1.0"')
      .replace("process.versions.node", '"20.1.0"');
    writeFileSync(join(consumer, "older.mjs"), older);
    const { status, stderr, stdout } = spawnSync(process.execPath, ["older.mjs"], {
      cwd: consumer,
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toBe(`usher: needs Node ${lowest} or newer; this is Node 20.1.0\n`);
  });

  it("exports each module with its types", () => {
    const modules = readdirSync(join(root, "src", "modules"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const { exports } = manifest();
    expect(Object.keys(exports)).toEqual([".", ...modules.map((name) => `./${name}`), "./package.json"]);
    for (const name of modules) {
      expect(existsSync(join(installed, exports[`./${name}`]?.types ?? "none"))).toBe(true);
      const listed = node(
        "--input-type=module",
        "--eval",
        `console.log(Object.keys(await import("@usher-dev/usher/${name}")).length)`,
      );
      expect(Number(listed)).toBeGreaterThan(0);
    }
  });

  it("takes at most 40 MB with its dependencies, and installs no node command", () => {
    const { dependencies } = manifest();
    const folders = [installed, ...Object.keys(dependencies).map((name) => join(root, "node_modules", name))];
    expect(folders.reduce((sum, folder) => sum + bytesIn(folder), 0)).toBeLessThan(40_000_000);
    for (const folder of folders) {
      const {
        bin = {},
        dependencies: more = {},
        optionalDependencies = {},
      } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
      expect(Object.keys(bin)).not.toContain("node");
      if (folder !== installed) expect({ ...more, ...optionalDependencies }).toEqual({});
    }
  });

  it("loads OpenTelemetry only if tracing is enabled", async () => {
    const spec = { tracing: { endpoint: "http://127.0.0.1:9" } };
    const configuration = { apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration", spec };
    writeFileSync(join(consumer, "tracing.yaml"), JSON.stringify(configuration));
    const bundled = readdirSync(join(installed, "dist")).filter(
      (name) =>
        /\.mjs$/.test(name) &&
        readFileSync(join(installed, "dist", name), "utf8").includes("OTLPTraceExporter"),
    );
    expect(bundled).toHaveLength(1);
    const [plain, traced] = await Promise.all([
      filesOfServe(),
      filesOfServe("--config", join(consumer, "tracing.yaml")),
    ]);
    expect(plain.filter((name) => name.startsWith("chunk-")).length).toBeGreaterThan(5);
    expect(plain).not.toContain(bundled[0]);
    expect(traced).toContain(bundled[0]);
  });

  it("contains no tests, sources or machine paths", () => {
    const files = execFileSync("find", [installed, "-type", "f"], { encoding: "utf8" });
    expect(files).not.toMatch(/\.test\.|\/src\/|node_modules\/.*node_modules/);
    expect(files).toMatch(/LICENSE/);
    expect(readFileSync(join(installed, "dist", "usher.mjs"), "utf8")).not.toContain(root);
  });
});

/** The commands of docs/installing.md that get the program, by the word after the fence. */
function documented(way: "package" | "krew"): string[] {
  const text = readFileSync(join(root, "docs", "installing.md"), "utf8");
  const [, block = ""] = new RegExp(`^\`\`\`sh ${way}\n([\\s\\S]*?)^\`\`\``, "m").exec(text) ?? [];
  return block.trim().split("\n");
}

/** A folder in front of PATH, with kubectl's way to find plugins: a file of their name. */
function runPlugin(folders: readonly string[], ...args: string[]): string {
  const path = [...folders, process.env["PATH"]].join(":");
  return execFileSync("sh", ["-c", `kubectl-usher ${args.join(" ")}`], {
    cwd: consumer,
    encoding: "utf8",
    env: { ...process.env, PATH: path },
  });
}

describe("the way to get the program with npm", () => {
  it("installs the archive as docs/installing.md says, under both names", () => {
    const [pack, install, run] = documented("package");
    const name = `usher-dev-usher-${manifest().version}.tgz`;
    expect({ pack, run }).toEqual({ pack: "npm pack", run: "kubectl usher version" });
    expect(install).toBe(`npm install --global ./${name}`);
    const prefix = join(consumer, "global");
    execFileSync("sh", ["-c", `${install} --prefix ${prefix} --prefer-offline --no-audit --no-fund`], {
      cwd: consumer,
      stdio: "pipe",
    });
    expect(readdirSync(join(prefix, "bin")).sort()).toEqual(["kubectl-usher", "usher"]);
    expect(runPlugin([join(prefix, "bin")], "version").trim()).toBe(manifest().version);
    expect(runPlugin([join(prefix, "bin")], "--help")).toContain("Usage: kubectl usher ");
  }, 120_000);
});

describe("the plugin for krew", () => {
  let krew = "";
  beforeAll(async () => {
    krew = await ensureTool("krew");
  }, 600_000);

  /** The manifest that `npm run deploy -- krew` writes for the packed archive. */
  function written(): string {
    const output = join(consumer, "krew");
    const main = join(root, "deploy", "generate", "main.ts");
    execFileSync(process.execPath, [main, "krew", "--archive", archive, "--output", output]);
    return join(output, "usher.yaml");
  }

  /** Installs with the real krew into a new root; the result is the folder of plugins, or what krew complained about. */
  function install(file: string, from: string, env: NodeJS.ProcessEnv = {}) {
    const place = mkdtempSync(join(consumer, "krew-root-"));
    const { status, stderr } = spawnSync(krew, ["install", `--manifest=${file}`, `--archive=${from}`], {
      encoding: "utf8",
      env: { ...process.env, KREW_ROOT: place, ...env },
    });
    return { status, stderr, bin: join(place, "bin") };
  }

  it("has a manifest whose version, checksum, program and Node are those of the package", {
    timeout: 120_000,
  }, () => {
    const { metadata, spec } = parse(readFileSync(written(), "utf8"));
    const { version, homepage, bin, engines } = manifest();
    expect(metadata).toEqual({ name: "usher" });
    expect(spec).toMatchObject({ version: `v${version}`, homepage });
    expect(spec.caveats).toContain(`Node ${engines.node.replace(">=", "")} or newer`);
    expect(spec.shortDescription.length).toBeLessThanOrEqual(50);
    const [platform, ...more] = spec.platforms;
    expect(more).toEqual([]);
    const sum = createHash("sha256").update(readFileSync(archive)).digest("hex");
    expect(platform).toMatchObject({ sha256: sum, bin: bin["kubectl-usher"] });
    expect(platform.uri).toBe(`${homepage}/releases/download/v${version}/usher-dev-usher-${version}.tgz`);
    expect(statSync(join(installed, platform.bin)).mode & 0o111).not.toBe(0);
  });

  it("is installed by krew as docs/installing.md says, and runs as kubectl usher without any other package", () => {
    const name = `usher-dev-usher-${manifest().version}.tgz`;
    expect(documented("krew")).toEqual([
      "npm pack",
      `npm run deploy -- krew --archive ${name}`,
      `kubectl krew install --manifest krew/usher.yaml --archive ${name}`,
      "kubectl usher version",
    ]);
    const { status, stderr, bin } = install(written(), archive);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(runPlugin([bin], "version").trim()).toBe(manifest().version);
    expect(runPlugin([bin], "--help")).toContain("Usage: kubectl usher ");
    const objects = join(root, "examples/pods/etcd.yaml");
    const source = join(root, "examples/cluster");
    expect(runPlugin([bin], "review", objects, "--source", source)).toContain("3 objects: 1 unchanged");
  }, 120_000);

  it("is offered for macOS and not for Windows, and refused where the archive is another one", () => {
    const file = written();
    expect(install(file, archive, { KREW_OS: "darwin", KREW_ARCH: "arm64" }).status).toBe(0);
    const windows = install(file, archive, { KREW_OS: "windows", KREW_ARCH: "amd64" });
    expect(windows.status).not.toBe(0);
    expect(windows.stderr).toMatch(/does not offer installation for this platform/);
    const other = join(consumer, "other.tgz");
    writeFileSync(other, Buffer.concat([readFileSync(archive), Buffer.from([0])]));
    expect(install(file, other)).toMatchObject({ stderr: expect.stringMatching(/checksum/) });
  }, 120_000);

  it("is not written without an archive", { timeout: 120_000 }, () => {
    const main = join(root, "deploy", "generate", "main.ts");
    const { status, stderr } = spawnSync(process.execPath, [main, "krew"], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: "--archive is required: the file that npm pack wrote\n",
    });
  });
});
