import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { CommandCode, InputDocuments } from "../../../core/module/command.ts";
import { byNames, Imported } from "./imported.ts";

/**
 * Imports policies of kyverno that add scheduling criteria to pods. A rule is converted whole or not at all: a part that usher
 * has no word for would select or change other pods.
 */
export const kyvernoCode: CommandCode<{ readonly file: readonly InputDocuments[] }> = {
  run: ({ args, parse }) => {
    const imported = new Imported();
    for (const { name, documents } of args.file)
      for (const document of documents) importDocument(document, name, parse, imported);
    return imported.report("the files have no kyverno policies");
  },
};

type Parse = (text: string) => Json | undefined;

const KINDS = ["ClusterPolicy", "Policy"];

function importDocument(document: Json, file: string, parse: Parse, imported: Imported): void {
  const kind = stringAt(document, "kind") ?? "";
  if (stringAt(document, "apiVersion")?.startsWith("kyverno.io/") !== true || !KINDS.includes(kind)) {
    imported.left(file, `${kind || "a document"} is not a ClusterPolicy or Policy of kyverno.io`);
    return;
  }
  const name = stringAt(document, "metadata", "name") ?? "";
  const namespace =
    kind === "Policy" ? (stringAt(document, "metadata", "namespace") ?? "default") : undefined;
  const what = `${file}: ${kind} ${name}`;
  const rules = listAt(document, "spec", "rules");
  if (rules.length === 0) imported.left(what, "it has no rules");
  for (const rule of rules) {
    const title = `${what}, rule ${stringAt(rule, "name") ?? ""}`;
    const converted = ruleOf(rule, parse, namespace);
    if ("why" in converted) {
      imported.left(title, converted.why);
      continue;
    }
    imported.policy(
      title,
      rules.length === 1 ? name : `${name}-${stringAt(rule, "name") ?? ""}`,
      converted.spec,
    );
    for (const how of converted.differs) imported.differs(title, how);
  }
}

interface Converted {
  readonly spec: JsonObject;
  readonly differs: readonly string[];
}

type Tried<Value> = Value | { readonly why: string };

function ruleOf(rule: Json, parse: Parse, namespace: string | undefined): Tried<Converted> {
  const known = ["name", "match", "exclude", "preconditions", "mutate", "skipBackgroundRequests"];
  const isRestricting = at(rule, "validate") !== undefined;
  if (isRestricting) return { why: validates(rule) };
  const unknown = Object.keys(isObject(rule) ? rule : {}).find((key) => !known.includes(key));
  if (unknown !== undefined) return { why: `usher has nothing like ${unknown}` };
  const selected = selectionOf(rule, namespace);
  if ("why" in selected) return selected;
  const wanted = mutationOf(at(rule, "mutate"), parse);
  if ("why" in wanted) return wanted;
  const condition = conditionOf(at(rule, "preconditions"), wanted.spec);
  if (typeof condition === "object") return condition;
  return {
    spec: { ...selected.spec, ...(wanted.inTemplate ? { targets: "Templates" } : {}), ...wanted.spec },
    differs: [...selected.differs, ...wanted.differs, ...(condition === "" ? [] : [condition])],
  };
}

/** A rule that refuses pods. Usher refuses by the node, not by the toleration. */
function validates(rule: Json): string {
  const text = JSON.stringify(at(rule, "validate"));
  return /node-role\.kubernetes\.io\/(master|control-plane)/.test(text)
    ? "it refuses pods that tolerate the taint of control-plane nodes, wherever they run; usher guards the nodes themselves: set the mode of group ControlPlane in the NodeSchedulingPolicy named cluster (module node-guard)"
    : "it refuses objects, and placement only adds scheduling criteria";
}

const POD_KINDS = ["Pod", "v1/Pod"];

/** Which pods a rule is for. Kyverno applies a rule for Pods to templates of workloads as well, as usher does. */
function selectionOf(rule: Json, namespace: string | undefined): Tried<Converted> {
  const match = oneFilter(at(rule, "match"), "match");
  if ("why" in match) return match;
  const { resources } = match;
  const allowed = ["kinds", "namespaces", "selector", "namespaceSelector", "operations"];
  const odd = Object.keys(resources).find((key) => !allowed.includes(key));
  if (odd !== undefined)
    return { why: `match.resources.${odd}: usher selects pods by labels and namespaces alone` };
  const operations = listAt(resources, "operations");
  if (operations.length > 0 && !operations.includes("CREATE"))
    return { why: "match.resources.operations: it is not for objects that are created" };
  const kinds = listAt(resources, "kinds").map(String);
  const others = kinds.filter((kind) => !POD_KINDS.includes(kind));
  const differs =
    others.length === 0
      ? []
      : [`it was for ${kinds.join(", ")} alone; usher places pods and templates of every kind of workload`];
  const names = listAt(resources, "namespaces").map(String);
  const wild = names.find((name) => /[*?]/.test(name));
  if (wild !== undefined)
    return {
      why: `match.resources.namespaces: ${wild} is a pattern, and usher selects namespaces by labels`,
    };
  const excluded = excludedNamespaces(at(rule, "exclude"));
  if ("why" in excluded) return excluded;
  const own =
    namespace === undefined ? names : names.length === 0 || names.includes(namespace) ? [namespace] : [];
  if (namespace !== undefined && own.length === 0)
    return { why: "a Policy is for its own namespace, which match leaves out" };
  const parts = [
    at(resources, "namespaceSelector") ?? {},
    byNames("In", own),
    byNames("NotIn", excluded.names),
  ];
  return {
    spec: { podSelector: at(resources, "selector") ?? {}, namespaceSelector: mergedSelector(parts) },
    differs,
  };
}

