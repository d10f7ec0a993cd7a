import type { PreviewedChange } from "../../core/module/preview.ts";
import { EXIT } from "../exit.ts";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";
import { terminal } from "../output/terminal.ts";
import { checkOneSource, openFiles, openLive } from "../source/open.ts";

export interface PreviewOptions {
  readonly source?: string;
  readonly cluster?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output: "table" | "json";
  readonly quiet?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** Prints what a module would change; gives the exit code. */
export async function preview(name: string, options: PreviewOptions, io: Io): Promise<number> {
  checkOneSource(options);
  const screen = terminal(io, options);
  // What only a leader needs is what a plan is made from.
  const { source, faulty, stop } =
    options.cluster === true ? await openLive(options, { asLeader: true }) : await openFiles(options, screen);
  try {
    const { assembly } = source;
    const module = assembly.modules.find((one) => one.name === name);
    const changes = [...(module?.preview?.(assembly) ?? [])];
    screen.out(options.output === "json" ? jsonOf(changes) : tableOf(changes).map(printable).join("\n"));
    if (faulty) return EXIT.wrong;
    return changes.length > 0 ? EXIT.found : EXIT.fine;
  } finally {
    await stop();
  }
}

const SIGNS = { add: "+", change: "~", remove: "-" } as const;

function tableOf(changes: readonly PreviewedChange[]): string[] {
  if (changes.length === 0) return ["nothing to change: all is as the policies say"];
  const seen = new Set<string>();
  const rows = changes.map((one) => {
    const object = `${one.kind} ${one.namespace === undefined ? "" : `${one.namespace}/`}${one.name}`;
    const first = !seen.has(object);
    seen.add(object);
    return [first ? object : "", described(one), one.by ?? "-"];
  });
  const count = (change: PreviewedChange["change"]) => changes.filter((one) => one.change === change).length;
  const sum = `${count("add")} to add, ${count("change")} to change, ${count("remove")} to remove`;
  return [...table(["OBJECT", "CHANGE", "BY"], rows), "", `${seen.size} objects: ${sum}`];
}

/** `+ label pool=edge`, `~ label pool=edge (was core)`, `- taint dedicated:NoSchedule` */
function described({ what, change, key, from = "", to = "" }: PreviewedChange): string {
  const value = change === "remove" ? from : to;
  const was = change === "change" ? ` (was ${from === "" ? '""' : from})` : "";
  return `${SIGNS[change]} ${what} ${key}${value === "" ? "" : `=${value}`}${was}`;
}

function jsonOf(changes: readonly PreviewedChange[]): string {
  return JSON.stringify({ changes }, null, 2);
}
