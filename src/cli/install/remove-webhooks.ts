import { Objects } from "../../operator/install/apply.ts";
import { cleanUp, cleanupsOf, lookForMarked } from "../../operator/uninstall/cleanup.ts";
import { carryOutRemovals } from "../../operator/uninstall/uninstall.ts";
import { planWebhookRemoval } from "../../operator/uninstall/uninstall-plan.ts";
import { installationObjects } from "../configuration/installation.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { terminal } from "../output/terminal.ts";
import { withApiServer } from "../source/api-server.ts";
import { removalRows, reportMarked } from "./leftovers.ts";
import type { UninstallFlags } from "./uninstall.ts";

/** Removes webhooks and what modules put on objects of others; the rest is left to the tool that manages the installation. */
export async function removeWebhooks(options: UninstallFlags, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const { loaded, assembly, objects: installed } = await installationObjects(options, io);
  return withApiServer(options, screen.note, async (client) => {
    const objects = new Objects(client);
    const removals = await planWebhookRemoval(objects, loaded);
    const cleanups = await cleanupsOf(objects, installed, loaded, assembly.installation);
    const { marked, unseen } = await lookForMarked(objects, cleanups);
    const rows = removalRows(removals, marked);
    for (const line of table(["OBJECT", "CHANGE", "NOTE"], rows, screen.width)) screen.out(line);
    if (options.dryRun === true) {
      screen.note("dry run: nothing was changed");
      return reportMarked(unseen, screen);
    }
    await carryOutRemovals(objects, removals, () => undefined);
    // Listed again: a node may have been created before the webhooks were gone.
    const still = await cleanUp(objects, cleanups);
    screen.note("the API server no longer calls usher");
    return still.length === 0 ? EXIT.fine : reportMarked(still, screen);
  });
}
