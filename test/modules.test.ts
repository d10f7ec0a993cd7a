import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { resourceName } from "../src/core/decision/request.ts";
import { METRICS } from "../src/core/evaluate/effects.ts";
import { Gates } from "../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../src/core/installation/installation.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../src/core/json.ts";
import { checkDnsLabel } from "../src/core/kubernetes/names.ts";
import { Assembly } from "../src/core/module/assembly.ts";
import { codesOf } from "../src/core/module/codes.ts";
import { policyCheck } from "../src/core/module/policy-check.ts";
import { schemaProblems } from "../src/core/policy/check-schema.ts";
import { kindResource } from "../src/core/policy/kind.ts";
import { customResourceDefinition } from "../src/core/registration/crd.ts";
import type { Change } from "../src/core/view/view.ts";
import { modules } from "../src/modules/all.ts";
import { declarations } from "../src/modules/index.ts";

/** Properties of every module. */
const src = join(import.meta.dirname, "..", "src");
const all = [...modules, policyCheck(modules)];
const gates = all.flatMap((module) => module.gates ?? []).map((gate) => ({ ...gate, default: true }));
const assembly = new Assembly(all, DEFAULT_INSTALLATION, new Gates(gates));

function unique(list: readonly string[]): boolean {
  return new Set(list).size === list.length;
}

/** The fields below a schema that `kubectl explain` would not describe. */
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

function exampleObjects(): JsonObject[] {
  const folder = join(src, "..", "examples");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".yaml"))
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(join(folder, file), "utf8")))
    .map((document) => document.toJS() as Json)
    .filter(isObject);
}

describe.each(modules)("module $name", (module) => {
  it("is listed under the name of its folder, with a README", () => {
    expect(existsSync(join(src, "modules", module.name, "index.ts"))).toBe(true);
    expect(existsSync(join(src, "modules", module.name, "README.md"))).toBe(true);
    expect(checkDnsLabel(module.name)).toBeUndefined();
    expect(module.summary).toMatch(/^[a-z].*[^.]$/);
  });

  it("validates by itself the declared values that a schema accepts and usher refuses", () => {
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

  it("has an evaluator for the phase of each of its hooks, with a timeout of at most 5 s", () => {
    const hooks = module.hooks([], assembly.view, assembly.installation, assembly.gates);
    expect(hooks.length).toBeGreaterThan(0);
    for (const hook of hooks) {
      // The API server's error shows the timeout, and no client waits longer (docs/safety.md).
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

  it("has a description in the README's table", () => {
    const readme = readFileSync(join(src, "..", "README.md"), "utf8");
    expect(readme).toContain(`[${module.name}](src/modules/${module.name}/README.md)`);
  });
});

/** Every `enum` of a JSON schema, with its path. */
function enumsOf(schema: Json | undefined, path = ""): [string, readonly Json[]][] {
  if (Array.isArray(schema)) return schema.flatMap((one, i) => enumsOf(one, `${path}[${i}]`));
  if (!isObject(schema)) return [];
  const below = Object.entries(schema).flatMap(([name, value]) => enumsOf(value, `${path}.${name}`));
  const values = schema["enum"];
  return Array.isArray(values) ? [[path, values], ...below] : below;
}

describe("the modules together", () => {
  it("compute hooks only from the prepared policies and declared reads", () => {
    const known = new Assembly(all, DEFAULT_INSTALLATION, new Gates(gates));
    const resources = new Map(
      all.flatMap(({ kinds, reads }) => [
        ...kinds.map((kind) => [kind.kind, kindResource(kind)] as const),
        ...reads.map((read) => [read.kind, resourceName(read)] as const),
      ]),
    );
    const changes = exampleObjects().flatMap((object): Change[] => {
      const resource = resources.get(stringAt(object, "kind") ?? "");
      const [name, namespace] = ["name", "namespace"].map((key) => stringAt(object, "metadata", key) ?? "");
      return resource === undefined
        ? []
        : [{ resource, namespace: namespace ?? "", name: name ?? "", object }];
    });
    known.apply(changes);
    let seen = 0;
    for (const module of all) {
      const own = new Set([...module.kinds.map(kindResource), ...module.reads.map(resourceName)]);
      const view = new Proxy(known.view, {
        get: (target, key) => {
          const member = Reflect.get(target, key, target);
          if (typeof member !== "function") return member;
          return (resource: string, ...rest: unknown[]) => {
            seen += 1;
            expect([...own], `hooks of ${module.name}: ${String(key)}`).toContain(resource);
            return Reflect.apply(member, target, [resource, ...rest]);
          };
        },
      });
      const policies = [...known.policies(module.name)].flatMap(({ policy }) => policy ?? []);
      const hooks = module.hooks(policies, view, known.installation, known.gates);
      expect(hooks.length, module.name).toBeGreaterThan(0);
      // API servers of 1.37 no longer ask webhooks about these.
      for (const { name, rules } of hooks)
        for (const group of ["authentication.k8s.io", "authorization.k8s.io", "*"])
          expect(
            rules.flatMap(({ groups }) => groups),
            name,
          ).not.toContain(group);
    }
    expect(seen).toBeGreaterThan(3);
    // Applying one change at a time gives the same hooks as all at once.
    const stepwise = new Assembly(all, DEFAULT_INSTALLATION, new Gates(gates));
    for (const change of changes) {
      stepwise.apply([change]);
      expect(stepwise.hooks.length).toBeGreaterThan(0);
    }
    expect(stepwise.hooks).toEqual(known.hooks);
  });

  it("have unique names, hooks, kinds, codes, gates and metrics", () => {
    expect(unique(all.map(({ name }) => name))).toBe(true);
    expect(unique(assembly.hooks.map(({ name }) => name))).toBe(true);
    expect(unique(all.flatMap(({ kinds }) => kinds.map(kindResource)))).toBe(true);
    expect(unique(codesOf(all).map(({ code }) => code))).toBe(true);
    expect(unique(all.flatMap(({ gates }) => (gates ?? []).map(({ name }) => name)))).toBe(true);
    const metrics = all.flatMap((module) => (module.metrics ?? []).map(({ name }) => name));
    expect(unique([...metrics, ...Object.keys(METRICS)])).toBe(true);
  });

  it("have no enum value that YAML 1.1, as kubectl and Helm read it, takes for a boolean", () => {
    const values = JSON.parse(
      readFileSync(join(src, "..", "deploy/chart/values.schema.json"), "utf8"),
    ) as Json;
    // Except the statuses, which usher writes: conditions are True and False, as everywhere in Kubernetes.
    const kinds = all.flatMap(({ kinds }) =>
      kinds.flatMap((kind) =>
        listAt(customResourceDefinition(kind), "spec", "versions").map((version) =>
          at(version, "schema", "openAPIV3Schema", "properties", "spec"),
        ),
      ),
    );
    const enums = [...kinds, values].flatMap((schema) => enumsOf(schema));
    expect(enums.length).toBeGreaterThan(80);
    const booleans = /^(y|n|yes|no|on|off|true|false)$/i;
    const other: Record<string, string> = { Off: "Disabled" };
    for (const [path, words] of enums)
      for (const word of words.map(String).filter((one) => booleans.test(one)))
        expect(words, `${path}: ${word}`).toContain(other[word] ?? "another word");
    expect(enums.some(([, words]) => words.includes("Off"))).toBe(true);
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
