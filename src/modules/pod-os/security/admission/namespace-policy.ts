import type { Need } from "../../../../core/decision/need.ts";
import { isObject, type JsonObject } from "../../../../core/json.ts";
import { labelsOf } from "../../../../core/kubernetes/object.ts";
import type { Context } from "../../../../core/module/module.ts";
import type { PodSecurityConfiguration } from "../../configuration.ts";
import type { PodFieldError } from "../../field-error.ts";
import { type LevelVersion, type PodSecurityPolicy, podSecurityPolicyOf } from "../policy.ts";

export type NamespacePolicy = PodSecurityPolicy & { readonly errors: readonly PodFieldError[] };

/** The policy of the request's namespace: from the view, else from the API server, for a new namespace. */
export function namespacePolicy(
  { request: { namespace }, view, facts }: Context,
  configuration: PodSecurityConfiguration | undefined,
): NamespacePolicy | { readonly need: readonly Need[] } | { readonly failed: string } {
  const known = view.get("namespaces", "", namespace);
  if (known !== undefined) return policyOf(known, configuration);
  const need: Need = { get: { resource: "namespaces", name: namespace }, live: true };
  const fact = facts.of(need);
  if (fact === undefined) return { need: [need] };
  if ("found" in fact && isObject(fact.found)) return policyOf(fact.found, configuration);
  return { failed: `failed to lookup namespace ${JSON.stringify(namespace)}` };
}

export function policyOf(
  namespace: JsonObject,
  configuration: PodSecurityConfiguration | undefined,
): NamespacePolicy {
  return podSecurityPolicyOf(labelsOf(namespace), defaultPolicy(configuration));
}

export function defaultPolicy(configuration: PodSecurityConfiguration | undefined): PodSecurityPolicy {
  const defaults = configuration?.defaults ?? {};
  const of = (mode: keyof PodSecurityPolicy): LevelVersion => ({
    level: defaults[mode] || "privileged",
    version: defaults[`${mode}-version`] || "latest",
  });
  return { enforce: of("enforce"), audit: of("audit"), warn: of("warn") };
}

export function policyText({ level, version }: LevelVersion): string {
  return `${level}:${version}`;
}
