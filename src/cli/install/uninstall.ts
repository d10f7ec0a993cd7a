import { nameOf } from "../../core/kubernetes/object.ts";
import { DEFAULT_INSTALLATION } from "../../core/module/installation.ts";
import { describeObject, Objects } from "../../operator/install/apply.ts";
import { type InstalledNamespace, installedNamespaces } from "../../operator/install/installed-namespaces.ts";
import { cleanUp, cleanupsOf, lookForMarked } from "../../operator/uninstall/cleanup.ts";
import { carryOutRemovals } from "../../operator/uninstall/uninstall.ts";
import { planUninstall } from "../../operator/uninstall/uninstall-plan.ts";
import {
  type InstallationOptions,
  installationObjects,
  namedNamespace,
} from "../configuration/installation.ts";
import { CallError, EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";
import { type Terminal, terminal } from "../output/terminal.ts";
import { type ApiServerOptions, withApiServer } from "../source/api-server.ts";

export interface UninstallOptions extends InstallationOptions, ApiServerOptions {
  readonly dryRun?: boolean;
  readonly customResources?: boolean;
  readonly quiet?: boolean;
}

/** Takes usher out of a cluster: its webhooks first, so that nothing waits for what goes. */
export async function uninstall(options: UninstallOptions, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const named = await namedNamespace(options);
  return withApiServer(options, async (client) => {
    const objects = new Objects(client);
    const places = await installedNamespaces(objects);
    const namespace = named ?? onlyOne(places) ?? DEFAULT_INSTALLATION.namespace;
    const elsewhere = places.filter((one) => one.namespace !== namespace);
    const { assembly, objects: installed } = await installationObjects({ ...options, namespace }, io);
    const customResources = options.customResources === true;
    const removals = await planUninstall(objects, installed, assembly.modules, {
      customResources,
      elsewhere,
    });
    // What another usher has marked is its own to free.
    const cleanups =
      elsewhere.length > 0
        ? []
        : await cleanupsOf(objects, installed, assembly.modules, assembly.installation);
    const { marked, unseen } = await lookForMarked(objects, cleanups);
    screen.note(`usher out of ${client.server}, namespace ${namespace}`);
    const remains = elsewhere.map(
      (one) =>
        `usher is in namespace ${one.namespace}, as ${one.by} says: ${io.name} uninstall -n ${one.namespace} takes it out`,
    );
    const going = removals.filter(({ change }) => change === "delete").length;
    if (removals.length + marked.length === 0) {
      screen.out(
        elsewhere.length === 0 ? "nothing of usher is here" : `nothing of usher is in namespace ${namespace}`,
      );
      for (const line of remains) screen.complain(printable(line));
      return tellStill(unseen, screen);
    }
    const rows = [
      ...removals.map(({ live, change, note }) => [describeObject(live), change, printable(note ?? "")]),
      ...marked.map(({ live, cleanup }) => [describeObject(live), "free", `without ${cleanup.what}`]),
    ];
    for (const line of table(["OBJECT", "CHANGE", "NOTE"], rows)) screen.out(line);
    screen.out("");
    const freeing = marked.length === 0 ? "" : `, ${marked.length} to free`;
    screen.out(`${rows.length} objects: ${going} to delete, ${removals.length - going} stay${freeing}`);
    if (options.dryRun === true) {
      screen.note("nothing was changed: this was a dry run");
      for (const line of remains) screen.complain(printable(line));
      return tellStill(unseen, screen);
    }
    let done = 0;
    await carryOutRemovals(objects, removals, () => {
      done += 1;
      screen.progress("removing", "objects", done, removals.length);
    });
    screen.endProgress();
    // Looked for anew: more may have come until the webhooks and the replicas were gone.
    const still = await cleanUp(objects, cleanups);
    const back = customResources ? "" : `; ${io.name} install brings usher back to it`;
    const stays = going === removals.length ? "" : ` What stays is listed above${back}.`;
    if (elsewhere.length === 0) screen.note(`usher is gone.${stays}`);
    else if (going > 0) screen.note(`usher is gone from namespace ${namespace}. What stays is listed above.`);
    else screen.note(`nothing of usher is in namespace ${namespace}.`);
    for (const line of remains) screen.complain(printable(line));
    return tellStill(still, screen);
  });
}

/** Where it is; two are for the caller to choose from. */
function onlyOne(places: readonly InstalledNamespace[]): string | undefined {
  const [first, second] = places;
  if (second === undefined) return first?.namespace;
  const all = places.map(({ namespace, by }) => `${namespace} (${by})`).join(", ");
  throw new CallError(`usher is in more than one namespace: ${all}; say with -n which one shall go first`);
}

/** What may still be marked, with how to free it by hand. */
function tellStill(still: Awaited<ReturnType<typeof cleanUp>>, screen: Terminal): number {
  for (const { live, cleanup, why } of still) {
    const which =
      live === undefined ? `${cleanup.resource} may still have` : `${describeObject(live)} still has`;
    screen.complain(printable(`${which} ${cleanup.what}: ${why}`));
    screen.complain(`take it off with: ${cleanup.byHand(live === undefined ? "--all" : nameOf(live))}`);
  }
  return still.length === 0 ? EXIT.fine : EXIT.failed;
}
