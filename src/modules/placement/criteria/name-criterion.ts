import { z } from "zod";
import { at, type Json, type JsonObject, own, textOf } from "../../../core/json.ts";
import { celString } from "../../../core/kubernetes/cel.ts";
import { typeName } from "../../../core/kubernetes/field-error.ts";
import { checkSubdomain } from "../../../core/kubernetes/names.ts";
import { NAME_LENGTH, orEmpty, SUBDOMAIN_PATTERN } from "../../../core/kubernetes/schemas/bounds.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { type CompiledCriterion, fieldOf, patch, placeOf } from "./cel.ts";
import { injectionText, type MergeContext } from "./context.ts";
import { type Criterion, NO_LIMITS } from "./criterion.ts";
import type { Report } from "./report.ts";
import { sizeOf } from "./work-limit.ts";

type Common = "excluded" | "reference" | "derived" | "kubelet" | "celRules" | "warnings" | "contradictions";

/** The specifics of one name. */
interface NameOptions
  extends Pick<Criterion<string>, Common | "mutability">,
    Partial<Pick<Criterion, "firstCounts">> {
  readonly description: string;
  /** Kubernetes accepts any string: it is not the name of an object. @default a DNS subdomain */
  readonly anyText?: true;
  /** A value that the API server fills in: it counts as unset unless the author of the object chose it. */
  readonly defaulted?: {
    readonly value: string;
    readonly isChosen: (object: JsonObject, spec: Path) => boolean;
  };
  /** In CEL: `excluded` does not hold. */
  readonly notExcluded?: string;
}

/**
 * A criterion of one name.
 *
 * Merge:    set where the pod's is empty; otherwise kept (USHER-P10).
 * Holds:    idempotent; order-independent except for which policy wins a conflict.
 */
export function nameCriterion(
  field: string,
  { description, defaulted, anyText, notExcluded, ...options }: NameOptions,
): Criterion<string, string> {
  const isUnset = ({ draft, spec, holders }: MergeContext, present: Json | undefined): boolean => {
    if (present === undefined || present === null || present === "") return true;
    if (present !== defaulted?.value || holders.has(field)) return false;
    return !defaulted.isChosen(draft.object, spec);
  };

  const merge = (target: MergeContext, wanted: string, report: Report): void => {
    const { draft, spec, holders } = target;
    const path = [...spec, field];
    const present = draft.get(...path);
    const text = `${field} ${wanted}`;
    if (present === wanted) {
      report.same(path, text);
      // Otherwise the next policy would treat this policy's default as unset.
      if (wanted === defaulted?.value && !holders.has(field)) holders.set(field, report.request.ref);
      return;
    }
    if (!isUnset(target, present)) {
      report.conflict(path, "USHER-P10", { field, holder: field, has: textOf(present), wants: wanted });
      return;
    }
    if (report.immutable(path)) return;
    const excluded = options.excluded?.(at(draft.object, ...spec), [], NO_LIMITS);
    if (excluded !== undefined) {
      report.skipped(path, "USHER-P15", `${text} of ${report.policy} skipped: ${excluded}`);
      return;
    }
    const was = target.removed.has(injectionText(path, wanted));
    if (!draft.set(path, wanted, report.applied(path, text, was))) {
      report.unwritable(path, `${field} can't be written here`);
      return;
    }
    holders.set(field, report.request.ref);
    if (target.pod && !report.restoring)
      for (const one of options.derived ?? []) draft.remove([...spec, one], undefined);
  };

  const compile = (wanted: string): CompiledCriterion => {
    const unset = ["", ...(defaulted === undefined ? [] : [defaulted.value])].map(celString).join(", ");
    const isFree = notExcluded === undefined ? "" : ` && ${notExcluded}`;
    const removed = (options.derived ?? []).map(
      (one) => ` + (${fieldOf([one])}.hasValue() ? [${patch("remove", placeOf([one]))}] : [])`,
    );
    const set = `[${patch("add", placeOf([field]), celString(wanted))}]${removed.join("")}`;
    return {
      patches: [`(${fieldOf([field])}.orValue("") in [${unset}]${isFree} ? ${set} : [])`],
      checks: [
        {
          expression: `${fieldOf([field])}.orValue("") == ${celString(wanted)}`,
          path: [field],
          wants: wanted,
        },
      ],
      cost: 0,
      leftOut: [
        ...(options.reference === undefined
          ? []
          : [
              {
                what: `the check of ${field}`,
                why: `pods are refused while ${options.reference.kind} ${wanted} does not exist`,
              },
            ]),
        ...(defaulted === undefined
          ? []
          : [
              {
                what: `a chosen ${defaulted.value}`,
                why: "a manifest that names it looks like one that names no scheduler",
              },
            ]),
      ],
    };
  };

  return {
    name: field,
    rule: field,
    text: field,
    path: [field],
    schema: (anyText === true
      ? z.string()
      : z
          .string()
          .max(NAME_LENGTH)
          .meta({ pattern: orEmpty(SUBDOMAIN_PATTERN) })
    )
      .nullish()
      .describe(description),
    firstCounts: "for other values",
    ...options,
    compile,
    parse: (spec, problems) =>
      parseName(spec, field, problems, anyText === true ? () => undefined : checkSubdomain),
    prepare: (name) => name,
    sizeOf: () => sizeOf(1),
    merge,
    unmet: (pod, wanted) =>
      own(pod.spec, field) === wanted ? [] : [{ path: [field], wants: wanted, value: wanted }],
    injected: ({ set }, { podSpec, spec }) => {
      const value = set.includes(pointer([...spec, field])) ? own(podSpec, field) : undefined;
      return typeof value === "string" && value !== "" ? value : undefined;
    },
    recorded: (_injected, spec) => ({ set: [pointer([...spec, field])], added: {} }),
    outdated: (injected, wanted) => (injected === wanted ? undefined : injected),
    without: (present, injected) => (injected.some((one) => one === present) ? undefined : present),
    ...(defaulted === undefined ? {} : { isUnset: (value: Json) => value === defaulted.value }),
  };
}

/** An empty name is an absent one, as it is in a pod. */
function parseName(
  spec: JsonObject,
  field: string,
  problems: Problem[],
  check: (name: string) => string | undefined,
): string | undefined {
  const value = at(spec, field);
  if (value === undefined || value === null || value === "") return undefined;
  const wrong = typeof value === "string" ? check(value) : `must be a string, got ${typeName(value)}`;
  if (wrong !== undefined) problems.push(problem(["spec", field], wrong));
  return wrong === undefined && typeof value === "string" ? value : undefined;
}
