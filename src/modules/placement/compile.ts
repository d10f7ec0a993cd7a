/**
 * Placement as policies of the API server itself: pods get at their creation what usher would add, by one
 * MutatingAdmissionPolicy for each policy. Its only mutation is a JSON Patch: the fields are atomic, so an
 * ApplyConfiguration can't extend them.
 *
 * Expressions never copy a value of the pod into the patch: the API server of 1.37 can't write a value back that a match
 * condition has read before. Requirements are rebuilt from their texts instead.
 */
import { type PolicyRef, policyKey, policyName } from "../../core/evaluate/finding.ts";
import { equal, type Json, type JsonObject, listAt, own, stringAt } from "../../core/json.ts";
import { admissionPolicy, celString, celValue, selectorObject } from "../../core/kubernetes/cel.ts";
import { MIRROR_ANNOTATION } from "../../core/kubernetes/object.ts";
import { parseInt64 } from "../../core/kubernetes/selectors/integer.ts";
import { POD } from "../../core/kubernetes/workloads.ts";
import type { CompileContext, CompiledPolicy, LeftOut } from "../../core/module/compile.ts";
import { notCompiled } from "../../core/module/compile.ts";
import { exemptNamespaces, type Installation } from "../../core/module/installation.ts";
import { type Path, pointer } from "../../core/path.ts";
import { type Criteria, type Criterion, wantedOf } from "./criteria/criterion.ts";
import { nodeSelector } from "./criteria/node-selector.ts";
import { isMatchable, LISTS, parseTerm, REQUIRED_NODE_AFFINITY } from "./criteria/node-term.ts";
import { requiredNodeAffinity } from "./criteria/required-node-affinity.ts";
import { haveCommonObject } from "./place/contradictions.ts";
import { comparePolicies, NAMESPACE_NAME, type PlacementPolicy } from "./policy/policy.ts";
import { isPlaced } from "./settings.ts";

/** Every policy, in the order in which usher applies them. */
export function compile({ policies, installation }: CompileContext<PlacementPolicy>): CompiledPolicy[] {
  const sorted = [...policies].sort(comparePolicies);
  return sorted.map((policy) => compilePolicy(policy, sorted, installation));
}

function compilePolicy(
  policy: PlacementPolicy,
  all: readonly PlacementPolicy[],
  installation: Installation,
): CompiledPolicy {
  const { ref } = policy;
  const why = whyNot(policy, installation);
  if (why !== undefined) return notCompiled(ref, ...why);
  const mutation = mutationOf(policy.criteria);
  if (mutation.patches.length === 0)
    return notCompiled(ref, "criteria", "no pod could get any of them: they contradict themselves");
  const spec: JsonObject = {
    failurePolicy: policy.failure,
    // As usher's own webhook: a later change of the pod by another policy or webhook is seen.
    reinvocationPolicy: "IfNeeded",
    matchConstraints: matchConstraints(policy, installation),
    matchConditions: LEFT_ALONE,
    ...(mutation.variables.length === 0 ? {} : { variables: mutation.variables }),
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: mutation.patches.join(" +\n") } }],
  };
  return {
    policy: ref,
    objects: admissionPolicy("MutatingAdmissionPolicy", objectName(ref), spec),
    leftOut: leftOutOf(policy, all),
  };
}

/** The part of a policy that is not compiled at all, and the reason. */
function whyNot(policy: PlacementPolicy, installation: Installation): [string, string] | undefined {
  if (policy.broken !== undefined) return ["the policy", `it is not valid: ${policy.broken}`];
  if (policy.fromNamespace !== undefined)
    return ["fromNamespace", "values of the namespace are known only when a pod is created"];
  if (policy.targets === "Templates")
    return [
      "templates",
      "an in-tree policy selects by the labels of an object, not by those of its template",
    ];
  if (!isPlaced(POD, installation))
    return ["pods", "modules.placement.resources of the configuration does not name pods"];
  if (policy.criteria.length === 0) return ["criteria", "it has none"];
  return undefined;
}

