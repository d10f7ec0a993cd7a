import { Argument as CliArgument, type Command as CliCommand, InvalidArgumentError, Option } from "commander";
import {
  type Argument,
  type Command,
  type CommandGroup,
  type Flag,
  ITEM_FORMATS,
} from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";
import type { Io } from "../io.ts";
import {
  CHANGED_ONLY,
  CLUSTER,
  calling,
  directories,
  evaluating,
  KUBERNETES_VERSION,
  output,
  Repeatable,
  STRICT,
  sourceFlag,
} from "../options.ts";
import type { Outcome } from "../program.ts";
import { wrap } from "../wrap.ts";

/** Adds the commands that modules declare. Their code is loaded when they run. */
export function moduleCommands(usher: CliCommand, io: Io, outcome: Outcome): void {
  for (const declaration of io.modules)
    for (const group of declaration.commands ?? [])
      addGroup(usher, group, { io, outcome, declaration, path: io.name });
}

interface Place {
  readonly io: Io;
  readonly outcome: Outcome;
  readonly declaration: ModuleDeclaration;
  /** The words that the user types before the name: `usher placement`. */
  readonly path: string;
}

function addGroup(parent: CliCommand, group: CommandGroup, place: Place): void {
  const path = `${place.path} ${group.name}`;
  const added = parent
    .command(group.name)
    .summary(group.summary)
    .description(group.description)
    .helpCommand(false);
  const examples: string[] = [];
  for (const one of group.commands) {
    if ("commands" in one) {
      addGroup(added, one, { ...place, path });
      continue;
    }
    addCommand(added, one, { ...place, path });
    examples.push(`  ${path} ${one.name} ${one.examples[0] ?? ""}`.trimEnd());
  }
  // As for the bare name of the program. Flags of an unknown command are unknown too: the command is the mistake to
  // name.
  added
    .allowExcessArguments()
    .allowUnknownOption()
    .action(async () => {
      const [unknown] = added.args;
      if (unknown !== undefined) {
        if (unknown.startsWith("-")) added.error(`error: unknown option '${unknown}'`);
        const { unknownCommand } = await import("../help.ts");
        throw unknownCommand(path, unknown, namesOf(added));
      }
      added.outputHelp();
    });
  if (examples.length > 0) added.addHelpText("after", `\nExamples:\n${examples.join("\n")}`);
}

/** The names of the commands inside a command. */
export function namesOf({ commands }: CliCommand): string[] {
  return commands.map((one) => one.name());
}

function addCommand(parent: CliCommand, command: Command, place: Place): void {
  const added = parent.command(command.name).summary(command.summary).description(command.description);
  for (const [name, argument] of Object.entries(command.args ?? {}))
    added.addArgument(cliArgument(name, argument));
  for (const [name, flag] of Object.entries(command.flags ?? {})) added.addOption(cliOption(name, flag));
  if (Object.values(command.args ?? {}).some(isManifests)) directories(added);
  addCommonFlags(added, command);
  evaluating(added)
    .addHelpText("after", helpText(command, `${place.path} ${command.name}`))
    .action(async (...given: unknown[]) => {
      const { runCommand } = await import("./run-command.ts");
      const names = Object.keys(command.args ?? {});
      const args = Object.fromEntries(names.map((name, i) => [name, given[i]]));
      place.outcome.code = await runCommand(command, { ...place, args, options: added.opts() });
    });
}

/** Flags derived from a command's reads and writes. */
function addCommonFlags(added: CliCommand, { source, namespaced, writes, formats, judges }: Command): void {
  if (source !== undefined) {
    calling(added);
    if (source.files) added.addOption(sourceFlag()).option(...STRICT);
    if (source.files) added.option(...CLUSTER).option(...KUBERNETES_VERSION);
  }
  if (namespaced)
    added
      .option(
        "-n, --namespace <name>",
        `namespace to look in (default: ${namespaced === "live" ? "all in files, default in a cluster" : "default"})`,
      )
      .option("-A, --all-namespaces", "look in all namespaces");
  if (writes?.switch === "dry-run") added.option("--dry-run", "print what would change, and change nothing");
  if (writes?.switch === "apply")
    added.option("--apply", "write the changes; without it they are only printed");
  if (judges) added.option(...CHANGED_ONLY);
  const all = judges ? [...formats, ...ITEM_FORMATS] : formats;
  added.addOption(output(all, all[0] ?? "json", "output format"));
}

/** Manifests may come from -k in place of the argument. */
export function isManifests({ many, file }: Argument): boolean {
  return many === true && file === "yaml";
}

function cliArgument(name: string, argument: Argument): CliArgument {
  const { description, many, optional } = argument;
  const text = many ? `${name}...` : name;
  return new CliArgument(optional || isManifests(argument) ? `[${text}]` : `<${text}>`, description);
}

function cliOption(name: string, flag: Flag): Option {
  const { value, short, description, choices, integer, many } = flag;
  const long = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const flags = `${short === undefined ? "" : `-${short}, `}${long}${value === undefined ? "" : ` <${value}>`}`;
  const option = many ? new Repeatable(flags, description) : new Option(flags, description);
  if (choices !== undefined) option.choices(choices);
  if (integer !== undefined) option.argParser((text) => parseInteger(text, integer));
  if (flag.default !== undefined) option.default(flag.default);
  return option;
}

function parseInteger(text: string, [min, max]: readonly [number, number]): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max))
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
  return value;
}

function helpText({ examples, exitCodes }: Command, path: string): string {
  const {
    fine,
    found,
    wrong = "invalid arguments or input",
    failed = "usher or the cluster failed",
  } = exitCodes;
  const lines = examples.map((example) => `  ${path} ${example}`.trimEnd());
  const codes = wrap(`Exit codes: 0 ${fine}, 1 ${found}, 2 ${wrong}, 3 ${failed}.`);
  return `\nExamples:\n${lines.join("\n")}\n\n${codes}`;
}
