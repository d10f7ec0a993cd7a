import type { JsonObject } from "../json.ts";
import {
  controllerOf,
  isBeingDeleted,
  isMirrorPod,
  labelsOf,
  nameOf,
  namespaceOf,
} from "../kubernetes/object.ts";
import { isFinished } from "../kubernetes/pod-state.ts";
import type { WorkloadKind } from "../kubernetes/workloads.ts";
import type { Assembly } from "../module/assembly.ts";
import { resourceMatches } from "../module/hook.ts";
import type { Module } from "../module/module.ts";
import type { Standing } from "../module/standing.ts";
import { type Kind, kindResource } from "../policy/kind.ts";
import { podCreator, type Stage } from "../review/review.ts";
import type { Change } from "../view/view.ts";
import { type Difference, differenceOf, judgeBoth, newWarnings } from "./compare.ts";
import { requestFor } from "./stored-workloads.ts";

/** As many pods as Pod Security evaluates when the level of a namespace changes. */
export const MOST_PODS = 3_000;

/** Some of the pods that exist. */
export interface PodPage {
  readonly pods: readonly JsonObject[];
  /** The number of existing pods, if the source knows it. */
  readonly total?: number | undefined;
  /** Whether no pods follow. Without such a page, not all were read. */
  readonly last: boolean;
}

export interface BlastRadiusOptions {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Existing pods, page by page; ends early if its source has no more time. Throws if nothing can be read. */
  readonly pods: (namespace: string | undefined) => AsyncIterable<PodPage>;
  /** Awaited before each step, so that other work can run in between; `undefined`: continue. */
  readonly pause: () => Promise<void> | undefined;
  /** Whether the time is over: the result is then about the pods evaluated so far. */
  readonly expired: () => boolean;
}

/** The effect of writing one policy on existing objects; all within the allowed time and number of pods. */
export interface BlastRadius {
  /** A workload is a pod without a controller, or all pods of one controller, one of which is evaluated. */
  readonly workloads: readonly (Difference & { readonly pods: number })[];
  /** Nodes and users for which the module's policies have another effect. */
  readonly standing: readonly StandingLine[];
  readonly looked: {
    /** Absent if the module's policies do not affect pods. */
    readonly pods?: number;
    /** The number of existing pods, if known. */
    readonly total?: number;
    readonly nodes: number;
  };
  /** Whether everything was evaluated. */
  readonly complete: boolean;
  /** Why pods could not be read. */
  readonly failure?: string;
}

export interface StandingLine {
  readonly object: Standing["object"];
  readonly text: string;
}

/** The kind and module of a policy; `undefined` if the resource is not a policy of these modules. */
function ownerOf({ modules }: Assembly, resource: string): { module: Module; kind: Kind } | undefined {
  for (const module of modules)
    for (const kind of module.kinds)
      if (kindResource(kind) === resource && kind.standing === "resource") return { module, kind };
  return undefined;
}

/**
 * Compares the decisions about existing objects before and after a policy is written. One pod of each controller is
 * evaluated, as if it were created now; further replicas are only counted. Needs no facts except the pods: a decision
 * that needs more is unknown, and not a difference.
 */
