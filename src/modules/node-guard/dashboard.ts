import { type JsonObject, stringAt } from "../../core/json.ts";
import { isMirrorPod, labelsOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { matches } from "../../core/kubernetes/selectors/label-selector.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { DashboardParts, Lens, LensAnswer, PolicySummary } from "../../core/module/dashboard.ts";
import { groupsAt, nodesIn } from "./commands/list-command.ts";
import type { Group } from "./groups/group.ts";
import { CLUSTER, type GuardPolicy } from "./groups/policy.ts";
import { podMatches } from "./groups/principals.ts";
import { GATE, isOn } from "./settings.ts";

/** The groups that a node belongs to. */
function membership(assembly: Assembly, now: number): (node: JsonObject) => readonly Group[] {
  const groups = groupsAt(assembly, now);
  return (node) => groups.filter(({ labelSelector }) => matches(labelSelector, labelsOf(node)));
}

const UNGUARDED: LensAnswer = {
  key: "open",
  title: "node is not guarded",
  tone: "none",
  why: "Its node belongs to no guarded group: every pod may be there.",
  policies: [],
};

const byGuard: Lens = {
  name: "guard",
  title: "May it be there",
  summary: "Whether the pod is authorised for the guarded node that it is on.",
  prepare: (assembly, now) => {
    const groupsOf = membership(assembly, now);
    const on = isOn(assembly.gates);
    return {
      nodeKey: (node) =>
        groupsOf(node)
          .map(({ name }) => name)
          .join(","),
      of: (pod, node) => {
        const groups = node === undefined ? [] : groupsOf(node);
        const answers = groups.map((group) => answerFor(pod, group, on));
        return RANKS.flatMap((tone) => answers.filter((one) => one.tone === tone))[0] ?? UNGUARDED;
      },
    };
  },
};

/** The worst answer counts. */
const RANKS = ["bad", "warning", "plain", "good"] as const;

function answerFor(pod: JsonObject, group: Group, on: boolean): LensAnswer {
  const account = stringAt(pod, "spec", "serviceAccountName") || "default";
  const policies = group.policy === undefined ? [] : [`${group.policy.kind}/${group.policy.name}`];
  const subject = `service account ${namespaceOf(pod)}/${account}`;
  if (isMirrorPod(pod))
    return {
      key: "static",
      title: "static pod",
      tone: "good",
      why: "The kubelet runs it from a file of the node.",
      policies: [],
    };
  const by = podMatches(namespaceOf(pod), account, group);
  if (by !== undefined)
    return {
      key: "authorized",
      title: "authorised",
      tone: "good",
      why: `Group ${group.name} authorises ${subject} by ${by.list} ${by.entry} (${by.origin}).`,
      policies,
    };
  const not = `No entry of group ${group.name} authorises ${subject}`;
  const mode = on ? group.effectiveMode : "Disable";
  if (mode === "Enable")
    return {
      key: "refused",
      title: "not authorised",
      tone: "bad",
      why: `${not}. A new pod like it would be refused; this one stays until it is deleted.`,
      policies,
    };
  if (mode === "Inform")
    return {
      key: "informed",
      title: "not authorised, reported",
      tone: "warning",
      why: `${not}. The group is in mode Inform: usher reports it. In mode Enable a new pod would be refused.`,
      policies,
    };
  return {
    key: "off",
    title: "not authorised, guard is off",
    tone: "plain",
    why: `${not}, and the guard is off: ${on ? group.because : `feature gate ${GATE.name} is off`}.`,
    policies,
  };
}

function countOf(nodes: number): string {
  return nodes === 1 ? "1 node" : `${nodes} nodes`;
}

/** Groups of a policy with what they come to. */
function policySummary(assembly: Assembly, now: number, written: readonly string[]): PolicySummary {
  const groups = groupsAt(assembly, now).filter(({ name }) => written.includes(name));
  const on = isOn(assembly.gates);
  const mode = (group: Group) => (on ? group.effectiveMode : "Disable");
  return {
    selects: groups.map((group) => `group ${group.name}: ${countOf(nodesIn(assembly, group).length)}`),
    changes: groups
      .filter((group) => mode(group) === "Enable" && group.steering !== "Disabled")
      .map(({ name }) => `steers other pods off the nodes of ${name}`),
    refuses: groups.map((group) =>
      mode(group) === "Enable"
        ? `pods on ${group.name} without an entry`
        : `nothing on ${group.name}: ${mode(group) === "Inform" ? "mode Inform reports only" : on ? `mode ${mode(group)}` : `feature gate ${GATE.name} is off`}`,
    ),
    objects: [{ count: new Set(groups.flatMap((group) => nodesIn(assembly, group))).size, noun: "nodes" }],
  };
}

export const dashboard: DashboardParts = {
  lenses: [byGuard],
  groupings: [
    {
      name: "guarded",
      title: "Guarded group",
      prepare: (assembly, now) => {
        const groupsOf = membership(assembly, now);
        return (node) => {
          const names = groupsOf(node).map(({ name, effectiveMode }) => `${name} (${effectiveMode})`);
          return { key: names.join(", "), title: names.join(", ") || "not guarded" };
        };
      },
    },
  ],
  summarize:
    (assembly, now) =>
    ({ policy, ref }) => {
      const known = policy as GuardPolicy | undefined;
      if (known?.kind === "override")
        return {
          selects: [`group ${known.override.group}`],
          changes: [`mode ${known.override.mode} until ${new Date(known.override.until).toISOString()}`],
          refuses: [],
        };
      if (known === undefined || (ref.name !== CLUSTER && known.kind !== "config"))
        return { selects: [`none: only the one named ${CLUSTER} counts`], changes: [], refuses: [] };
      const names = known.groups.map(({ name }) => name);
      return policySummary(assembly, now, names);
    },
};
