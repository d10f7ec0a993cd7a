import { createResources } from "../../cluster/client/discovery.ts";
import type { WorkloadTable } from "../../core/kubernetes/workloads.ts";
import { readConfiguration } from "../configuration/configuration.ts";
import { CallError, EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { type Terminal, terminal } from "../output/terminal.ts";
import { withApiServer } from "../source/api-server.ts";
import { assembleFor } from "../source/source.ts";
import { type Chosen, chosenFrom } from "./choose.ts";
import { inTurns } from "./concurrency.ts";
import { namespaceFrom, openSurvey, type SurveyingOptions } from "./open.ts";
import { ofPolicy } from "./policy-name.ts";
import { workloadName } from "./print.ts";
import { readSurvey } from "./read.ts";
import { nameOf, printData, printPlan, resultOf, summary } from "./reapply-print.ts";
import { type Renewal, Renewer } from "./renew.ts";

export interface ReapplyOptions extends SurveyingOptions {
  readonly policy?: string;
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly parallel: number;
  readonly pause: number;
}

/** Renews workloads, a bounded number at a time; gives the exit code. */
export async function reapply(
  name: string,
  named: readonly string[],
  options: ReapplyOptions,
  io: Io,
): Promise<number> {
  const namespace = namespaceFrom(options);
  checkCall(named, options, namespace);
  const screen = terminal(io, options);
  const assembly = assembleFor(options, await readConfiguration(options.config));
  const module = assembly.modules.find((one) => one.name === name);
  if (module === undefined) throw new Error(`there is no module ${name}`);
  const { workloads } = assembly.installation;
  const chosen =
    named.length > 0
      ? named.map((text) => chosenFrom(text, namespace ?? "default", workloads))
      : await thoseBehind(name, namespace, workloads, options, screen);
  return withApiServer(options, async (client) => {
    const renewer = new Renewer(client, createResources(client, assembly.modules), module);
    const tried = await each("trying out", chosen, options, screen, (one) => renewer.tryOut(one));
    const plan = chosen.map((one, i) => ({ one, renewal: tried[i] ?? { failed: "was not tried" } }));
    const dryRun = options.dryRun === true;
    const due = plan.filter(({ renewal }) => "changes" in renewal && renewal.changes.length > 0);
    const table = options.output === "table";
    if (table)
      printPlan(
        plan.map(({ one, renewal }) => resultOf(one, renewal, "would change")),
        screen,
      );
    const done = new Map<Chosen, Renewal>();
    if (!dryRun && due.length > 0) {
      if (table)
        screen.note(`renewing ${due.length}, ${options.parallel} at a time; templates that change roll out`);
      const pausing = { ...options, pauseMs: options.pause * 1_000 };
      const renewed = await each(
        "renewing",
        due.map(({ one }) => one),
        pausing,
        screen,
        (one) => renewer.renew(one),
      );
      for (const [i, { one }] of due.entries()) done.set(one, renewed[i] ?? { failed: "was not asked for" });
    }
    const results = plan.map(({ one, renewal }) =>
      resultOf(one, done.get(one) ?? renewal, done.has(one) ? "renewed" : "would change"),
    );
    if (!table) printData(results, options.output, screen);
    for (const { object, why } of results.filter(({ result }) => result === "failed"))
      screen.complain(`${nameOf(object)}: ${printable(why ?? "")}`);
    if (table) screen.out(summary(results));
    for (const { object, warnings = [] } of results)
      for (const text of warnings) screen.warn(`${nameOf(object)}: ${printable(text)}`);
    if (dryRun) screen.note("nothing was changed: this was a dry run");
    return results.some(({ result }) => result === "failed") ? EXIT.found : EXIT.fine;
  });
}

function checkCall(named: readonly string[], options: ReapplyOptions, namespace: string | undefined): void {
  const { policy, all } = options;
  const ways = [named.length > 0, policy !== undefined, all === true].filter(Boolean).length;
  if (ways === 0)
    throw new CallError("what to renew? Name workloads as KIND/NAME, or a policy with --policy, or --all");
  if (ways > 1)
    throw new CallError("workloads by name, --policy and --all are three ways to choose: take one");
  if (named.length > 0 && namespace === undefined)
    throw new CallError("a workload by name is in one namespace: -A goes with --policy and --all");
}

/** Every workload that is not current, with one policy or with any. */
async function thoseBehind(
  name: string,
  namespace: string | undefined,
  table: WorkloadTable,
  options: ReapplyOptions,
  screen: Terminal,
): Promise<Chosen[]> {
  const { source, module, stop } = await openSurvey(name, options, screen);
  try {
    const progress = (done: number, total: number) =>
      screen.progress("looking at", "kinds of workloads", done, total);
    const survey = await readSurvey(source, module, { namespace, progress });
    screen.endProgress();
    for (const why of survey.unread) screen.complain(`not looked at: ${printable(why)}`);
    const { policy } = options;
    const workloads =
      policy === undefined ? survey.workloads : ofPolicy(policy, survey.workloads, module, source.assembly);
    const behind = workloads.filter(({ carries }) => carries.some(({ state }) => state !== "current"));
    const closed = behind.filter(({ refused }) => refused !== undefined);
    for (const { object, refused } of closed)
      screen.note(`${workloadName(object)}: ${printable(refused ?? "")}`);
    return behind
      .filter(({ refused }) => refused === undefined)
      .flatMap(({ object }) => {
        const group = object.apiVersion.includes("/") ? (object.apiVersion.split("/")[0] ?? "") : "";
        const workload = table.byKind(group, object.kind);
        return workload === undefined ? [] : [{ workload, namespace: object.namespace, name: object.name }];
      });
  } finally {
    screen.endProgress();
    await stop();
  }
}

async function each(
  doing: string,
  chosen: readonly Chosen[],
  options: { readonly parallel: number; readonly pauseMs?: number },
  screen: Terminal,
  ask: (one: Chosen) => Promise<Renewal>,
): Promise<Renewal[]> {
  const { parallel, pauseMs = 0 } = options;
  const progress = (done: number) => screen.progress(doing, "workloads", done, chosen.length);
  const results = await inTurns(chosen, ask, { parallel, pauseMs, progress });
  screen.endProgress();
  return results;
}
