import { Objects } from "../../operator/install/apply.ts";
import { readInstalled } from "../../operator/install/installed.ts";
import { findLeftovers, leftoversOf, removeLeftovers } from "../../operator/uninstall/leftovers.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { terminal } from "../output/terminal.ts";
import { type ApiServerOptions, withApiServer } from "../source/api-server.ts";
import { version } from "../version.ts";
import { type InstallationOptions, installationObjects, namedNamespace } from "./installation.ts";
import { leftoverRows, reportMarked } from "./leftovers.ts";

export interface CleanupOptions extends InstallationOptions, ApiServerOptions {
  readonly dryRun?: boolean;
  /** Of every module, on or off: for after a removal. */
  readonly all?: boolean;
  readonly quiet?: boolean;
}

/** Removes leftovers of disabled modules in a cluster. With --config it reads nothing of the installation. */
export async function cleanup(options: CleanupOptions, io: Io): Promise<number> {
  const screen = terminal(io, options);
  return withApiServer(options, screen.note, async (client) => {
    const objects = new Objects(client);
    const installed =
      options.config === undefined
        ? { installed: await readInstalled(objects, version(), await namedNamespace(options)) }
        : {};
    const { loaded, assembly, objects: wanted } = await installationObjects(options, io, installed);
    const { installation, gates } = assembly;
    const modules = options.all === true ? [] : assembly.modules;
    const leftovers = await leftoversOf(objects, loaded, { modules, installation, gates }, wanted);
    const found = await findLeftovers(objects, leftovers);
    const rows = leftoverRows(found);
    if (rows.length > 0)
      for (const line of table(["OBJECT", "CHANGE", "NOTE"], rows, screen.width)) screen.out(line);
    else if (found.unseen.length === 0) screen.note("nothing is left of modules that are off");
    if (options.dryRun === true) {
      screen.note("dry run: nothing was changed");
      return found.unseen.length === 0 ? EXIT.fine : reportMarked(found.unseen, screen);
    }
    return reportMarked(await removeLeftovers(objects, leftovers), screen);
  });
}
