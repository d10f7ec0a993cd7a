import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import { codesOf } from "../../core/module/codes.ts";
import type { Problem } from "../../core/policy/problem.ts";
import { isRefused } from "../../core/review/result.ts";
import { reviewWithPods, userInfoFor } from "../../core/review/review.ts";
import { Resources } from "../../files/source/resources.ts";
import { CallError, EXIT } from "../exit.ts";
import { ApiTypes } from "../input/api-types.ts";
import { type InputOptions, type InputProblem, InputReader } from "../input/input.ts";
import { describeProblems, problemData, sourceProblemData } from "../input/problems.ts";
import { Shape } from "../input/shape.ts";
import type { Io } from "../io.ts";
import type { ReviewFormat } from "../options.ts";
import { printable, terminal } from "../output/terminal.ts";
import { isLive, openRead } from "../source/open.ts";
import { assembleFor } from "../source/source.ts";
import { Rehearsal } from "./rehearsal.ts";
import { type Judged, report } from "./report.ts";
import { Requests } from "./request.ts";

export interface ReviewOptions extends InputOptions {
  readonly filename?: readonly string[];
  readonly source?: readonly string[];
  readonly cluster?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly requestTimeout?: number;
  readonly namespace?: string;
  readonly as: string;
  readonly asGroup?: readonly string[];
  readonly operation?: "CREATE" | "UPDATE";
  readonly old?: string;
  readonly trace?: boolean;
  readonly strict?: boolean;
  readonly failOn?: "warning";
  readonly emit?: boolean;
  readonly output: ReviewFormat;
  readonly changedOnly?: boolean;
  readonly quiet?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
  readonly kubernetesVersion?: string;
}

/** Evaluates manifests against files or a live cluster; returns the exit code. */
export async function review(named: readonly string[], options: ReviewOptions, io: Io): Promise<number> {
  const files = [...named, ...(options.filename ?? [])];
  const operation = checkCall([...files, ...(options.kustomize ?? [])], options);
  const { trace = false, emit = false, changedOnly = false, output } = options;
  const screen = terminal(io, options);
  const live = isLive(options) ? { note: screen.note, forbidden: "ask" as const } : undefined;
  const assembly = await assembleFor(options, io, { live });
  const { source, faulty, problems: found, stop } = await openRead(options, assembly, screen);
  try {
    const { modules, installation } = source.assembly;
    const resources = new Resources(modules, installation.workloads.all);
    const shape = new Shape(resources, source.assembly);
    const reader = new InputReader(io.stdin, shape, screen.note, options);
    const input = await reader.read(files, true);
    const old =
      options.old === undefined ? { manifests: [], problems: [] } : await reader.read([options.old]);
    const problems: InputProblem[] = [...input.problems, ...old.problems];
    const user = userInfoFor(options.as, options.asGroup ?? []);
    const asking = { namespace: options.namespace, user, operation, old: old.manifests };
    const requests = await Requests.open(asking, source, resources);
    const rehearsal = new Rehearsal(source, resources);
    const judged: Judged[] = [];
    const hints = new Set<string>();
    const strict = options.strict === true;
    const { view } = source.assembly;
    const types = strict ? await ApiTypes.load(view.serverVersion) : undefined;
    const minor = view.serverVersion?.effective.minor ?? types?.minor;
    if (types !== undefined && types.minor !== minor)
      screen.note(
        `fields are checked as Kubernetes 1.${types.minor} has them: those of 1.${minor} are not known`,
      );
    for (const [i, manifest] of input.manifests.entries()) {
      screen.progress("reviewing", "objects", i, input.manifests.length);
      for (const mistake of shape.mistakes(manifest.object, view, types)) {
        if (strict) problems.push({ place: manifest.place, problem: mistake });
        // Unknown fields are among the warnings of the result.
        else if (mistake.path[0] === "kind" || mistake.path[0] === "apiVersion") hints.add(hintOf(mistake));
      }
      const asked = await requests.of(manifest);
      if ("problem" in asked) problems.push({ place: manifest.place, problem: asked.problem });
      else
        judged.push({
          asked,
          manifest,
          judgement: await reviewWithPods(asked.request, rehearsal, { trace, now: Date.now() }),
        });
    }
    for (const found of describeProblems(problems)) screen.complain(found);
    for (const hint of hints) screen.note(printable(hint));
    const data = [...problemData(problems), ...sourceProblemData(found, strict)];
    const codes = codesOf(modules);
    report(judged, { output, trace, emit, changedOnly, problems: data, codes }, screen, io);
    const results = judged.map(({ judgement }) => judgement.result);
    const undecided = new Set(results.flatMap(({ unknown }) => unknown)).size;
    if (strict && undecided > 0)
      screen.complain(`--strict: ${undecided} of what policies need is unknown: add it to the source`);
    // Unreadable input makes the result incomplete, which outweighs findings in the rest.
    if (problems.length > 0 || faulty || (strict && undecided > 0)) return EXIT.wrong;
    const warned = options.failOn === "warning" && results.some(({ warnings }) => warnings.length > 0);
    return warned || results.some(isRefused) ? EXIT.found : EXIT.fine;
  } finally {
    screen.endProgress();
    await stop();
  }
}

function hintOf({ message, hint }: Problem): string {
  return hint === undefined ? message : `${message}; ${hint}`;
}

/** Checks flags before anything is read. */
function checkCall(files: readonly string[], options: ReviewOptions): "CREATE" | "UPDATE" {
  const { operation, old, emit, trace, namespace } = options;
  if (files.length === 0) {
    throw new CallError("specify files or directories, - for standard input, or -k DIRECTORY");
  }
  if (emit === true && trace === true) {
    throw new CallError("--emit and --trace are mutually exclusive");
  }
  if (emit === true && !["table", "yaml", "json"].includes(options.output)) {
    throw new CallError("--emit prints manifests: use -o yaml or json");
  }
  if (trace === true && !["table", "wide", "yaml", "json"].includes(options.output)) {
    throw new CallError("--trace is printed by -o table, json and yaml");
  }
  if (old !== undefined && operation === "CREATE") {
    throw new CallError("--old can't be combined with --operation CREATE");
  }
  const wrong = namespace === undefined ? undefined : checkDnsLabel(namespace);
  if (wrong !== undefined) throw new CallError(`--namespace: ${wrong}`);
  return operation ?? (old === undefined ? "CREATE" : "UPDATE");
}
