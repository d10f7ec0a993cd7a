import {
  CONTROL_PLANE_NODES,
  HAS_NETWORK_POLICY,
  type ValueCondition,
} from "../../../src/core/installation/setting-condition.ts";
import { isObject, type Json, type JsonObject, listAt } from "../../../src/core/json.ts";
import { loadModules } from "../../../src/core/module/declaration.ts";
import { declaredRoles } from "../../../src/core/registration/rbac.ts";
import { declarations } from "../../../src/modules/index.ts";
import { expression } from "./conditions.ts";
import { configurationSchema } from "./schema.ts";

/** A setting that affects registration, at a value other than its default. */
export interface Switch {
  /** `modules.placement.enabled` */
  readonly setting: string;
  /** In a template: true if the setting has that value. */
  readonly condition: string;
  /** A configuration with that value. */
  readonly configuration: JsonObject;
}

/** Every setting that a right depends on, and those that only other objects do. */
export async function allSwitches(): Promise<readonly Switch[]> {
  const rights = declaredRoles(await loadModules(declarations)).flatMap((role) => role.rights);
  const conditions = [
    ...rights.flatMap(({ when }) => when.filter((one) => "setting" in one)),
    CONTROL_PLANE_NODES,
    HAS_NETWORK_POLICY,
  ];
  const byText = new Map(conditions.map((one) => [JSON.stringify(one), one]));
  const schema = await configurationSchema();
  const switches = [...byText.values()].flatMap((one) =>
    otherValues(one, schema).map((value) => switchOf(one, value)),
  );
  const distinct = new Map(switches.map((one) => [one.condition, one]));
  return [...distinct.values()];
}

/** The values of a setting beside its default. */
function otherValues(
  { setting, default: otherwise }: ValueCondition,
  schema: JsonObject,
): (string | boolean)[] {
  if (typeof otherwise === "boolean") return [!otherwise];
  const values = listAt(schema, ...setting.flatMap((key) => ["properties", key]), "enum");
  return values.flatMap((value) => (typeof value === "string" && value !== otherwise ? [value] : []));
}

function switchOf({ setting, default: otherwise }: ValueCondition, value: string | boolean): Switch {
  return {
    setting: setting.join("."),
    condition: expression([{ setting, equals: value, default: otherwise }]),
    configuration: under(setting, value),
  };
}

function under(path: readonly string[], value: Json): JsonObject {
  const [key = "", ...rest] = path;
  return { [key]: rest.length === 0 ? value : under(rest, value) };
}

/** All configurations in one. */
export function together(...configurations: readonly JsonObject[]): JsonObject {
  const whole: Record<string, Json> = {};
  for (const [key, value] of configurations.flatMap((one) => Object.entries(one))) {
    const before = whole[key];
    if (value !== undefined)
      whole[key] = isObject(before) && isObject(value) ? together(before, value) : value;
  }
  return whole;
}
