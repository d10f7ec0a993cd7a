import type { Installation } from "../installation/installation.ts";
import { askedName, type Hook, type NamespaceScope, type Rule } from "./hook.ts";
import { PROTECTED_RESOURCES, type ProtectedResource, protectedNamespaces } from "./protected.ts";
import { resourceParts, tidyRules } from "./rules.ts";

interface Safeguarded {
  readonly hooks: readonly Hook[];
  /** The changes and reasons: messages for the leader's log and for `usher manifests`. */
  readonly notes: readonly string[];
}

/**
 * Usher can't lock its cluster: whatever modules and policies ask for, no closed hook that leaves here matches what a
 * cluster needs to recover. Where a closed hook asks for it, that part becomes an open hook of its own, `<name>-open`, which
 * reaches the same evaluator but denies nothing while usher is unavailable. The same goes for protected namespaces that the
 * installation opened, and for the control plane's where the hook has an open shadow hook: `<name>-opened`.
 *
 * No hook, open or closed, matches an excluded namespace. Cluster-scoped objects are matched as before, except Namespaces themselves.
 *
 * The server must run the hooks that come from here, not the ones that went in: a module that throws is judged by its
 * hook's `failure`, and for the open part that is another. Rules alone must hold it: match conditions are unknown to
 * older API servers, and a condition that fails counts as a failure.
 */
export function safeguard(hooks: readonly Hook[], installation: Installation): Safeguarded {
  const notes: string[] = [];
  const names = new Set(hooks.map(({ name }) => name));
  const safe = hooks.flatMap((hook) =>
    hook.failure === "open" ? [hook] : closedHook(hook, installation, names, notes),
  );
  return { hooks: safe.map((hook) => withoutExcluded(hook, installation.excluded ?? [])), notes };
}

/** A selector without names would match every namespace, so a hook without namespaces matches nothing. */
function withoutExcluded(hook: Hook, excluded: readonly string[]): Hook {
  if (excluded.length === 0) return hook;
  const { namespaces = { except: [] } } = hook;
  if ("except" in namespaces)
    return { ...hook, namespaces: { except: [...new Set([...namespaces.except, ...excluded])].sort() } };
  const only = namespaces.only.filter((name) => !excluded.includes(name));
  return { ...hook, namespaces: { only }, ...(only.length === 0 ? { rules: [] } : {}) };
}

function closedHook(hook: Hook, installation: Installation, names: Set<string>, notes: string[]): Hook[] {
  const { closed, open } = splitRules(hook.rules);
  const made: Hook[] = [];
  const namespaces = withoutProtected(hook, installation, notes);
  if (namespaces !== undefined) {
    if (closed.length > 0) made.push({ ...hook, namespaces, rules: closed });
    if (open.length > 0) {
      const name = freeName(`${hook.name}-open`, names);
      made.push({ ...hook, name, namespaces, rules: open, failure: "open", tooLarge: "allow" });
      notes.push(
        `${hook.name}: its rules reach resources that no closed hook may stop (${[...new Set(open.flatMap(allReached))].map(({ resource }) => resource).join(", ")}); ` +
          `that part is asked as ${name}, which is open`,
      );
    }
  }
  const opened = protectedNamespaces(installation).filter(
    (name) => isOpened(hook, installation, name) && covers(hook.namespaces, name),
  );
  const inside = insideRules(hook);
  if (opened.length > 0 && inside.length > 0) {
    const name = freeName(`${hook.name}-opened`, names);
    const isShadow = hook.openShadow === true;
    const asked = isShadow ? { askedAs: askedName(hook) } : {};
    made.push({ ...hook, name, ...asked, namespaces: { only: opened }, rules: inside, failure: "open" });
    if (!isShadow) notes.push(`${hook.name}: in ${opened.join(", ")} it is asked as ${name}, which is open`);
  }
  return made;
}

/** Whether a protected namespace is covered by a fail-open hook in place of the fail-closed one. */
function isOpened(hook: Hook, installation: Installation, name: string): boolean {
  return installation.opened.includes(name) || (hook.openShadow === true && name !== installation.namespace);
}

