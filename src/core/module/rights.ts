import { configuredValues, holds, type SettingCondition } from "../installation/setting-condition.ts";
import { canonical, type JsonObject } from "../json.ts";
import { BUILT_IN_WORKLOADS } from "../kubernetes/workloads.ts";
import type { Declarations } from "./module.ts";

/** One rule of a role as data: the permission, its reason, and in which configurations it is granted. */
export interface Right {
  /** The module that needs it. @default usher itself */
  readonly module?: string;
  readonly group: string;
  readonly resources: readonly string[];
  /** `namespace`: the Namespace with usher's name. @default all objects */
  readonly names?: readonly string[] | "namespace";
  readonly verbs: readonly string[];
  /** Completes "to". */
  readonly why: string;
  /** Granted only while all of these hold. */
  readonly when: readonly SettingCondition[];
  /** Granted for each kind of this list of the configuration, by its group and resource; `group` and `resources` are empty. */
  readonly each?: "workloads";
}

/** A right in one installation. */
interface GrantedRight extends Right {
  readonly names?: readonly string[];
}

/**
 * A role and all permissions that it may grant in any configuration. Permissions are by module, and never merged across
 * modules.
 */
export interface DeclaredRole {
  readonly kind: "ClusterRole" | "Role";
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Whether an account of usher has it; other roles are for users. */
  readonly own: boolean;
  /** @default the account of the replicas */
  readonly account?: string;
  readonly rights: readonly Right[];
}

/** The permissions of an installation, with the lists of its configuration. */
export function grantedRights(
  rights: readonly Right[],
  { installation, gates }: Pick<Declarations, "installation" | "gates">,
): GrantedRight[] {
  const values = configuredValues(installation, gates);
  const configured = installation.workloads.all.filter((one) => !BUILT_IN_WORKLOADS.includes(one));
  return rights
    .flatMap(({ each, ...right }): Right[] =>
      each === undefined
        ? [right]
        : configured.map(({ group, resource }) => ({ ...right, group, resources: [resource] })),
    )
    .filter((right) => holds(right.when, values, fullNames(right)[0]))
    .map(({ names, ...right }) => ({
      ...right,
      ...(names === undefined ? {} : { names: names === "namespace" ? [installation.namespace] : names }),
    }));
}

/** `deployments.apps`, as settings list them. */
function fullNames({ group, resources }: Right): string[] {
  return resources.map((resource) => (group === "" ? resource : `${resource}.${group}`));
}

/** As a rule of a role. */
export function ruleOf({ group, resources, names, verbs }: GrantedRight): JsonObject {
  return {
    apiGroups: [group],
    resources: [...resources],
    ...(names === undefined ? {} : { resourceNames: [...names] }),
    verbs: [...verbs],
  };
}

/** Permissions that differ only in their resources become one. Lists of the configuration decide for each resource. */
export function joined(rights: readonly Right[]): Right[] {
  const groups = Map.groupBy(rights, ({ resources, ...rest }) =>
    rest.when.some((one) => "listed" in one)
      ? canonical(JSON.parse(JSON.stringify({ ...rest, resources })))
      : canonical(JSON.parse(JSON.stringify(rest))),
  );
  return [...groups.values()].flatMap((alike) => {
    const [first] = alike;
    if (first === undefined) return [];
    return [{ ...first, resources: [...new Set(alike.flatMap(({ resources }) => resources))].sort() }];
  });
}
