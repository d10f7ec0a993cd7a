import type { AdmissionRequest } from "../../core/decision/request.ts";
import { type Difference, differenceOf, judgeBoth } from "../../core/foresight/compare.ts";
import type { World } from "../../core/foresight/world.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { admissionDefaults, defaulted } from "../../core/kubernetes/defaults/defaults.ts";
import { beforeUsher } from "../../core/provenance/before.ts";
import { CallError, EXIT } from "../exit.ts";
import { type InputProblem, InputReader } from "../input/input.ts";
import { describeProblems } from "../input/problems.ts";
import { Shape } from "../input/shape.ts";
import type { Io } from "../io.ts";
import { printable, type Terminal, terminal } from "../output/terminal.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { recorded } from "../review/request.ts";
import { auditEvents, type LogPosition, userOf } from "./audit-log.ts";
import { type CompareOptions, hasManifests, headingOf, manifestDiff, readEdits } from "./compare-worlds.ts";
import { itemsText } from "./items.ts";
import { type OpenedWorld, openWorld, PRIORITY_CLASSES } from "./open-world.ts";
import { entriesOf, plural, printEntries } from "./print.ts";

export interface ReplayOptions extends CompareOptions {
  readonly auditLog?: string;
  readonly reviews?: string;
}

/** A request that was recorded, and when. */
interface Recorded {
  readonly request: AdmissionRequest;
  readonly when?: string;
}

interface Recording {
  readonly requests: AsyncIterable<Recorded>;
  /** Why recorded requests could not be evaluated, with counts. */
  readonly skipped: Map<string, number>;
  readonly problems: InputProblem[];
  /** Shows how much of it is judged. */
  readonly progress: (judged: number) => void;
}

interface Replayed extends Difference {
  readonly operation: AdmissionRequest["operation"];
  readonly user: string;
  readonly when?: string;
}

/** Evaluates recorded requests with the current and the edited policies; returns the exit code. */
export async function replay(options: ReplayOptions, io: Io): Promise<number> {
  const { auditLog, reviews, filename = [], remove = [] } = options;
  if ((auditLog === undefined) === (reviews === undefined))
    throw new CallError("specify either --audit-log FILE or --reviews DIR");
  if (!hasManifests(options) && remove.length === 0)
    throw new CallError("specify the edited policies with -f or -k, or --remove KIND/NAME");
  const screen = terminal(io, options);
  const opened = await openWorld(options, io, screen, { scheduling: false, objects: false });
  try {
    const how = {
      files: filename,
      allowed: ["policy", "namespace"] as const,
      otherwise: "not a policy and not a namespace: recorded requests are judged by these alone",
      placements: false,
    };
    const edits = await readEdits(opened, options, io, how, screen);
    if (edits === undefined) return EXIT.wrong;
    const before = opened.world;
    const after = before.with(edits.map(({ change }) => change));
    const recording =
      auditLog === undefined
        ? await recordedReviews(reviews ?? "", opened, options, io, screen)
        : auditRequests(auditLog, opened, io, screen);
    const { differences, judged, diffs } = await judgeAll(recording, before, after, options, screen);
    for (const text of describeProblems(recording.problems)) screen.complain(text);
    const skipped = [...recording.skipped].map(([reason, count]) => ({ reason, count }));
    if (options.output === "diff") for (const line of diffs) screen.out(printable(line));
    else report({ heading: headingOf(edits), edits, differences, judged, skipped, opened }, options, screen);
    if (recording.problems.length > 0 || opened.faulty) return EXIT.wrong;
    if (judged === 0) {
      screen.complain("no recorded request could be judged");
      return EXIT.wrong;
    }
    return differences.length === 0 ? EXIT.fine : EXIT.found;
  } finally {
    screen.endProgress();
    await opened.stop();
  }
}

