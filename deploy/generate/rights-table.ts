import { moduleEnabled, type SettingCondition } from "../../src/core/installation/setting-condition.ts";
import type { Module } from "../../src/core/module/module.ts";
import type { DeclaredRole, Right } from "../../src/core/module/rights.ts";
import { declaredRoles } from "../../src/core/registration/rbac.ts";

const OPENING = `# Rights

What usher may do in a cluster, why, and in which configurations. A module that is off (\`modules.NAME.enabled: false\`) has no rights, and a right with a condition is granted only while the condition holds: \`usher install\`,
\`usher manifests\` and the chart grant just what the configuration needs.

- The account \`usher\` of usher's namespace has the ClusterRoles \`usher\` (to judge) and \`usher-registration\` (to register itself), and the Role \`usher\` in its own namespace alone.
- The operator of a module runs apart from usher, under an account of its own. It has every right that it grants its operand: the API server refuses to grant more.
- The roles for people are bound by you; [the last section](#for-people) lists them.

This page is written by \`npm run deploy\` from the rights themselves.
`;

interface Entry {
  readonly role: DeclaredRole;
  readonly right: Right;
}

/** The page that lists every permission: usher's own, each module's, and those for users. */
export function rightsTable(modules: readonly Module[]): string {
  const entries = declaredRoles(modules).flatMap((role) => role.rights.map((right) => ({ role, right })));
  const own = entries.filter(({ role }) => role.own);
  const sections = modules.map(({ name }) => ({
    title: name,
    entries: own.filter(({ right }) => right.module === name),
  }));
  return [
    OPENING,
    section(
      "Usher itself",
      own.filter(({ right }) => right.module === undefined),
    ),
    ...sections.filter((one) => one.entries.length > 0).map((one) => section(one.title, one.entries)),
    ...modules.flatMap(({ name, operator }) =>
      operator === undefined
        ? []
        : [
            section(
              `The operator of ${name}`,
              operator.roles.flatMap((role) => role.rights.map((right) => ({ role, right }))),
            ),
          ],
    ),
    section(
      "For people",
      entries.filter(({ role }) => !role.own),
    ),
  ].join("\n");
}

function section(title: string, entries: readonly Entry[]): string {
  return [
    `## ${title}`,
    "",
    "| role | resource | verbs | names | to | only if |",
    "| --- | --- | --- | --- | --- | --- |",
    ...entries.map(row),
    "",
  ].join("\n");
}

function row({ role, right }: Entry): string {
  const { names = [] } = right;
  const cells = [
    role.kind === "Role" ? `\`${role.name}\` in its namespace` : `\`${role.name}\``,
    resources(right),
    right.verbs.join(", "),
    names === "namespace" ? "usher's namespace" : list(names),
    right.why,
    right.when
      .filter((one) => !isEnabled(one, right.module))
      .map(condition)
      .join(" and "),
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function resources({ group, resources: all, each }: Right): string {
  if (each !== undefined) return `each of \`spec.${each}\``;
  return list(all.map((resource) => (group === "" ? resource : `${resource}.${group}`)));
}

function list(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

/** The section states it for all of its rows. */
function isEnabled(condition: SettingCondition, module: string | undefined): boolean {
  return module !== undefined && JSON.stringify(condition) === JSON.stringify(moduleEnabled(module));
}

function condition(one: SettingCondition): string {
  return "listed" in one
    ? `\`${one.listed.join(".")}\` is absent or has it`
    : `\`${one.setting.join(".")}: ${one.equals}\``;
}
