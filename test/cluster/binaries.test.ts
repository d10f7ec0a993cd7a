import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Compiler } from "./binaries/compile.ts";
import { neededBy } from "./binaries/needed.ts";
import { cacheFolder } from "./binaries/places.ts";
import {
  BINARIES,
  buildArguments,
  cachePath,
  OLDER_RELEASES,
  RECIPES,
  type Recipe,
  readModule,
  recipesFor,
  requiredVersion,
  schedulerOracle,
  TOOLS,
} from "./binaries/recipes.ts";
import { clusterAvailable, ensureBinaries, ensureNeeded, ensureTool } from "./binaries.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "usher-binaries-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const silent = { write: () => true };

function program(path: string): void {
  writeFileSync(path, "");
  chmodSync(path, 0o755);
}

/** Stands in for Go: records its calls. */
function fakeCompiler(asked: string[]): Compiler {
  return async ({ name }, target) => {
    asked.push(name);
    program(target);
  };
}

/** Neither Go nor prebuilt binaries. GOROOT, because Go is also found in its default install location. */
function bare(): Record<string, string> {
  return {
    USHER_CACHE: join(folder, "cache"),
    PATH: join(folder, "nothing"),
    GOROOT: join(folder, "nothing"),
  };
}

describe("where binaries are stored", () => {
  const [etcd] = RECIPES as readonly [Recipe];
  const files = { goMod: "require go.etcd.io/etcd/server/v3 v3.7.3\n", goSum: "sums" };

  test("the cache is where the user configured it, else in the user's cache folder", () => {
    expect(cacheFolder({ USHER_CACHE: "/x", XDG_CACHE_HOME: "/y", HOME: "/h" })).toBe("/x");
    expect(cacheFolder({ XDG_CACHE_HOME: "/y", HOME: "/h" })).toBe("/y/usher");
    expect(cacheFolder({ HOME: "/h" })).toBe("/h/.cache/usher");
  });

  test("another version, other checksums or another platform use another path", () => {
    const newer = { ...files, goMod: files.goMod.replace("v3.7.3", "v3.7.4") };
    const places = [
      cachePath(etcd, files, "linux-x64"),
      cachePath(etcd, newer, "linux-x64"),
      cachePath(etcd, { ...files, goSum: "others" }, "linux-x64"),
      cachePath(etcd, { ...files, program: "package main" }, "linux-x64"),
      cachePath(etcd, files, "darwin-arm64"),
    ];
    expect(new Set(places).size).toBe(5);
    expect(places[0]).toBe(cachePath(etcd, { ...files }, "linux-x64"));
    expect(places[0]).toContain("etcd-v3.7.3-");
  });

  test("each go.mod pins the version of its binaries, and the Kubernetes build gets its own", () => {
    for (const recipe of [...RECIPES, ...OLDER_RELEASES.flatMap(recipesFor), ...Object.values(TOOLS)]) {
      const version = requiredVersion(readModule(recipe.module).goMod, recipe.versionOf);
      expect(version).toMatch(/^v\d+\.\d+\.\d+(-\d+-[0-9a-f]+)?$/);
      const stamped = buildArguments(recipe, version).join(" ").includes(`version.gitVersion=${version}`);
      expect(stamped).toBe(recipe.module.startsWith("kubernetes"));
    }
    expect(() => requiredVersion("module x\n", "go.etcd.io/etcd/server/v3")).toThrow("does not require");
  });

  test("the oracle of each release is one program, built with that release's requirements", () => {
    const places = ["", ...OLDER_RELEASES].map((release) => {
      const oracle = schedulerOracle(release);
      const files = readModule(oracle.module, oracle.program);
      expect(files.program).toContain("RunFilterPlugins");
      const version = requiredVersion(files.goMod, oracle.versionOf);
      expect(version).toMatch(release === "" ? /^v1\./ : `v${release}.`);
      expect(buildArguments(oracle, version)).toContain(`-modfile=../${oracle.module}/go.mod`);
      return cachePath(oracle, files, "linux-x64");
    });
    expect(new Set(places).size).toBe(places.length);
  });
});