async function judgeAll(
  recording: Recording,
  before: World,
  after: World,
  { output }: ReplayOptions,
  screen: Terminal,
) {
  const differences: Replayed[] = [];
  const diffs: string[] = [];
  let judged = 0;
  for await (const { request, when } of recording.requests) {
    recording.progress(judged);
    const sides = { before: { ...request, dryRun: true }, after: { ...request, dryRun: true } };
    const now = when === undefined ? Date.now() : Date.parse(when);
    const decided = await judgeBoth(sides, { before, after }, { now });
    const difference = differenceOf(decided);
    judged++;
    if (difference.effect === "same") continue;
    if (output === "diff") diffs.push(...manifestDiff(difference, decided));
    const { operation, userInfo } = request;
    differences.push({
      ...difference,
      operation,
      user: userInfo.username,
      ...(when === undefined ? {} : { when }),
    });
  }
  screen.endProgress();
  return { differences, judged, diffs };
}

async function recordedReviews(
  path: string,
  { resources, world }: OpenedWorld,
  { recursive = true }: ReplayOptions,
  io: Io,
  screen: Terminal,
): Promise<Recording> {
  const reader = new InputReader(io.stdin, new Shape(resources, world.assembly), screen.note, { recursive });
  const { manifests, problems: found } = await reader.read([path]);
  const problems = [...found];
  const skipped = new Map<string, number>();
  async function* requests(): AsyncIterable<Recorded> {
    for (const { object, place } of manifests) {
      if (stringAt(object, "kind") !== "AdmissionReview") {
        skip(skipped, "not an AdmissionReview");
        continue;
      }
      const asked = recorded(object);
      if ("problem" in asked) problems.push({ place, problem: asked.problem });
      else yield { request: asked.request };
    }
  }
  const progress = (judged: number) => screen.progress("replaying", "requests", judged, manifests.length);
  return { requests: requests(), skipped, problems, progress };
}

const MIB = 1024 * 1024;

const OPERATIONS: Readonly<Record<string, AdmissionRequest["operation"]>> = {
  create: "CREATE",
  update: "UPDATE",
  delete: "DELETE",
};

/** The writes of an audit log whose objects it has: level Request or RequestResponse. */
function auditRequests(path: string, opened: OpenedWorld, io: Io, screen: Terminal): Recording {
  const skipped = new Map<string, number>();
  let read: LogPosition | undefined;
  async function* requests(): AsyncIterable<Recorded> {
    const at = (position: LogPosition) => {
      read = position;
    };
    for await (const event of auditEvents(path, io.stdin, () => skip(skipped, "not an audit event"), at)) {
      const found = await requestOf(event, opened);
      if (found === undefined) continue;
      if (typeof found === "string") skip(skipped, found);
      else {
        const when = stringAt(event, "requestReceivedTimestamp");
        yield { request: found, ...(when === undefined ? {} : { when }) };
      }
    }
  }
  const progress = (judged: number) =>
    read === undefined
      ? screen.progress("replaying", "requests", judged, undefined)
      : screen.progress("replaying", "MiB", Math.floor(read.bytes / MIB), Math.ceil(read.size / MIB));
  return { requests: requests(), skipped, problems: [], progress };
}

function skip(skipped: Map<string, number>, reason: string): void {
  skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
}

/** `undefined` for reads; a reason if the event does not have the parts of a request. */
async function requestOf(
  event: JsonObject,
  { world }: OpenedWorld,
): Promise<AdmissionRequest | string | undefined> {
  const verb = stringAt(event, "verb") ?? "";
  if (verb === "patch") return "a patch: the log has only the change, not the object";
  const operation = OPERATIONS[verb];
  if (operation === undefined) return undefined;
  const reference = event["objectRef"];
  const group = stringAt(reference, "apiGroup") ?? "";
  const version = stringAt(reference, "apiVersion") ?? "v1";
  const resource = stringAt(reference, "resource") ?? "";
  const subResource = stringAt(reference, "subresource") ?? "";
  const written = event["requestObject"];
  if (operation !== "DELETE" && !isObject(written))
    return "without the object: the audit level must be Request or RequestResponse";
  const namespace = stringAt(reference, "namespace") ?? "";
  const name = stringAt(reference, "name") ?? "";
  const workload = world.assembly.installation.workloads.byResource(group, resource);
  const kind = (isObject(written) ? stringAt(written, "kind") : undefined) ?? workload?.kind ?? "";
  let stored: JsonObject | undefined;
  if (operation !== "CREATE") {
    const named = `${resource}${group === "" ? "" : `.${group}`}`;
    const get = { resource: named, ...(namespace === "" ? {} : { namespace }), name };
    const [fact] = await world.fetch([{ get, live: true, mayBeAbsent: true }]);
    stored = fact !== undefined && "found" in fact && isObject(fact.found) ? fact.found : undefined;
    if (stored === undefined) return `${verb} of an object that is not stored any more`;
  }
  const user = userOf(event);
  const groups = Array.isArray(user["groups"]) ? user["groups"].filter((one) => typeof one === "string") : [];
  return {
    uid: stringAt(event, "auditID") ?? "replay",
    kind: { group, version, kind },
    resource: { group, version, resource },
    subResource,
    name,
    namespace: group === "" && resource === "namespaces" ? name : namespace,
    operation,
    userInfo: { username: stringAt(user, "username") ?? "", groups },
    object:
      isObject(written) && operation !== "DELETE"
        ? asDecoded(written, namespace, world, workload)
        : undefined,
    oldObject: stored,
    dryRun: true,
    options: undefined,
    unvalidated: true,
  };
}