/** Names of namespaces have no dot: no two policies share a name. */
function objectName({ namespace, name }: PolicyRef): string {
  return `usher-placement${namespace === undefined ? "" : `-${namespace}`}.${name}`;
}

function matchConstraints(
  { podSelector, namespaceSelector }: PlacementPolicy,
  installation: Installation,
): JsonObject {
  const exempt = [...new Set([...exemptNamespaces(installation), ...(installation.excluded ?? [])])].sort();
  const inside = namespaceSelector === undefined ? {} : selectorObject(namespaceSelector);
  return {
    resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    namespaceSelector: {
      matchExpressions: [
        ...listAt(inside, "matchExpressions"),
        { key: NAMESPACE_NAME, operator: "NotIn", values: exempt },
      ],
    },
    ...(podSelector === undefined ? {} : { objectSelector: selectorObject(podSelector) }),
  };
}

/** The pods that usher leaves alone: see `leftAlone`. */
const LEFT_ALONE: readonly JsonObject[] = [
  { name: "without-a-node", expression: 'object.spec.?nodeName.orValue("") == ""' },
  {
    name: "not-a-mirror-pod",
    expression: `!(${celString(MIRROR_ANNOTATION)} in object.metadata.?annotations.orValue({}))`,
  },
  {
    name: "not-of-a-daemon-set",
    expression:
      'object.metadata.?ownerReferences.orValue([]).all(o, !o.?controller.orValue(false) || o.kind != "DaemonSet" || !o.apiVersion.startsWith("apps/"))',
  },
];

interface Variable {
  readonly [key: string]: string;
  readonly name: string;
  readonly expression: string;
}

/** One expression in parts: each is a list of JSON Patches. */
interface Mutation {
  readonly variables: readonly Variable[];
  readonly patches: readonly string[];
}

function mutationOf(criteria: Criteria): Mutation {
  const nodes = nodePart(criteria);
  const lists = criteria.flatMap(({ criterion, value }) =>
    criterion.list === undefined || criterion.name === requiredNodeAffinity.name
      ? []
      : [listPart(criterion, value as readonly JsonObject[])],
  );
  const names = criteria.flatMap(({ criterion, value }) =>
    typeof value === "string" ? [namePart(criterion, value)] : [],
  );
  const parts = [nodes, ...lists];
  return {
    variables: parts.flatMap(({ variables }) => variables),
    patches: [
      ...affinityParents(parts.flatMap(({ added }) => added)),
      ...parts.flatMap(({ patches }) => patches),
      ...names,
    ],
  };
}

/** A list of elements that a variable holds, and that is not empty where something is added. */
interface Added {
  readonly variable: string;
  /** Below a pod's spec. */
  readonly path: Path;
}

interface Part extends Mutation {
  readonly added: readonly Added[];
}

const patch = (op: "add" | "remove", path: string, value?: string) =>
  `JSONPatch{op: "${op}", path: ${path}${value === undefined ? "" : `, value: ${value}`}}`;

const placeOf = (path: Path) => celString(pointer(["spec", ...path]));

/** A field of the pod as an optional: `object.spec.?affinity.?nodeAffinity`. */
const fieldOf = (path: Path) => `object.spec${path.map((step) => `.?${step}`).join("")}`;

const isAdded = ({ variable }: Added) => `variables.${variable}.size() > 0`;

/** The objects around lists of affinity, where the pod does not have them and something is added. */
function affinityParents(added: readonly Added[]): string[] {
  const inside = added.filter(({ path }) => path[0] === "affinity");
  const parents = [...new Map(inside.map(({ path }) => [String(path[1]), path.slice(0, 2)])).values()];
  return [...(inside.length === 0 ? [] : [["affinity"]]), ...parents].map((parent) => {
    const children = inside.filter(({ path }) => equal(path.slice(0, parent.length), [...parent]));
    const some = children.map(isAdded).join(" || ");
    return `(!${fieldOf(parent)}.hasValue() && (${some}) ? [${patch("add", placeOf(parent), "{}")}] : [])`;
  });
}

