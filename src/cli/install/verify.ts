import { Objects } from "../../operator/install/apply.ts";
import { verifyInstallation } from "../../operator/install/verify.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { printable, terminal } from "../output/terminal.ts";
import { type ApiServerOptions, withApiServer } from "../source/api-server.ts";
import { type InstallationOptions, installationObjects } from "./installation.ts";

export interface VerifyOptions extends InstallationOptions, ApiServerOptions {
  readonly timeout: number;
  readonly quiet?: boolean;
}

/** Checks a running installation, with a request that makes the API server call usher. */
export async function verify(options: VerifyOptions, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const { assembly } = await installationObjects(options, io);
  return withApiServer(options, screen.note, async (client) => {
    const checks = await verifyInstallation(new Objects(client), assembly, options.timeout * 1_000);
    const rows = checks.map(({ what, problem, skipped }) => [
      what,
      problem !== undefined ? "failed" : skipped === undefined ? "ok" : "skipped",
      printable(problem ?? skipped ?? ""),
    ]);
    for (const line of table(["CHECK", "RESULT", "REASON"], rows, screen.width)) screen.out(line);
    return checks.every(({ problem }) => problem === undefined) ? EXIT.fine : EXIT.found;
  });
}