/** As the API server hands an object to webhooks: with its namespace and defaults. */
function asDecoded(
  written: JsonObject,
  namespace: string,
  world: World,
  workload: Parameters<typeof defaulted>[1] | undefined,
): JsonObject {
  const { object } = beforeUsher(written);
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const placed = namespace === "" ? object : { ...object, metadata: { ...metadata, namespace } };
  if (workload === undefined) return placed;
  const filled = defaulted(placed, workload);
  if (workload.template.length > 0) return filled;
  return admissionDefaults(filled, { priorityClasses: world.list(PRIORITY_CLASSES), operation: "CREATE" });
}

interface Report {
  readonly heading: string;
  readonly edits: readonly { readonly name: string; readonly what: string }[];
  readonly differences: readonly Replayed[];
  readonly judged: number;
  readonly skipped: readonly { readonly reason: string; readonly count: number }[];
  readonly opened: OpenedWorld;
}

function report(
  { heading, edits, differences, judged, skipped, opened }: Report,
  { output }: ReplayOptions,
  screen: Terminal,
): void {
  const count = (effect: Difference["effect"]) => differences.filter((one) => one.effect === effect).length;
  const summary = {
    requests: judged,
    differ: differences.length,
    newlyRefused: count("refused"),
    admittedAgain: count("admitted"),
    changed: count("changed"),
    warned: count("warned"),
  };
  if (output === "json" || output === "yaml") {
    const named = edits.map(({ name, what }) => ({ name, what }));
    const data = {
      edits: named,
      summary,
      differences,
      skipped,
      problems: opened.problems,
    } as unknown as JsonObject;
    const value = versioned("Replay", data);
    screen.out(output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
    return;
  }
  const foresight = {
    workloads: differences.map((one) => ({ ...one, pods: 0 })),
    nodes: [],
    users: [],
  };
  if (output === "junit" || output === "sarif" || output === "name" || output === "markdown") {
    const text = itemsText(
      output,
      entriesOf(foresight, true),
      "usher replay",
      opened,
      `${differences.length} of ${plural(judged, "recorded request")} differ`,
    );
    if (text !== "") screen.out(text);
    return;
  }
  const parts = [
    [summary.newlyRefused, "newly refused"],
    [summary.admittedAgain, "admitted again"],
    [summary.changed, "changed"],
    [summary.warned, "warned about"],
  ].flatMap(([number, word]) => (number === 0 ? [] : [`${number} ${word}`]));
  screen.out(printable(`${heading}:`));
  screen.out(
    differences.length === 0
      ? `  nothing changes for ${plural(judged, "recorded request")}`
      : `  ${differences.length} of ${plural(judged, "recorded request")} ${differences.length === 1 ? "differs" : "differ"}: ${parts.join(", ")}`,
  );
  const entries = entriesOf(foresight, output === "wide");
  if (entries.length > 0) screen.out("");
  printEntries(entries, screen);
  for (const { reason, count: number } of skipped)
    screen.note(printable(`not replayed: ${number} ${reason}`));
}
