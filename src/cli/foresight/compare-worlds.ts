import type { Decided } from "../../core/foresight/compare.ts";
import { type Foresight, foresee, isEmpty, type WorkloadDifference } from "../../core/foresight/foresee.ts";
import type { JsonObject } from "../../core/json.ts";
import { CallError, EXIT } from "../exit.ts";
import { type InputOptions, InputReader } from "../input/input.ts";
import { describeProblems } from "../input/problems.ts";
import { Shape } from "../input/shape.ts";
import type { Io } from "../io.ts";
import type { ReviewFormat } from "../options.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { cordonOf, type EditContext, editsOf, removalOf, type WorldEdit } from "./edits.ts";
import { itemsText } from "./items.ts";
import { type OpenedWorld, openWorld, PRIORITY_CLASSES, type WorldOptions } from "./open-world.ts";
import { countsOf, entriesOf, lookedAt, markdownOf, printEntries, summaryLines } from "./print.ts";
import type { DryRunResult } from "./server-dry-run.ts";

export interface CompareOptions extends WorldOptions, InputOptions {
  readonly filename?: readonly string[];
  readonly remove?: readonly string[];
  readonly output: ReviewFormat;
}

export interface WhatIfOptions extends CompareOptions {
  readonly cordon?: readonly string[];
  readonly poolLabel?: string;
  readonly serverDryRun: "auto" | "never";
}

/** Shows the effect of an edit of policies; returns the exit code. */
export async function diff(options: CompareOptions, io: Io): Promise<number> {
  if (!hasManifests(options) && (options.remove ?? []).length === 0)
    throw new CallError("specify policies with -f or -k, or --remove KIND/NAME");
  return compareWorlds(options, io, {
    files: options.filename ?? [],
    allowed: ["policy", "namespace"],
    otherwise: "not a policy and not a namespace: use usher what-if for other objects",
    placements: false,
  });
}

/** Shows the effect of changed objects, policies and nodes; returns the exit code. */
export async function whatIf(given: readonly string[], options: WhatIfOptions, io: Io): Promise<number> {
  const files = [...given, ...(options.filename ?? [])];
  const named = [...files, ...(options.remove ?? []), ...(options.cordon ?? [])];
  if (!hasManifests(options) && named.length === 0)
    throw new CallError("specify manifests, --remove KIND/NAME or --cordon NODE");
  return compareWorlds(options, io, {
    files,
    cordon: options.cordon ?? [],
    allowed: ["policy", "namespace", "node", "workload"],
    otherwise: "has no effect here: give policies, workloads, nodes or namespaces",
    placements: true,
    poolLabel: options.poolLabel,
    serverDryRun: options.serverDryRun !== "never",
  });
}

/** Whether a call names manifests by a flag. */
export function hasManifests({ filename = [], kustomize = [] }: CompareOptions): boolean {
  return filename.length + kustomize.length > 0;
}

interface Comparing extends Pick<EditContext, "allowed" | "otherwise"> {
  readonly files: readonly string[];
  readonly cordon?: readonly string[];
  /** Whether to compute where pods may run. */
  readonly placements: boolean;
  readonly poolLabel?: string | undefined;
  /** Whether new objects are sent to a live cluster as a dry run. */
  readonly serverDryRun?: boolean;
}

/** Loaded only here: commands on files do not need a client. */
async function dryRun(
  edits: readonly WorldEdit[],
  { world }: OpenedWorld,
  options: CompareOptions,
  { note }: Terminal,
) {
  const { serverDryRun } = await import("./server-dry-run.ts");
  return serverDryRun(edits, world.assembly.installation.workloads, options, note);
}

async function compareWorlds(options: CompareOptions, io: Io, how: Comparing): Promise<number> {
  const screen = terminal(io, options);
  const opened = await openWorld(options, io, screen, { scheduling: how.placements });
  try {
    const read = await readEdits(opened, options, io, how, screen);
    if (read === undefined) return EXIT.wrong;
    const { edits, results: dryRuns } =
      opened.live && how.serverDryRun === true
        ? await dryRun(read, opened, options, screen)
        : { edits: read, results: [] };
    const before = opened.world.reconciled();
    const after = opened.world.with(edits.map(({ change }) => change)).reconciled();
    const diffs: string[] = [];
    const foresight = await foresee(before, after, {
      now: Date.now(),
      namespace: options.namespace,
      placements: how.placements,
      poolLabel: how.poolLabel,
      priorityClasses: opened.world.list(PRIORITY_CLASSES),
      written: new Set(edits.flatMap(({ change: { object } }) => (object === undefined ? [] : [object]))),
      progress: (done, total) => screen.progress("judging", "workloads", done, total),
      decided: (difference, decided) => {
        if (options.output === "diff") diffs.push(...manifestDiff(difference, decided));
      },
    });
    screen.endProgress();
    const { placements } = how;
    report(foresight, { edits: read, diffs, opened, output: options.output, placements, dryRuns }, screen);
    if (opened.faulty) return EXIT.wrong;
    const unjudged = dryRuns.some(({ result }) => result === "not judged");
    if (opened.partial.length > 0 || unjudged) return EXIT.failed;
    const admitted = dryRuns.every(({ result }) => result === "admitted");
    return isEmpty(foresight) && admitted ? EXIT.fine : EXIT.found;
  } finally {
    screen.endProgress();
    await opened.stop();
  }
}

