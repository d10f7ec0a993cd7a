import { z } from "zod";
import type { Json, JsonObject } from "../../../../core/json.ts";
import { nameOf } from "../../../../core/kubernetes/object.ts";
import type { CommandCode, CommandSteps } from "../../../../core/module/command.ts";
import { readPages } from "../../../../core/module/command-needs.ts";
import { byText } from "../../../../core/order.ts";
import type { Group } from "../../groups/group.ts";
import { groupsAt } from "../list-command.ts";
import { type Grant, grantsOf, type RbacObjects, type RbacSubject } from "./rbac.ts";

const PAGE = 500;

const RBAC = {
  clusterRoles: "clusterroles.rbac.authorization.k8s.io",
  roles: "roles.rbac.authorization.k8s.io",
  clusterRoleBindings: "clusterrolebindings.rbac.authorization.k8s.io",
  roleBindings: "rolebindings.rbac.authorization.k8s.io",
} as const satisfies Record<keyof RbacObjects, string>;

/** The subjects that reach protected nodes: by a pod in an authorised namespace, or by a bind. */
interface Reach {
  readonly subject: RbacSubject;
  readonly may: readonly string[];
  /** The authorised namespaces of the grant; `*` for every namespace. */
  readonly namespaces: readonly string[];
  /** Groups that pods of those namespaces may run on. */
  readonly groups: readonly string[];
  readonly by: string;
}

export const reachCode: CommandCode = {
  shape: z.strictObject({
    subjects: z.array(
      z.strictObject({
        subject: z.strictObject({ kind: z.string(), name: z.string(), namespace: z.string().optional() }),
        may: z.array(z.string()),
        namespaces: z.array(z.string()).describe("Where it holds; * for every namespace."),
        groups: z.array(z.string()),
        by: z.string(),
      }),
    ),
  }),
  *run({ assembly, now }) {
    const objects: Record<keyof RbacObjects, JsonObject[]> = {
      clusterRoles: [],
      roles: [],
      clusterRoleBindings: [],
      roleBindings: [],
    };
    const errors: string[] = [];
    const kinds = Object.keys(RBAC) as (keyof RbacObjects)[];
    for (const [done, kind] of kinds.entries()) {
      const failure = yield* readAll(RBAC[kind], objects[kind], done, kinds.length);
      if (failure !== undefined) errors.push(failure);
    }
    const { grants, unresolved } = grantsOf(objects);
    const groups = groupsAt(assembly, now).filter(({ effectiveMode }) => effectiveMode !== "Disable");
    const known = [...assembly.view.list("namespaces")].map(nameOf);
    const reached = grants.flatMap((grant) => reachOf(grant, groups, known)).sort(compare);
    for (const by of unresolved) errors.push(`${by}: its role was not found, so that it is not counted`);
    return {
      data: { subjects: reached } as unknown as Json,
      table: {
        columns: ["SUBJECT", "MAY", "NAMESPACES", "GROUPS", "BY"],
        rows: reached.map(({ subject, may, namespaces, groups: names, by }) => [
          describeSubject(subject),
          may.join(", "),
          namespaces.join(", "),
          names.join(", "),
          by,
        ]),
      },
      summary:
        reached.length === 0
          ? "no subjects, by RBAC"
          : `${reached.length} ${reached.length === 1 ? "grant" : "grants"}`,
      notes: ["members of system:masters, other authorizers and rights to impersonate are not listed"],
      errors,
      exit: errors.length > 0 ? "found" : "fine",
    };
  },
};

function* readAll(
  what: string,
  into: JsonObject[],
  done: number,
  total: number,
): CommandSteps<string | undefined> {
  return yield* readPages({
    what,
    page: (token) => ({
      list: { resource: what, ...(token === undefined ? {} : { continue: token }) },
      limit: PAGE,
      share: 1,
    }),
    // biome-ignore lint/correctness/useYield: an object needs nothing.
    *take(objects) {
      into.push(...objects);
    },
    progress: { doing: "reading", things: "kinds", done, total },
  });
}

/** The effect of a grant: pods count only if their namespace is authorised, binds everywhere. */
function reachOf(
  { subject, may, namespace, by }: Grant,
  groups: readonly Group[],
  known: readonly string[],
): Reach[] {
  const rows: Reach[] = [];
  const binds = may.filter((right) => BINDS.has(right));
  const creates = may.filter((right) => !BINDS.has(right));
  if (binds.length > 0 && groups.length > 0)
    rows.push({
      subject,
      may: binds,
      namespaces: [namespace ?? "*"],
      groups: groups.map(({ name }) => name),
      by,
    });
  if (creates.length === 0) return rows;
  const open = groups.map((group) => ({
    name: group.name,
    namespaces: authorisedIn(group, namespace, known),
  }));
  const reached = open.filter(({ namespaces }) => namespaces.length > 0);
  if (reached.length === 0) return rows;
  rows.push({
    subject,
    may: creates,
    namespaces: [...new Set(reached.flatMap(({ namespaces }) => namespaces))].sort(),
    groups: reached.map(({ name }) => name),
    by,
  });
  return rows;
}

const BINDS: ReadonlySet<string> = new Set(["create pods/binding", "create bindings"]);

/** The namespaces whose pods a group admits, with any account, as far as a grant reaches. */
function authorisedIn(group: Group, namespace: string | undefined, known: readonly string[]): string[] {
  const here = namespace === undefined ? known : [namespace];
  const named = group.entries.flatMap((entry) => {
    if (entry.as === "actor") return [];
    if (entry.kind === "serviceAccount") return [entry.namespace];
    if (entry.kind === "prefix")
      return [`${entry.namespace}*`, ...here.filter((one) => one.startsWith(entry.namespace))];
    return entry.kind === "group" ? [entry.name.slice("system:serviceaccounts:".length)] : [];
  });
  return named.filter((one) => namespace === undefined || one === namespace);
}

/** `ServiceAccount shop/web`, `Group admins` */
function describeSubject({ kind, namespace, name }: RbacSubject): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

const compare = byText(({ subject, by, may }: Reach) =>
  JSON.stringify([subject.kind, subject.namespace, subject.name, by, may]),
);
