import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** What a stranger gets from the registry: packed, unpacked elsewhere, compiled against and run. */
const root = join(import.meta.dirname, "..");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
let consumer = "";
let installed = "";

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
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const archive = join(consumer, `usher-dev-usher-${version}.tgz`);
  execFileSync("tar", ["-xzf", archive, "--strip-components=1", "-C", installed]);
  // In place of the registry: what the package depends on, as this clone has it.
  for (const dependency of ["zod", "re2js", "@types", "undici-types"]) {
    const target = join(root, "node_modules", dependency);
    if (existsSync(target)) symlinkSync(target, join(consumer, "node_modules", dependency));
  }
  writeFileSync(
    join(consumer, "package.json"),
    JSON.stringify({ name: "consumer", type: "module", private: true }),
  );
}, 120_000);

afterAll(() => rmSync(consumer, { recursive: true, force: true }));

describe("the packed package", () => {
  it("compiles and runs as docs/library.md says, under the strictest settings", () => {
    const example =
      /^```ts example\n([\s\S]*?)^```/m.exec(readFileSync(join(root, "docs", "library.md"), "utf8"))?.[1] ??
      "";
    const [, expected] = /^\/\/ (\{.*\})$/m.exec(example) ?? [];
    writeFileSync(join(consumer, "example.ts"), example);
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
      JSON.stringify({ compilerOptions: options, files: ["example.ts"] }),
    );
    expect(node(tsc, "-p", "tsconfig.json")).toBe("");
    expect(node("out/example.js").trim()).toBe(expected);
  });

  it("refuses what does not fit its types", () => {
    writeFileSync(
      join(consumer, "wrong.ts"),
      'import { Gates } from "@usher-dev/usher";\nnew Gates("alpha");\n',
    );
    expect(() =>
      node(tsc, "--noEmit", "--strict", "--module", "nodenext", "--types", "node", "wrong.ts"),
    ).toThrow();
  });

  it("has the command line, bundled, under both names", () => {
    const { bin, version } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    expect(Object.keys(bin)).toEqual(["usher", "kubectl-usher"]);
    const program = join(installed, bin.usher);
    expect(node(program, "--version").trim()).toBe(version);
    const reviewed = node(
      program,
      "review",
      join(root, "examples/pods/etcd.yaml"),
      "--source",
      join(root, "examples/cluster"),
      "-o",
      "json",
    );
    expect(JSON.parse(reviewed).summary).toEqual({ allowed: 3, denied: 0, patched: 2 });
  });

  it("carries no tests, sources or machine paths", () => {
    const files = execFileSync("find", [installed, "-type", "f"], { encoding: "utf8" });
    expect(files).not.toMatch(/\.test\.|\/src\/|node_modules\/.*node_modules/);
    expect(files).toMatch(/LICENSE/);
    expect(readFileSync(join(installed, "dist", "usher.mjs"), "utf8")).not.toContain(root);
  });
});
