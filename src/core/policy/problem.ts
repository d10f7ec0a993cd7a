import { fieldPath, type Path } from "../path.ts";

/** Something wrong inside one object: a policy, a configuration file, a manifest. */
export interface Problem {
  readonly path: Path;
  readonly message: string;
  /** An `error` makes that part of the object unusable; a `warning` is shown and changes nothing. */
  readonly severity: "error" | "warning";
  /** Of a warning: counts as an error with strict checks, because it is probably a mistake. */
  readonly strict?: true;
  /** An unknown field: an API server drops it, or refuses the object where the client asks for strict validation, as kubectl does. */
  readonly pruned?: true;
  /** What was probably meant, e.g. `did you mean "Exists"?`. */
  readonly hint?: string;
}

/**
 * The hint for a boolean or number in place of a string. It names no value: JSON has `true` where the author wrote `yes`, and 1.1 for
 * 1.10. Only files know the written text, and add it.
 */
export const WRITE_IN_QUOTES = "write it in quotes";

export function problem(path: Path, message: string, hint?: string): Problem {
  return { path, message, severity: "error", ...(hint === undefined ? {} : { hint }) };
}

export function warningProblem(path: Path, message: string, hint?: string): Problem {
  return { path, message, severity: "warning", ...(hint === undefined ? {} : { hint }) };
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