/** The one filter of `any` or `all`, or the old form without either. */
function oneFilter(block: Json | undefined, field: string): Tried<{ readonly resources: JsonObject }> {
  const filters = [...listAt(block, "any"), ...listAt(block, "all")];
  const bare = isObject(at(block, "resources")) ? [block] : [];
  const [only, ...more] = [...filters, ...bare];
  if (only === undefined) return { why: `${field} is empty` };
  if (more.length > 0) return { why: `${field} has several filters, and a policy of usher has one selector` };
  const other = Object.keys(isObject(only) ? only : {}).find((key) => key !== "resources");
  if (other !== undefined) return { why: `${field}.${other}: usher selects pods, not users` };
  const resources = at(only, "resources");
  return isObject(resources) ? { resources } : { why: `${field} has no resources` };
}

function excludedNamespaces(exclude: Json | undefined): Tried<{ readonly names: readonly string[] }> {
  if (exclude === undefined || exclude === null) return { names: [] };
  const filters = [...listAt(exclude, "any"), ...(isObject(at(exclude, "resources")) ? [exclude] : [])];
  const names: string[] = [];
  for (const filter of filters) {
    const resources = at(filter, "resources");
    const keys = Object.keys(isObject(resources) ? resources : {}).filter((key) => key !== "kinds");
    const listed = listAt(resources, "namespaces").map(String);
    if (
      keys.join() !== "namespaces" ||
      listed.some((name) => /[*?]/.test(name)) ||
      Object.keys(isObject(filter) ? filter : {}).length > 1
    )
      return { why: "exclude: usher can leave out namespaces by their whole names alone" };
    names.push(...listed);
  }
  return filters.length === 0
    ? { why: "exclude: usher can leave out namespaces by their whole names alone" }
    : { names };
}

/** All of several selectors. */
function mergedSelector(parts: readonly Json[]): JsonObject {
  const labels = Object.assign({}, ...parts.map((one) => at(one, "matchLabels") ?? {})) as JsonObject;
  const expressions = parts.flatMap((one) => listAt(one, "matchExpressions"));
  return {
    ...(Object.keys(labels).length === 0 ? {} : { matchLabels: labels }),
    ...(expressions.length === 0 ? {} : { matchExpressions: expressions }),
  };
}

interface Mutation extends Converted {
  /** The patch is for the template of a workload, not for a pod. */
  readonly inTemplate: boolean;
}

function mutationOf(mutate: Json | undefined, parse: Parse): Tried<Mutation> {
  const [way, ...more] = Object.keys(isObject(mutate) ? mutate : {});
  if (more.length > 0) return { why: `mutate has ${way} and ${more.join(", ")}` };
  if (way === "patchStrategicMerge") return strategicMerge(at(mutate, way));
  if (way === "patchesJson6902") return jsonPatch(parse(stringAt(mutate, way) ?? ""));
  return { why: `usher has nothing like mutate.${way ?? ""}` };
}

const ANCHOR = /^\+\((.*)\)$/;

