import { DRIFT_STATES, type DriftState } from "../../core/drift/injections.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { terminal } from "../output/terminal.ts";
import { yamlText } from "../output/yaml.ts";
import { namespaceFrom, openSurvey, type SurveyingOptions } from "./open.ts";
import { ofPolicy } from "./policy-name.ts";
import { countsText, printStatus } from "./print.ts";
import { readSurvey, type WorkloadStatus } from "./read.ts";

/** Shows which workloads carry what of which policy, and which lack it; gives the exit code. */
export async function status(
  name: string,
  policy: string | undefined,
  options: SurveyingOptions,
  io: Io,
): Promise<number> {
  const namespace = namespaceFrom(options);
  const screen = terminal(io, options);
  const { source, module, faulty, stop } = await openSurvey(name, options, screen);
  try {
    const survey = await readSurvey(source, module, {
      namespace,
      progress: (done, total) => screen.progress("looking at", "kinds of workloads", done, total),
    });
    screen.endProgress();
    for (const why of survey.unread) screen.complain(`not looked at: ${printable(why)}`);
    const workloads =
      policy === undefined ? survey.workloads : ofPolicy(policy, survey.workloads, module, source.assembly);
    const summary = summaryOf(workloads);
    if (options.output === "table") {
      printStatus(workloads, screen);
      screen.out(`${workloads.length === 0 ? "" : "\n"}${countsText(workloads.length, summary)}`);
      const next = `${io.name} ${name} reapply ${policy === undefined ? "--all" : `--policy ${policy}`}`;
      if (behind(summary) && options.source === undefined)
        screen.note(
          `${next} ${namespace === undefined ? "-A" : `-n ${namespace}`} --dry-run shows what would renew them.`,
        );
    } else {
      const value = { workloads, summary, unread: survey.unread };
      screen.out(options.output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
    }
    // What could not be read makes the answer incomplete, which weighs more than what was found in the rest.
    if (faulty) return EXIT.wrong;
    if (survey.unread.length > 0) return EXIT.failed;
    return behind(summary) ? EXIT.found : EXIT.fine;
  } finally {
    screen.endProgress();
    await stop();
  }
}

function summaryOf(workloads: readonly WorkloadStatus[]): Record<DriftState, number> {
  const states = workloads.flatMap(({ carries }) => carries.map(({ state }) => state));
  const count = (wanted: DriftState) => states.filter((state) => state === wanted).length;
  return Object.fromEntries(DRIFT_STATES.map((state) => [state, count(state)])) as Record<DriftState, number>;
}

function behind({ stale, orphaned, missing }: Record<DriftState, number>): boolean {
  return stale + orphaned + missing > 0;
}
