import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

/**
 * Checks the architecture's import rules: shells → modules → core. Core imports nothing of ours, a module imports only
 * core, no module imports another, and nothing outside a module names it, except the module list.
 */
const src = join(import.meta.dirname, "..", "src");

const sources = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  .sort();

function importsOf(file: string): string[] {
  const text = readFileSync(join(src, file), "utf8");
  const found = text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"|new URL\(\s*"(\.[^"]+)"/g);
  return [...found].map((match) => match[1] ?? match[2] ?? "");
}

/** `core`, `modules/placement`, `modules` (the list), `admission`, … */
function roomOf(file: string): string {
  const [first = "", second = "", third] = file.split("/");
  return first === "modules" && third !== undefined
    ? `modules/${second}`
    : first.endsWith(".ts")
      ? "library"
      : first;
}

function inner(file: string): { spec: string; room: string }[] {
  return importsOf(file)
    .filter((spec) => spec.startsWith("."))
    .map((spec) => ({ spec, room: roomOf(relative(src, join(src, dirname(file), spec))) }));
}

/** The folders that each folder may import beside itself. A folder that is not listed is an error. */
const ALLOWED: Record<string, readonly string[]> = {
  core: [],
  modules: ["core", "modules/*"],
  "modules/*": ["core"],
  admission: ["core"],
  files: ["core"],
  cluster: ["core"],
  // The operator makes the certificates that admission serves with.
  operator: ["core", "cluster", "admission"],
  dashboard: ["core"],
  cli: ["core", "modules", "admission", "files", "cluster", "operator", "dashboard"],
  library: ["core", "modules"],
};

const PURE_FORBIDDEN =
  /^(node:(fs|net|http|https|http2|tls|dgram|dns|child_process|worker_threads|timers|os|process|readline|perf_hooks).*|@kubernetes\/.*)$/;

/** The first folders by which two files differ: of `core/policy/kind.ts` and `core/view/store.ts`, `core: policy → view`. */
function siblings(file: string, other: string): { parent: string; from: string; to: string } | undefined {
  const [from, to] = [dirname(file).split("/"), dirname(other).split("/")];
  const depth = from.findIndex((name, i) => name !== to[i]);
  const [here, there] = [from[depth], to[depth]];
  if (here === undefined || there === undefined) return undefined;
  return { parent: from.slice(0, depth).join("/"), from: here, to: there };
}

/** The folders on a way from one folder back to itself; `undefined` if no way leads back. */
function circleFrom(start: string, imports: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const ways = [[start]];
  const seen = new Set<string>();
  for (const way of ways) {
    for (const next of imports.get(way.at(-1) ?? "") ?? []) {
      if (next === start) return [...way, start];
      if (seen.has(next)) continue;
      seen.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}

describe("imports keep to the architecture's arrows", () => {
  it("finds the source files", () => {
    expect(sources).toContain("core/evaluate/evaluate.ts");
    expect(inner("modules/index.ts").map(({ room }) => room)).toContain("modules/placement");
  });

  it.each(sources)("%s", (file) => {
    const room = roomOf(file);
    const allowed = ALLOWED[room.startsWith("modules/") ? "modules/*" : room];
    expect(allowed, `no import rule for the folder ${room}`).toBeDefined();
    for (const { spec, room: other } of inner(file)) {
      const fine =
        other === room ||
        allowed?.includes(other) ||
        (allowed?.includes("modules/*") && other.startsWith("modules/"));
      expect(fine, `${file} (${room}) imports ${spec} (${other})`).toBe(true);
    }
  });

  it.each(sources.filter((file) => /^(core|modules)\//.test(file)))("%s is pure", (file) => {
    const text = readFileSync(join(src, file), "utf8");
    for (const spec of importsOf(file)) expect(spec).not.toMatch(PURE_FORBIDDEN);
    expect(text).not.toMatch(
      /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bprocess\.|\bperformance\.now\b|\bset(?:Timeout|Interval|Immediate)\b/,
    );
  });

  it("folders of one parent never import each other in a circle, types included", () => {
    const parents = new Map<string, Map<string, Set<string>>>();
    for (const file of sources)
      for (const spec of importsOf(file).filter((one) => one.startsWith("."))) {
        const found = siblings(file, join(dirname(file), spec));
        if (found === undefined) continue;
        const imports = parents.get(found.parent) ?? new Map<string, Set<string>>();
        parents.set(
          found.parent,
          imports.set(found.from, (imports.get(found.from) ?? new Set()).add(found.to)),
        );
      }
    expect(parents.get("core")?.get("evaluate")).toContain("module");
    for (const [parent, imports] of parents)
      for (const folder of imports.keys())
        expect(circleFrom(folder, imports)?.join(" → "), `a circle below src/${parent}`).toBeUndefined();
  });

  it("an exported type's name is declared once, so that it means one thing", () => {
    const declared = new Map<string, string>();
    for (const file of sources)
      for (const [, name = ""] of readFileSync(join(src, file), "utf8").matchAll(
        /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm,
      )) {
        expect(declared.get(name), `${file} declares ${name} again`).toBeUndefined();
        declared.set(name, file);
      }
    expect(declared.get("Finding")).toBe("core/decision/finding.ts");
  });

  it("no shell names a module", () => {
    const names = readdirSync(join(src, "modules"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    for (const file of sources.filter((one) => !one.startsWith("modules/"))) {
      const code = readFileSync(join(src, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
      // A module may be named as a string, in a path, or in a command line: `usher placement`, `${io.name} placement
      // status`.
      for (const name of names)
        expect(code, `${file} names ${name}`).not.toMatch(
          new RegExp(`["'\`]${name}["'\`]|modules/${name}\\b|(?:usher|name\\}) ${name}\\b`),
        );
    }
  });
});
