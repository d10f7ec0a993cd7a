import { nameOf } from "../core/kubernetes/object.ts";
import { describeObject, Objects } from "../operator/apply.ts";
import { leavingsOf, lookForMarked, takeOff } from "../operator/leavings.ts";
import { carryOutRemovals, planUninstall } from "../operator/uninstall.ts";
import { type ApiServerOptions, withApiServer } from "./api-server.ts";
import { EXIT } from "./exit.ts";
import { type InstallationOptions, installationObjects } from "./installation.ts";
import type { Io } from "./io.ts";
import { printable } from "./printable.ts";
import { table } from "./table.ts";
import { terminal } from "./terminal.ts";

export interface UninstallOptions extends InstallationOptions, ApiServerOptions {
  readonly dryRun?: boolean;
  readonly customResources?: boolean;
  readonly quiet?: boolean;
}

/** Takes usher out of a cluster: its webhooks first, so that nothing waits for what goes. */
export async function uninstall(options: UninstallOptions, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const { assembly, objects: installed } = await installationObjects(options);
  return withApiServer(options, async (client) => {
    const objects = new Objects(client);
    const customResources = options.customResources === true;
    const removals = await planUninstall(objects, installed, assembly.modules, { customResources });
    const leavings = await leavingsOf(objects, installed, assembly.modules, assembly.installation);
    const { marked } = await lookForMarked(objects, leavings);
    screen.note(`usher out of ${client.server}, namespace ${assembly.installation.namespace}`);
    const going = removals.filter(({ change }) => change === "delete").length;
    if (removals.length + marked.length === 0) {
      screen.out("nothing of usher is here");
      return EXIT.fine;
    }
    const rows = [
      ...removals.map(({ live, change, note }) => [describeObject(live), change, printable(note ?? "")]),
      ...marked.map(({ live, leaving }) => [describeObject(live), "free", `without ${leaving.what}`]),
    ];
    for (const line of table(["OBJECT", "CHANGE", "NOTE"], rows)) screen.out(line);
    screen.out("");
    const freeing = marked.length === 0 ? "" : `, ${marked.length} to free`;
    screen.out(`${rows.length} objects: ${going} to delete, ${removals.length - going} stay${freeing}`);
    if (options.dryRun === true) {
      screen.note("nothing was changed: this was a dry run");
      return EXIT.fine;
    }
    let done = 0;
    await carryOutRemovals(objects, removals, () => {
      done += 1;
      screen.progress("removing", "objects", done, removals.length);
    });
    screen.endProgress();
    // Looked for anew: more may have come until the webhooks and the replicas were gone.
    const still = await takeOff(objects, leavings);
    screen.note(
      customResources || going === removals.length
        ? "usher is gone."
        : `usher is gone. What stays is listed above; ${io.name} install brings usher back to it.`,
    );
    for (const { live, leaving, why } of still) {
      const which =
        live === undefined ? `${leaving.resource} may still have` : `${describeObject(live)} still has`;
      screen.complain(printable(`${which} ${leaving.what}: ${why}`));
      screen.complain(`take it off with: ${leaving.byHand(live === undefined ? "--all" : nameOf(live))}`);
    }
    return still.length === 0 ? EXIT.fine : EXIT.failed;
  });
}
