import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import { type CompiledSelector, compileSelector } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Path } from "../../../core/path.ts";
import type { Prepared } from "../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { type Problem, problem, warningProblem } from "../../../core/policy/problem.ts";
import {
  EMERGENCY_LISTS,
  type EntryList,
  type GroupEntry,
  type GroupOptions,
  type GroupOrigin,
  MODES,
  type Mode,
  type Override,
  USER_LISTS,
} from "./group.ts";
import { MOST_HOURS, readOverride } from "./override.ts";
import { parseEntry } from "./principals.ts";

export const CONSISTENCIES = ["Corrected", "Literal", "Disabled"] as const;
export type Consistency = (typeof CONSISTENCIES)[number];

/** The prepared form of each kind. */
export type GuardPolicy =
  /** A NodeSchedulingPolicyConfig. */
  | { readonly kind: "config"; readonly groups: readonly GroupSource[] }
  /** A NodeSchedulingPolicy; only the one named cluster counts. */
  | {
      readonly kind: "policy";
      readonly name: string;
      readonly ref: PolicyRef;
      readonly consistency: Consistency;
      readonly groups: readonly GroupSource[];
    }
  /** A Scheduler; only the one named cluster counts. */
  | {
      readonly kind: "scheduler";
      readonly name: string;
      readonly mastersSchedulable: boolean;
      readonly groups: readonly GroupSource[];
    }
  | { readonly kind: "override"; readonly override: Override };

/** The singletons that count have this name. */
export const CLUSTER = "cluster";

/** One source's values for one group. */
export interface GroupSource {
  readonly origin: GroupOrigin;
  readonly name: string;
  readonly selector?: { readonly written: JsonObject; readonly compiled: CompiledSelector };
  /** Absent: no opinion. */
  readonly mode?: Mode;
  readonly entries: readonly GroupEntry[];
  readonly emergency: readonly GroupEntry[];
  readonly options: Partial<GroupOptions>;
}

export interface PreparedGroups {
  readonly groups: readonly GroupSource[];
  readonly problems: readonly Problem[];
}

const LISTS: readonly EntryList[] = [...USER_LISTS, "authorizedGroups", ...EMERGENCY_LISTS];

/**
 * The groups of one source. Never throws. An unreadable part affects only itself: an entry the entry, a selector the
 * group's selector; the mode stays, and so do all other entries.
 */
export function prepareGroups(list: readonly Json[], origin: GroupOrigin, path: Path): PreparedGroups {
  const problems: Problem[] = [];
  const groups: GroupSource[] = [];
  const names = new Set<string>();
  for (const [i, item] of list.entries()) {
    const name = stringAt(item, "name") ?? "";
    if (!isObject(item) || name === "") problems.push(problem([...path, i, "name"], "is required"));
    else if (names.has(name))
      problems.push(problem([...path, i, "name"], `duplicate group "${name}": the first counts`));
    else groups.push(prepareGroup(item, name, origin, [...path, i], problems));
    names.add(name);
  }
  return { groups, problems };
}

function prepareGroup(
  item: JsonObject,
  name: string,
  origin: GroupOrigin,
  path: Path,
  problems: Problem[],
): GroupSource {
  const all = LISTS.flatMap((list) => readList(item, list, origin, [...path, list], problems));
  const isEmergency = ({ list }: GroupEntry) => list === "emergencyUsers" || list === "emergencyGroups";
  return {
    origin,
    name,
    ...readSelector(item, [...path, "labelSelector"], problems),
    ...readMode(item, [...path, "mode"], problems),
    entries: all.filter((entry) => !isEmergency(entry)),
    emergency: all.filter(isEmergency),
    options: readOptions(item),
  };
}

function readList(
  item: JsonObject,
  list: EntryList,
  origin: GroupOrigin,
  path: Path,
  problems: Problem[],
): GroupEntry[] {
  const found = new Map<string, GroupEntry>();
  for (const [i, text] of listAt(item, list).entries()) {
    const read = parseEntry(text, list, origin);
    if (read.problem !== undefined) problems.push(problem([...path, i], read.problem));
    if (read.warning !== undefined) problems.push(warningProblem([...path, i], read.warning));
    const { entry } = read;
    // Two spellings of one service account are one entry.
    if (entry !== undefined) {
      const key = `${entry.kind} ${entry.namespace} ${entry.name}`;
      if (!found.has(key)) found.set(key, entry);
    }
  }
  return [...found.values()];
}