/** When an element `p` of the pod excludes one `e` of the policy, by the name of the criterion. @default when they are equal */
const EXCLUDING: Readonly<Partial<Record<string, string>>> = {
  topologySpreadConstraints: "p.topologyKey == e.topologyKey && p.whenUnsatisfiable == e.whenUnsatisfiable",
  schedulingGates: "p.name == e.name",
};

/** A list to which the policy's elements are added, each by itself. */
function listPart(criterion: Criterion, wanted: readonly JsonObject[]): Part {
  const { name, list = [] } = criterion;
  const present = `${fieldOf(list)}.orValue([])`;
  const added = { variable: `${name}ToAdd`, path: list };
  const variables =
    name === "tolerations"
      ? tolerationVariables(wanted, present, added.variable)
      : [
          {
            name: added.variable,
            expression: `dyn(${celValue(distinct(wanted, (one) => one))}.filter(e, !${present}.exists(p, ${EXCLUDING[name] ?? "p == e"})))`,
          },
        ];
  return {
    added: [added],
    variables,
    patches: [
      `(!${fieldOf(list)}.hasValue() && ${isAdded(added)} ? [${patch("add", placeOf(list), "[]")}] : [])`,
      `variables.${added.variable}.map(e, ${patch("add", placeOf([...list, "-"]), name === "tolerations" ? "e.toleration" : "e")})`,
    ],
  };
}

function distinct<Item extends Json>(items: readonly Item[], by: (item: Item) => Json): Item[] {
  return items.filter((item, i) => !items.slice(0, i).some((other) => equal(by(other), by(item))));
}

/** With the defaults of each filled in; see `covers` in core/kubernetes/tolerations.ts. */
function tolerationVariables(wanted: readonly JsonObject[], present: string, name: string): Variable[] {
  const plain = wanted.map((toleration) => {
    const operator = stringAt(toleration, "operator") || "Equal";
    const seconds = own(toleration, "tolerationSeconds");
    return {
      toleration,
      key: stringAt(toleration, "key") ?? "",
      operator,
      value: operator === "Exists" ? "" : (stringAt(toleration, "value") ?? ""),
      effect: stringAt(toleration, "effect") ?? "",
      seconds: typeof seconds === "number" ? [Math.max(0, seconds)] : [],
    };
  });
  const once = distinct(plain, ({ key, operator, value, effect }) => [key, operator, value, effect]);
  const sameKey = "p.key == e.key && p.operator == e.operator && p.value == e.value && p.effect == e.effect";
  const wider = [
    '(p.effect == "" || p.effect == e.effect)',
    '(p.key == "" || p.key == e.key)',
    '(p.operator == "Exists" || (p.operator == "Equal" && e.operator == "Equal" && p.value == e.value))',
    '(!(e.effect in ["", "NoExecute"]) || p.seconds.size() == 0 || (e.seconds.size() > 0 && p.seconds[0] >= e.seconds[0]))',
  ].join(" && ");
  const operator = 't.?operator.orValue("")';
  return [
    {
      name: "tolerations",
      expression: `dyn(${present}.map(t, {${[
        '"key": dyn(t.?key.orValue(""))',
        `"operator": dyn(${operator} == "" ? "Equal" : ${operator})`,
        `"value": dyn(${operator} == "Exists" ? "" : t.?value.orValue(""))`,
        '"effect": dyn(t.?effect.orValue(""))',
        '"seconds": dyn([t.?tolerationSeconds].filter(s, s.hasValue()).map(s, s.value() < 0 ? 0 : s.value()))',
      ].join(", ")}}))`,
    },
    {
      name,
      expression: `dyn(${celValue(once as unknown as Json)}.filter(e, !variables.tolerations.exists(p, (${sameKey}) || (${wider}))))`,
    },
  ];
}

/** The API server writes `default-scheduler` into each pod that names none. */
const UNSET: Readonly<Partial<Record<string, string>>> = { schedulerName: '"default-scheduler"' };

