/**
 * Rules as MutatingAdmissionPolicies for nodes that are created. A controller is not part of them, so nodes that exist,
 * labels that are owned and the startup taint are left out.
 */

import type { JsonObject } from "../../core/json.ts";
import { admissionPolicy, celString, celValue, selectorObject } from "../../core/kubernetes/cel.ts";
import { admittedAtRegistration } from "../../core/kubernetes/node-label-keys.ts";
import type { Requirement } from "../../core/kubernetes/selectors/label-selector.ts";
import {
  type CompileContext,
  type CompiledPolicy,
  type LeftOut,
  notCompiled,
  withinBudget,
} from "../../core/module/compile.ts";
import { pointer } from "../../core/path.ts";
import type { PolicyRef } from "../../core/policy/policy-ref.ts";
import { writtenTaint } from "./desired/difference.ts";
import { owns } from "./rules/ownership.ts";
import { compareRules, type NodeRule, type RuledTaint } from "./rules/rule.ts";
import { RuleIndex, type RulePolicy } from "./rules/rule-index.ts";
import { inertBecause, isOpenshift, settingsOf } from "./settings.ts";

export function compile({ policies, installation, view }: CompileContext<RulePolicy>): CompiledPolicy[] {
  const settings = settingsOf(installation);
  const index = new RuleIndex(policies, settings);
  const openshift = isOpenshift(settings, view);
  const rules = policies.filter((one): one is NodeRule => one.kind === "rule").sort(compareRules);
  return [
    ...rules.map((rule) => {
      const inert = inertBecause(rule.ref.namespace ?? "", settings);
      return inert === undefined
        ? compileRule(rule, index, openshift)
        : notCompiled(rule.ref, "the rule", inert);
    }),
    ...policies.flatMap((one) =>
      one.kind === "rule"
        ? []
        : [
            notCompiled(
              one.ref,
              "the removal of labels",
              "it is about nodes that exist, and needs a controller",
            ),
          ],
    ),
  ];
}

/** Names of namespaces have no dot: no two rules share a name. */
function objectName({ namespace, name }: PolicyRef): string {
  return `usher-node-labels-${namespace ?? ""}.${name}`;
}

function compileRule(rule: NodeRule, index: RuleIndex, openshift: boolean): CompiledPolicy {
  const { ref, patterns, selector } = rule;
  if (rule.coversEveryNode) return notCompiled(ref, "the rule", "its patterns or its selector are not valid");
  const visible = selector === undefined ? [] : visibleRequirements(rule, index);
  if (visible === undefined)
    return notCompiled(ref, "the rule", "it selects by labels that rules set or OwnedLabels own");
  const deferred = [...rule.labels.keys()].filter((key) => !admittedAtRegistration(key, openshift));
  const patches = patchesOf(rule, new Set(deferred), index.settings.startupTaint);
  if (patches.length === 0) return notCompiled(ref, "the rule", "it sets nothing");
  const byName = patterns
    .map(({ source }) => `object.metadata.name.matches(${celString(`\\A(?:${source})\\z`)})`)
    .join(" || ");
  const spec: JsonObject = {
    // A node that can't join is an outage.
    failurePolicy: "Ignore",
    reinvocationPolicy: "Never",
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["nodes"] }],
      ...(visible.length === 0
        ? {}
        : { objectSelector: selectorObject({ kind: "requirements", requirements: visible }) }),
    },
    ...(byName === "" ? {} : { matchConditions: [{ name: "named-so", expression: byName }] }),
    variables: [
      {
        name: "registersItself",
        expression:
          'request.userInfo.username.startsWith("system:node:") && request.userInfo.username != "system:node:" && "system:nodes" in request.userInfo.?groups.orValue([])',
      },
    ],
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: patches.join(" +\n") } }],
  };
  return withinBudget({
    policy: ref,
    objects: admissionPolicy("MutatingAdmissionPolicy", objectName(ref), spec),
    leftOut: leftOutOf(rule, deferred, index),
  });
}

