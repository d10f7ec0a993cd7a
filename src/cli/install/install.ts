import { managesWebhooks } from "../../core/installation/installation.ts";
import { describeObject, Objects } from "../../operator/install/apply.ts";
import { applyCrds, crdRow, isCrd, planCrds } from "../../operator/install/crds.ts";
import { applyPlan } from "../../operator/install/install.ts";
import {
  certificatesChange,
  type InstallPlan,
  isWebhookConfiguration,
  planInstall,
} from "../../operator/install/install-plan.ts";
import { type Installed, namespaceGone, readInstalled } from "../../operator/install/installed.ts";
import { changedAnswers } from "../../operator/install/stored-policies.ts";
import { waitInstalled } from "../../operator/install/wait-installed.ts";
import {
  findLeftovers,
  leftoversOf,
  removeLeftovers,
  unwantedObjects,
} from "../../operator/uninstall/leftovers.ts";
import { CallError, EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { type ApiServerOptions, withApiServer } from "../source/api-server.ts";
import { version } from "../version.ts";
import {
  checkInstallation,
  type InstallationOptions,
  installationObjects,
  namedNamespace,
} from "./installation.ts";
import { leftoverRows, reportMarked } from "./leftovers.ts";

export interface InstallOptions extends InstallationOptions, ApiServerOptions {
  readonly dryRun?: boolean;
  readonly takeOver?: boolean;
  readonly leaveConflicting?: boolean;
  readonly allowDowngrade?: boolean;
  readonly crdsOnly?: boolean;
  /** Keep only the namespace of an existing installation. */
  readonly defaults?: boolean;
  readonly wait: boolean;
  readonly timeout: number;
  readonly quiet?: boolean;
}

/** Installs usher or updates it to this version: prints the plan, applies it, and waits until usher is ready. */
export async function install(options: InstallOptions, io: Io): Promise<number> {
  if (options.takeOver === true && options.leaveConflicting === true)
    throw new CallError("--take-over and --leave-conflicting are mutually exclusive");
  const screen = terminal(io, options);
  await checkInstallation(options, io);
  return withApiServer(options, screen.note, async (client) => {
    const objects = new Objects(client);
    const found = await readFinally(objects, options, screen);
    const installed = options.defaults === true ? { namespace: found.namespace, podLabels: {} } : found;
    const {
      loaded,
      assembly,
      objects: registered,
      notes,
      kept,
      everything,
    } = await installationObjects(options, io, { installed });
    const { namespace } = assembly.installation;
    const conflicts =
      options.takeOver === true ? "take over" : options.leaveConflicting === true ? "leave" : undefined;
    const isManaged = managesWebhooks(assembly.installation);
    const wanted = isManaged ? registered : registered.filter((one) => !isWebhookConfiguration(one));
    const plan = await planInstall(objects, wanted, assembly.modules, {
      ...(conflicts === undefined ? {} : { conflicts }),
      downgrade: options.allowDowngrade === true,
    });
    const leftovers = {
      ...(await leftoversOf(objects, loaded, assembly, registered)),
      unwanted: await unwantedObjects(objects, everything().objects, registered),
    };
    screen.note(`usher ${version()} into ${client.server}, namespace ${namespace}`);
    for (const note of notes) screen.note(note);
    showPlan(plan, leftoverRows(await findLeftovers(objects, leftovers)), screen);
    if (kept.length > 0)
      screen.out(printable(`kept as installed: ${kept.join(", ")}; use --defaults to reset`));
    for (const refusal of plan.refusals)
      screen.complain(`nothing was changed: ${refusal.split("\n").map(printable).join("\n")}`);
    if (plan.refusals.length > 0) return EXIT.found;
    if (plan.conflicts.length > 0) {
      const what = plan.conflicts.map(({ object }) => describeObject(object)).join(", ");
      screen.complain(
        `nothing was changed: ${what} would be overwritten; use --take-over to take ownership, or --leave-conflicting to leave them unchanged`,
      );
      return EXIT.found;
    }
    if (options.dryRun === true) {
      screen.note("dry run: nothing was changed");
      return EXIT.fine;
    }
    // Before the rollout: the new pods do not tolerate the taint of a disabled module, and could stay pending. Again
    // after it: until the last replica with the module is gone, new nodes get the taint.
    await removeLeftovers(objects, { ...leftovers, unwanted: [] });
    await carryOut(objects, plan, options, screen);
    const still = await removeLeftovers(objects, leftovers);
    if (still.length > 0) return reportMarked(still, screen);
    screen.note(nextStep(options, namespace, io.name));
    if (!isManaged) screen.note(`Webhooks are yours: apply what "${io.name} manifests --webhooks" prints.`);
    return EXIT.fine;
  });
}

/** The existing installation, once a namespace that is being deleted is gone. A dry run does not wait. */
async function readFinally(objects: Objects, options: InstallOptions, screen: Terminal): Promise<Installed> {
  const named = await namedNamespace(options);
  const found = await readInstalled(objects, version(), named);
  if (options.dryRun === true) return found;
  const wasDeleted = await namespaceGone(objects, found.namespace, {
    timeoutMs: options.timeout * 1_000,
    waiting: () => screen.note(`waiting for namespace ${found.namespace}, which is being deleted`),
  });
  return wasDeleted ? readInstalled(objects, version(), named) : found;
}

async function carryOut(
  objects: Objects,
  plan: InstallPlan,
  options: InstallOptions,
  screen: Terminal,
): Promise<void> {
  let done = 0;
  await applyPlan(objects, plan, () => {
    done += 1;
    screen.progress("applying", "objects", done, plan.objects.length);
  });
  screen.endProgress();
  if (!options.wait) return;
  await waitInstalled(objects, plan, {
    timeoutMs: options.timeout * 1_000,
    progress: (ready, of) => screen.progress("waiting for", "replicas", ready, of),
  });
  screen.endProgress();
}

function showPlan(plan: InstallPlan, leftovers: readonly string[][], screen: Terminal): void {
  const rows = plan.objects.map(({ object, change, note }) => [
    describeObject(object),
    change === "conflict" ? "not changed" : change,
    printable(note ?? ""),
  ]);
  for (const line of table(["OBJECT", "CHANGE", "NOTE"], [...rows, ...leftovers], screen.width))
    screen.out(line);
  screen.out("");
  const count = (wanted: string) => plan.objects.filter(({ change }) => change === wanted).length;
  const parts = [
    `${count("create")} to create`,
    `${count("update")} to update`,
    `${count("unchanged")} unchanged`,
  ];
  if (leftovers.length > 0) parts.push(`${leftovers.length} left by modules that are off`);
  if (count("conflict") > 0) parts.push(`${count("conflict")} owned by others`);
  screen.out(`${plan.objects.length} objects: ${parts.join(", ")}`);
  for (const finding of plan.findings) {
    const [head = "", ...rest] = finding.split("\n");
    screen.warn([printable(head), ...rest.map((line) => `  ${printable(line)}`)].join("\n"));
  }
}

function nextStep({ wait }: InstallOptions, namespace: string, name: string): string {
  return wait
    ? `usher is ready. Next: kubectl apply -f POLICY; ${name} review FILE --source DIR shows what a policy would do.`
    : `usher is starting. Run "kubectl rollout status -n ${namespace} deployment/usher" to wait for it.`;
}

/** Installs the CRDs alone, and upgrades those of an older usher. */
export async function installCrds(options: InstallOptions, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const { assembly, objects: all } = await installationObjects(options, io);
  return withApiServer(options, screen.note, async (client) => {
    const objects = new Objects(client);
    const refusal = await certificatesChange(objects, all);
    if (refusal !== undefined) {
      screen.complain(`nothing was changed: ${refusal.split("\n").map(printable).join("\n")}`);
      return EXIT.found;
    }
    const planned = await planCrds(objects, all.filter(isCrd), version());
    const rows = planned.map((one) => crdRow(one).map(printable));
    for (const line of table(["OBJECT", "CHANGE", "NOTE"], rows, screen.width)) screen.out(line);
    for (const finding of await changedAnswers(client, assembly.modules, planned))
      screen.note(finding.split("\n").map(printable).join("\n"));
    if (options.dryRun === true) screen.note("dry run: nothing was changed");
    else await applyCrds(objects, planned);
    return EXIT.fine;
  });
}
