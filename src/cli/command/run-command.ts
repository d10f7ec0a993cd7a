import type { Fact, Need } from "../../core/decision/need.ts";
import { isObject, type Json } from "../../core/json.ts";
import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import { parseServerVersion } from "../../core/kubernetes/versions.ts";
import { BUILT_IN_WORKLOADS } from "../../core/kubernetes/workloads.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { codesOf } from "../../core/module/codes.ts";
import type {
  Command,
  CommandCall,
  CommandCode,
  CommandReport,
  CommandResult,
  CommandRun,
  OutputFormat,
  Value,
} from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";
import { parseDocument } from "../../files/text/documents.ts";
import { CallError, EXIT } from "../exit.ts";
import type { InputOptions } from "../input/input.ts";
import { type ProblemData, sourceProblemData } from "../input/problems.ts";
import type { Io } from "../io.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { reviewDeadline } from "../review/deadline.ts";
import { withApiServer } from "../source/api-server.ts";
import type { ReadInstalledOptions } from "../source/installed.ts";
import { isLive, type OpenOptions, openRead } from "../source/open.ts";
import { assembleFor } from "../source/source.ts";
import { InputFiles } from "./input-files.ts";
import { isManifests } from "./module-commands.ts";
import { printReport } from "./print-report.ts";

type Values = Readonly<Record<string, unknown>>;

/** The flags that the shell adds itself; those of the command are beside them. */
export interface ShellOptions extends OpenOptions, InputOptions {
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly dryRun?: boolean;
  readonly apply?: boolean;
  readonly output: OutputFormat;
  readonly changedOnly?: boolean;
  readonly quiet?: boolean;
}

export interface CallFromShell {
  readonly io: Io;
  readonly declaration: ModuleDeclaration;
  readonly path: string;
  readonly args: Values;
  readonly options: Values;
}

/** Runs a command that a module declares; returns the exit code. */
export async function runCommand(command: Command, from: CallFromShell): Promise<number> {
  const options = from.options as unknown as ShellOptions;
  const screen = terminal(from.io, options);
  const code = await command.load();
  const offline = await callOf(command, from, options);
  const wrong = code.check?.(offline);
  if (wrong !== undefined) throw new CallError(wrong);
  const call = await asInstalled(offline, command, code, from, options, screen);
  const { result, faulty, problems } = await resultOf(command, code, call, options, screen);
  if ("wrong" in result) throw new CallError(result.wrong);
  for (const error of result.errors ?? []) screen.complain(printable(error));
  if ("changes" in result) {
    // Loaded only here: most commands do not write.
    const { writePlan } = await import("./write-plan.ts");
    return writePlan(command, result, call, options, screen);
  }
  const path = `${from.path} ${command.name}`;
  printReport(
    problems === undefined ? result : withProblems(result, problems),
    options,
    { path, codes: codesOf(call.assembly.modules) },
    screen,
  );
  // A source that could not be read completely makes the result incomplete, which outweighs findings in the rest.
  return faulty ? EXIT.wrong : EXIT[result.exit];
}

/** Machine-readable output has the problems of a source beside the data. */
function withProblems(report: CommandReport, problems: readonly ProblemData[]): CommandReport {
  const { data } = report;
  return isObject(data) ? { ...report, data: { ...data, problems: problems as unknown as Json } } : report;
}

async function callOf(
  command: Command,
  from: CallFromShell,
  options: ShellOptions,
): Promise<CommandCall<Values, Values>> {
  const files = new InputFiles(from.io.stdin, options);
  const live = command.source !== undefined && isLive(options);
  return {
    ...(await assembled(from, options)),
    args: await argumentsOf(command, from.args, files),
    flags: await valuesOf(command.flags ?? {}, from.options, files),
    namespace: namespaceOf(command, options, live),
    live,
    changedOnly: options.changedOnly === true,
    parse: (text) => parseDocument(text).value,
    now: Date.now(),
    calledAs: from.path,
  };
}

async function assembled(
  { io, declaration: { name } }: CallFromShell,
  options: ShellOptions,
  live?: ReadInstalledOptions,
): Promise<Pick<CommandCall, "module" | "assembly">> {
  const assembly = await assembleFor(options, io, { always: name, live });
  const module = assembly.modules.find((one) => one.name === name);
  if (module === undefined) throw new Error(`module ${name} is not loaded`);
  return { module, assembly };
}

/** The call with the configuration of its cluster's installation. A call that reads no cluster is unchanged. */
async function asInstalled(
  call: CommandCall<Values, Values>,
  command: Command,
  code: CommandCode,
  from: CallFromShell,
  options: ShellOptions,
  { note }: Terminal,
): Promise<CommandCall<Values, Values>> {
  if (!call.live) return call;
  if (code.needsView?.(call) === false && options.cluster !== true)
    return { ...call, live: false, namespace: namespaceOf(command, options, false) };
  // The API server evaluates writes, with its own webhooks.
  const forbidden = command.writes === undefined ? "ask" : "default";
  return { ...call, ...(await assembled(from, options, { note, forbidden })) };
}

/** The arguments of a call; what kustomize builds is among its manifests. */
async function argumentsOf({ args = {} }: Command, given: Values, files: InputFiles): Promise<Values> {
  const values = await valuesOf(args, given, files);
  for (const [name, argument] of Object.entries(args)) {
    if (!isManifests(argument)) continue;
    const all = [...(values[name] as readonly unknown[]), ...(await files.built())];
    if (all.length === 0 && argument.optional !== true)
      throw new CallError("specify files or directories, - for standard input, or -k DIRECTORY");
    return { ...values, [name]: all };
  }
  return values;
}

