import type { Assembly } from "../core/assembly.ts";
import type { PreviewedChange } from "../core/preview.ts";
import { readConfiguration } from "./configuration.ts";
import { CallError, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { createLog } from "./log.ts";
import { printable } from "./printable.ts";
import { assembleFor, openSource } from "./source.ts";
import { table } from "./table.ts";
import { type Terminal, terminal } from "./terminal.ts";

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
  if (options.source !== undefined && options.cluster === true) {
    throw new CallError("--source is a cluster of files, --cluster a live one: choose one of them");
  }
  const screen = terminal(io, options);
  const { assembly, faulty, stop } = await open(options, screen);
  try {
    const module = assembly.modules.find((one) => one.name === name);
    const changes = [...(module?.preview?.(assembly) ?? [])];
    screen.out(options.output === "json" ? jsonOf(changes) : tableOf(changes).map(printable).join("\n"));
    if (faulty) return EXIT.wrong;
    return changes.length > 0 ? EXIT.found : EXIT.fine;
  } finally {
    await stop();
  }
}

interface Opened {
  readonly assembly: Assembly;
  /** Something in it could not be used. */
  readonly faulty: boolean;
  readonly stop: () => Promise<void>;
}

async function open(options: PreviewOptions, screen: Terminal): Promise<Opened> {
  if (options.cluster !== true) {
    const { assembly, problems, stop } = await openSource({ ...options, watch: false }, screen);
    return { assembly, faulty: problems.some(({ severity }) => severity === "error"), stop };
  }
  const assembly = assembleFor(options, await readConfiguration(options.config));
  // Loaded only here: a cluster of files needs none of it.
  const { openLiveSource } = await import("./live.ts");
  const { source, stop } = await openLiveSource(
    { ...options, operate: false },
    assembly,
    createLog("error"),
    false,
  );
  try {
    // What only a leader needs is what a plan is made from.
    await source.live.lead();
  } catch (error) {
    await stop();
    throw error;
  }
  return { assembly, faulty: false, stop };
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
