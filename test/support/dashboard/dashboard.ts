import { WorldJudging } from "../../../src/cli/dashboard/judging.ts";
import type { Io } from "../../../src/cli/io.ts";
import type { Terminal } from "../../../src/cli/output/terminal.ts";
import { assembleFor, openSource } from "../../../src/cli/source/source.ts";
import type { PageFile } from "../../../src/dashboard/server.ts";
import { startDashboard } from "../../../src/dashboard/server.ts";
import { DashboardState } from "../../../src/dashboard/state.ts";
import { declarations } from "../../../src/modules/index.ts";

const SILENT: Terminal = {
  out: () => undefined,
  note: () => undefined,
  warn: () => undefined,
  complain: () => undefined,
  width: undefined,
  paint: (_style, text) => text,
  progress: () => undefined,
  endProgress: () => undefined,
};

const IO = { modules: declarations, name: "usher", env: {} } as unknown as Io;

const PAGE: ReadonlyMap<string, PageFile> = new Map([
  ["/", { type: "text/html; charset=utf-8", body: Buffer.from("<!doctype html><title>usher</title>") }],
  ["/page.js", { type: "text/javascript; charset=utf-8", body: Buffer.from("export {};") }],
]);

/** The dashboard of files, without the page itself. */
export async function dashboardOf(source: readonly string[], config?: string) {
  const assembly = await assembleFor(config === undefined ? {} : { config }, IO, { foresight: true });
  const state = new DashboardState(assembly, {
    version: "test",
    name: source.join(" and "),
    live: false,
    now: Date.now,
    problems: () => [],
  });
  const files = await openSource({ source, watch: false }, state.assembly, SILENT);
  state.setSource("ready", []);
  const failures: unknown[] = [];
  const flags = source.map((one) => `--source ${one}`).join(" ");
  const judging = new WorldJudging(state, files, { source, command: "usher", flags });
  const server = await startDashboard({
    state,
    judging,
    page: PAGE,
    port: 0,
    failed: (error) => failures.push(error),
  });
  return {
    state,
    server,
    failures,
    origin: `http://127.0.0.1:${server.port}`,
    stop: async () => {
      await server.stop();
      await files.stop();
    },
  };
}

/** A browser's session: the cookie that the token is exchanged for. */
export async function sessionOf({ url }: { readonly url: string }): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}
