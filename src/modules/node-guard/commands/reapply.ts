import { Draft } from "../../../core/decision/draft.ts";
import { Facts } from "../../../core/decision/need.ts";
import { patchOf } from "../../../core/decision/patch.ts";
import { at, copyOf, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { controllerOf, nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { CommandCode, CommandSteps, PlannedChange } from "../../../core/module/command.ts";
import { readPages } from "../../../core/module/command-needs.ts";
import type { View } from "../../../core/view/view.ts";
import { accountOf } from "../claims/evaluate-claim.ts";
import { PodNodes } from "../claims/pod-nodes.ts";
import { reachableGroups } from "../claims/reachable.ts";
import { selectionClaims } from "../claims/selection.ts";
import { type Group, steers } from "../groups/group.ts";
import { nodesOf } from "../groups/group-nodes.ts";
import { podMatches } from "../groups/principals.ts";
import { excludeGroup } from "../steering/steer.ts";
import { groupsAt } from "./list-command.ts";

const PAGE = 500;
const TEMPLATE = ["spec", "template", "spec"] as const;

/** A DaemonSet that would be steered if it were created now. */
interface Unsteered {
  readonly object: JsonObject;
  readonly groups: readonly Group[];
}

/**
 * Steers existing DaemonSets. Their controller then deletes the pods on the excluded nodes: these are named for each
 * DaemonSet, also in a dry run.
 */
export const reapplyCode: CommandCode<object, object> = {
  *run({ assembly, now, namespace }) {
    const found: Unsteered[] = [];
    const pods: JsonObject[] = [];
    const failures = [
      yield* read("daemonsets.apps", namespace, (object) => {
        const groups = unsteeredGroups(object, groupsAt(assembly, now), assembly);
        if (groups.length > 0) found.push({ object, groups });
      }),
      yield* read("pods", namespace, (pod) => {
        if (controllerOf(pod)?.kind === "DaemonSet") pods.push(pod);
      }),
    ].filter((failure) => failure !== undefined);
    if (failures.length > 0) return { changes: [], errors: failures };
    return { changes: found.map((one) => changeOf(one, podsThatGo(one, pods, assembly), assembly)) };
  },
};

function* read(
  resource: string,
  namespace: string | undefined,
  take: (object: JsonObject) => void,
): CommandSteps<string | undefined> {
  return yield* readPages({
    what: resource,
    page: (token) => ({
      list: {
        resource,
        ...(namespace === undefined ? {} : { namespace }),
        ...(token === undefined ? {} : { continue: token }),
      },
      limit: PAGE,
      share: 1,
    }),
    // biome-ignore lint/correctness/useYield: an object needs nothing.
    *take(objects) {
      for (const object of objects) take(object);
    },
    progress: { doing: "reading", things: "kinds", done: 0, total: 2 },
  });
}

/** The groups whose nodes would accept the DaemonSet's pods although they are not authorised there and need not run there. */
function unsteeredGroups(object: JsonObject, all: readonly Group[], { view }: Assembly): readonly Group[] {
  const spec = templateOf(object);
  const account = accountOf(spec);
  const blocking = all.filter(
    (group) => steers(group) && podMatches(namespaceOf(object), account, group) === undefined,
  );
  const pod = new PodNodes(spec);
  const taking = reachableGroups(pod, blocking, view);
  if (taking.length === 0) return [];
  const found = selectionClaims(pod, taking, { view, facts: new Facts() });
  return "need" in found || found.claims.some(({ claim }) => claim.refused) ? [] : taking;
}

function changeOf({ object, groups }: Unsteered, pods: readonly string[], { view }: Assembly): PlannedChange {
  const of = { resource: "daemonsets.apps", namespace: namespaceOf(object), name: nameOf(object) };
  return {
    kind: "DaemonSet",
    of,
    plan: (stored) => {
      if (stored === undefined) return { failed: "not found" };
      const { draft, complete } = steered(stored, groups, view);
      if (!complete) return { failed: "the required node affinity has too many terms" };
      if (draft.edits.length === 0) return "unchanged";
      return {
        patch: patchOf(draft),
        of,
        resourceVersion: stringAt(stored, "metadata", "resourceVersion") ?? "",
      };
    },
    outcome: (stored) => ({
      changes: [...steered(stored ?? object, groups, view).changes, ...pods.map((pod) => `- pod ${pod}`)],
    }),
  };
}

/** The DaemonSet as it would be if it were created now. */
function steered(
  object: JsonObject,
  groups: readonly Group[],
  view: View,
): { readonly draft: Draft; readonly complete: boolean; readonly changes: readonly string[] } {
  const draft = new Draft(copyOf(object) as JsonObject);
  const changes: string[] = [];
  const results = groups.map((group) =>
    excludeGroup(draft, TEMPLATE, group, {
      view,
      finding: (what) => {
        changes.push(`${CHANGES[what]} group ${group.name}`);
        return undefined;
      },
    }),
  );
  return { draft, complete: !results.includes("too many terms"), changes };
}

const CHANGES = {
  tolerations: "- tolerations that name taints of",
  affinity: "+ required node affinity, away from",
};

/** Pods of the DaemonSet on nodes that it is steered away from. */
function podsThatGo(
  { object, groups }: Unsteered,
  pods: readonly JsonObject[],
  { view }: Assembly,
): string[] {
  const nodes = new Set(groups.flatMap((group) => [...nodesOf(group, view)].map(nameOf)));
  const uid = stringAt(object, "metadata", "uid");
  return pods
    .filter((pod) => {
      const owner = controllerOf(pod);
      const owned = uid === undefined ? owner?.name === nameOf(object) : owner?.uid === uid;
      return (
        owned &&
        namespaceOf(pod) === namespaceOf(object) &&
        nodes.has(stringAt(pod, "spec", "nodeName") ?? "")
      );
    })
    .map((pod) => `${namespaceOf(pod)}/${nameOf(pod)} on node ${stringAt(pod, "spec", "nodeName")} goes`)
    .sort();
}

function templateOf(object: JsonObject): JsonObject | undefined {
  const spec = at(object, ...TEMPLATE);
  return isObject(spec) ? spec : undefined;
}
