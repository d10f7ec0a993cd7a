import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../cluster/client/client.ts";
import type { ClusterSource } from "../../cluster/source/cluster-source.ts";
import type { Source } from "../../core/evaluate/source.ts";
import type * as Model from "../../dashboard/model.ts";
import { loadPage } from "../../dashboard/page-files.ts";
import { type DashboardServer, startDashboard } from "../../dashboard/server.ts";
import { DashboardState } from "../../dashboard/state.ts";
import type { FileSource } from "../../files/source/file-source.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { createLog } from "../output/log.ts";
import { type Terminal, terminal } from "../output/terminal.ts";
import { isLive, type OpenOptions } from "../source/open.ts";
import { assembleFor, openSource } from "../source/source.ts";
import { version } from "../version.ts";
import { followEvents, followServer } from "./decisions.ts";
import { quoted, WorldJudging } from "./judging.ts";

export interface DashboardOptions extends OpenOptions {
  readonly port: number;
  readonly open?: boolean;
  /** The ops address of a server on the same files. */
  readonly decisions?: string;
  readonly output: "text" | "json";
  readonly quiet?: boolean;
}

/** The shown state, and how to stop it. */
interface Opened {
  readonly state: DashboardState;
  readonly source: Source;
  /** Keeps the state of the source and decisions up to date. */
  readonly follow: (server: DashboardServer, signal: AbortSignal) => void;
  readonly stop: () => Promise<void>;
}

/** Serves the dashboard until a signal; resolves when ready. */
export async function dashboard(options: DashboardOptions, io: Io): Promise<void> {
  const screen = terminal(io, options);
  checkCall(options);
  const [opened, page] = await Promise.all([open(options, io, screen), loadPage()]);
  const { state, source } = opened;
  const judging = new WorldJudging(state, source, { ...options, command: io.name, flags: flagsOf(options) });
  const log = createLog("error");
  const failed = (error: unknown) =>
    log.error(
      { error: error instanceof Error ? (error.stack ?? error.message) : String(error) },
      "internal error of the dashboard",
    );
  const server = await startDashboard({ state, judging, page, port: options.port, failed }).catch(
    async (error: unknown) => {
      await opened.stop();
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "EADDRINUSE")
        throw new CallError(
          `port ${options.port} is in use; choose another one with --port, or 0 for a free one`,
        );
      if (code === "EACCES")
        throw new CallError(`port ${options.port} needs more rights; choose one above 1023 with --port`);
      throw error;
    },
  );
  const ended = new AbortController();
  opened.follow(server, ended.signal);
  endOnSignals(async () => {
    ended.abort();
    await server.stop();
    await opened.stop();
  });
  screen.out(
    options.output === "json"
      ? JSON.stringify({ ready: true, url: server.url })
      : `dashboard of ${state.options.name}: ${server.url}`,
  );
  if (options.open === true) openBrowser(server.url, screen);
}

function checkCall({ source, cluster, kubeconfig, context, decisions }: DashboardOptions): void {
  const which = kubeconfig !== undefined ? "--kubeconfig" : context !== undefined ? "--context" : undefined;
  if (source !== undefined && cluster !== true && which !== undefined)
    throw new CallError(
      `${which} and --source are mutually exclusive: the dashboard shows a cluster, or files in its place`,
    );
  if (decisions === undefined) return;
  if (source === undefined)
    throw new CallError(
      "--decisions needs --source: on a cluster the dashboard shows the events that usher writes",
    );
  const url = URL.parse(decisions);
  if (url?.protocol !== "http:" || !["127.0.0.1", "localhost", "[::1]"].includes(url.hostname))
    throw new CallError(`--decisions ${decisions}: must be the http:// address of a server on this machine`);
}

/** The flags that name the same source on the command line. */
function flagsOf({ source, config, featureGates, kubeconfig, context }: DashboardOptions): string {
  return [
    ...(source ?? []).map((one) => `--source ${quoted(one)}`),
    ...(config === undefined ? [] : [`--config ${quoted(config)}`]),
    ...(featureGates === undefined ? [] : [`--feature-gates ${quoted(featureGates)}`]),
    ...(kubeconfig === undefined ? [] : [`--kubeconfig ${quoted(kubeconfig)}`]),
    ...(context === undefined ? [] : [`--context ${quoted(context)}`]),
  ].join(" ");
}

