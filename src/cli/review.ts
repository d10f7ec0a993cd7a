import { stringify } from "yaml";
import { EXIT } from "./exit.ts";
import { emitText, emitted } from "./review/emit.ts";
import { type Manifest, readInput } from "./review/input.ts";
import { type Judgement, judge } from "./review/judge.ts";
import { printTable, printTrace, summaryLine } from "./review/print.ts";
import { requestFor } from "./review/request.ts";
import { summaryOf } from "./review/result.ts";
import { openSource } from "./source.ts";
import { type Terminal, terminal } from "./terminal.ts";

export interface ReviewOptions {
  readonly source?: string;
  readonly namespace: string;
  readonly as: string;
  readonly asGroup: readonly string[];
  readonly operation: "CREATE" | "UPDATE";
  readonly old?: string;
  readonly trace: boolean;
  readonly emit: boolean;
  readonly output: "table" | "json" | "yaml";
  readonly quiet: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** Judges manifests against a cluster of files; gives the exit code. */
export async function review(files: readonly string[], options: ReviewOptions): Promise<number> {
  const screen = terminal(options);
  const source = await openSource({ ...options, watch: false }, screen);
  const input = await readInput(files);
  const old = options.old === undefined ? { manifests: [], problems: [] } : await readInput([options.old]);
  const asking = {
    namespace: options.namespace,
    username: options.as,
    groups: options.asGroup,
    operation: options.operation,
    old: old.manifests,
  };
  const problems = [...input.problems, ...old.problems];
  const judged: { manifest: Manifest; judgement: Judgement }[] = [];
  for (const [i, manifest] of input.manifests.entries()) {
    screen.progress(`reviewed ${i} of ${input.manifests.length} objects`);
    const request = await requestFor(manifest, asking, source);
    if ("problem" in request) problems.push(request.problem);
    else
      judged.push({
        manifest,
        judgement: await judge(request, source, { trace: options.trace, now: Date.now() }),
      });
  }
  screen.endProgress();
  await source.stop();
  for (const found of problems) screen.complain(found);
  report(judged, options, screen);
  const denied = judged.some(({ judgement }) => judgement.result.verdict === "deny");
  // What could not be read makes the answer incomplete, which weighs more than what was found in the rest.
  if (problems.length > 0 || source.problems.some(({ severity }) => severity === "error")) return EXIT.wrong;
  return denied ? EXIT.found : EXIT.fine;
}

function report(
  judged: readonly { readonly manifest: Manifest; readonly judgement: Judgement }[],
  { output, trace, emit }: ReviewOptions,
  screen: Terminal,
): void {
  const results = judged.map(({ judgement }) => judgement.result);
  const unknown = new Set(results.flatMap((result) => result.unknown));
  for (const name of unknown)
    screen.note(`unknown: the source does not have ${name}; policies that need it follow their failure mode`);
  if (emit) {
    const allowed = judged.filter(({ judgement }) => judgement.result.verdict === "allow");
    const objects = allowed.map(({ manifest, judgement }) =>
      emitted(manifest.object, judgement.evaluation.draft.edits),
    );
    if (objects.length > 0) screen.out(emitText(objects, output === "json" ? "json" : "yaml"));
    for (const { kind, namespace, name } of results
      .filter(({ verdict }) => verdict === "deny")
      .map(({ object }) => object)) {
      screen.complain(
        `left out, because it was refused: ${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`,
      );
    }
    return;
  }
  if (output !== "table") {
    const value = { results, summary: summaryOf(results) };
    screen.out(
      output === "json" ? JSON.stringify(value, null, 2) : stringify(value, { lineWidth: 0 }).trimEnd(),
    );
    return;
  }
  for (const { warnings, object } of results) {
    for (const warning of warnings) screen.note(`Warning: ${object.kind} ${object.name}: ${warning}`);
  }
  if (results.length === 0) return;
  if (trace) printTrace(results, screen);
  else printTable(results, screen);
  screen.out(`\n${summaryLine(results)}`);
}
