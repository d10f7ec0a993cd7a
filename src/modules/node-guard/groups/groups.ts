import type { Installation } from "../../../core/installation/installation.ts";
import { listAt } from "../../../core/json.ts";
import type { View } from "../../../core/view/view.ts";
import { builtInOf, inlinePolicy } from "../settings.ts";
import { builtInGroups } from "./built-in.ts";
import { CONTROL_PLANE, type Group, type GroupOptions, MODES, type Mode, type Override } from "./group.ts";
import { isActive } from "./override.ts";
import {
  CLUSTER,
  type Consistency,
  type GroupSource,
  type GuardPolicy,
  prepareGroups,
  READERS,
} from "./policy.ts";
import { EntryIndex } from "./principals.ts";

const DEFAULTS: Omit<GroupOptions, "protectNodeLabels"> = {
  serviceAccountScope: "Namespace",
  earlyRefusal: "Deny",
  checkRequesterOnSelection: false,
  guardAccessOnProtectedNodes: false,
  newNodeGraceSeconds: 0,
  rbac: false,
  steering: "Affinity",
  acknowledge: [],
};

/** A group before the clock and mastersSchedulable are considered. */
interface MergedGroup
  extends Omit<Group, "effectiveMode" | "because" | "protectNodeLabels" | "override" | "policy"> {
  readonly because: string;
  readonly protectNodeLabels: boolean | undefined;
}

/**
 * All groups, from all sources. The file or, without one, the built-in lists define groups; a NodeSchedulingPolicy and a Scheduler set
 * modes, add entries and, a NodeSchedulingPolicy only, options and further groups. Selectors and entries of the former never change.
 */
export class Groups {
  readonly consistency: Consistency;
  /** `undefined`: there is no Scheduler. */
  readonly mastersSchedulable: boolean | undefined;
  readonly #policy: Extract<GuardPolicy, { readonly kind: "policy" }> | undefined;
  readonly #policies: readonly GuardPolicy[];
  readonly #installation: Installation;
  readonly #overrides: readonly Override[];
  readonly #merged = new Map<string, readonly MergedGroup[]>();
  readonly #plain = new Map<string, readonly Group[]>();

  constructor(policies: readonly GuardPolicy[], installation: Installation) {
    this.#policies = policies;
    this.#installation = installation;
    this.#overrides = policies.flatMap((one) => (one.kind === "override" ? [one.override] : []));
    const scheduler = policies.find((one) => one.kind === "scheduler" && one.name === CLUSTER);
    this.mastersSchedulable = scheduler?.kind === "scheduler" ? scheduler.mastersSchedulable : undefined;
    this.#policy = policies.filter((one) => one.kind === "policy").find(({ name }) => name === CLUSTER);
    this.consistency = this.#policy?.consistency ?? "Corrected";
  }

