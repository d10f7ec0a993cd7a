import { execFileSync, spawnSync } from "node:child_process";
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
import { watched } from "./cli/serving.ts";
import { folder, RECORD, start } from "./cli/usher.ts";
import { installLocked } from "./support/locked-packages.ts";

/** The published package: packed, unpacked elsewhere, compiled against and run. */
const root = join(import.meta.dirname, "..");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
let consumer = "";
let installed = "";

interface Manifest {
  readonly version: string;
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
  const archive = join(consumer, `usher-dev-usher-${version}.tgz`);
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

afterAll(() => rmSync(consumer, { recursive: true, force: true }));

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
