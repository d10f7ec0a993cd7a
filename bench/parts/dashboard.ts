// What the dashboard costs on a large cluster: the first map, further ones, changes and memory, in a process of its own.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { count, time } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import type { Servers } from "../servers/servers.ts";

/** What the measured process reports. */
export interface DashboardFigures {
  readonly nodes: number;
  readonly pods: number;
  /** Milliseconds of processor time. */
  readonly first: number;
  readonly lenses: number;
  readonly again: number;
  readonly delta: number;
  readonly node: number;
  readonly search: number;
  readonly explain: number;
  readonly explainAgain: number;
  /** Processor time of a second with 300 changes and four maps, as a share of a core. */
  readonly changes: number;
  readonly megabytes: number;
}

const INTERACTION_MS = 100;

export async function dashboard(servers: Servers): Promise<Result> {
  const [nodes, pods] = servers.quick ? [500, 15_000] : [5_000, 150_000];
  servers.say(`a dashboard of ${count(nodes)} nodes and ${count(pods)} pods …`);
  const child = fork(join(import.meta.dirname, "dashboard-process.ts"), [String(nodes), String(pods)], {
    execArgv: ["--max-semi-space-size=8"],
  });
  const [figures] = (await once(child, "message")) as [DashboardFigures];
  const row = (what: string, ms: number, limit?: number) => ({
    what,
    figure: time(ms * 1_000),
    ...(limit === undefined ? {} : { target: atMost(limit, ms, " ms") }),
  });
  return {
    title: `The dashboard of ${count(nodes)} nodes and ${count(pods)} pods of 5,000 templates, processor time`,
    rows: [
      row("first map of a process that has read the cluster", figures.first, 3_000),
      row("first map by each other lens, the slowest", figures.lenses),
      row("the map again, by another grouping", figures.again, INTERACTION_MS),
      row("the nodes that changed in a second with 300 changes", figures.delta, INTERACTION_MS),
      row("one node with its pods", figures.node, INTERACTION_MS),
      row("search in all names", figures.search, INTERACTION_MS),
      row("a pod explained, with the filters of the scheduler, for the first time", figures.explain),
      row("the next one", figures.explainAgain, INTERACTION_MS),
      {
        what: "300 changes a second, with four maps: share of a core",
        figure: `${Math.round(figures.changes * 100)} %`,
      },
      {
        what: "memory of the process",
        figure: `${Math.round(figures.megabytes)} MiB`,
        target: atMost(600, figures.megabytes, " MiB"),
      },
    ],
    figures: { ...figures },
  };
}
