import { setTimeout as pause } from "node:timers/promises";
import { createKindPaths, createResources } from "../../cluster/client/discovery.ts";
import { createSender } from "../../cluster/controller/planned-writes.ts";
import type { Command, CommandCall, CommandPlan, PlannedChange } from "../../core/module/command.ts";
import { EXIT } from "../exit.ts";
import { printable, type Terminal } from "../output/terminal.ts";
import { withApiServer } from "../source/api-server.ts";
import {
  objectName,
  printResults,
  printTableOf,
  summaryOf,
  type WriteResult,
  writeResult,
} from "./print-results.ts";
import type { ShellOptions } from "./run-command.ts";
import { type WriteAttempt, Writer } from "./write.ts";

/**
 * Determines the changes of a plan by a server-side dry run of every write, then makes the effective writes, unless it
 * is a dry run, and shows the result of each object. Returns the exit code.
 */
export async function writePlan(
  command: Command,
  plan: CommandPlan,
  { assembly }: CommandCall,
  options: ShellOptions,
  screen: Terminal,
): Promise<number> {
  const { writes } = command;
  if (writes === undefined) throw new Error(`command ${command.name} plans writes, and declares none`);
  const dryRun = writes.switch === "dry-run" ? options.dryRun === true : options.apply !== true;
  for (const note of plan.notes ?? []) screen.note(printable(note));
  return withApiServer(options, screen.note, async (client) => {
    const resources = createResources(client, assembly.modules);
    const sender = createSender(client, resources, createKindPaths(client));
    const writer = new Writer(client, resources, sender, `usher-${command.name}`);
    const forTable = options.output === "table";
    const planned = await each("checking", plan.changes, plan, 0, screen, (one) => writer.dryRun(one));
    const due = plan.changes.filter((_, i) => hasChanges(planned[i]));
    const done = new Map<PlannedChange, WriteAttempt>();
    if (!dryRun && due.length > 0) {
      const { parallel = 1, pauseSeconds = 0 } = plan;
      if (forTable) screen.note(`writing ${due.length}, ${parallel} at a time`);
      const written = await each("writing", due, plan, pauseSeconds, screen, (one) => writer.write(one));
      for (const [i, one] of due.entries()) done.set(one, written[i] ?? NOT_TRIED);
    }
    const results = plan.changes.map((one, i) => {
      const attempt = done.get(one);
      return attempt === undefined
        ? writeResult(one, planned[i] ?? NOT_TRIED)
        : writeResult(one, attempt, writes.done);
    });
    if (forTable) printTableOf(results, writes, screen);
    else printResults(results, writes, options.output === "json" ? "json" : "yaml", screen);
    report(results, screen, forTable ? summaryOf(results, writes) : undefined);
    if (dryRun)
      screen.note(`dry run: nothing was changed${writes.switch === "apply" ? "; use --apply to write" : ""}`);
    return results.some(({ result }) => result === "failed") ? EXIT.found : EXIT.fine;
  });
}

const NOT_TRIED: WriteAttempt = { failed: "was not tried" };

function hasChanges(attempt: WriteAttempt | undefined): boolean {
  return attempt !== undefined && "changes" in attempt && attempt.changes.length > 0;
}

function report(results: readonly WriteResult[], screen: Terminal, summary: string | undefined): void {
  for (const { object, result, why } of results)
    if (result === "failed") screen.complain(printable(`${objectName(object)}: ${why ?? ""}`));
  if (summary !== undefined) screen.out(summary);
  for (const { object, warnings = [] } of results)
    for (const text of warnings) screen.warn(printable(`${objectName(object)}: ${text}`));
}

async function each(
  doing: string,
  changes: readonly PlannedChange[],
  { parallel = 1 }: CommandPlan,
  pauseSeconds: number,
  screen: Terminal,
  attempt: (change: PlannedChange) => Promise<WriteAttempt>,
): Promise<WriteAttempt[]> {
  const progress = (done: number) => screen.progress(doing, "objects", done, changes.length);
  const results = await mapConcurrently(changes, attempt, {
    parallel,
    pauseMs: pauseSeconds * 1_000,
    progress,
  });
  screen.endProgress();
  return results;
}

export interface ConcurrencyOptions {
  /** The number of concurrent writes. */
  readonly parallel: number;
  /** After each item, before the next one. */
  readonly pauseMs: number;
  readonly progress: (done: number) => void;
}

/** Processes items in order, a bounded number at a time; results are in the same order. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
  { parallel, pauseMs, progress }: ConcurrencyOptions,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) {
      const item = items[i];
      if (item === undefined) continue;
      results[i] = await work(item);
      progress(++done);
      if (pauseMs > 0 && next < items.length) await pause(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}
