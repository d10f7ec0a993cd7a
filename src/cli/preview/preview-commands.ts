import type { Command } from "commander";
import { PREVIEWED } from "../../modules/previewed.ts";
import type { Io } from "../io.ts";
import { connecting, evaluating, output } from "../options.ts";
import type { Outcome } from "../program.ts";

/** For each module that can say what it would change: `usher MODULE plan`. */
export function previewCommands(usher: Command, io: Io, outcome: Outcome): void {
  for (const module of PREVIEWED) {
    const group = usher
      .command(module)
      .summary(`what ${module} would change: show it`)
      .description(`Shows what ${module} would change on what exists, before anything is changed.`)
      .helpCommand(false);
    const plan = group
      .command("plan")
      .summary("show what would be added, changed and removed, and by which policy")
      .description(
        "Compares what exists with what all policies together say, and prints what would be done. Nothing is changed. What has to wait first, such as a removal by a policy that has just come, is shown as well.",
      )
      .option("--source <dir>", "the cluster: a directory of YAML or JSON, or one file")
      .option("--cluster", "look at a live cluster instead")
      .addOption(output(["table", "json"], "table", "format of the result"));
    evaluating(connecting(plan))
      .addHelpText(
        "after",
        `
Examples:
  ${io.name} ${module} plan --source examples/cluster
  ${io.name} ${module} plan --cluster -o json

Exit codes: 0 all is as it should be, 1 something would be changed, 2 the call
or the source has a mistake, 3 usher failed.`,
      )
      .action(async (options) => {
        const { preview: run } = await import("./preview.ts");
        outcome.code = await run(module, options, io);
      });
  }
}
