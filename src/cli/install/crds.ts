import { Objects } from "../../operator/install/apply.ts";
import { certificatesChange } from "../../operator/install/certificates-change.ts";
import { applyCrds, crdRow, isCrd, planCrds } from "../../operator/install/crds.ts";
import { changedAnswers } from "../../operator/install/stored-policies.ts";
import { installationObjects } from "../configuration/installation.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";
import { terminal } from "../output/terminal.ts";
import { withApiServer } from "../source/api-server.ts";
import { version } from "../version.ts";
import type { InstallOptions } from "./install.ts";

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
