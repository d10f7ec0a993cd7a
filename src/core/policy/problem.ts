import type { Json } from "../json.ts";
import { fieldPath, type Path } from "../path.ts";

/** What kind of problem it is, for programs, editors and `usher help`; `codes.ts` explains each. */
export const PROBLEM = {
  invalid: "USHER-E04",
  unreadable: "USHER-E10",
  unknownField: "USHER-E11",
  noEffect: "USHER-E12",
  matchesNothing: "USHER-E13",
  unreachable: "USHER-E14",
  conflict: "USHER-E15",
  deprecated: "USHER-E16",
  duplicate: "USHER-E17",
  unexpected: "USHER-E18",
} as const;

/**
 * How the field is corrected. Only where the object means the same afterwards, or where one value alone can be meant: other slips are
 * hints.
 */
export type Fix =
  | { readonly set: Json }
  | { readonly rename: string }
  | { readonly remove: true }
  /** The scalar as it is written, as a string. */
  | { readonly quote: true };

/** Something wrong inside one object: a policy, a configuration file, a manifest. */
export interface Problem {
  readonly path: Path;
  readonly message: string;
  /** An `error` makes that part of the object unusable; a `warning` is only shown. */
  readonly severity: "error" | "warning";
  /** Of a warning: counts as an error with strict checks, because it is probably a mistake. */
  readonly strict?: true;
  /** An unknown field: an API server drops it, or rejects the object if the client requests strict validation, as kubectl does. */
  readonly pruned?: true;
  /** A suggestion, e.g. `did you mean "Exists"?`. */
  readonly hint?: string;
  /** @default `codeOf` */
  readonly code?: string;
  /** @default a person has to decide */
  readonly fix?: Fix;
}

/** The code of a problem that names none, also not at the end of its message: an error makes the object invalid. */
export function codeOf({ code, message, severity, pruned }: Problem): string {
  const named = code ?? /\((USHER-[A-Z]\d+)\)$/.exec(message)?.[1];
  if (named !== undefined) return named;
  if (pruned) return PROBLEM.unknownField;
  return severity === "error" ? PROBLEM.invalid : PROBLEM.unexpected;
}

/**
 * The hint for a boolean or number in place of a string. It names no value: JSON has `true` for `yes`, and 1.1 for
 * 1.10. Only files have the written text, and add it.
 */
export const WRITE_IN_QUOTES = "write it in quotes";

export function problem(path: Path, message: string, hint?: string): Problem {
  return { path, message, severity: "error", ...(hint === undefined ? {} : { hint }) };
}

export function warningProblem(path: Path, message: string, hint?: string): Problem {
  return { path, message, severity: "warning", ...(hint === undefined ? {} : { hint }) };
}

/** A warning about something that is valid and does nothing, or never what it says. */
export function idle(
  code: (typeof PROBLEM)["noEffect" | "matchesNothing" | "unreachable" | "conflict"],
  path: Path,
  message: string,
  hint?: string,
): Problem {
  return { ...warningProblem(path, message, hint), code };
}

/** A warning about a probable mistake, such as an unknown field: with `--strict` it is an error. */
export function likelyMistake(path: Path, message: string, hint?: string): Problem {
  return { ...warningProblem(path, message, hint), strict: true };
}

/** `spec.tolerations[0].operator: "Exist" is not an operator; did you mean "Exists"?` */
export function describeProblem(found: Problem): string {
  const where = found.path.length === 0 ? "" : `${fieldPath(found.path)}: `;
  return `${where}${found.message}${found.hint === undefined ? "" : `; ${found.hint}`}`;
}
