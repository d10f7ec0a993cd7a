import {
  MANAGES_CRDS,
  MANAGES_WEBHOOKS,
  moduleEnabled,
  type SettingCondition,
} from "../installation/setting-condition.ts";
import type { Module } from "../module/module.ts";
import { joined, type Right } from "../module/rights.ts";
import { byText } from "../order.ts";
import { type CustomResource, type Kind, kindResource } from "../policy/kind.ts";

export const READ = ["get", "list", "watch"];
export const KEEP = ["get", "create", "patch"];
export const WEBHOOKS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/** A module's permissions for evaluation: its reads, its records, and further declared ones. */
export function judgingRights(module: Module): Right[] {
  const { reads, stateKinds = [], access = [] } = module;
  return ofModule(module, [
    ...reads
      .filter(({ presence }) => presence !== true)
      .map(({ group, resource, name, when = [], why = "evaluate requests" }) => ({
        group,
        resources: [resource],
        ...(name === undefined ? {} : { names: [name] }),
        verbs: READ,
        why,
        when,
      })),
    ...resourceKinds(module)
      .filter(isOthers)
      .map((kind) => ({ ...resourceOf(kind), verbs: READ, why: "read its policies", when: [] })),
    ...stateKinds.filter(hasStatus).map(statusRight),
    ...stateKinds.map((kind) => ({
      ...resourceOf(kind),
      verbs: [...READ, ...kind.verbs],
      why: "keep its own records",
      when: [],
    })),
    ...access.map(({ verbs, why, when = [], ...what }) => ({
      ...("each" in what
        ? { group: "", resources: [], each: what.each }
        : { group: what.group, resources: [what.resource] }),
      verbs,
      why,
      when,
    })),
  ]);
}

/**
 * Permissions on policies of all modules, including disabled ones: these are read to report in their status that they
 * have no effect.
 */
export function policyReadingRights(modules: readonly Module[]): Right[] {
  const kinds = modules
    .flatMap(resourceKinds)
    .filter((kind) => !isOthers(kind))
    .toSorted(byText(kindResource));
  return joined([
    ...kinds.map((kind) => ({ ...resourceOf(kind), verbs: READ, why: "read policies", when: [] })),
    ...kinds.filter(hasStatus).map(statusRight),
  ]);
}

/** A kind of another owner: its status is not usher's. */
function isOthers({ takeOver }: CustomResource): boolean {
  return takeOver === "never";
}

function statusRight({ group, plural }: CustomResource): Right {
  return {
    group,
    resources: [`${plural}/status`],
    verbs: ["update", "patch"],
    why: "write their status",
    when: [],
  };
}

/** The permissions to register a module. */
export function registrationRights(module: Module): Right[] {
  const { predecessors = [], stateKinds = [], managed } = module;
  const registered = Map.groupBy([...resourceKinds(module), ...stateKinds], ({ registered: when = [] }) =>
    JSON.stringify(when),
  );
  return ofModule(module, [
    ...named(
      {
        group: "admissionregistration.k8s.io",
        resources: WEBHOOKS,
        verbs: ["get"],
        why: "report another system that does the same",
        when: [],
      },
      predecessors.map(({ name }) => name),
    ),
    ...[...registered].flatMap(([when, kinds]) =>
      named(
        {
          group: "apiextensions.k8s.io",
          resources: ["customresourcedefinitions"],
          verbs: KEEP,
          why: "register and upgrade its kinds",
          when: [MANAGES_CRDS, ...(JSON.parse(when) as SettingCondition[])],
        },
        kinds.map(kindResource),
      ),
    ),
    // Names of managed objects depend on policies, so the permissions are by resource.
    ...(managed?.resources ?? []).flatMap(({ group, resource }) => {
      const { why = "", when = [] } = managed ?? {};
      const right = { group, resources: [resource], why };
      return [
        { ...right, verbs: ["get", "list"], when },
        { ...right, verbs: ["create", "patch", "delete"], when: [...when, MANAGES_WEBHOOKS] },
      ];
    }),
  ]);
}

/** Users' permissions on the policies of a module. */
export function policyRights(module: Module, kinds: readonly Kind[], verbs: readonly string[]): Right[] {
  const why = verbs.length > READ.length ? "write its policies" : "read its policies";
  return ofModule(
    module,
    kinds.map((kind) => ({ ...resourceOf(kind), verbs, why, when: [] })),
  );
}

/** Kinds that an API server serves; configuration files are not served. */
export function resourceKinds({ kinds }: Module): Kind[] {
  return kinds.filter(({ standing }) => standing === "resource");
}

/** A rule without names would allow all names, so an empty list of names gives no rule. */
export function named(right: Right, names: readonly string[]): Right[] {
  return names.length === 0 ? [] : [{ ...right, names: [...new Set(names)].sort() }];
}

function ofModule({ name }: Module, rights: readonly Right[]): Right[] {
  return joined(
    rights.map((right) => ({ module: name, ...right, when: [moduleEnabled(name), ...right.when] })),
  );
}

function resourceOf({ group, plural }: CustomResource): Pick<Right, "group" | "resources"> {
  return { group, resources: [plural] };
}

function hasStatus({ versions }: CustomResource): boolean {
  return versions.some(({ status }) => status !== undefined);
}
