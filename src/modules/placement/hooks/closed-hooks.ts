import type { Installation } from "../../../core/installation/installation.ts";
import type { Hook, NamespaceScope, Rule } from "../../../core/module/hook.ts";
import { protectedNamespaces } from "../../../core/module/protected.ts";
import type { View } from "../../../core/view/view.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { type Reach, reachOf } from "./reach.ts";

/** A request that is refused while usher is unavailable can only be repeated, so usher gets longer than in a fail-open hook. */
const TIMEOUT_SECONDS = 5;

/**
 * Above this many names the condition that avoids a second call is omitted: it is evaluated for each request, and a
 * second call costs less than a string of this length.
 */
const MAX_CONDITION_NAMES = 256;

/**
 * An update that does not change the template is never blocked: scaling down, removing a finalizer and the like must
 * work while usher is down. Kinds with their template at another path are always covered.
 */
export const TEMPLATE_CHANGES = [
  "request.operation != 'UPDATE'",
  "!has(object.spec) || !has(oldObject.spec)",
  "(has(object.spec.template) && has(oldObject.spec.template) ? object.spec.template != oldObject.spec.template : " +
    "!has(object.spec.jobTemplate) || !has(oldObject.spec.jobTemplate) || object.spec.jobTemplate != oldObject.spec.jobTemplate)",
].join(" || ");

/**
 * The hooks with a fail-closed shadow hook for the scope of fail-closed policies: only the namespaces that they select
 * now, by name, never the control plane's or usher's own. All such policies share one shadow hook for pods and one for
 * templates.
 */
export function closedHooks(
  policies: readonly PlacementPolicy[],
  view: View,
  installation: Installation,
  hooks: readonly Hook[],
): Hook[] {
  const closed = policies.filter(({ failure }) => failure === "Fail");
  if (closed.length === 0) return [...hooks];
  const [forPods, forTemplates] = [closed.filter(isAbout("Pods")), closed.filter(isAbout("Templates"))];
  const pods = reachOf(forPods, view, installation);
  // Nearly all policies are about both.
  const same = forPods.length === closed.length && forTemplates.length === closed.length;
  const reaches = { pods, templates: same ? pods : reachOf(forTemplates, view, installation) };
  return hooks.flatMap((hook) =>
    hook.name === "placement" ? withShadows(hook, reaches, installation) : [hook],
  );
}

function isAbout(target: "Pods" | "Templates"): (policy: PlacementPolicy) => boolean {
  return ({ targets }) => targets !== (target === "Pods" ? "Templates" : "Pods");
}

interface Reaches {
  readonly pods: Reach;
  readonly templates: Reach;
}

function withShadows(hook: Hook, { pods, templates }: Reaches, installation: Installation): Hook[] {
  const shadows = [
    { name: "pods", rules: hook.rules.filter(isPods), reach: pods },
    { name: "templates", rules: hook.rules.filter((rule) => !isPods(rule)), reach: templates },
  ].flatMap(({ name, rules, reach }): Hook[] =>
    reach.everywhere || reach.names.length > 0
      ? [
          {
            ...hook,
            name: `${hook.name}-closed-${name}`,
            askedAs: hook.name,
            failure: "closed",
            tooLarge: "deny",
            timeoutSeconds: TIMEOUT_SECONDS,
            rules,
            namespaces: scopeOf(reach, installation),
            // The same for both, so that with equal namespaces they become one entry. A pod is only covered at
            // creation.
            conditions: [{ name: "template-changes", expression: TEMPLATE_CHANGES }],
          },
        ]
      : [],
  );
  return [
    ...shadows,
    ...(shadows.length === 0 ? [hook] : [notTwice(hook, { pods, templates }, installation)]),
  ];
}

/** The fail-open hook, not called where a fail-closed one is. A second call would change nothing: everything is already present. */
function notTwice(hook: Hook, { pods, templates }: Reaches, installation: Installation): Hook {
  if (Math.max(pods.names.length, templates.names.length) > MAX_CONDITION_NAMES) return hook;
  const inside = (reach: Reach) => inScope(scopeOf(reach, installation));
  const asked = `request.resource.resource == 'pods' ? ${inside(pods)} : (${inside(templates)} && (${TEMPLATE_CHANGES}))`;
  return {
    ...hook,
    conditions: [
      ...(hook.conditions ?? []),
      { name: "not-asked-by-a-closed-hook", expression: `!(${asked})` },
    ],
  };
}

function inScope(scope: NamespaceScope): string {
  const names = "only" in scope ? scope.only : scope.except;
  if (names.length === 0) return "only" in scope ? "false" : "true";
  const list = `[${names.map((name) => `'${name}'`).join(", ")}]`;
  return "only" in scope ? `request.namespace in ${list}` : `!(request.namespace in ${list})`;
}

function scopeOf({ everywhere, names }: Reach, installation: Installation): NamespaceScope {
  return everywhere ? { except: [...new Set(protectedNamespaces(installation))].sort() } : { only: names };
}

export function isPods({ groups, resources }: Rule): boolean {
  return groups.includes("") && resources.includes("pods");
}
