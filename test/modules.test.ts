import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Assembly } from "../src/core/evaluate/assembly.ts";
import { METRICS } from "../src/core/evaluate/effects.ts";
import { at, isObject, type Json, listAt, stringAt } from "../src/core/json.ts";
import { checkDnsLabel } from "../src/core/kubernetes/names.ts";
import { codesOf } from "../src/core/module/codes.ts";
import { Gates } from "../src/core/module/gates.ts";
import { DEFAULT_INSTALLATION } from "../src/core/module/installation.ts";
import { schemaProblems } from "../src/core/policy/check-schema.ts";
import { kindResource } from "../src/core/policy/kind.ts";
import { policyCheck } from "../src/core/policy/policy-check.ts";
import { customResourceDefinition } from "../src/core/registration/crd.ts";
import { modules } from "../src/modules/all.ts";
import { declarations } from "../src/modules/index.ts";

/** What holds for every module. */
const src = join(import.meta.dirname, "..", "src");
const all = [...modules, policyCheck(modules)];
const gates = all.flatMap((module) => module.gates ?? []).map((gate) => ({ ...gate, default: true }));
const assembly = new Assembly(all, DEFAULT_INSTALLATION, new Gates(gates));

function unique(list: readonly string[]): boolean {
  return new Set(list).size === list.length;
}

/** The fields below a schema of which `kubectl explain` would say nothing. */
function undescribed(schema: Json | undefined, path: readonly string[]): string[] {
  const properties = at(schema, "properties");
  const below = isObject(properties)
    ? Object.keys(properties).flatMap((name) => {
        const field = properties[name];
        const missing = stringAt(field, "description") === undefined ? [[...path, name].join(".")] : [];
        return [...missing, ...undescribed(field, [...path, name])];
      })
    : [];
  return [
    ...below,
    ...(at(schema, "items") === undefined ? [] : undescribed(at(schema, "items"), [...path, "[]"])),
  ];
}

function sources(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.endsWith("codes.ts"))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
}

describe.each(modules)("module $name", (module) => {
  it("is listed under the name of its folder, with a README", () => {
    expect(existsSync(join(src, "modules", module.name, "index.ts"))).toBe(true);
    expect(existsSync(join(src, "modules", module.name, "README.md"))).toBe(true);
    expect(checkDnsLabel(module.name)).toBeUndefined();
    expect(module.summary).toMatch(/^[a-z].*[^.]$/);
  });

  it("refuses by itself what a schema accepts and is declared as refused", () => {
    for (const { kind, refused, versions, check } of module.kinds) {
      if (refused === undefined) continue;
      const [version] = versions;
      expect(version === undefined ? kind : schemaProblems(version.spec, refused), kind).toEqual([]);
      const object = { kind, metadata: { name: "usher-verify" }, spec: refused };
      const problems = check?.(object, assembly.view, assembly.installation, Date.now()) ?? [];
      expect(
        problems.some(({ severity }) => severity === "error"),
        kind,
      ).toBe(true);
    }
  });

  it("has an evaluator for the phase of each of its hooks, and waits for none of them longer than 5 s", () => {
    const hooks = module.hooks(assembly.view, assembly.installation, assembly.gates);
    expect(hooks.length).toBeGreaterThan(0);
    for (const hook of hooks) {
      // An error of the API server shows it, and no client waits longer (docs/safety.md).
      expect(hook.timeoutSeconds, hook.name).toBeLessThanOrEqual(5);
      expect(hook.module).toBe(module.name);
      expect(assembly.evaluator(module.name)?.[hook.phase]).toBeTypeOf("function");
    }
  });

  it("explains every code that it shows, and shows every code that it explains", () => {
    const used = new Set(sources(join(src, "modules", module.name)).match(/USHER-[A-Z]\d{2}/g));
    const explained = new Set((module.codes ?? []).map(({ code }) => code));
    expect([...used].sort()).toEqual([...explained].sort());
  });

  it("has a CRD for each kind, with a description of every field", () => {
    for (const kind of module.kinds) {
      const definition = customResourceDefinition(kind);
      expect(stringAt(definition, "metadata", "name")).toBe(kindResource(kind));
      expect(kind.versions.filter(({ storage }) => storage)).toHaveLength(1);
      for (const version of listAt(definition, "spec", "versions")) {
        const schema = at(version, "schema", "openAPIV3Schema", "properties", "spec");
        expect(undescribed(schema, ["spec"])).toEqual([]);
      }
    }
  });

  it("says something of itself in the README's table", () => {
    const readme = readFileSync(join(src, "..", "README.md"), "utf8");
    expect(readme).toContain(`[${module.name}](src/modules/${module.name}/README.md)`);
  });
});

describe("the modules together", () => {
  it("have unique names, hooks, kinds, codes, gates and metrics", () => {
    expect(unique(all.map(({ name }) => name))).toBe(true);
    expect(unique(assembly.hooks.map(({ name }) => name))).toBe(true);
    expect(unique(all.flatMap(({ kinds }) => kinds.map(kindResource)))).toBe(true);
    expect(unique(codesOf(all).map(({ code }) => code))).toBe(true);
    expect(unique(all.flatMap(({ gates }) => (gates ?? []).map(({ name }) => name)))).toBe(true);
    const metrics = all.flatMap((module) => (module.metrics ?? []).map(({ name }) => name));
    expect(unique([...metrics, ...Object.keys(METRICS)])).toBe(true);
  });

  it("are loaded from their declarations, under the same name", async () => {
    for (const { name, summary, load } of declarations) expect(await load()).toMatchObject({ name, summary });
  });

  it("explain the codes of core as well", () => {
    const used = new Set(sources(join(src, "core")).match(/USHER-[A-Z]\d{2}/g));
    const explained = codesOf([]).map(({ code }) => code);
    expect([...used].filter((code) => code.startsWith("USHER-E")).sort()).toEqual(explained.sort());
  });
});
