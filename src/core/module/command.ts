import type { z } from "zod";
import type { Fact, Need } from "../decision/need.ts";
import type { Json, JsonObject } from "../json.ts";
import type { Assembly } from "./assembly.ts";
import type { Code, Module } from "./module.ts";
import type { PlannedWrite } from "./reconciler.ts";

/**
 * Commands as data. A module declares them in a light file; the command line turns declarations into commands, reads
 * files and clusters, prints results and makes the planned writes. The computation of a command is a pure function,
 * loaded when the command runs.
 */

type Values = Readonly<Record<string, unknown>>;

/** A positional argument, or a flag with a value. */
export interface Value {
  readonly description: string;
  /** May be repeated: the value is a list. */
  readonly many?: true;
  /** The value names a file, `-` standard input; the command gets its content: `InputText` or `InputDocuments`. */
  readonly file?: "text" | "yaml";
}

export interface Argument extends Value {
  readonly optional?: true;
}

export interface Flag extends Value {
  /** The placeholder in help: `name` in `--policy <name>`. @default the flag takes no value and is a boolean */
  readonly value?: string;
  /** A single letter: `f`. */
  readonly short?: string;
  readonly choices?: readonly string[];
  /** The value is an integer between both. */
  readonly integer?: readonly [min: number, max: number];
  readonly default?: string | number;
}

export interface InputText {
  /** As the user named it, for errors. */
  readonly name: string;
  readonly text: string;
}

export interface InputDocuments {
  readonly name: string;
  readonly documents: readonly Json[];
}

/** The inputs of a command beside its arguments: without `--source` the cluster of the kubeconfig. */
export interface CommandSource {
  /** Whether `--source DIR` may replace a cluster, or with `--cluster` its policies. */
  readonly files: boolean;
  /** Also reads leader-only resources. */
  readonly leaderReads?: true;
  /** The remedy without permission to read policies: `name workloads instead`. */
  readonly forbiddenHint?: string;
  /** The command is about objects alone: a cluster is read only by its needs, and files need not have policies. */
  readonly objectsOnly?: true;
}

/** How a command changes objects. */
export interface CommandWrites {
  /** `dry-run`: writes unless `--dry-run` is given. `apply`: writes only with `--apply`. */
  readonly switch: "dry-run" | "apply";
  /** `workload`, as in `2 workloads: 2 renewed`. */
  readonly noun: string;
  /** `renewed`: the result of an object that was written, also as the key of its count in `-o json`. */
  readonly done: string;
}

/** `table` and `wide` are for people, `json` and `yaml` for programs, the others for pipelines: made of the items of a report. */
export type OutputFormat = "table" | "wide" | "json" | "yaml" | "junit" | "sarif" | "markdown" | "name";

/** The formats that every report with items has. */
export const ITEM_FORMATS = ["junit", "sarif", "markdown", "name"] as const satisfies readonly OutputFormat[];

/** Where something is written. */
export interface TextPlace {
  readonly file: string;
  /** From one; absent where the file itself is meant. */
  readonly line?: number;
  readonly column?: number;
}

/** One finding about an item. */
export interface ItemFinding {
  /** `error`: the reason of exit code 1. `note`: a change, or another fact that is neither right nor wrong. */
  readonly level: "error" | "warning" | "note";
  /** An error code, or a word of the command's own for what it found: `drift`. */
  readonly code: string;
  readonly message: string;
  /** What to do. */
  readonly hint?: string;
  /** The policy or module that it comes from. */
  readonly by?: string;
  /** @default that of the item */
  readonly at?: TextPlace;
}

/** One thing that a command judged: an object, a node, a user. */
export interface ReportItem {
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  /** As the table has it: `deny`. */
  readonly verdict: string;
  readonly findings: readonly ItemFinding[];
  readonly at?: TextPlace;
}

export interface Command<Args extends object = Values, Flags extends object = Values> {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly args?: { readonly [Name in keyof Args]-?: Argument };
  /** By camel case name: `dryRun` is `--dry-run`. */
  readonly flags?: { readonly [Name in keyof Flags]-?: Flag };
  /** The arguments after the command's name. */
  readonly examples: readonly string[];
  /** What each exit code means for this command. */
  readonly exitCodes: {
    readonly fine: string;
    readonly found: string;
    /** @default invalid arguments or input */
    readonly wrong?: string;
    /** @default usher or the cluster failed */
    readonly failed?: string;
  };
  /** The first is the default. A command that judges has those of pipelines as well. */
  readonly formats: readonly OutputFormat[];
  /** Its report has items: it then takes `--changed-only`, and prints JUnit, SARIF, Markdown and names. */
  readonly judges?: true;
  /** @default only its arguments and flags */
  readonly source?: CommandSource;
  /** Accepts `-n` and `-A`. `live`: without either, files are read completely, and only a cluster by its default namespace. */
  readonly namespaced?: true | "live";
  /** @default nothing */
  readonly writes?: CommandWrites;
  readonly load: () => Promise<CommandCode<Args, Flags>>;
}