  /** The groups as they count at a time; without a time no override counts. */
  at(view: View, now: number | undefined): readonly Group[] {
    const builtIn = builtInOf(this.#installation, view);
    const active = now === undefined ? [] : this.#overrides.filter((override) => isActive(override, now));
    if (active.length > 0) return this.#all(builtIn).map((group) => this.#effective(group, active));
    const known = this.#plain.get(builtIn);
    if (known !== undefined) return known;
    const plain = this.#all(builtIn).map((group) => this.#effective(group, []));
    this.#plain.set(builtIn, plain);
    return plain;
  }

  #all(builtIn: "Kubernetes" | "OpenShift" | "None"): readonly MergedGroup[] {
    const known = this.#merged.get(builtIn);
    if (known !== undefined) return known;
    const merged = mergeSources(this.#sources(builtIn));
    this.#merged.set(builtIn, merged);
    return merged;
  }

  /** By precedence of modes, the first counts; sources that define groups come last. */
  #sources(builtIn: "Kubernetes" | "OpenShift" | "None"): readonly GroupSource[] {
    const of = (kind: "scheduler" | "policy") =>
      this.#policies.flatMap((one) =>
        one.kind === kind && "groups" in one && one.name === CLUSTER ? one.groups : [],
      );
    const files = this.#policies.flatMap((one) => (one.kind === "config" ? one.groups : []));
    const inline = inlineGroups(this.#installation);
    const defined = [...files, ...inline];
    return [
      ...of("scheduler").filter(({ name }) => name === CONTROL_PLANE),
      ...of("policy"),
      ...(defined.length > 0 ? defined : builtInGroups(builtIn, this.#installation)),
    ];
  }

  #effective(merged: MergedGroup, active: readonly Override[]): Group {
    const capped = cappedMode(merged, this.consistency, this.mastersSchedulable);
    const mine = active.filter(({ group }) => group === merged.name);
    const override = mine.find(({ mode }) => mode === "Disable") ?? mine[0];
    const { mode, because } = overridden(capped, override);
    return {
      ...merged,
      effectiveMode: mode,
      because,
      protectNodeLabels: merged.protectNodeLabels ?? mode === "Enable",
      ...(this.#policy === undefined ? {} : { policy: this.#policy.ref }),
      ...(override === undefined ? {} : { override }),
    };
  }
}

/** An override only weakens. */
function overridden(
  capped: { readonly mode: Mode; readonly because: string },
  override: Override | undefined,
): { readonly mode: Mode; readonly because: string } {
  if (override === undefined || MODES.indexOf(override.mode) >= MODES.indexOf(capped.mode)) return capped;
  const until = new Date(override.until).toISOString();
  return { mode: override.mode, because: `NodeGuardOverride ${override.name} until ${until}` };
}

function mergeSources(sources: readonly GroupSource[]): MergedGroup[] {
  const names = [...new Set(sources.map(({ name }) => name))];
  return names.flatMap((name) =>
    mergeGroup(
      name,
      sources.filter((one) => one.name === name),
    ),
  );
}

/** `undefined` if no source has a selector: such a group has no nodes. */
function mergeGroup(name: string, sources: readonly GroupSource[]): MergedGroup[] {
  // The definition of a group comes last, and its selector counts.
  const defining = sources.findLast(({ selector }) => selector !== undefined)?.selector;
  if (defining === undefined) return [];
  const deciding = sources.find(({ mode }) => mode !== undefined);
  const entries = sources.toReversed().flatMap((one) => one.entries);
  const emergency = sources.toReversed().flatMap((one) => one.emergency);
  const options: GroupOptions = Object.assign(
    {},
    DEFAULTS,
    ...sources.toReversed().map((one) => one.options),
  );
  return [
    {
      ...options,
      name,
      labelSelector: defining.compiled,
      selector: defining.written,
      mode: deciding?.mode ?? "Disable",
      because: deciding === undefined ? "no mode is set" : BECAUSE[deciding.origin],
      entries,
      emergency,
      index: new EntryIndex(entries, options.serviceAccountScope),
      emergencyIndex: new EntryIndex(emergency, "Namespace"),
    },
  ];
}

const BECAUSE: Readonly<Record<GroupSource["origin"], string>> = {
  Scheduler: `Scheduler ${CLUSTER}`,
  NodeSchedulingPolicy: `NodeSchedulingPolicy ${CLUSTER}`,
  file: "NodeSchedulingPolicyConfig",
  inline: "policy in usher's configuration",
  "built-in": "built-in group",
};

function inlineGroups(installation: Installation): readonly GroupSource[] {
  const policy = inlinePolicy(installation);
  return prepareGroups(listAt(policy, "groups"), "inline", []).groups;
}

/** The groups that follow from the objects of a view, for callers without an evaluator. */
export function groupsOf(view: View, installation: Installation, now: number | undefined): readonly Group[] {
  return groupsIn(view, installation).at(view, now);
}

/** The same, with what they depend on. */
export function groupsIn(view: View, installation: Installation): Groups {
  const policies = Object.entries(READERS).flatMap(([resource, read]) =>
    [...view.list(resource)].flatMap((object) => read(object).policy ?? []),
  );
  return new Groups(policies, installation);
}

/**
 * How the mode of ControlPlane relates to mastersSchedulable. The enhancement's text requires Enable exactly when
 * masters accept users' pods; Corrected reverses it. Either way a contradiction weakens to Inform and never
 * strengthens, because a mode that no administrator set would refuse permitted requests.
 */
export interface Agreement {
  readonly consistent: boolean;
  readonly message: string;
}

export function agreement(
  mode: Mode,
  consistency: Consistency,
  mastersSchedulable: boolean | undefined,
): Agreement {
  if (consistency === "Disabled") return { consistent: true, message: "mastersSchedulable is not compared" };
  if (mastersSchedulable === undefined)
    return { consistent: true, message: "there is no Scheduler to compare with" };
  const message = `mastersSchedulable is ${mastersSchedulable} and the mode of ${CONTROL_PLANE} is ${mode}`;
  const consistent =
    consistency === "Corrected"
      ? !(mastersSchedulable && mode === "Enable")
      : mastersSchedulable === (mode === "Enable");
  return { consistent, message };
}

/** The mode of a group under mastersSchedulable. */
export function cappedMode(
  group: { readonly name: string; readonly mode: Mode; readonly because: string },
  consistency: Consistency,
  mastersSchedulable: boolean | undefined,
): { readonly mode: Mode; readonly because: string } {
  const { name, mode, because } = group;
  if (name !== CONTROL_PLANE || mode !== "Enable") return { mode, because };
  const { consistent } = agreement(mode, consistency, mastersSchedulable);
  if (consistent) return { mode, because };
  return {
    mode: "Inform",
    because: `mastersSchedulable is ${mastersSchedulable} (consistency ${consistency})`,
  };
}