/** The edits of a call; `undefined` if one of them is invalid, which is then reported. */
export async function readEdits(
  { world, resources }: OpenedWorld,
  options: CompareOptions,
  io: Io,
  how: Comparing,
  screen: Terminal,
): Promise<readonly WorldEdit[] | undefined> {
  const context: EditContext = { world, resources, namespace: options.namespace, ...how };
  const shape = new Shape(resources, world.assembly);
  const reader = new InputReader(io.stdin, shape, screen.note, options);
  const { kustomize = [] } = options;
  const input =
    how.files.length + kustomize.length === 0
      ? { manifests: [], problems: [] }
      : await reader.read(how.files, true);
  const { edits, problems } = editsOf(input, context);
  for (const text of describeProblems(problems)) screen.complain(text);
  const named = [
    ...(options.remove ?? []).map((text) => removalOf(text, context)),
    ...(how.cordon ?? []).map((text) => cordonOf(text, context)),
  ];
  const wrong = named.flatMap((one) => ("wrong" in one ? [one.wrong] : []));
  for (const text of wrong) screen.complain(printable(`usher: ${text}`));
  if (problems.length + wrong.length > 0) {
    screen.complain("nothing was compared");
    return undefined;
  }
  return [...edits, ...named.filter((one) => "change" in one)];
}

interface Reported {
  readonly edits: readonly WorldEdit[];
  readonly diffs: readonly string[];
  readonly opened: OpenedWorld;
  readonly output: CompareOptions["output"];
  readonly placements: boolean;
  readonly dryRuns: readonly DryRunResult[];
}

function report(foresight: Foresight, reported: Reported, screen: Terminal): void {
  const { edits, diffs, opened, output, placements, dryRuns } = reported;
  for (const reason of opened.partial) screen.complain(printable(`partial, not read: ${reason}`));
  for (const name of foresight.unknown)
    screen.note(
      printable(`unknown: the source does not have ${name}; policies that need it follow their failure mode`),
    );
  if (output === "json" || output === "yaml") {
    const { partial, problems } = opened;
    const named = edits.map(({ name, what }) => ({ name, what }));
    const data = {
      edits: named,
      summary: countsOf(foresight),
      ...foresight,
      serverDryRun: dryRuns,
      partial,
      problems,
    } as unknown as JsonObject;
    const value = versioned(placements ? "WhatIf" : "Diff", data);
    screen.out(output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
    return;
  }
  if (output === "diff") {
    for (const line of diffs) screen.out(printable(line));
    return;
  }
  const empty = isEmpty(foresight);
  const heading = headingOf(edits);
  const lines = empty ? ["nothing changes"] : summaryLines(foresight);
  if (output === "junit" || output === "sarif" || output === "name") {
    const command = placements ? "usher what-if" : "usher diff";
    const text = itemsText(output, entriesOf(foresight, true), command, opened);
    if (text !== "") screen.out(text);
    return;
  }
  const entries = entriesOf(foresight, output === "wide");
  if (output === "markdown") {
    screen.out(`**${printable(heading)}**\n`);
    for (const line of lines) screen.out(`- ${printable(line)}`);
    if (entries.length > 0) screen.out("");
    if (entries.length > 0) for (const line of markdownOf(entries)) screen.out(line);
    for (const { name, result, changes } of dryRuns)
      for (const { message, by } of changes)
        screen.out(`\n- server dry run: ${printable(`${name} ${result} (${by}): ${message}`)}`);
    screen.out(`\n_${lookedAt(foresight)}_`);
    return;
  }
  screen.out(printable(`${heading}:`));
  for (const line of lines) screen.out(printable(`  ${line}`));
  if (entries.length > 0) screen.out("");
  printEntries(entries, screen);
  printDryRuns(dryRuns, screen);
  screen.note(`${opened.partial.length > 0 ? "partial: " : ""}${lookedAt(foresight)}`);
  if (placements && opened.world.list("nodes").length === 0)
    screen.note("where pods may run is not known: there are no nodes here");
}

/** Changes of other admission to new objects. */
function printDryRuns(results: readonly DryRunResult[], { out, width }: Terminal): void {
  if (results.length === 0) return;
  const rows = results.flatMap(({ name, result, changes }) =>
    (changes.length === 0 ? [{ message: "-", by: "-" }] : changes).map(({ message, by }, i) =>
      [i === 0 ? name : "", i === 0 ? result : "", message, by].map(printable),
    ),
  );
  out("");
  for (const line of table(["SERVER DRY RUN", "RESULT", "CHANGES", "BY"], rows, width)) out(line);
}

/** Edits in the heading; `-o json` has them all. */
const SHOWN_EDITS = 3;

/** `If ClusterPodSchedulingPolicy etcd-pool is changed` */
export function headingOf(edits: readonly WorldEdit[]): string {
  const shown = edits.slice(0, SHOWN_EDITS).map(({ name, what }) => `${name} is ${what}`);
  const more = edits.length - shown.length;
  return `If ${[...shown, ...(more > 0 ? [`${more} more change`] : [])].join(" and ")}`;
}

/** The manifest as both views leave it. */
export function manifestDiff(
  { object }: Pick<WorkloadDifference, "object">,
  { before, after }: Decided,
): string[] {
  const name = `${object.kind} ${object.namespace === "" ? "" : `${object.namespace}/`}${object.name}`;
  const lines = unifiedDiff(manifestOf(before), manifestOf(after));
  return lines.length === 0 ? [] : [`--- ${name} (before)`, `+++ ${name} (after)`, ...lines];
}

function manifestOf(judgement: Decided["before"]): string {
  if (judgement === undefined) return "";
  const { result, evaluation } = judgement;
  const refused = [...result.violations, ...(result.podViolations ?? [])].map(
    ({ message, code }) => `# refused: ${message}${code === "" ? "" : ` (${code})`}`,
  );
  return [...refused, yamlText(evaluation.draft.object)].join("\n");
}