async function open(options: DashboardOptions, io: Io, screen: Terminal): Promise<Opened> {
  const live = isLive(options);
  const assembly = await assembleFor(options, io, {
    foresight: true,
    live: live ? { note: screen.note, forbidden: "default" } : undefined,
  });
  const common = { version: version(), live, now: Date.now };
  if (!live) {
    let files: FileSource | undefined;
    const state = new DashboardState(assembly, {
      ...common,
      name: (options.source ?? []).join(" and "),
      problems: () => problemsOf(files),
    });
    files = await openSource({ ...options, watch: true }, state.assembly, screen);
    state.setSource("ready", []);
    return {
      state,
      source: files,
      follow: (server, signal) => {
        followFiles(options, state, server, signal);
        void followProblems(() => JSON.stringify(problemsOf(files)), state, signal);
      },
      stop: files.stop,
    };
  }
  // Loaded only here: files alone need no client.
  const { apiServer } = await import("../source/api-server.ts");
  const { openCluster } = await import("../../cluster/source/cluster-source.ts");
  const client = readOnly(await apiServer(options));
  const state = new DashboardState(assembly, {
    ...common,
    name: options.context ?? client.server,
    problems: () => [],
  });
  const source = openCluster({ client, assembly: state.assembly, log: createLog("error"), readOnly: true });
  // The dashboard also shows resources that only usher's leader reads. If they are forbidden, the rest is shown.
  source.cache.startLeading().catch(() => undefined);
  return {
    state,
    source,
    follow: (server, signal) => {
      void followCluster({ client, source, state, server, signal });
      void followEvents(source, { state, signal, send: server.sendDecisions });
    },
    stop: async () => {
      await source.stop();
      client.close();
    },
  };
}

function problemsOf(files: FileSource | undefined): Model.LocatedProblem[] {
  return (files?.problems ?? []).map(({ file, line, column, message, hint, severity, object }) => ({
    severity,
    message,
    file,
    ...(hint === undefined ? {} : { hint }),
    ...(line === 0 ? {} : { line, column }),
    ...(object === undefined ? {} : { object }),
  }));
}

/** A file that breaks changes no object: the last good version counts. The page shows the problem within this time. */
const PROBLEMS_MS = 500;

async function followProblems(
  problems: () => string,
  state: DashboardState,
  signal: AbortSignal,
): Promise<void> {
  let before = problems();
  while (!signal.aborted) {
    await sleep(PROBLEMS_MS, undefined, { signal }).catch(() => undefined);
    const now = problems();
    if (now !== before) state.problemsChanged();
    before = now;
  }
}

function followFiles(
  { decisions }: DashboardOptions,
  state: DashboardState,
  server: DashboardServer,
  signal: AbortSignal,
): void {
  if (decisions === undefined)
    state.decisionNote =
      "No server is followed. Start one on the same files with npm start, or with usher serve --source, and pass its address of health and metrics with --decisions.";
  else void followServer(decisions.replace(/\/+$/, ""), { state, signal, send: server.sendDecisions });
}

/** A client that can't write: it sends reads only, whatever calls it. */
function readOnly(client: Client): Client {
  return {
    ...client,
    request: (method, path, options) =>
      method === "GET"
        ? client.request(method, path, options)
        : Promise.reject(new Error(`the dashboard only reads: ${method} ${path} was not sent`)),
  };
}

/** How often the API server is probed. */
const PROBE_MS = 2_000;

/** A resource that fails for this long at the start is not waited for. */
const GRACE_MS = 6_000;

async function followCluster(following: {
  readonly client: Client;
  readonly source: ClusterSource;
  readonly state: DashboardState;
  readonly server: DashboardServer;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { client, source, state, server, signal } = following;
  const started = performance.now();
  while (!signal.aborted) {
    const answers = await client.request("GET", "/version", { timeoutMs: PROBE_MS * 2, signal }).then(
      ({ status }) => status < 500,
      () => false,
    );
    const statuses = source.cache.status();
    const partial = statuses
      .filter(({ synced, served, errors }) => !synced && served !== false && errors > 0)
      .map(({ resource, lastError = "not read" }) =>
        lastError.includes(resource) ? lastError : `${resource}: ${lastError}`,
      );
    const waiting =
      performance.now() - started < GRACE_MS &&
      statuses.some(({ synced, served, errors }) => !synced && served !== false && errors === 0);
    if (state.setSource(!answers ? "stale" : waiting ? "waiting" : "ready", partial)) server.sendSource();
    await sleep(waiting ? 250 : PROBE_MS, undefined, { signal }).catch(() => undefined);
  }
}

function endOnSignals(stop: () => Promise<void>): void {
  let ending = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      if (ending) return;
      ending = true;
      void stop().finally(() => process.exit(0));
    });
}

const OPENERS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

function openBrowser(url: string, screen: Terminal): void {
  const [command, ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", () => screen.note(`${command} could not be started: open the address yourself`));
  child.unref();
}
