import type { JsonObject } from "../../../src/core/json.ts";
import { loadModules } from "../../../src/core/module/declaration.ts";
import { CONFIGURATION_FILE } from "../../../src/core/registration/pods/restricted-pod.ts";
import { declaredRoles } from "../../../src/core/registration/rbac.ts";
import { CONFIGURATION_ANNOTATION } from "../../../src/core/registration/workload.ts";
import { declarations } from "../../../src/modules/index.ts";
import { keyOf, registered } from "../installation/registered.ts";
import { switched } from "../template/merge.ts";
import { type NodeMap, When } from "../template/node.ts";
import { NAMESPACE, STARTUP_TAINT } from "../template/standing-for.ts";
import { grantsAny, rulesOf } from "./roles.ts";
import { allSwitches, together } from "./switches.ts";

/** An object of the chart, and the condition under which it is rendered. */
export interface ChartObject {
  readonly key: string;
  readonly node: NodeMap;
  readonly condition?: string | undefined;
}

/** Helm creates the namespace or finds it, installs CRDs apart, and usher itself writes its webhooks. */
const NOT_IN_TEMPLATES = /^(?:Namespace|CustomResourceDefinition|\w+WebhookConfiguration) /;

/** Of a role, its rules are known as data, each with its conditions; a binding has the conditions of its role. */
const ROLE = /^(ClusterRole|Role)(?:Binding)? /;

const NAMES: JsonObject = { modules: { "node-labels": { startupTaint: STARTUP_TAINT } } };

/** Every object that any setting registers, each field of it under its condition. */
export async function chartObjects(): Promise<ChartObject[]> {
  const roles = new Map(
    declaredRoles(await loadModules(declarations)).map((role) => [`${role.kind} ${role.name}`, role]),
  );
  const variants = await Promise.all(
    [undefined, ...(await allSwitches())].map(async (one) => ({
      condition: one?.condition,
      objects: await objectsWith(one?.configuration ?? {}),
    })),
  );
  const keys = new Set(variants.flatMap(({ objects }) => [...objects.keys()]));
  return [...keys]
    .filter((key) => !NOT_IN_TEMPLATES.test(key))
    .map((key) => {
      const role = roles.get(key.replace(ROLE, "$1 "));
      if (role !== undefined) {
        const object = variants.map(({ objects }) => objects.get(key)).find((one) => one !== undefined);
        const rules = "rules" in (object ?? {}) ? { rules: rulesOf(role) } : {};
        return { key, node: { ...(object as NodeMap), ...rules }, condition: grantsAny(role) };
      }
      const node = switched(
        variants.map(({ condition, objects }) => ({ condition, value: objects.get(key) })),
      );
      return node instanceof When
        ? { key, node: node.node as NodeMap, condition: node.condition }
        : { key, node: node as NodeMap };
    });
}

async function objectsWith(configuration: JsonObject): Promise<ReadonlyMap<string, JsonObject>> {
  const objects = await registered(together(NAMES, configuration), NAMESPACE);
  return new Map(objects.map((object) => [keyOf(object), withoutText(object)]));
}

/** The text of the configuration, and what follows from it: the chart has the configuration as a value. */
function withoutText(object: JsonObject): JsonObject {
  const text = JSON.stringify(object, (key, value) =>
    key === CONFIGURATION_ANNOTATION || key === CONFIGURATION_FILE ? "" : value,
  );
  return JSON.parse(text) as JsonObject;
}