function namePart({ name, derived = [] }: Criterion, wanted: string): string {
  const unset = ['""', UNSET[name] ?? []].flat().join(", ");
  const isUnset = `${fieldOf([name])}.orValue("") in [${unset}]`;
  const isFree = name === "nodeName" ? ` && ${fieldOf(["schedulingGates"])}.orValue([]).size() == 0` : "";
  const set = patch("add", placeOf([name]), celString(wanted));
  const removed = derived.map(
    (field) => ` + (${fieldOf([field])}.hasValue() ? [${patch("remove", placeOf([field]))}] : [])`,
  );
  return `(${isUnset}${isFree} ? [${set}]${removed.join("")} : [])`;
}

/** nodeSelector and required node affinity: both are judged by whether any node could still match. */
function nodePart(criteria: Criteria): Part {
  const labels = wantedOf(criteria, nodeSelector) ?? [];
  const terms = (wantedOf(criteria, requiredNodeAffinity) ?? []).filter((term) =>
    isMatchable(parseTerm(term), new Map()),
  );
  if (labels.length === 0 && terms.length === 0) return { added: [], variables: [], patches: [] };
  const selectors = labels.map((_, i) => `selector${i + 1}`);
  const last = selectors.at(-1) ?? "selector";
  const added = { variable: "requiredTerms", path: [...REQUIRED_NODE_AFFINITY] };
  return {
    added: terms.length === 0 ? [] : [added],
    variables: [
      { name: "terms", expression: TERMS },
      { name: "selector", expression: SELECTOR },
      ...labels.flatMap(([key, value], i) =>
        selectorVariables(selectors[i - 1] ?? "selector", selectors[i] ?? "", key, value),
      ),
      ...(terms.length === 0 ? [] : termVariables(terms, last)),
    ],
    patches: [
      ...(labels.length === 0
        ? []
        : [
            `(!${fieldOf(["nodeSelector"])}.hasValue() && variables.${last}.size() > 0 ? [${patch("add", '"/spec/nodeSelector"', "{}")}] : [])`,
            `variables.${last}.filter(s, !variables.selector.exists(o, o.key == s.key)).map(s, ${patch("add", '"/spec/nodeSelector/" + jsonpatch.escapeKey(s.key)', "s.values[0]")})`,
          ]),
      ...(terms.length === 0
        ? []
        : [
            `(${isAdded(added)} ? [${patch("add", placeOf(REQUIRED_NODE_AFFINITY), '{"nodeSelectorTerms": variables.requiredTerms}')}] : [])`,
          ]),
    ],
  };
}

const [EXPRESSIONS, FIELDS] = LISTS;

const rebuilt = (list: string) =>
  `${list}.orValue([]).map(r, {"key": dyn(r.key), "operator": dyn(r.operator), "values": dyn(r.?values.orValue([]).map(v, v))})`;

/** The pod's required terms, each with both lists and each requirement with values. */
const TERMS = `dyn(${fieldOf([...REQUIRED_NODE_AFFINITY, "nodeSelectorTerms"])}.orValue([]).map(t, {"${EXPRESSIONS}": ${rebuilt(`t.?${EXPRESSIONS}`)}, "${FIELDS}": ${rebuilt(`t.?${FIELDS}`)}}))`;

/** The pod's nodeSelector, as requirements. */
const SELECTOR =
  'dyn(object.spec.?nodeSelector.orValue({}).map(k, {"key": dyn(k), "operator": dyn("In"), "values": dyn([object.spec.nodeSelector[k]])}))';

/** Whether requirement `s` admits a label's value; see core/kubernetes/selectors/node-requirements.ts. */
const admits = (value: string, number: string) =>
  `(s.operator == "In" ? ${value} in s.values : s.operator == "NotIn" ? !(${value} in s.values) : s.operator in ["Exists", "DoesNotExist"] ? s.operator == "Exists" : ${number})`;

/** The same of a value that is known only when a pod is created. No label has a sign; numbers of 19 digits count as none. */
const ADMITS_ANY = admits(
  "v",
  'v.matches("^0*[0-9]{1,18}$") && (s.operator == "Gt" ? int(v) > int(s.values[0]) : int(v) < int(s.values[0]))',
);

