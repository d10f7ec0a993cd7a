import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { assembleModules } from "../src/cli/source/source.ts";
import { at, type JsonObject, listAt, stringAt } from "../src/core/json.ts";
import { readsOf } from "../src/core/module/module.ts";
import { policyCheck } from "../src/core/module/policy-check.ts";
import { grantedRights, ruleOf } from "../src/core/module/rights.ts";
import { kindResource } from "../src/core/policy/kind.ts";
import { registration } from "../src/core/registration/index.ts";
import { declaredRoles } from "../src/core/registration/rbac.ts";
import { modules } from "../src/modules/all.ts";
import { folder, usher } from "./cli/usher.ts";

/** Everything that a configuration can enable, so that a disabled module has the most to hide. */
const BUSY = {
  featureGates: { OpenShiftNodeSchedulingPolicy: true },
  modules: {
    placement: { repairDrift: true },
    "node-guard": { manageTaint: true, fallback: true, schedulerCRD: true },
    "pod-os": { podSecurity: { mode: "Replace" }, os: { repairNodeLabels: true } },
  } as Record<string, Record<string, unknown>>,
};

function assembled(...off: readonly string[]) {
  const settings = Object.fromEntries(
    modules.map(({ name }) => [
      name,
      { ...BUSY.modules[name], ...(off.includes(name) ? { enabled: false } : {}) },
    ]),
  );
  return assembleModules(modules, {}, { ...BUSY, modules: settings });
}

function registered(...off: readonly string[]): readonly JsonObject[] {
  return registration(assembled(...off), { endpoint: { url: "https://usher" }, workload: { image: "usher" } })
    .objects;
}

/** Every rule of a role that is bound to an account of usher. */
function ownRules(objects: readonly JsonObject[]): Set<string> {
  const names = new Set(declaredRoles(modules).flatMap(({ own, name }) => (own ? [name] : [])));
  const rules = objects
    .filter((one) => /Role$/.test(stringAt(one, "kind") ?? ""))
    .filter((one) => names.has(stringAt(one, "metadata", "name") ?? ""))
    .flatMap((one) => listAt(one, "rules"));
  return new Set(rules.map((rule) => JSON.stringify(rule)));
}

describe.each(modules.map(({ name }) => name))("%s off", (name) => {
  const assembly = assembled(name);
  const module = modules.find((one) => one.name === name);

  test("has no hooks, no policies and no reads", () => {
    expect(assembly.modules.map((one) => one.name)).not.toContain(name);
    expect(assembly.declaredHooks.filter((one) => one.module === name)).toEqual([]);
    const owners = assembly.modules.filter(({ kinds }) =>
      kinds.some((kind) => module?.kinds.some((one) => kindResource(one) === kindResource(kind))),
    );
    expect(owners.every((one) => one.name === "policies")).toBe(true);
    expect(readsOf(assembly)).toEqual(
      readsOf({ ...assembled(), modules: modules.filter((one) => one !== module) }),
    );
  });

  test("leaves exactly the permissions of the others, and reads its policies to report that they have no effect", () => {
    const taking = modules.filter((one) => one !== module);
    const off = modules.filter((one) => one === module);
    const others = declaredRoles([...taking, policyCheck(taking, off)]).filter(({ own }) => own);
    const wanted = others.flatMap(({ rights }) => grantedRights(rights, assembly).map(ruleOf));
    expect(ownRules(registered(name))).toEqual(new Set(wanted.map((rule) => JSON.stringify(rule))));
    expect(ownRules(registered(name)).size).toBeLessThan(ownRules(registered()).size);
  });

  test("its CRDs are not registered", () => {
    const crds = registered(name).filter((one) => stringAt(one, "kind") === "CustomResourceDefinition");
    const named = crds.map((one) => stringAt(one, "metadata", "name"));
    for (const kind of module?.kinds ?? []) expect(named).not.toContain(kindResource(kind));
  });
});

test("with all modules off one fail-open webhook warns about policies, and the only permissions are those on policies and on usher's own objects", () => {
  const objects = registered(...modules.map(({ name }) => name));
  const hooks = objects.filter((one) => stringAt(one, "kind")?.endsWith("WebhookConfiguration"));
  expect(
    hooks.map((one) =>
      listAt(one, "webhooks").map((entry) => [at(entry, "name"), at(entry, "failurePolicy")]),
    ),
  ).toEqual([[], [["policies.usher.dev", "Ignore"]]]);
  const role = objects.find(
    (one) => at(one, "kind") === "ClusterRole" && at(one, "metadata", "name") === "usher",
  );
  const kinds = modules
    .flatMap((one) => one.kinds)
    .filter(({ standing, takeOver }) => standing === "resource" && takeOver === undefined);
  expect(new Set(listAt(role, "rules").flatMap((rule) => listAt(rule, "resources")))).toEqual(
    new Set([
      "events",
      ...kinds.flatMap(({ plural, versions }) =>
        versions.some(({ status }) => status !== undefined) ? [plural, `${plural}/status`] : [plural],
      ),
    ]),
  );
});

test("every permission states its purpose, and so does every read of a module", () => {
  for (const { rights } of declaredRoles(modules))
    for (const { why } of rights) expect(why).toMatch(/^[a-z].{8,}[^.]$/);
  for (const { name, reads } of modules)
    for (const { resource, why } of reads) expect([name, resource, why]).not.toContain(undefined);
});

describe("configuration", () => {
  const withSpec = (spec: string) => {
    const head = "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec:\n";
    return join(folder({ "config.yaml": `${head}${spec}` }), "config.yaml");
  };

  test.each<[string, string, RegExp]>([
    [
      "an unknown module",
      "  modules: {none: {enabled: false}}",
      /spec\.modules\.none: no such module; the modules are: placement,/,
    ],
    [
      "not a boolean",
      "  modules: {pod-os: {enabled: 'no'}}",
      /spec\.modules\.pod-os\.enabled: must be true or false/,
    ],
    [
      "an unknown setting of a module without settings",
      "  modules: {project-limit: {limit: 1}}",
      /spec\.modules\.project-limit\.limit: unknown setting/,
    ],
    [
      "an invalid setting of a module that is off",
      "  modules: {pod-os: {enabled: false, os: 1}}",
      /spec\.modules\.pod-os\.os/,
    ],
  ])("%s", async (_what, spec, message) => {
    const { code, err } = await usher(["manifests", "--config", withSpec(spec)]);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });

  test("a command of a module that is off still works on files", async () => {
    const source = folder({ "n.yaml": "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n" });
    const config = withSpec("  modules: {node-labels: {enabled: false}}");
    const { code, err } = await usher(["node-labels", "plan", "--source", source, "--config", config]);
    expect(`${code} ${err}`).toMatch(/^0 /);
  });

  test("with manageCrds: false no CRD is printed, and usher has no permission on CRDs", async () => {
    const printed = async (value: boolean) => {
      const { out } = await usher(["manifests", "--config", withSpec(`  manageCrds: ${value}`)]);
      return [/kind: CustomResourceDefinition/.test(out), /- customresourcedefinitions/.test(out)];
    };
    expect(await printed(true)).toEqual([true, true]);
    expect(await printed(false)).toEqual([false, false]);
  });
});