function strategicMerge(patch: Json | undefined): Tried<Mutation> {
  const template = at(patch, "spec", "template", "spec");
  const spec = template ?? at(patch, "spec");
  const fields = isObject(spec) ? spec : {};
  const result: Record<string, Json> = {};
  const differs: string[] = [];
  for (const [written, value] of Object.entries(fields)) {
    const field = ANCHOR.exec(written)?.[1] ?? written;
    if (field === "nodeSelector" && isObject(value)) {
      const pairs = Object.entries(value).map(([key, one]) => [ANCHOR.exec(key)?.[1] ?? key, one] as const);
      const isForced = written === field && Object.keys(value).some((key) => !ANCHOR.test(key));
      result[field] = Object.fromEntries(pairs);
      if (isForced)
        differs.push(
          "kyverno replaces a value that the pod has; usher keeps it and warns (onConflict: Refuse refuses such pods)",
        );
    } else if (field === "tolerations" && Array.isArray(value)) {
      result[field] = value;
      if (written === field) differs.push("kyverno replaces the tolerations of the pod; usher adds to them");
    } else if (field === "affinity" && isObject(value)) {
      result[field] = value;
      differs.push(
        "kyverno replaces the lists of the pod's affinity; usher combines them, so that both hold",
      );
    } else if (
      ["schedulerName", "priorityClassName", "runtimeClassName", "nodeName"].includes(field) &&
      typeof value === "string"
    ) {
      result[field] = value;
      if (written === field) differs.push(`kyverno replaces ${field}; usher keeps the pod's`);
    } else return { why: `spec.${written} is not a scheduling criterion, or its anchor has no counterpart` };
  }
  if (Object.keys(result).length === 0) return { why: "the patch has no scheduling criteria" };
  if (JSON.stringify(result).includes("{{"))
    return { why: "it has variables, such as {{ request.object }}, that usher does not fill in" };
  if (/"[+<=^!X]\(/.test(JSON.stringify(result)))
    return { why: "it has anchors inside, and usher has no counterpart" };
  return { spec: result, differs, inTemplate: template !== undefined };
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PATHS: readonly (readonly [
  pattern: RegExp,
  field: "tolerations" | "nodeSelector" | "expressions" | "terms",
])[] = [
  [/^\/tolerations(\/-1?)?$/, "tolerations"],
  [/^\/nodeSelector(\/[^/]+)?$/, "nodeSelector"],
  [
    new RegExp(`^/affinity/nodeAffinity/${REQUIRED}/nodeSelectorTerms/(-1|-|0)/matchExpressions(/-1?|/0)?$`),
    "expressions",
  ],
  [new RegExp(`^/affinity/nodeAffinity/${REQUIRED}/nodeSelectorTerms/-1?$`), "terms"],
];

function jsonPatch(operations: Json | undefined): Tried<Mutation> {
  if (!Array.isArray(operations) || operations.length === 0)
    return { why: "mutate.patchesJson6902 is not a list of operations" };
  if (JSON.stringify(operations).includes("{{"))
    return { why: "it has variables, such as {{ request.object }}, that usher does not fill in" };
  const tolerations: Json[] = [];
  const expressions: Json[] = [];
  let nodeSelector: Record<string, Json> = {};
  const differs = new Set<string>();
  const scopes = new Set<string>();
  for (const operation of operations) {
    const path = stringAt(operation, "path") ?? "";
    const value = at(operation, "value");
    if (stringAt(operation, "op") !== "add" || value === undefined)
      return { why: `operation ${stringAt(operation, "op") ?? ""} ${path}: usher only adds` };
    const [, template = "", inner = ""] = /^\/spec(\/template\/spec)?(\/.*)$/.exec(path) ?? [];
    scopes.add(template);
    const field = PATHS.find(([pattern]) => pattern.test(inner))?.[1];
    if (field === "tolerations") {
      tolerations.push(...(Array.isArray(value) ? value : [value]));
      if (inner === "/tolerations")
        differs.add("kyverno replaces the tolerations of the pod; usher adds to them");
    } else if (field === "nodeSelector") {
      const [, key] = /^\/nodeSelector\/(.+)$/.exec(inner) ?? [];
      nodeSelector = {
        ...nodeSelector,
        ...(key === undefined
          ? isObject(value)
            ? (value as Record<string, Json>)
            : {}
          : { [key.replaceAll("~1", "/").replaceAll("~0", "~")]: value }),
      };
      differs.add(
        "kyverno replaces a value that the pod has; usher keeps it and warns (onConflict: Refuse refuses such pods)",
      );
    } else if (field === "expressions") {
      expressions.push(...(Array.isArray(value) ? value : [value]));
      differs.add(
        "kyverno adds to one of the terms of the pod's node affinity, the others stay as they are; usher adds to each, so that it holds whichever is chosen",
      );
    } else if (field === "terms")
      return {
        why: `path ${path} adds a term, which is an alternative: pods could run on more nodes, and usher only narrows`,
      };
    else return { why: `path ${path} is not a scheduling criterion that usher adds to` };
  }
  if (scopes.size > 1) return { why: "it patches pods and templates" };
  return {
    spec: {
      ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
      ...(tolerations.length === 0 ? {} : { tolerations }),
      ...(expressions.length === 0
        ? {}
        : {
            affinity: {
              nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: expressions }] } },
            },
          }),
    },
    differs: [...differs],
    inTemplate: scopes.has("/template/spec"),
  };
}

/** The one precondition of kyverno's library: that the pod has no toleration of the key yet. */
function conditionOf(preconditions: Json | undefined, spec: JsonObject): string | { readonly why: string } {
  if (preconditions === undefined || preconditions === null) return "";
  const list = Array.isArray(preconditions)
    ? preconditions
    : [...listAt(preconditions, "any"), ...listAt(preconditions, "all")];
  const keys = listAt(spec, "tolerations").map((one) => stringAt(one, "key"));
  const isKnown = (one: Json) => {
    const [key, value] = [stringAt(one, "key") ?? "", JSON.stringify(at(one, "value") ?? "")];
    const mentions = `${key} ${value}`.includes("request.object.spec.tolerations");
    return (
      mentions &&
      /^(AnyNotIn|AllNotIn|NotIn)$/.test(stringAt(one, "operator") ?? "") &&
      keys.some((own) => own !== undefined && `${key} ${value}`.includes(own))
    );
  };
  const [only, ...more] = list;
  if (list.length === 0) return "";
  if (only === undefined || more.length > 0 || !isKnown(only))
    return { why: "preconditions: usher selects pods by labels and namespaces alone" };
  return "kyverno leaves pods alone that tolerate the key with any value; usher adds the toleration unless the pod has the same one";
}
