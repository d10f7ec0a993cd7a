import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { kindResource } from "../src/core/policy/kind.ts";
import { eachOf, membersOf, type Weakening } from "../src/core/policy/mutants.ts";
import { modules } from "../src/modules/all.ts";
import { ROOT, usher } from "./cli/usher.ts";

/** The suites of usher's own examples and guides: each notices every mutant, or says why it can't. */
const SUITES = join(ROOT, "examples", "suites");

interface Report {
  readonly suites: readonly { readonly score: number; readonly mutants: readonly unknown[] }[];
  readonly summary: { readonly cases: number; readonly passed: number };
}

async function mutated(suite: string): Promise<Report> {
  const { code, out, err } = await usher(["test", suite, "--mutate", "-o", "json"]);
  expect(code, `${err}\n${out}`).toBe(0);
  return JSON.parse(out) as Report;
}

describe("suites of the examples", () => {
  it.each(readdirSync(SUITES))("%s notices every mutant", async (name) => {
    const { suites, summary } = await mutated(join(SUITES, name));
    expect(suites.map(({ score }) => score)).toEqual(suites.map(() => 1));
    expect(suites.flatMap(({ mutants }) => mutants).length).toBeGreaterThan(0);
    expect(summary.passed).toBe(summary.cases);
  });

  it("exist for every example with policies", () => {
    const tested = readdirSync(SUITES, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".yaml"))
      .map((name) => readFileSync(join(SUITES, name), "utf8"))
      .join("\n");
    const kinds = modules.flatMap((module) => module.kinds.map(({ kind }) => kind));
    const examples = readdirSync(join(ROOT, "examples"), { withFileTypes: true })
      .filter((one) => one.isDirectory() && one.name !== "suites")
      .map(({ name }) => name)
      // An edit of the policies of examples/cluster, and files of other programs.
      .filter((name) => !["what-if", "configurations"].includes(name));
    for (const name of examples) {
      const texts = readdirSync(join(ROOT, "examples", name))
        .map((file) => readFileSync(join(ROOT, "examples", name, file), "utf8"))
        .join("\n");
      const isPolicy = kinds.some((kind) => new RegExp(`^kind: ${kind}$`, "m").test(texts));
      if (isPolicy) expect(tested, name).toContain(`/${name}`);
    }
  });
});

describe("suites of the modules' READMEs", () => {
  it.each(modules.map(({ name }) => name))("%s notices every mutant", async (name) => {
    const readme = readFileSync(join(ROOT, "src", "modules", name, "README.md"), "utf8");
    const blocks = (info: string) =>
      [...readme.matchAll(new RegExp(`^\`\`\`yaml ${info}\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
        ([, text = ""]) => text,
      );
    const folder = mkdtempSync(join(tmpdir(), "usher-suite-"));
    try {
      const write = (file: string, text: string) => writeFileSync(join(folder, file), text);
      write("cluster.yaml", [...blocks("policy"), ...blocks("namespace")].join("---\n"));
      write("usher.yaml", blocks("config").join(""));
      write("before.yaml", blocks("before").join(""));
      const [suite = ""] = blocks("suite");
      write("suite.yaml", suite);
      const { suites, summary } = await mutated(join(folder, "suite.yaml"));
      expect(suites.map(({ score }) => score)).toEqual([1]);
      expect(suites.flatMap(({ mutants }) => mutants).length).toBeGreaterThan(0);
      expect(summary.passed).toBe(summary.cases);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** The fields of a schema that a weakening leaves out. `ignore` says that it does so on purpose. */
function unnamed(schema: unknown, weakening: Weakening | undefined, path: string): string[] {
  const { shape, element } = inner(schema);
  if (element !== undefined) return unnamed(element, weakening, `${path}[]`);
  // A way without fields of its own covers everything inside.
  if (shape === undefined || weakening?.fields === undefined) return [];
  const { fields } = weakening;
  return Object.entries(shape).flatMap(([name, member]) =>
    Object.hasOwn(fields, name) ? unnamed(member, fields[name], `${path}.${name}`) : [`${path}.${name}`],
  );
}

interface Inner {
  readonly shape?: Readonly<Record<string, unknown>>;
  readonly element?: unknown;
  readonly unwrap?: () => unknown;
}

function inner(schema: unknown): Inner {
  const here = schema as Inner;
  if (here.shape !== undefined || here.element !== undefined || here.unwrap === undefined) return here;
  return inner(here.unwrap());
}

describe("mutations that modules declare", () => {
  const kinds = modules.flatMap((module) => module.kinds.map((kind) => ({ module, kind, name: kind.kind })));

  it.each(kinds)("$name names every field of the spec", ({ module, kind }) => {
    const mutations = (module.mutations ?? []).find(({ resource }) => resource === kindResource(kind));
    expect(mutations?.spec?.fields).toBeDefined();
    for (const { spec } of kind.versions) expect(unnamed(spec, mutations?.spec, "spec")).toEqual([]);
  });

  it.each(modules.filter(({ settings }) => settings !== undefined))("$name names every setting", (module) => {
    expect(module.settingMutations?.fields).toBeDefined();
    expect(unnamed(module.settings, module.settingMutations, "settings")).toEqual([]);
  });

  it("finds a field that is left out", () => {
    const schema = z.strictObject({
      a: z.string().optional(),
      b: z.array(z.strictObject({ c: z.string() })),
    });
    expect(unnamed(schema, membersOf({ b: eachOf({}) }), "spec")).toEqual(["spec.a", "spec.b[].c"]);
  });
});