/** The remaining namespaces of a fail-closed hook; `undefined` if there are none. */
function withoutProtected(
  hook: Hook,
  installation: Installation,
  notes: string[],
): NamespaceScope | undefined {
  const kept = protectedNamespaces(installation);
  const scope = hook.namespaces ?? { except: [] };
  // With a fail-open shadow hook, the declaration itself excludes usher's own namespace.
  const lost = kept.filter(
    (name) => hook.openShadow !== true && covers(scope, name) && !isOpened(hook, installation, name),
  );
  const left: NamespaceScope =
    "except" in scope
      ? { except: [...new Set([...scope.except, ...kept])].sort() }
      : { only: [...new Set(scope.only)].filter((name) => !kept.includes(name)).sort() };
  const gone = "only" in left && left.only.length === 0;
  if (lost.length > 0)
    notes.push(`${hook.name}: is not asked in ${lost.join(", ")}, where no closed hook may be`);
  if (gone && hook.openShadow !== true)
    notes.push(`${hook.name}: is left out as a closed hook, for no namespace remains to it`);
  return gone ? undefined : left;
}

function covers(scope: NamespaceScope | undefined, namespace: string): boolean {
  if (scope === undefined) return true;
  return "except" in scope ? !scope.except.includes(namespace) : scope.only.includes(namespace);
}

/**
 * The rules for namespaced resources: a selector never exempts cluster-scoped objects, which the other hook already
 * covers. Only a Namespace itself is selected by its own labels, and a shadow hook covers it too.
 */
function insideRules({ rules, openShadow }: Hook): Rule[] {
  const inside = rules.filter(({ scope }) => scope !== "Cluster");
  const itself = rules.filter(
    ({ scope, groups }) => openShadow === true && scope !== "Namespaced" && groups.some(isCoreGroup),
  );
  return tidyRules([
    ...inside.map((rule): Rule => ({ ...rule, scope: "Namespaced" })),
    ...itself.map(
      (rule): Rule => ({
        ...rule,
        groups: [""],
        resources: rule.resources.flatMap(ofNamespaces),
        scope: "Cluster",
      }),
    ),
  ]);
}

function isCoreGroup(group: string): boolean {
  return group === "" || group === "*";
}

function ofNamespaces(pattern: string): string[] {
  const { name, sub } = resourceParts(pattern);
  if (name !== "*" && name !== "namespaces") return [];
  return [sub === "" ? "namespaces" : `namespaces/${sub}`];
}

/** Assigns every pair of a group and a resource: fail-closed, fail-open, or split by scope. */
function splitRules(rules: readonly Rule[]): { closed: Rule[]; open: Rule[] } {
  const closed: Rule[] = [];
  const open: Rule[] = [];
  for (const rule of tidyRules(rules)) {
    if (allReached(rule).length === 0) {
      closed.push(rule);
      continue;
    }
    for (const group of rule.groups) {
      const harmless: string[] = [];
      const halved: string[] = [];
      const harmful: string[] = [];
      for (const resource of rule.resources) {
        const hit = reached(group, resource, rule.scope);
        if (hit.length === 0) harmless.push(resource);
        // Only wildcards match more than protected resources. Those whose protected part is cluster-scoped stay
        // fail-closed for namespaced resources, which is most of their purpose.
        else if (
          isWild(group, resource) &&
          rule.scope === undefined &&
          hit.every(({ scope }) => scope === "Cluster")
        )
          halved.push(resource);
        else harmful.push(resource);
      }
      closed.push({ ...rule, groups: [group], resources: harmless });
      closed.push({ ...rule, groups: [group], resources: halved, scope: "Namespaced" });
      open.push({ ...rule, groups: [group], resources: halved, scope: "Cluster" });
      open.push({ ...rule, groups: [group], resources: harmful });
    }
  }
  return { closed: tidyRules(closed), open: tidyRules(open) };
}

function isWild(group: string, resource: string): boolean {
  return group === "*" || resourceParts(resource).name === "*";
}

function reached(group: string, resource: string, scope: Rule["scope"]): ProtectedResource[] {
  const { name } = resourceParts(resource);
  return PROTECTED_RESOURCES.filter(
    (kept) =>
      (group === "*" || group === kept.group) &&
      (name === "*" || name === kept.resource) &&
      (scope === undefined || scope === kept.scope),
  );
}

function allReached({ groups, resources, scope }: Rule): ProtectedResource[] {
  return groups.flatMap((group) => resources.flatMap((resource) => reached(group, resource, scope)));
}

function freeName(wanted: string, names: Set<string>): string {
  let name = wanted;
  while (names.has(name)) name = `${name}-open`;
  names.add(name);
  return name;
}