/** The same of a literal. */
function admitsText(text: string): string {
  const number = parseInt64(text);
  return admits(
    celString(text),
    number === undefined
      ? "false"
      : `(s.operator == "Gt" ? ${number} > int(s.values[0]) : ${number} < int(s.values[0]))`,
  );
}

/** Whether one node could meet these requirements. */
const couldMatch = (requirements: string, names: string) =>
  `[${requirements}].exists(l, l.all(r, ${[
    `r.operator == "In" ? r.values.exists(v, l.all(s, s.key != r.key || ${ADMITS_ANY}))`,
    'r.operator == "DoesNotExist" ? l.all(s, s.key != r.key || s.operator in ["DoesNotExist", "NotIn"])',
    'r.operator == "Gt" ? int(r.values[0]) < 9223372036854775807 && l.all(s, s.key != r.key || s.operator != "Lt" || int(r.values[0]) + 1 < int(s.values[0]))',
    'r.operator != "Lt" || int(r.values[0]) > 0',
  ].join(
    " : ",
  )})) && ${names}.all(r, r.operator != "In" || ${names}.all(s, (s.operator == "In") == (s.values[0] == r.values[0])))`;

/** Whether any node could match a term beside a nodeSelector. An empty term matches none. */
const matchable = (term: string, selector: string) =>
  `(${term}.${EXPRESSIONS}.size() + ${term}.${FIELDS}.size() > 0 && ${couldMatch(`${term}.${EXPRESSIONS} + variables.${selector}`, `${term}.${FIELDS}`)})`;

/** The nodeSelector with a further label: not where the pod has the key, nor where no term would be left. */
function selectorVariables(before: string, name: string, key: string, value: string): Variable[] {
  const text = celString(key);
  const left = `${name}Terms`;
  const isNamed = `variables.terms.exists(t, t.${EXPRESSIONS}.exists(s, s.key == ${text}))`;
  const contradicts = `variables.${left}.size() > 0 && !variables.${left}.exists(t, t.${EXPRESSIONS}.all(s, s.key != ${text} || ${admitsText(value)}))`;
  const further = celValue([{ key, operator: "In", values: [value] }]);
  return [
    // A label that no term names changes nothing for any.
    {
      name: left,
      expression: `dyn(${isNamed} ? variables.terms.filter(t, ${matchable("t", before)}) : dyn([]))`,
    },
    {
      name,
      expression: `dyn(variables.${before}.exists(s, s.key == ${text}) || (${contradicts}) ? variables.${before} : variables.${before} + ${further})`,
    },
  ];
}

const SAME = "r.key == s.key && r.operator == s.operator && sets.equivalent(r.values, s.values)";

/** Whether one term has all requirements of another. */
const hasAll = (term: string, other: string) =>
  LISTS.map((list) => `${other}.${list}.all(r, ${term}.${list}.exists(s, ${SAME}))`).join(" && ");

/** Each term of the pod with each of the policy; see `productOf` in criteria/required-node-affinity.ts. */
function termVariables(terms: readonly JsonObject[], selector: string): Variable[] {
  const wanted = terms.map((term) =>
    Object.fromEntries(
      LISTS.map((list) => [
        list,
        listAt(term, list).map((one) => ({
          key: own(one, "key") ?? "",
          operator: own(one, "operator") ?? "",
          values: listAt(one, "values"),
        })),
      ]),
    ),
  );
  const both = LISTS.map(
    (list) => `"${list}": dyn(m.${list} + w.${list}.filter(r, !m.${list}.exists(s, ${SAME})))`,
  );
  const kept = LISTS.map((list) => `"${list}": dyn(m.${list})`);
  const combine = `variables.wanted.map(w, dyn({${both.join(", ")}, "kept": dyn(false)})).filter(c, ${couldMatch(`c.${EXPRESSIONS} + variables.${selector}`, `c.${FIELDS}`)})`;
  const met = `variables.wanted.exists(w, ${hasAll("m", "w")})`;
  const changed =
    "(variables.product.size() != variables.terms.size() || variables.product.exists(c, !c.kept))";
  const someRemain = `variables.product.exists(c, !c.kept || ${matchable("c", selector)})`;
  const repeated = `variables.product.exists(j, d, j < i && ${hasAll("c", "d")} && ${hasAll("d", "c")})`;
  const written = `{"${EXPRESSIONS}": c.${EXPRESSIONS}, "${FIELDS}": c.${FIELDS}}`;
  return [
    { name: "wanted", expression: `dyn(${celValue(wanted)})` },
    {
      name: "product",
      expression: `dyn(variables.terms.map(m, ${matchable("m", selector)} && !${met} ? dyn(${combine}) : dyn([{${kept.join(", ")}, "kept": dyn(true)}])).flatten())`,
    },
    {
      name: "requiredTerms",
      expression: `dyn(!${fieldOf(REQUIRED_NODE_AFFINITY)}.hasValue() ? variables.wanted.filter(c, ${couldMatch(`c.${EXPRESSIONS} + variables.${selector}`, `c.${FIELDS}`)}) : ${changed} && ${someRemain} && variables.product.size() <= 128 ? dyn(variables.product.transformList(i, c, c.kept || !${repeated}, ${written})) : dyn([]))`,
    },
  ];
}

