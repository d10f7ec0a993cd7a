import { type DeclaredRole, type Right, ruleOf } from "../../../src/core/module/rights.ts";
import { asNode, type Node, type NodeMap, scalar, When } from "../template/node.ts";
import { NAMESPACE } from "../template/standing-for.ts";
import { any, dig, expression } from "./conditions.ts";

/** The rules of a role, each under the conditions of its right. */
export function rulesOf({ rights }: DeclaredRole): Node[] {
  return rights.map((right) => {
    const { names, when, each } = right;
    const rule = asNode(
      ruleOf({
        ...right,
        ...(names === undefined ? {} : { names: names === "namespace" ? [NAMESPACE] : names }),
      } as Parameters<typeof ruleOf>[0]),
    ) as NodeMap;
    if (each === undefined) return when.length === 0 ? rule : new When(conditionOf(right), rule);
    const resource = 'printf "%s.%s" .resource .group';
    const ofOne = {
      ...rule,
      apiGroups: [scalar(".group | toJson")],
      resources: [scalar(".resource | toJson")],
    };
    const list = dig([each], "(list)");
    return new When(
      list,
      when.length === 0 ? ofOne : new When(expression(when, `(${resource})`), ofOne),
      "range",
    );
  });
}

function conditionOf({ when, group, resources }: Right): string {
  const [first = ""] = resources;
  return expression(when, JSON.stringify(group === "" ? first : `${first}.${group}`));
}

/** The condition under which a role grants anything; `undefined` if it always does. */
export function grantsAny({ rights }: DeclaredRole): string | undefined {
  const unconditional = rights.some(({ when, each }) => when.length === 0 && each === undefined);
  return unconditional ? undefined : any(rights.filter(({ each }) => each === undefined).map(conditionOf));
}
