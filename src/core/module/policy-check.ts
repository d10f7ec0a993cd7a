import { allow, deny, type NeedMore } from "../decision/decision.ts";
import type { Finding } from "../decision/finding.ts";
import { describeRequest, resourceName } from "../decision/request.ts";
import { nameIn } from "../decision/status.ts";
import { configuredValues, holds, moduleEnabled } from "../installation/setting-condition.ts";
import { at, equal, isObject, type JsonObject, listAt } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";
import { checkObject } from "../policy/check.ts";
import { conditionOf, observed } from "../policy/condition.ts";
import { ignoredBecause, type Kind, kindResource } from "../policy/kind.ts";
import { describeProblem } from "../policy/problem.ts";
import type { Change } from "../view/view.ts";
import { defineModule, type Module } from "./module.ts";
import {
  defineReconciler,
  type KeysContext,
  liveObject,
  type ReconcileContext,
  type ReconcileResult,
  type Reconciler,
} from "./reconciler.ts";

/** The name of the module and of its hook. */
export const POLICY_CHECK = "policies";

/**
 * The module that validates policies when they are written, built from the declarations of the other modules. It is
 * fail-open: a policy that was admitted while usher was down is reported in its own status instead. Policies that usher
 * ignores, because their module or gate is off, are never refused: a warning reports that they have no effect, and so
 * does their status.
 *
 * @param off Modules that are off in this configuration.
 */
export function policyCheck(modules: readonly Module[], off: readonly Module[] = []): Module {
  const ignored = off.flatMap(ignoredKinds);
  const kinds = [...modules.flatMap((module) => module.kinds), ...ignored].filter(
    ({ standing }) => standing === "resource",
  );
  const byResource = new Map(kinds.map((kind) => [kindResource(kind), kind]));
  return defineModule<never>({
    name: POLICY_CHECK,
    summary: "checks policies when they are written",
    kinds: ignored,
    reads: [],
    reconciler: defineReconciler(ignoredPoliciesReconciler(kinds)),
    hooks: (_policies, _view, installation, gates) => {
      // A kind that another owner registers is not for usher to refuse.
      const values = configuredValues(installation, gates);
      const checked = kinds.filter(
        ({ takeOver, registered }) => takeOver !== "never" || holds(registered, values),
      );
      return checked.length === 0
        ? []
        : [
            {
              name: POLICY_CHECK,
              module: POLICY_CHECK,
              phase: "validate",
              failure: "open",
              tooLarge: "deny",
              timeoutSeconds: 5,
              sideEffects: "None",
              rules: [...new Set(checked.map(({ group }) => group))].map((group) => {
                const mine = checked.filter((kind) => kind.group === group);
                return {
                  groups: [group],
                  versions: [...new Set(mine.flatMap(({ versions }) => versions.map(({ name }) => name)))],
                  resources: mine.map(({ plural }) => plural),
                  operations: ["CREATE", "UPDATE"] as const,
                };
              }),
            },
          ];
    },
    assemble: () => ({
      validate: ({ request, draft, view, installation, gates, now, trace }) => {
        const kind = byResource.get(resourceName(request.resource));
        const policy = { kind: request.kind.kind, name: nameIn(request.name, request.object) };
        // Fields that an UPDATE did not change are not checked again: a finalizer must be removable from a policy that
        // became invalid.
        if (kind === undefined || request.object === undefined || !draft.changed([["spec"]])) {
          trace?.({ policy, applies: "not", why: "its spec stays as it is" });
          return allow();
        }
        const configured = { installation, gates };
        const isIgnored = ignoredBecause(kind, configured) !== undefined;
        const findings = checkObject(kind, request.object, view, configured, now).map((found): Finding => {
          const isWrong = found.severity === "error" && !isIgnored;
          return {
            rule: "policy",
            outcome: isWrong ? "violated" : "skipped",
            path: found.path,
            message: describeProblem(found),
            ...(isWrong ? { code: "USHER-E04" } : { warn: 50 }),
          };
        });
        const wrong = findings.filter(({ outcome }) => outcome === "violated");
        trace?.({
          policy,
          applies: wrong.length === 0 ? "applies" : "refuses",
          why:
            findings.length === 0 ? "the policy is valid" : findings.map(({ message }) => message).join("; "),
        });
        if (wrong.length === 0) return allow(findings);
        const lines = wrong.map(({ message }) => message).join("\n");
        return deny(
          {
            code: 422,
            reason: "Invalid",
            message: `${describeRequest(request)} is not valid: ${lines} (USHER-E04)`,
          },
          findings,
        );
      },
    }),
  });
}