/** The parts of a policy that pods of the API server's own policies do not get, or not in the same way. */
function leftOutOf(policy: PlacementPolicy, all: readonly PlacementPolicy[]): LeftOut[] {
  const { targets, onConflict, onUpdate, enforcement, criteria } = policy;
  const found: LeftOut[] = [];
  if (targets === "Both")
    found.push({
      what: "templates",
      why: "workloads do not show the criteria, and pods of DaemonSets do not get them",
    });
  if (onConflict === "Refuse")
    found.push({ what: "onConflict: Refuse", why: "a pod with another value is admitted and keeps it" });
  if (onUpdate === "Inject")
    found.push({ what: "onUpdate: Inject", why: "a gated pod that is updated gets nothing" });
  if (enforcement !== "None") found.push({ what: `enforcement: ${enforcement}`, why: "it is not compiled" });
  for (const { criterion, value } of criteria) {
    if (criterion.reference !== undefined)
      found.push({
        what: `the check of ${criterion.name}`,
        why: `pods are refused while ${criterion.reference.kind} ${String(value)} does not exist`,
      });
    if (UNSET[criterion.name] !== undefined)
      found.push({
        what: `a chosen ${String(JSON.parse(UNSET[criterion.name] ?? "null"))}`,
        why: "a manifest that names it looks like one that names no scheduler",
      });
  }
  const rivals = all.filter((other) => other !== policy && dependOnOrder(policy, other));
  if (rivals.length > 0)
    found.push({
      what: "the order of policies",
      why: `the API server applies policies in any order, and ${namesOf(rivals)} may get in first`,
    });
  return found;
}

function namesOf(policies: readonly PlacementPolicy[]): string {
  const [first, ...more] = policies.map(({ ref }) => policyName(ref));
  return more.length === 0 ? `${first}` : `${first} and ${more.length} more`;
}

/** Criteria about the labels of nodes: together they may leave no node, and then the first counts. */
const NODES: readonly string[] = [nodeSelector.name, requiredNodeAffinity.name];

/** Whether the result of two policies for one pod may depend on which is applied first. */
function dependOnOrder(a: PlacementPolicy, b: PlacementPolicy): boolean {
  if (policyKey(a.ref) === policyKey(b.ref) || b.broken !== undefined || b.targets === "Templates")
    return false;
  if (!haveCommonObject(a, b)) return false;
  const has = ({ criteria }: PlacementPolicy, names: readonly string[]) =>
    criteria.some(({ criterion }) => names.includes(criterion.name));
  // A pod with a node is left alone.
  if (has(a, ["nodeName"]) || has(b, ["nodeName"])) return true;
  if (has(a, NODES) && has(b, NODES)) return true;
  return a.criteria.some(({ criterion, value }) => {
    const other = wantedOf(b.criteria, criterion);
    if (other === undefined || equal(other as Json, value as Json)) return false;
    return typeof value === "string" || criterion.name === "tolerations" || criterion.name in EXCLUDING;
  });
}