/** `usher NAME COMMAND`; groups nest: `usher NAME GROUP COMMAND`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly commands: readonly (Command | CommandGroup)[];
}

/** One call of a command. */
export interface CommandCall<Args extends object = object, Flags extends object = object> {
  readonly args: Args;
  readonly flags: Flags;
  /** Absent: all namespaces, or the command has none. */
  readonly namespace: string | undefined;
  readonly module: Module;
  /** Without policies and objects if the command reads no source. */
  readonly assembly: Assembly;
  /** Whether the source is a live cluster. */
  readonly live: boolean;
  /** Reads YAML inside a text, such as a patch in a policy of another program; `undefined` if the text is not YAML. */
  readonly parse: (text: string) => Json | undefined;
  /** Of a command that judges: only what differs, or is wrong, is asked for. */
  readonly changedOnly: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** What the user types before the command's name: `kubectl usher placement`. */
  readonly calledAs: string;
}

export interface CommandCode<Args extends object = Values, Flags extends object = Values> {
  /** Problems of the call, before anything is read. */
  readonly check?: (call: CommandCall<Args, Flags>) => string | undefined;
  /**
   * The shape of `data`, below `apiVersion` and `kind`: published as a JSON Schema. Strict. @default the command prints manifests, or what
   * became of its writes
   */
  readonly shape?: z.ZodObject;
  /** Whether this call reads policies and objects, if no source is named. @default always */
  readonly needsView?: (call: CommandCall<Args, Flags>) => boolean;
  readonly run: (call: CommandCall<Args, Flags>) => CommandRun | CommandResult;
}

/** Yields needs and is resumed with one fact each, so that long lists pass through page by page. */
export type CommandRun = CommandSteps<CommandResult>;

export type CommandSteps<Result> = Generator<CommandStep, Result, readonly Fact[]>;

export interface CommandStep {
  readonly need: readonly Need[];
  readonly progress?: CommandProgress;
}

/** `scanning 3 of 9 kinds` */
export interface CommandProgress {
  readonly doing: string;
  readonly things: string;
  readonly done: number;
  readonly total: number;
}

export type CommandResult = CommandReport | CommandPlan | { readonly wrong: string };

interface Messages {
  /** Hints, on stderr; suppressed by `--quiet`. */
  readonly notes?: readonly string[];
  /** Failures, on stderr. */
  readonly errors?: readonly string[];
}

export interface CommandReport extends Messages {
  /** The output of `-o json` and `-o yaml`. */
  readonly data: Json;
  readonly table?: { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] };
  /** The line below the table. */
  readonly summary?: string;
  /** What was judged, for the formats of pipelines. @default the command judges nothing */
  readonly items?: readonly ReportItem[];
  /** Explains codes of items that are not among the module's. @default none */
  readonly codes?: readonly Code[];
  /** Printed in place of table and data: as YAML documents, with `-o json` as one List. */
  readonly manifests?: readonly JsonObject[];
  readonly exit: "fine" | "found" | "failed";
}

/**
 * Objects to write. The command line determines the changes by a dry run in the cluster, then writes and shows the
 * result of each.
 */
export interface CommandPlan extends Messages {
  readonly changes: readonly PlannedChange[];
  /** The number of concurrent writes. @default 1 */
  readonly parallel?: number;
  /** After each. @default 0 */
  readonly pauseSeconds?: number;
}

export interface PlannedChange {
  readonly kind: string;
  readonly of: { readonly resource: string; readonly namespace?: string; readonly name: string };
  /** From the stored object, so that a conflict is planned again. */
  readonly plan: (stored: JsonObject | undefined) => PlannedWrite | { readonly failed: string } | "unchanged";
  /** The result of the write, from the object before and after. @default the difference of both */
  readonly outcome?: (stored: JsonObject | undefined, written: JsonObject | undefined) => WriteOutcome;
}

export type WriteOutcome =
  | { readonly changes: readonly string[] }
  /** `undo` is sent if the write was not a dry run. */
  | { readonly failed: string; readonly undo?: PlannedWrite };

/** Declares a command. The command line handles commands of all types alike, so the types are erased here, in one place. */
export function defineCommand<Args extends object = Values, Flags extends object = Values>(
  command: Command<Args, Flags>,
): Command {
  return command as unknown as Command;
}