export async function blastRadius(
  assembly: Assembly,
  change: Change,
  options: BlastRadiusOptions,
): Promise<BlastRadius | undefined> {
  const owner = ownerOf(assembly, change.resource);
  if (owner === undefined) return undefined;
  const { module, kind } = owner;
  // The assembly keeps changing while this waits.
  const before = assembly.with([]);
  const after = before.with([change]);
  const standing = await standingLines(module, before, after, options);
  const judged: PodDifferences = judgesPods(module, [before, after])
    ? await podDifferences(before, after, kind.scope === "Namespaced" ? change.namespace : undefined, options)
    : { workloads: [], complete: true };
  const { workloads, pods, total, failure } = judged;
  return {
    workloads,
    standing: standing.lines,
    looked: {
      ...(pods === undefined ? {} : { pods }),
      ...(total === undefined ? {} : { total }),
      nodes: assembly.view.count("nodes"),
    },
    complete: judged.complete && standing.complete,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** Policies of a module without hooks for new pods change no decision about them. */
function judgesPods({ name }: Module, assemblies: readonly Assembly[]): boolean {
  return assemblies.some(({ hooks }) =>
    hooks.some(
      ({ module, rules }) =>
        module === name &&
        rules.some(
          ({ groups, resources, operations }) =>
            operations.includes("CREATE") &&
            (groups.includes("") || groups.includes("*")) &&
            resources.some((one) => resourceMatches(one, "pods", "")),
        ),
    ),
  );
}

interface Workload {
  pods: number;
  /** Absent if both decisions are equal. */
  difference?: Difference;
}

interface PodDifferences {
  readonly workloads: (Difference & { readonly pods: number })[];
  readonly pods?: number;
  readonly total?: number | undefined;
  readonly complete: boolean;
  readonly failure?: string;
}

async function podDifferences(
  before: Assembly,
  after: Assembly,
  namespace: string | undefined,
  { now, pods: read, pause, expired }: BlastRadiusOptions,
): Promise<PodDifferences> {
  const pod = before.installation.workloads.byKind("", "Pod");
  if (pod === undefined) return { workloads: [], complete: true };
  const stages = { before: stageOf(before), after: stageOf(after) };
  const workloads = new Map<string, Workload>();
  let looked = 0;
  let total: number | undefined;
  let isWhole = false;
  const found = (complete: boolean, failure?: string): PodDifferences => ({
    workloads: [...workloads.values()].flatMap(({ difference, pods }) =>
      difference === undefined ? [] : [{ ...difference, pods }],
    ),
    pods: looked,
    total,
    complete,
    ...(failure === undefined ? {} : { failure }),
  });
  try {
    for await (const page of read(namespace)) {
      total = page.total ?? total;
      isWhole = page.last;
      for (const one of page.pods) {
        if (looked >= MOST_PODS || expired()) return found(false);
        looked++;
        if (isFinished(one) || isBeingDeleted(one) || isMirrorPod(one)) continue;
        const { key, object } = workloadOf(one);
        const known = workloads.get(key);
        if (known !== undefined) known.pods++;
        else {
          await pause();
          const difference = await podDifference(one, pod, stages, now);
          workloads.set(key, {
            pods: 1,
            ...(difference.effect === "same" ? {} : { difference: { ...difference, object } }),
          });
        }
      }
    }
  } catch (error) {
    return found(false, error instanceof Error ? error.message : String(error));
  }
  return found(isWhole);
}

async function podDifference(
  pod: JsonObject,
  kind: WorkloadKind,
  stages: { readonly before: Stage; readonly after: Stage },
  now: number,
): Promise<Difference> {
  const stored = requestFor(pod, kind, { priorityClasses: [] });
  const request = { ...stored, userInfo: podCreator(controllerOf(pod)?.kind ?? "") ?? stored.userInfo };
  return differenceOf(await judgeBoth({ before: request, after: request }, stages, { now }));
}

/** The controller of a pod represents all of its pods. */
function workloadOf(pod: JsonObject): { readonly key: string; readonly object: Difference["object"] } {
  const namespace = namespaceOf(pod);
  const { apiVersion, kind, name, uid } = controllerOf(pod) ?? {
    apiVersion: "v1",
    kind: "Pod",
    name: nameOf(pod),
    uid: "",
  };
  const object = deploymentOf(pod, kind, name) ?? { apiVersion, kind, name };
  return { key: `${kind} ${namespace}/${name} ${uid}`, object: { ...object, namespace } };
}

/** The Deployment controller adds the hash of the template to the name of a ReplicaSet, and to the labels of its pods. */
function deploymentOf(pod: JsonObject, controllerKind: string, controllerName: string) {
  const suffix = `-${labelsOf(pod)?.["pod-template-hash"]}`;
  if (controllerKind !== "ReplicaSet" || !controllerName.endsWith(suffix)) return undefined;
  return { apiVersion: "apps/v1", kind: "Deployment", name: controllerName.slice(0, -suffix.length) };
}

/** No fact is fetched: a decision that needs one is unknown in both, and so the same. */
function stageOf(assembly: Assembly): Stage {
  return {
    assembly,
    fetch: async (needs) => needs.map(() => ({ failed: "not read for a preview" })),
    commit: async () => "done",
    admit: () => undefined,
  };
}

interface StandingLines {
  readonly lines: readonly StandingLine[];
  readonly complete: boolean;
}

/** Nodes that get other values, and users that go over a limit or come within it again. */
async function standingLines(
  { standing }: Module,
  before: Assembly,
  after: Assembly,
  { pause, expired }: BlastRadiusOptions,
): Promise<StandingLines> {
  const had = new Map<string, ReadonlySet<string>>();
  for (const one of standing?.(before) ?? []) {
    await pause();
    if (expired()) return { lines: [], complete: false };
    had.set(keyOf(one), new Set(textsOf(one)));
  }
  const lines: StandingLine[] = [];
  for (const one of standing?.(after) ?? []) {
    await pause();
    if (expired()) return { lines, complete: false };
    for (const text of textsOf(one))
      if (had.get(keyOf(one))?.has(text) !== true) lines.push({ object: one.object, text });
  }
  return { lines, complete: true };
}

function keyOf({ object: { kind, namespace = "", name } }: Standing): string {
  return `${kind} ${namespace}/${name}`;
}

function textsOf({ changes, violation }: Standing): string[] {
  return [
    ...changes.map(({ change, message }) => `${change === "remove" ? "-" : "+"} ${message}`),
    ...(violation === undefined ? [] : [violation]),
  ];
}

/** Names in one warning; the others are counted. */
const SHOWN_NAMES = 2;
/** Outcomes with a separate warning. */
const SHOWN_OUTCOMES = 5;
const ALL_OF_THEM = "usher diff looks at all of them";

/** Warnings for the author of the write: counts, scope, and examples. None if nothing changes. */
export function blastRadiusWarnings(found: BlastRadius): string[] {
  const { workloads, standing, complete, failure } = found;
  const rest = complete ? [] : [failure ?? ALL_OF_THEM];
  if (workloads.length + standing.length === 0)
    return complete
      ? []
      : [
          `compared with a part of what exists, and found no change: ${[...extentOf(found), ...rest].join("; ")}`,
        ];
  const rank = ({ effect }: Difference) => EFFECTS_OF_PODS.findIndex(([one]) => one === effect);
  const outcomes = [
    ...Map.groupBy(
      workloads.toSorted((a, b) => rank(a) - rank(b)),
      outcomeOf,
    ),
    ...Map.groupBy(standing, ({ text }) => text),
  ].map(([text, group]) => `${namesOf(group)}: ${text}`);
  const more = outcomes.length - SHOWN_OUTCOMES;
  const extent = [...extentOf(found), ...rest].join("; ");
  return [
    `${countsOf(found).join("; ")}${extent === "" ? "" : ` (${extent})`}`,
    ...outcomes.slice(0, SHOWN_OUTCOMES),
    ...(more > 0 ? [`and ${plural(more, "more outcome")}; usher diff shows all of them`] : []),
  ];
}

/** `looked at 3,000 of 8,120 pods`. Empty if pods are not affected. */
function extentOf({ looked: { pods, total } }: BlastRadius): string[] {
  if (pods === undefined) return [];
  const all = Math.max(pods, total ?? 0);
  return [
    `looked at ${pods.toLocaleString("en")} of ${total === undefined ? "the" : all.toLocaleString("en")} pods`,
  ];
}

const EFFECTS_OF_PODS: readonly (readonly [Difference["effect"], string])[] = [
  ["refused", "refused"],
  ["admitted", "admitted again"],
  ["still refused", "refused for other reasons"],
  ["changed", "changed"],
  ["warned", "admitted with a warning"],
];

/** `if created again, 12 existing pods would be refused, 3 changed`, `2 of 5 nodes would change` */
function countsOf({ workloads, standing, looked }: BlastRadius): string[] {
  const pods = EFFECTS_OF_PODS.flatMap(([effect, words]) => {
    const count = workloads.reduce((sum, one) => sum + (one.effect === effect ? one.pods : 0), 0);
    return count === 0 ? [] : [{ count, words }];
  });
  const texts = pods.map(({ count, words }, i) =>
    i === 0 ? `${plural(count, "existing pod")} would be ${words}` : `${count.toLocaleString("en")} ${words}`,
  );
  const kinds = Map.groupBy(standing, ({ object }) => object.kind);
  return [
    ...(texts.length === 0 ? [] : [`if created again, ${texts.join(", ")}`]),
    ...[...kinds].map(([kind, lines]) => {
      const count = new Set(lines.map(({ object }) => object.name)).size;
      return kind === "Node"
        ? `${count.toLocaleString("en")} of ${plural(looked.nodes, "node")} would change`
        : `${plural(count, kind.toLowerCase())} would be over the limit`;
    }),
  ];
}

/** The code first: the API server may cut long warnings. */
function outcomeOf({ effect, before, after, lines }: Difference): string {
  const reasons = (after?.violations ?? [])
    .map(({ message, code }) => (code === "" ? message : `${code}: ${message}`))
    .join("; ");
  if (effect === "refused") return `refused, ${reasons}`;
  if (effect === "still refused") return `refused for other reasons, ${reasons}`;
  if (effect === "admitted") return "admitted again";
  if (effect === "warned") return newWarnings(before, after).join("; ");
  return lines.map(({ sign, message }) => `${sign} ${message}`).join(", ");
}

/** `ReplicaSet shop/web-5d, StatefulSet shop/db and 3 more` */
function namesOf(group: readonly { readonly object: Standing["object"] }[]): string {
  const names = group.map(
    ({ object: { kind, namespace = "", name } }) =>
      `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`,
  );
  const more = names.length - SHOWN_NAMES;
  return `${names.slice(0, SHOWN_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
