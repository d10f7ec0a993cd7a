import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { yamlText } from "../output/yaml.ts";
import type { Chosen } from "./choose.ts";
import type { Renewal } from "./renew.ts";

/** What is said of one workload; the JSON output is exactly this. */
interface Result {
  readonly object: { readonly kind: string; readonly namespace: string; readonly name: string };
  readonly result: "renewed" | "would change" | "unchanged" | "failed";
  readonly changes: readonly string[];
  readonly warnings?: readonly string[];
  readonly why?: string;
}

export function resultOf(
  { workload, namespace, name }: Chosen,
  renewal: Renewal,
  changed: "renewed" | "would change",
): Result {
  const object = { kind: workload.kind, namespace, name };
  if ("failed" in renewal) return { object, result: "failed", changes: [], why: renewal.failed };
  const { changes, warnings } = renewal;
  const warned = warnings.length === 0 ? {} : { warnings };
  return { object, result: changes.length === 0 ? "unchanged" : changed, changes, ...warned };
}

export function printPlan(results: readonly Result[], { out }: Terminal): void {
  if (results.length === 0) return;
  const rows = results.flatMap(({ object, result, changes, why }) =>
    (changes.length === 0 ? [why ?? "is as it should be"] : changes).map((text, i) => [
      i === 0 ? nameOf(object) : "",
      i === 0 ? result : "",
      printable(text),
    ]),
  );
  for (const line of table(["WORKLOAD", "RESULT", "CHANGES"], rows)) out(line);
  out("");
}

export function printData(results: readonly Result[], output: string, { out }: Terminal): void {
  const value = { results, summary: countsOf(results) };
  out(output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
}

export function nameOf({ kind, namespace, name }: Result["object"]): string {
  return printable(`${kind} ${namespace}/${name}`);
}

function countsOf(results: readonly Result[]) {
  const count = (wanted: Result["result"]) => results.filter(({ result }) => result === wanted).length;
  return {
    renewed: count("renewed"),
    wouldChange: count("would change"),
    unchanged: count("unchanged"),
    failed: count("failed"),
  };
}

export function summary(results: readonly Result[]): string {
  const { renewed, wouldChange, unchanged, failed } = countsOf(results);
  if (results.length === 0) return "nothing to renew: all workloads are current";
  const parts = [
    ...(wouldChange > 0 ? [`${wouldChange} would change`] : [`${renewed} renewed`]),
    ...(unchanged > 0 ? [`${unchanged} as they should be`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${results.length} ${results.length === 1 ? "workload" : "workloads"}: ${parts.join(", ")}`;
}