describe("building", () => {
  test("happens once; afterwards everything is found", async () => {
    const asked: string[] = [];
    const first = await ensureBinaries({ env: bare(), output: silent, compile: fakeCompiler(asked) });
    expect(asked).toEqual([...BINARIES]);
    expect(Object.values(first).every((path) => existsSync(path))).toBe(true);
    expect(await ensureBinaries({ env: bare(), output: silent, compile: fakeCompiler(asked) })).toEqual(
      first,
    );
    expect(asked).toHaveLength(BINARIES.length);
  });

  test("builds a requested tool without the rest", async () => {
    const asked: string[] = [];
    const build = () => ensureTool("helm", { env: bare(), output: silent, compile: fakeCompiler(asked) });
    const path = await build();
    expect(existsSync(path)).toBe(true);
    expect(await build()).toBe(path);
    expect(asked).toEqual(["helm"]);
  });

  test("of two at once: one builds and the other waits for it", async () => {
    const asked: string[] = [];
    const slow: Compiler = async (recipe, target) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      await fakeCompiler(asked)(recipe, target);
    };
    const said: string[] = [];
    const output = { write: (text: string) => said.push(text) };
    const build = () => ensureBinaries({ env: bare(), output, compile: slow });
    const [one, other] = await Promise.all([build(), build()]);
    expect(one).toEqual(other);
    expect(asked).toEqual([...BINARIES]);
    expect(said.filter((text) => text.includes(`waiting for process ${process.pid}`))).toHaveLength(1);
  });

  test("is not blocked by a builder that died", async () => {
    const env = bare();
    mkdirSync(join(folder, "cache"), { recursive: true });
    writeFileSync(join(folder, "cache", "building.lock"), `${process.pid} Thu Jan  1 00:00:00 1970`);
    const asked: string[] = [];
    await ensureBinaries({ env, output: silent, compile: fakeCompiler(asked) });
    expect(asked).toHaveLength(BINARIES.length);
  });

  test("that fails leaves nothing behind, keeps earlier builds, and lets the next attempt run", async () => {
    const half: Compiler = async ({ name }, target) => {
      program(target);
      if (name === "kube-apiserver") throw new Error("no space left");
    };
    await expect(ensureBinaries({ env: bare(), output: silent, compile: half })).rejects.toThrow(
      "no space left",
    );
    const asked: string[] = [];
    await ensureBinaries({ env: bare(), output: silent, compile: fakeCompiler(asked) });
    expect(asked).toEqual(BINARIES.filter((name) => name !== "etcd"));
  });

  test("prints what is built, the progress, and the expected time", async () => {
    const said: string[] = [];
    await ensureBinaries({
      env: bare(),
      output: { write: (text) => said.push(text) },
      compile: fakeCompiler([]),
    });
    expect(said[0]).toBe("6 programs are built from source, once: usually about 12 minutes in all.\n");
    expect(said).toContain("building kube-apiserver (2 of 6), usually about 7 minutes …\n");
    expect(said.at(-1)).toMatch(/^built kwok after \d+ s\n$/);
  });

  test("uses the binaries in KUBEBUILDER_ASSETS, and builds only the rest", async () => {
    for (const name of ["etcd", "kube-apiserver", "kubectl"]) program(join(folder, name));
    const asked: string[] = [];
    const env = { ...bare(), KUBEBUILDER_ASSETS: folder };
    const found = await ensureBinaries({ env, output: silent, compile: fakeCompiler(asked) });
    expect(found.etcd).toBe(join(folder, "etcd"));
    expect(found.kubectl).toBe(join(folder, "kubectl"));
    expect(asked).toEqual(["kube-controller-manager", "kube-scheduler", "kwok"]);
  });
});

describe("the programs that a run needs", () => {
  const TEST = join(import.meta.dirname, "..");
  const of = (...files: string[]) => neededBy(files.map((file) => join(TEST, file)));

  test("are built together before the first test: the control plane and the tools of its files", async () => {
    const asked: string[] = [];
    const needed = of("e2e/certificates.test.ts", "e2e/alerts.test.ts");
    await ensureNeeded(needed, { env: bare(), output: silent, compile: fakeCompiler(asked) });
    expect(asked).toEqual([...BINARIES, "promtool", "cert-manager"]);
  });

  test("are found through the files that a test imports", () => {
    expect(of("e2e/certificates.test.ts")).toEqual({ controlPlane: true, tools: ["cert-manager"] });
    expect(of("e2e/chart-values.test.ts").tools).toEqual(["helm", "helm3"]);
    expect(of("words.test.ts")).toEqual({ controlPlane: false, tools: [] });
  });

  test("include each existing tool, for all files together", () => {
    const { tools } = of(...globSync("**/*.test.ts", { cwd: TEST }));
    expect([...tools].sort()).toEqual(Object.keys(TOOLS).sort());
  });
});

describe("without Go", () => {
  test("reports what is missing and how to get it", async () => {
    const answer = clusterAvailable(bare());
    expect(answer).toMatchObject({
      available: false,
      reason: expect.stringMatching(/Go is not installed.*https:\/\/go\.dev\/dl/),
    });
    expect(answer).toMatchObject({ reason: expect.stringContaining("kube-apiserver") });
    await expect(ensureBinaries({ env: bare(), output: silent })).rejects.toThrow("Go is not installed");
  });

  test("a cluster is available once everything is built", async () => {
    await ensureBinaries({ env: bare(), output: silent, compile: fakeCompiler([]) });
    expect(clusterAvailable(bare())).toEqual({ available: true });
  });

  test("with Go, a cluster is available before", () => {
    const go = join(folder, "bin");
    mkdirSync(go);
    program(join(go, "go"));
    expect(clusterAvailable({ ...bare(), PATH: go })).toEqual({ available: true });
  });
});