function readSelector(item: JsonObject, path: Path, problems: Problem[]): Pick<GroupSource, "selector"> {
  const written = at(item, "labelSelector");
  if (written === undefined || written === null) return {};
  const { selector, problems: wrong } = compileSelector(written, path);
  problems.push(...wrong.map((one) => problem(one.path, one.message)));
  return { selector: { written: isObject(written) ? written : {}, compiled: selector } };
}

function readMode(item: JsonObject, path: Path, problems: Problem[]): Pick<GroupSource, "mode"> {
  const written = at(item, "mode");
  if (written === undefined || written === null || written === "") return {};
  const mode = MODES.find((one) => one === written);
  if (mode !== undefined) return { mode };
  const meant = MODES.find(
    (one) => typeof written === "string" && `${one}d`.toLowerCase() === written.toLowerCase(),
  );
  problems.push(
    problem(
      path,
      `must be one of ${MODES.join(", ")}`,
      meant === undefined ? undefined : `did you mean "${meant}"?`,
    ),
  );
  return {};
}

const CHOICES = {
  serviceAccountScope: ["Namespace", "Exact"],
  earlyRefusal: ["Deny", "Warn"],
  steering: ["Affinity", "DropToleration", "Disabled"],
  failurePolicy: ["Fail", "Ignore"],
} as const;

const SWITCHES = [
  "checkRequesterOnSelection",
  "protectNodeLabels",
  "guardAccessOnProtectedNodes",
  "rbac",
] as const;

/** The earlier value for Disabled, which YAML 1.1 reads as a boolean without quotes. */
export function notOff(value: string | undefined): string | undefined {
  return value === "Off" ? "Disabled" : value;
}

/** Options of the right type; the schema reports the others. */
function readOptions(item: JsonObject): Partial<GroupOptions> {
  const read: Record<string, Json> = {};
  for (const [name, values] of Object.entries(CHOICES)) {
    const value = notOff(stringAt(item, name));
    if (value !== undefined && (values as readonly string[]).includes(value)) read[name] = value;
  }
  for (const name of SWITCHES) {
    const value = at(item, name);
    if (typeof value === "boolean") read[name] = value;
  }
  const grace = at(item, "newNodeGraceSeconds");
  if (typeof grace === "number" && grace >= 0) read["newNodeGraceSeconds"] = grace;
  const acknowledged = listAt(item, "acknowledge").filter((one) => typeof one === "string");
  if (acknowledged.length > 0) read["acknowledge"] = acknowledged;
  return read as Partial<GroupOptions>;
}

const GROUPS = ["spec", "groups"];
const SCHEDULING_GROUPS = ["spec", "schedulingGroups"];

export const CONFIGS = "nodeschedulingpolicyconfigs.scheduling.openshift.io";
export const POLICIES = "nodeschedulingpolicies.scheduling.openshift.io";
export const SCHEDULERS = "schedulers.config.openshift.io";
export const OVERRIDES = "nodeguardoverrides.usher.dev";

type Read = (object: JsonObject) => Prepared<GuardPolicy>;

/** The prepared form of an object of each kind. Never throws. */
export const READERS: Readonly<Record<string, Read>> = {
  [CONFIGS]: (object) => {
    const { groups, problems } = prepareGroups(listAt(object, ...GROUPS), "file", GROUPS);
    return { policy: { kind: "config", groups }, problems };
  },
  [POLICIES]: (object) => {
    const { groups, problems } = prepareGroups(listAt(object, ...GROUPS), "NodeSchedulingPolicy", GROUPS);
    const written = notOff(stringAt(object, "spec", "consistency"));
    const consistency = CONSISTENCIES.find((one) => one === written) ?? "Corrected";
    const [name, uid] = [nameOf(object), stringAt(object, "metadata", "uid")];
    const ref = { kind: "NodeSchedulingPolicy", name, ...(uid === undefined ? {} : { uid }) };
    return { policy: { kind: "policy", name, ref, consistency, groups }, problems };
  },
  [SCHEDULERS]: (object) => {
    const list = listAt(object, ...SCHEDULING_GROUPS);
    const { groups, problems } = prepareGroups(list, "Scheduler", SCHEDULING_GROUPS);
    const mastersSchedulable = at(object, "spec", "mastersSchedulable") === true;
    return { policy: { kind: "scheduler", name: nameOf(object), mastersSchedulable, groups }, problems };
  },
  [OVERRIDES]: (object) => {
    const override = readOverride(object);
    if (override !== undefined) return { policy: { kind: "override", override }, problems: [] };
    const message = `must be after from, and at most ${MOST_HOURS} hours after it`;
    return { policy: undefined, problems: [problem(["spec", "until"], message)] };
  },
};