/** The declared values of a call, with files in place of their names. */
async function valuesOf(
  declared: Readonly<Record<string, Value>>,
  given: Values,
  files: InputFiles,
): Promise<Values> {
  const values: Record<string, unknown> = {};
  for (const [name, { file, many }] of Object.entries(declared)) {
    const value = given[name] ?? (many ? [] : undefined);
    if (file === undefined || value === undefined) values[name] = value;
    else if (!many) values[name] = await files.read(value as string, file);
    else {
      const contents = [];
      for (const one of value as readonly string[])
        for (const path of await files.expand(one)) contents.push(await files.read(path, file));
      values[name] = contents;
    }
  }
  return values;
}

/** The namespace to read; `undefined` means all. */
function namespaceOf(
  { namespaced }: Command,
  { namespace, allNamespaces }: ShellOptions,
  live: boolean,
): string | undefined {
  if (namespaced === undefined) return undefined;
  if (allNamespaces === true) {
    if (namespace !== undefined) throw new CallError("-n and -A are mutually exclusive");
    return undefined;
  }
  const wrong = namespace === undefined ? undefined : checkDnsLabel(namespace);
  if (wrong !== undefined) throw new CallError(`--namespace: ${wrong}`);
  // Files without `-n` are read completely: an empty default namespace would look as if nothing were found.
  return namespace ?? (namespaced === "live" && !live ? undefined : "default");
}

type Fetch = (needs: readonly Need[]) => Promise<readonly Fact[]>;

interface Ran {
  readonly result: CommandResult;
  readonly faulty: boolean;
  /** Problems of the files that were read; absent if none were. */
  readonly problems?: readonly ProblemData[];
}

/** Opens the command's source, runs it to its end and closes it. */
async function resultOf(
  command: Command,
  code: CommandCode,
  call: CommandCall<Values, Values>,
  options: ShellOptions,
  screen: Terminal,
): Promise<Ran> {
  const { source } = command;
  const run = (fetch: Fetch) => drive(code.run(call), fetch, screen);
  const { assembly, live } = call;
  const isNamed = options.source !== undefined || options.cluster === true;
  if (source === undefined || (!isNamed && code.needsView?.(call) === false)) {
    const failed = { failed: "the command reads no cluster" };
    return { result: await run(async (needs) => needs.map(() => failed)), faulty: false };
  }
  if (live && options.source === undefined && source.objectsOnly)
    return { result: await withClient(options, assembly, screen, run), faulty: false };
  const opened = await openRead(options, assembly, screen, {
    leaderReads: source.leaderReads === true,
    hint: source.forbiddenHint,
    objectsOnly: source.objectsOnly === true,
  });
  try {
    const fetch: Fetch = (needs) => opened.source.fetch(needs, reviewDeadline());
    await checkNamespace(options, fetch, live);
    return {
      result: await run(fetch),
      faulty: opened.faulty,
      ...(options.source === undefined
        ? {}
        : { problems: sourceProblemData(opened.problems, options.strict === true) }),
    };
  } finally {
    screen.endProgress();
    await opened.stop();
  }
}

/** A name with a typo would look as if nothing were found. */
async function checkNamespace({ namespace: name }: ShellOptions, fetch: Fetch, live: boolean): Promise<void> {
  if (name === undefined) return;
  const [fact] = await fetch([{ get: { resource: "namespaces", name } }]);
  if (fact === undefined || !("absent" in fact)) return;
  if (live) throw new CallError(`--namespace ${name}: no such namespace in the cluster`);
  // Files may leave Namespaces out.
  const inside = await fetch(
    BUILT_IN_WORKLOADS.map(({ group, resource }) => ({
      list: { resource: group === "" ? resource : `${resource}.${group}`, namespace: name },
      limit: 1,
      share: 1,
    })),
  );
  if (inside.every((one) => !("found" in one && Array.isArray(one.found) && one.found.length > 0)))
    throw new CallError(`--namespace ${name}: no such namespace in the source, and no workload in it`);
}

/** Answers needs from the API server, without a view: only the cluster's version is known. */
async function withClient(
  options: ShellOptions,
  assembly: Assembly,
  screen: Terminal,
  run: (fetch: Fetch) => Promise<CommandResult>,
): Promise<CommandResult> {
  const [{ createNeeds }, { createResources }] = await Promise.all([
    import("../../cluster/source/fetch-needs.ts"),
    import("../../cluster/client/discovery.ts"),
  ]);
  return withApiServer(options, screen.note, async (client) => {
    const version = parseServerVersion((await client.request("GET", "/version")).body);
    if (version !== undefined) assembly.observeServerVersion(version);
    const created = createNeeds(client, createResources(client, assembly.modules));
    const fetch: Fetch = (needs) => created(needs, reviewDeadline());
    await checkNamespace(options, fetch, true);
    return run(fetch);
  });
}

async function drive(
  run: CommandRun | CommandResult,
  fetch: Fetch,
  screen: Terminal,
): Promise<CommandResult> {
  if (!("next" in run)) return run;
  let step = run.next([]);
  while (step.done !== true) {
    const { need, progress } = step.value;
    if (progress !== undefined)
      screen.progress(progress.doing, progress.things, progress.done, progress.total);
    step = run.next(await fetch(need));
  }
  screen.endProgress();
  return step.value;
}
