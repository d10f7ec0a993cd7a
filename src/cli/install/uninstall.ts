import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { Objects } from "../../operator/install/apply.ts";
import { readInstalled } from "../../operator/install/installed.ts";
import { type InstalledNamespace, installedNamespaces } from "../../operator/install/installed-namespaces.ts";
import { cleanUp, cleanupsOf, lookForMarked } from "../../operator/uninstall/cleanup.ts";
import { carryOutRemovals } from "../../operator/uninstall/uninstall.ts";
import {
  forcedRefusals,
  planUninstall,
  planWebhookRemoval,
  uninstallRefusals,
} from "../../operator/uninstall/uninstall-plan.ts";
import { CallError, EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { printable, terminal } from "../output/terminal.ts";
import { type ApiServerOptions, withApiServer } from "../source/api-server.ts";
import { version } from "../version.ts";
import {
  type InstallationObjects,
  type InstallationOptions,
  installationObjects,
  namedNamespace,
} from "./installation.ts";
import { removalRows, reportMarked } from "./leftovers.ts";

export interface UninstallFlags extends InstallationOptions, ApiServerOptions {
  readonly dryRun?: boolean;
  readonly customResources?: boolean;
  /** Only webhooks and marks of modules on objects of others. */
  readonly webhooksOnly?: boolean;
  /** Also leftovers of a manager that no longer exists. */
  readonly force?: boolean;
  readonly quiet?: boolean;
}

/** Removes usher from a cluster: webhooks first, so that no request waits for it. */
export async function uninstall(options: UninstallFlags, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const named = await namedNamespace(options);
  return withApiServer(options, screen.note, async (client) => {
    const objects = new Objects(client);
    const places = await installedNamespaces(objects);
    const namespace = named ?? onlyOne(places) ?? DEFAULT_INSTALLATION.namespace;
    const elsewhere = places.filter((one) => one.namespace !== namespace);
    const { assembly, objects: installed } = await everyObject(objects, { ...options, namespace }, io);
    const customResources = options.customResources === true;
    const removals = await planUninstall(objects, installed, assembly.modules, {
      customResources,
      elsewhere,
    });
    // Marks of another installation are left to it.
    const cleanups =
      elsewhere.length > 0
        ? []
        : await cleanupsOf(objects, installed, assembly.modules, assembly.installation);
    const { marked, unseen } = await lookForMarked(objects, cleanups);
    screen.note(`uninstalling usher from ${client.server}, namespace ${namespace}`);
    const remains = elsewhere.map(
      (one) =>
        `usher is installed in namespace ${one.namespace} (${one.by}); run "${io.name} uninstall -n ${one.namespace}" to remove it`,
    );
    const going = removals.filter(({ change }) => change === "delete").length;
    if (removals.length + marked.length === 0) {
      screen.out(
        elsewhere.length === 0
          ? "usher is not installed"
          : `usher is not installed in namespace ${namespace}`,
      );
      for (const line of remains) screen.complain(printable(line));
      return reportMarked(unseen, screen);
    }
    const rows = removalRows(removals, marked);
    for (const line of table(["OBJECT", "CHANGE", "NOTE"], rows, screen.width)) screen.out(line);
    screen.out("");
    const freeing = marked.length === 0 ? "" : `, ${marked.length} to free`;
    screen.out(`${rows.length} objects: ${going} to delete, ${removals.length - going} stay${freeing}`);
    const refusals =
      options.force === true ? await forcedRefusals(objects, removals) : uninstallRefusals(removals);
    for (const refusal of refusals)
      screen.complain(`nothing was changed: ${refusal.split("\n").map(printable).join("\n")}`);
    if (refusals.length > 0) return EXIT.found;
    if (options.dryRun === true) {
      screen.note("dry run: nothing was changed");
      for (const line of remains) screen.complain(printable(line));
      return reportMarked(unseen, screen);
    }
    let done = 0;
    await carryOutRemovals(objects, removals, () => {
      done += 1;
      screen.progress("removing", "objects", done, removals.length);
    });
    screen.endProgress();
    // Listed again: more may have been created before webhooks and replicas were gone.
    const still = await cleanUp(objects, cleanups);
    const back = customResources ? "" : `; "${io.name} install" uses them again`;
    const stays = going === removals.length ? "" : ` Objects that were kept are listed above${back}.`;
    if (elsewhere.length === 0) screen.note(`usher is uninstalled.${stays}`);
    else if (going > 0)
      screen.note(
        `usher is uninstalled from namespace ${namespace}. Objects that were kept are listed above.`,
      );
    else screen.note(`usher is not installed in namespace ${namespace}.`);
    for (const line of remains) screen.complain(printable(line));
    return reportMarked(still, screen);
  });
}

/** The objects that the installation may have. Some depend on its configuration, such as certificates. */
async function everyObject(
  objects: Objects,
  options: UninstallFlags & { readonly namespace: string },
  io: Io,
): Promise<Pick<InstallationObjects, "assembly" | "objects">> {
  const found = await readInstalled(objects, version(), options.namespace);
  try {
    return (await installationObjects(options, io, { installed: found })).everything();
  } catch (error) {
    // Usher must be removable with any configuration; one that --config names is the caller's own.
    if (!(error instanceof CallError) || options.config !== undefined) throw error;
    return (await installationObjects(options, io)).everything();
  }
}

/** The namespace of the only installation; with several, the user must choose. */
function onlyOne(places: readonly InstalledNamespace[]): string | undefined {
  const [first, second] = places;
  if (second === undefined) return first?.namespace;
  const all = places.map(({ namespace, by }) => `${namespace} (${by})`).join(", ");
  throw new CallError(`usher is installed in several namespaces: ${all}; choose one with -n`);
}

/** Removes webhooks and marks of modules on objects of others; the rest is left to the tool that manages the installation. */
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
