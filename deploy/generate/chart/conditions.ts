import type {
  ListedCondition,
  SettingCondition,
  ValueCondition,
} from "../../../src/core/installation/setting-condition.ts";

/** Settings that the chart has as separate values. */
const VALUES: ReadonlyMap<string, string> = new Map([
  ["manageCrds", "$.Values.crds.manage"],
  ["controlPlaneNodes", "$.Values.controlPlaneNodes"],
  ["networkPolicy.enabled", "$.Values.networkPolicy.enabled"],
]);

/** An expression that is true if all conditions hold. `resource`: the expression of a `listed` condition's resource. */
export function expression(conditions: readonly SettingCondition[], resource = '""'): string {
  return all(conditions.map((one) => ("listed" in one ? listed(one, resource) : equals(one))));
}

function equals(condition: ValueCondition): string {
  const value =
    VALUES.get(condition.setting.join(".")) ?? dig(condition.setting, JSON.stringify(condition.default));
  if (typeof condition.equals === "string") return `eq (${value}) ${JSON.stringify(condition.equals)}`;
  return condition.equals ? value : `not (${value})`;
}

/** An absent list has all. */
function listed({ listed: path }: ListedCondition, resource: string): string {
  return `has ${resource} (${dig(path, `(list ${resource})`)})`;
}

/** A setting of the configuration. */
export function dig(path: readonly string[], otherwise: string): string {
  return `dig ${path.map((key) => JSON.stringify(key)).join(" ")} ${otherwise} $.Values.configuration`;
}

export function all(expressions: readonly string[]): string {
  return joined("and", expressions);
}

export function any(expressions: readonly string[]): string {
  return joined("or", expressions);
}

function joined(word: "and" | "or", expressions: readonly string[]): string {
  const different = [...new Set(expressions)];
  const [first = ""] = different;
  return different.length === 1
    ? first
    : `${word} ${different.map((one) => (/^\S+$/.test(one) ? one : `(${one})`)).join(" ")}`;
}
