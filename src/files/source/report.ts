import { equal } from "../../core/json.ts";
import { byText } from "../../core/order.ts";
import { type Entry, entryKey, isPolicy } from "./entry.ts";

/** A problem in a file of the source. */
export interface FileProblem {
  /** As the user would type it: with the given directory. */
  readonly file: string;
  /** From one; 0 if the problem is the file itself. */
  readonly line: number;
  readonly column: number;
  /** With the path of the field before it: `spec.tolerations[0].operator: "Exist" is not an operator`. */
  readonly message: string;
  readonly hint?: string;
  readonly severity: "error" | "warning";
  /** For a warning: it is an error with `--strict`. */
  readonly strict?: true;
  /** The lines around it, with carets; empty if there are none to show. */
  readonly frame: string;
  /** The object that contains it, by its user-facing name. */
  readonly object?: string;
  /** For `usher help`. */
  readonly code: string;
}

/** A report for the user: a file changed, or is invalid. */
export interface FileReport {
  readonly level: "info" | "warning" | "error";
  /** The file's name within the source. */
  readonly file: string;
  /** Text to print, without colour. */
  readonly text: string;
  readonly problems: readonly FileProblem[];
}

export function describeFileProblem(problem: FileProblem): string {
  const { file, line, column, message, frame, hint, severity } = problem;
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  // An error ends or holds up something, and the text after it says so; a warning is easily taken for one.
  const where = severity === "warning" ? `${place}: warning` : place;
  if (frame !== "") return `${where}: ${message}\n${frame}`;
  return `${where}: ${message}${hint === undefined ? "" : `; ${hint}`}`;
}

/** More names than this add nothing to the count. */
const NAMES = 5;

/** More problems than this of one file hide the important ones. */
const SHOWN_PROBLEMS = 20;

/** The changes of a file: `policies.yaml: 1 policy changed (etcd-pool), 2 nodes added (n1, n2)`. Empty without changes. */
export function changeReport(
  file: string,
  removed: readonly Entry[],
  added: readonly Entry[],
): FileReport | undefined {
  const gone = new Map(removed.map((entry) => [entryKey(entry), entry]));
  const groups = new Map<string, Entry[]>();
  const note = (verb: string, entry: Entry): void => {
    const group = `${isPolicy(entry) ? "" : entry.resource.name} ${verb}`;
    const list = groups.get(group);
    if (list === undefined) groups.set(group, [entry]);
    else list.push(entry);
  };
  for (const entry of added) {
    const before = gone.get(entryKey(entry));
    gone.delete(entryKey(entry));
    if (before === undefined) note("added", entry);
    else if (!equal(before.object, entry.object)) note("changed", entry);
  }
  for (const entry of gone.values()) note("removed", entry);
  if (groups.size === 0) return undefined;
  const parts = [...groups.entries()].sort(byText(([key]) => key)).map(([group, entries]) => {
    const [resource = "", verb = ""] = group.split(" ");
    return `${countOf(entries.length, resource)} ${verb} (${namesOf(entries)})`;
  });
  return { level: "info", file, text: `${file}: ${parts.join(", ")}`, problems: [] };
}

function namesOf(entries: readonly Entry[]): string {
  const names = entries
    .slice(0, NAMES)
    .map(({ namespace, name }) => (namespace === "" ? name : `${namespace}/${name}`));
  const more = entries.length - names.length;
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** `1 policy`, `3 nodes`: an empty resource means policies. */
export function countOf(n: number, resource: string): string {
  if (resource === "") return n === 1 ? "1 policy" : `${n} policies`;
  const plural = resource.split(".")[0] ?? resource;
  const singular = plural
    .replace(/ies$/, "y")
    .replace(/(ss|x|ch|sh)es$/, "$1")
    .replace(/([^s])s$/, "$1");
  return `${n} ${n === 1 ? singular : plural}`;
}

/** `4 policies`, or `6 objects` if the file has no policy. */
export function contentOf(all: readonly Entry[]): string {
  const entries = all.filter(({ invalid }) => !invalid);
  const policies = entries.filter(isPolicy).length;
  if (policies > 0) return countOf(policies, "");
  return entries.length === 1 ? "1 object" : `${entries.length} objects`;
}

/** A file with problems, and its served part. */
export function problemReport(file: string, problems: readonly FileProblem[], ending: string): FileReport {
  const lines = problems.slice(0, SHOWN_PROBLEMS).map(describeFileProblem);
  if (problems.length > SHOWN_PROBLEMS)
    lines.push(`and ${problems.length - SHOWN_PROBLEMS} more problems in this file`);
  if (ending !== "") lines.push(ending);
  const level = problems.some(({ severity }) => severity === "error") ? "error" : "warning";
  return { level, file, text: lines.join("\n"), problems };
}