/** The kinds of a disabled module: their objects are read to report that they have no effect. */
function ignoredKinds({ name, kinds }: Module): Kind<never>[] {
  return kinds
    .filter(({ takeOver }) => takeOver !== "never")
    .map(({ check: _check, refused: _refused, ...kind }) => ({
      ...kind,
      ignored: true,
      // The settings type of a module has no `enabled`: for a disabled module nothing else needs to be known.
      registered: [{ ...moduleEnabled(name), default: false }],
      prepare: () => ({ policy: undefined, problems: [] }),
    }));
}

type IgnoredKey = {
  readonly kind: "ignored";
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
};

/** Replaces the status that a module left in its policies: its claims were true before the configuration changed. */
function ignoredPoliciesReconciler(kinds: readonly Kind[]): Reconciler<IgnoredKey> {
  const byResource = new Map(kinds.filter(hasStatus).map((kind) => [kindResource(kind), kind]));
  const why = (resource: string, { assembly }: KeysContext): string | undefined => {
    const kind = byResource.get(resource);
    return kind === undefined || assembly === undefined ? undefined : ignoredBecause(kind, assembly);
  };
  const keyOf = ({ resource, namespace, name }: Omit<Change, "object">): IgnoredKey => ({
    kind: "ignored",
    resource,
    namespace,
    name,
  });
  return {
    initialState: () => undefined,
    initialKeys: function* (_state, context) {
      for (const resource of byResource.keys()) {
        if (why(resource, context) === undefined) continue;
        for (const object of context.view.list(resource))
          yield keyOf({ resource, namespace: namespaceOf(object), name: nameOf(object) });
      }
    },
    keys: (change, _state, context) =>
      change.object === undefined || why(change.resource, context) === undefined ? [] : [keyOf(change)],
    reconcile: (key, _state, context) => {
      const kind = byResource.get(key.resource);
      const message = why(key.resource, context);
      return kind === undefined || message === undefined
        ? { writes: [] }
        : reconcileIgnored(key, kind, message, context);
    },
  };
}

function reconcileIgnored(
  { resource, namespace, name }: IgnoredKey,
  kind: Kind,
  message: string,
  { facts, now }: Pick<ReconcileContext, "facts" | "now">,
): ReconcileResult<never> | NeedMore {
  const of = { resource, ...(namespace === "" ? {} : { namespace }), name };
  const live = liveObject(of, facts);
  if (live === undefined) return { writes: [] };
  if ("need" in live) return live;
  const { object, resourceVersion } = live;
  const before = isObject(object["status"]) ? object["status"] : {};
  const written = at(object, "metadata", "generation");
  const generation = typeof written === "number" ? written : undefined;
  const others = kind.othersStatus?.(before) ?? {};
  const ignored = { type: "Ignored", holds: true, reason: "SwitchedOff", message };
  const status: JsonObject = {
    ...others,
    ...observed(generation),
    conditions: [...listAt(others, "conditions"), conditionOf(ignored, generation, before, now)],
  };
  return equal(status, before) ? { writes: [] } : { writes: [{ status, of, resourceVersion }] };
}

function hasStatus({ standing, versions }: Kind): boolean {
  return standing === "resource" && versions.some(({ status }) => status !== undefined);
}
