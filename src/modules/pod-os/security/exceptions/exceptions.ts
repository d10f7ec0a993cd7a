import { at, type Json, type JsonObject, listAt, stringAt } from "../../../../core/json.ts";
import {
  type CompiledSelector,
  compileSelector,
  matches,
  whyNot,
} from "../../../../core/kubernetes/selectors/label-selector.ts";
import { byText } from "../../../../core/order.ts";
import { contradictorySelector } from "../../../../core/policy/empty-selector.ts";
import type { Prepared } from "../../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../../core/policy/policy-ref.ts";
import { type Problem, problem } from "../../../../core/policy/problem.ts";
import { didYouMean } from "../../../../core/suggest.ts";
import { CHECKS } from "../checks.ts";
import { WINDOWS_CHECKS } from "../windows-user.ts";

/** A year with a day to spare: leap years, and clocks that differ. */
export const LONGEST_MS = 367 * 24 * 60 * 60 * 1_000;

/** A PodSecurityException, ready to be compared with pods. */
export interface Exception {
  readonly ref: PolicyRef;
  readonly checks: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
  /** @default every pod of these namespaces */
  readonly pods: CompiledSelector | undefined;
  readonly serviceAccounts: ReadonlySet<string> | undefined;
  /** Whole names, and beginnings of names with `*` at their end. */
  readonly images: readonly string[] | undefined;
  readonly containers: ReadonlySet<string> | undefined;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** All exceptions, by namespace. */
export class Exceptions {
  readonly #byNamespace = new Map<string, Exception[]>();

  constructor(all: readonly Exception[]) {
    const sorted = [...all].sort(byText((one) => one.ref.name));
    for (const one of sorted) {
      for (const namespace of one.namespaces) {
        const list = this.#byNamespace.get(namespace);
        if (list === undefined) this.#byNamespace.set(namespace, [one]);
        else list.push(one);
      }
    }
  }

  /** The exceptions in force for a pod, or for the pod of a template. One that would last too long is not in force either. */
  for(namespace: string, metadata: JsonObject, spec: JsonObject, now: number): Exception[] {
    return this.of(namespace).filter((one) => whyNotInForce(one, metadata, spec, now) === undefined);
  }

  /** All that name a namespace, in force or not. */
  of(namespace: string): readonly Exception[] {
    return this.#byNamespace.get(namespace) ?? [];
  }
}

/** Why an exception does not apply to a pod; `undefined` if it does. */
export function whyNotInForce(
  { expires, pods, serviceAccounts }: Exception,
  metadata: JsonObject,
  spec: JsonObject,
  now: number,
): string | undefined {
  if (now >= expires) return `it expired at ${new Date(expires).toISOString()}`;
  if (expires - now > LONGEST_MS) return "it lasts longer than a year";
  const account = stringAt(spec, "serviceAccountName") || stringAt(spec, "serviceAccount") || "default";
  if (serviceAccounts?.has(account) === false) return `it is not for service account ${account}`;
  if (pods !== undefined && !matches(pods, labelsIn(metadata)))
    return `podSelector: ${whyNot(pods, labelsIn(metadata))}`;
  return undefined;
}

function labelsIn(metadata: JsonObject): JsonObject | undefined {
  const labels = at(metadata, "labels");
  return typeof labels === "object" && labels !== null && !Array.isArray(labels)
    ? (labels as JsonObject)
    : undefined;
}

/** Whether an exception is for some containers only, not for the pod. */
export function isOfContainers({ images, containers }: Exception): boolean {
  return images !== undefined || containers !== undefined;
}

export function coversContainer({ images, containers }: Exception, container: Json | undefined): boolean {
  const image = stringAt(container, "image") ?? "";
  return (
    (containers?.has(stringAt(container, "name") ?? "") ?? true) &&
    (images?.some((one) => (one.endsWith("*") ? image.startsWith(one.slice(0, -1)) : image === one)) ?? true)
  );
}

export function prepareException(object: JsonObject, ref: PolicyRef): Prepared<Exception> {
  const spec = at(object, "spec");
  const problems = exceptionProblems(object);
  const selector = compileSelector(at(spec, "podSelector"), ["spec", "podSelector"]);
  const expires = Date.parse(stringAt(spec, "expires") ?? "");
  // A value that is not a list matches nothing, so that it waives nothing: only an absent field means all.
  const strings = (field: string): string[] | undefined =>
    (at(spec, field) ?? undefined) === undefined
      ? undefined
      : listAt(spec, field).filter((one) => typeof one === "string");
  const sets = (field: string): ReadonlySet<string> | undefined => {
    const list = strings(field);
    return list === undefined ? undefined : new Set(list);
  };
  const usable = !Number.isNaN(expires) && selector.problems.length === 0;
  return {
    policy: usable
      ? {
          ref,
          checks: sets("checks") ?? new Set(),
          namespaces: sets("namespaces") ?? new Set(),
          pods: (at(spec, "podSelector") ?? undefined) === undefined ? undefined : selector.selector,
          serviceAccounts: sets("serviceAccounts"),
          images: strings("images"),
          containers: sets("containers"),
          expires,
        }
      : undefined,
    problems,
  };
}

/** Checks beyond the schema. The date is compared with the time of writing, if given. */
export function exceptionProblems(object: JsonObject, now?: number): Problem[] {
  const known = [...CHECKS, ...WINDOWS_CHECKS].map(({ id }) => id);
  const problems: Problem[] = [];
  for (const [i, check] of listAt(object, "spec", "checks").entries()) {
    if (typeof check === "string" && !known.includes(check))
      problems.push(
        problem(
          ["spec", "checks", i],
          `${JSON.stringify(check.slice(0, 80))} is not a check of Pod Security`,
          didYouMean(check, known) ?? `use one of ${known.join(", ")}`,
        ),
      );
  }
  const selector = compileSelector(at(object, "spec", "podSelector"), ["spec", "podSelector"]);
  for (const { path, message } of selector.problems) problems.push(problem(path, message));
  problems.push(...contradictorySelector(selector.selector, ["spec", "podSelector"]));
  const written = stringAt(object, "spec", "expires") ?? "";
  const expires = Date.parse(written);
  if (Number.isNaN(expires)) problems.push(problem(["spec", "expires"], "must be a date in RFC 3339 form"));
  else if (now !== undefined && expires - now > LONGEST_MS)
    problems.push(problem(["spec", "expires"], "must be at most a year from now"));
  else if (now !== undefined && expires <= now)
    problems.push(problem(["spec", "expires"], "must be in the future"));
  return problems;
}
