import type { AdmissionRequest, Operation } from "../decision/request.ts";

export type Phase = "mutate" | "validate";

/** The requests that a hook matches, in the terms of a webhook configuration. `*` means any. */
export interface Rule {
  readonly groups: readonly string[];
  readonly versions: readonly string[];
  /** `pods`, `pods/binding`, `pods/*`, `*` */
  readonly resources: readonly string[];
  readonly operations: readonly Operation[];
  readonly scope?: "Cluster" | "Namespaced";
}

/** Namespaces by name. The API server itself maintains the label that this becomes, so no namespace can leave the scope. */
export type NamespaceScope = { readonly except: readonly string[] } | { readonly only: readonly string[] };

/** When to call a module. */
export interface Hook {
  /** A DNS label, unique among all hooks: part of the webhook's name and path. */
  readonly name: string;
  /**
   * Makes it a shadow hook: the name of the other hook, by which the API server calls both. They are one question,
   * registered twice because the API server must act differently without an answer. The first that matches the request
   * is called, so a shadow hook comes before the other. @default its name
   */
  readonly askedAs?: string;
  readonly module: string;
  readonly phase: Phase;
  /** Without any, the hook is not registered, and only answers calls that are still in flight. */
  readonly rules: readonly Rule[];
  /**
   * Another webhook covers the same: it is not registered. It answers API servers that do not know that yet. @default
   * registered
   */
  readonly withdrawn?: boolean;
  /** The failure mode without an answer: `open` lets the request pass. */
  readonly failure: "open" | "closed";
  /**
   * The answer if the objects of a request are too large to be read. A hook that may deny denies, regardless of
   * `failure`, otherwise size alone would bypass it; one that only adds or reports allows with a warning.
   */
  readonly tooLarge: "deny" | "allow";
  /**
   * Fail-closed hooks only: the control plane's namespaces, which no fail-closed hook may match, are covered by a
   * fail-open shadow hook with the same evaluator. Usher's own namespace never is. @default requests there do not reach
   * the module
   */
  readonly openShadow?: boolean;
  /**
   * It is newer than the announcements of replicas: one that announces nothing does not know it. To be set for every
   * new hook. @default replicas of all versions know it
   */
  readonly announced?: boolean;
  /**
   * Fail-closed hooks only: while no replica is ready, the watchdog does not open it, unless the configuration names
   * its module.
   * @default it may be opened
   */
  readonly staysClosed?: boolean;
  /** Whole seconds, 1 to 30. */
  readonly timeoutSeconds: number;
  readonly namespaces?: NamespaceScope;
  /** CEL that the API server evaluates before it calls us. A hook must be right without them: they only save calls. */
  readonly conditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly sideEffects: "None" | "NoneOnDryRun";
  /** Mutating hooks only: whether to call again after a later webhook has changed the object. */
  readonly reinvocation?: "Never" | "IfNeeded";
}

/** The name by which the API server calls a hook. */
export function askedName({ askedAs, name }: Hook): string {
  return askedAs ?? name;
}

/** Whether a hook matches a request. The server checks it itself: one entry may serve several hooks. */
export function hookWants(hook: Hook, request: AdmissionRequest): boolean {
  const { namespaces } = hook;
  if (namespaces !== undefined && request.namespace !== "") {
    if (
      "except" in namespaces
        ? namespaces.except.includes(request.namespace)
        : !namespaces.only.includes(request.namespace)
    )
      return false;
  }
  for (const rule of hook.rules) if (ruleWants(rule, request)) return true;
  return false;
}

function ruleWants(rule: Rule, request: AdmissionRequest): boolean {
  const { group, version, resource } = request.resource;
  if (!rule.operations.includes(request.operation)) return false;
  if (!has(rule.groups, group) || !has(rule.versions, version)) return false;
  // The namespace of a request for a Namespace is its own name, although the object is cluster-scoped.
  const cluster = request.namespace === "" || (group === "" && resource === "namespaces");
  if (rule.scope !== undefined && (rule.scope === "Cluster") !== cluster) return false;
  for (const wanted of rule.resources)
    if (resourceMatches(wanted, resource, request.subResource)) return true;
  return false;
}

/** As the API server matches: `*` is every resource without subresources, `*` + `/*` every one with them. */
export function resourceMatches(wanted: string, resource: string, subResource: string): boolean {
  const slash = wanted.indexOf("/");
  const name = slash < 0 ? wanted : wanted.slice(0, slash);
  const sub = slash < 0 ? "" : wanted.slice(slash + 1);
  return (name === "*" || name === resource) && (sub === "*" || sub === subResource);
}

function has(list: readonly string[], item: string): boolean {
  return list.includes(item) || list.includes("*");
}
