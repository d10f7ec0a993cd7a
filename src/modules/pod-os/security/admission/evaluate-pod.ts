import { allow, type Decision, deny, type Result } from "../../../../core/decision/decision.ts";
import type { Finding } from "../../../../core/decision/finding.ts";
import { nameIn } from "../../../../core/decision/status.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../../core/json.ts";
import type { Context } from "../../../../core/module/module.ts";
import { CONTAINER_LISTS } from "../../os/tables.ts";
import { settingsOf } from "../../settings.ts";
import type { Exceptions } from "../exceptions/exceptions.ts";
import { addedContainers } from "./added-containers.ts";
import { errorCount, evaluationCount, exemptionCount } from "./counts.ts";
import { type Exemption, exemptPod, exemptRequest, ownerOf } from "./exemptions.ts";
import { type NamespacePolicy, namespacePolicy, policyText } from "./namespace-policy.ts";
import { evaluateModes, type PodSubject, RULE, withEvent } from "./verdict.ts";

/** The API server never sends others, but a webhook must not evaluate an unknown resource. */
const IGNORED = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/** Evaluates a pod in place of the plugin PodSecurity, in its order. Refuses a pod that can't be evaluated. */
export function evaluatePod(context: Context, exceptions: Exceptions): Result {
  const { request, view, installation } = context;
  const settings = settingsOf(installation).podSecurity;
  const { configuration } = settings;
  if (IGNORED.includes(request.subResource)) return allow();
  const exempt = exemptRequest(request, configuration);
  if (exempt !== undefined) return exempted(context, exempt);
  const policy = namespacePolicy(context, configuration);
  if ("need" in policy) return policy;
  // A command reports a namespace that the source does not have as unknown.
  if ("failed" in policy && settings.mode === "Foresee") return allow();
  if ("failed" in policy) return failed(context, 500, "InternalError", policy.failed);
  if (isPrivileged(policy)) {
    const count = evaluationCount(request, "allow", "enforce", policy.enforce, view.serverVersion);
    return allow([annotation("enforce-policy", "privileged:latest")], undefined, [count]);
  }
  const spec = decodedSpec(request.object);
  if (spec === undefined) return failed(context, 400, "BadRequest", "failed to decode pod");
  const old = at(request.oldObject, "spec");
  const before = isObject(old) ? old : undefined;
  if (request.operation === "UPDATE" && !isSignificantUpdate(spec, before)) return allow();
  const exemptClass = exemptPod(spec, configuration);
  if (exemptClass !== undefined) return exempted(context, exemptClass);
  const given = at(request.object, "metadata");
  const metadata = isObject(given) ? given : {};
  const adds = settings.ephemeralContainers === "Added" && request.subResource === "ephemeralcontainers";
  const judged = adds ? addedContainers(metadata, spec, before) : { metadata, spec };
  const subject: PodSubject = { ...judged, path: [] };
  const { enforce, audit, warn, errors } = policy;
  const verdict = evaluateModes(context, exceptions, settings, { enforce, audit, warn }, subject);
  const notes = [annotation("enforce-policy", policyText(enforce)), ...labelErrors(policy)];
  const counts = [...verdict.counts, ...(errors.length > 0 ? [errorCount(request, false)] : [])];
  if (verdict.refused === undefined) return allow([...notes, ...verdict.findings], undefined, counts);
  const findings = withEvent(
    verdict.findings,
    "PodSecurityViolation",
    verdict.refused,
    ownerOf(request, view),
  );
  const message = `pods ${JSON.stringify(nameIn(request.name, request.object))} is forbidden: ${verdict.refused}`;
  return deny({ code: 403, reason: "Forbidden", message }, [...findings, ...notes], counts);
}

function isPrivileged({ enforce, audit, warn, errors }: NamespacePolicy): boolean {
  return errors.length === 0 && [enforce, audit, warn].every(({ level }) => level === "privileged");
}

/** Go would not decode a pod of another shape. */
function decodedSpec(object: JsonObject | undefined): JsonObject | undefined {
  const spec = at(object, "spec");
  if (!isObject(spec)) return undefined;
  return [...CONTAINER_LISTS, "volumes"].every((list) => isListOfObjects(spec[list])) ? spec : undefined;
}

function isListOfObjects(value: Json | undefined): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.every(isObject));
}

/** An audit annotation under upstream's key. */
export function annotation(key: string, value: string): Finding {
  return {
    rule: RULE,
    outcome: "same",
    message: value,
    verbatim: true,
    audit: { key, value, unprefixed: true },
  };
}

export function labelErrors({ errors }: NamespacePolicy): Finding[] {
  if (errors.length === 0) return [];
  const texts = errors.map(({ field, message }) => `${field}: ${message}`);
  const value = `Failed to parse policy: ${texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`}`;
  return [annotation("error", value)];
}

export function exempted({ request }: Context, by: Exemption): Decision {
  return allow([annotation("exempt", by)], undefined, [exemptionCount(request)]);
}

function failed({ request }: Context, code: number, reason: string, message: string): Decision {
  const finding: Finding = { rule: RULE, outcome: "failed", message, verbatim: true };
  return deny(
    { code, reason, message },
    [finding, annotation("error", message)],
    [errorCount(request, true)],
  );
}

/**
 * Whether an update of a pod is evaluated: containers or init containers were added or removed, an image changed, or an
 * ephemeral container was added. Ephemeral containers are compared by name, because a strategic merge patch puts new
 * ones first.
 */
function isSignificantUpdate(spec: JsonObject | undefined, old: JsonObject | undefined): boolean {
  for (const list of ["containers", "initContainers"]) {
    const now = listAt(spec, list);
    const before = listAt(old, list);
    if (now.length !== before.length) return true;
    if (now.some((container, i) => stringAt(container, "image") !== stringAt(before[i], "image")))
      return true;
  }
  const images = new Map(
    listAt(old, "ephemeralContainers").map((one) => [stringAt(one, "name"), stringAt(one, "image")]),
  );
  return listAt(spec, "ephemeralContainers").some((one) => {
    const name = stringAt(one, "name");
    return !images.has(name) || images.get(name) !== stringAt(one, "image");
  });
}