/** The requirements of a selector, where labels that rules set or that are owned count as absent; `undefined` where no node matches. */
function visibleRequirements({ selector }: NodeRule, index: RuleIndex): readonly Requirement[] | undefined {
  if (selector?.kind === "nothing") return undefined;
  const requirements = selector?.kind === "requirements" ? selector.requirements : [];
  const isHidden = ({ key }: Requirement) =>
    index.setsLabel(key) || [...index.ownerships].some((ownership) => owns(ownership, key));
  const needsLabel = ({ operator }: Requirement) => operator === "In" || operator === "Exists";
  return requirements.some((one) => isHidden(one) && needsLabel(one))
    ? undefined
    : requirements.filter((one) => !isHidden(one));
}

const add = (path: string, value: string) => `JSONPatch{op: "add", path: ${path}, value: ${value}}`;

function patchesOf(
  { labels, annotations, taints }: NodeRule,
  deferred: ReadonlySet<string>,
  startupTaint: string,
): string[] {
  const parent = (field: string) =>
    `(object.metadata.?${field}.hasValue() ? [] : [${add(celString(`/metadata/${field}`), "{}")}])`;
  const entry = (field: string, key: string, value: string) =>
    add(celString(pointer(["metadata", field, key])), celString(value));
  return [
    ...(labels.size === 0 ? [] : [parent("labels")]),
    ...[...labels].map(([key, value]) =>
      deferred.has(key)
        ? `(variables.registersItself ? [] : [${entry("labels", key, value)}])`
        : `[${entry("labels", key, value)}]`,
    ),
    ...(annotations.size === 0 ? [] : [parent("annotations")]),
    ...[...annotations].map(([key, value]) => `[${entry("annotations", key, value)}]`),
    ...taintPatches(taints.filter(({ key }) => key !== startupTaint)),
  ];
}

/** A taint that the node has with another value gets that of the rule. */
function taintPatches(taints: readonly RuledTaint[]): string[] {
  if (taints.length === 0) return [];
  const present = "object.spec.?taints.orValue([])";
  const same = ({ key, effect }: RuledTaint) =>
    `t.key == ${celString(key)} && t.effect == ${celString(effect)}`;
  return [
    `(object.spec.?taints.hasValue() ? [] : [${add('"/spec/taints"', "[]")}])`,
    ...taints.flatMap((taint) => [
      `${present}.transformList(i, t, ${same(taint)}, ${add('"/spec/taints/" + string(i) + "/value"', celString(taint.value))})`,
      `(${present}.exists(t, ${same(taint)}) ? [] : [${add('"/spec/taints/-"', celValue(writtenTaint(taint)))}])`,
    ]),
  ];
}

function leftOutOf(rule: NodeRule, deferred: readonly string[], index: RuleIndex): LeftOut[] {
  const rivals = [...index.rules].filter((other) => other !== rule && setDifferent(rule, other));
  return [
    { what: "nodes that exist", why: "only a node that is created gets it" },
    ...(deferred.length === 0
      ? []
      : [
          {
            what: `${deferred.join(", ")} of nodes that register themselves`,
            why: "NodeRestriction would refuse the node, and no controller sets it afterwards",
          },
        ]),
    ...(rule.startupTaint ? [{ what: "startupTaint", why: "no controller would remove it" }] : []),
    ...(rivals.length === 0
      ? []
      : [
          {
            what: "the order of rules",
            why: `the API server applies policies in any order, and ${rivals[0]?.id ?? ""}${rivals.length > 1 ? ` and ${rivals.length - 1} more` : ""} may come last and win`,
          },
        ]),
  ];
}

/** Whether two rules have different values for one key. */
function setDifferent(a: NodeRule, b: NodeRule): boolean {
  const differs = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>) =>
    [...one].some(([key, value]) => other.has(key) && other.get(key) !== value);
  const taints = ({ taints: all }: NodeRule) =>
    new Map(all.map(({ key, effect, value }) => [`${key}:${effect}`, value]));
  return (
    differs(a.labels, b.labels) || differs(a.annotations, b.annotations) || differs(taints(a), taints(b))
  );
}
