// The table of Pod Security checks by OS in docs/pod-security.md.

import type { Check } from "../../src/modules/pod-os/security/check.ts";
import { CHECKS, NEWEST_MINOR } from "../../src/modules/pod-os/security/checks.ts";
import { fixturesOf, MINORS, type System } from "./pod-security-fixtures.ts";

const COLUMNS: readonly (readonly [string, System])[] = [
  ["no `spec.os`", "none"],
  ["linux", "linux"],
  ["windows", "windows"],
  ["`hostUsers: false`", "userns"],
];

/** The versions at which some pod of this kind fails. */
function failsAt(check: Check, system: System): string {
  const minors = MINORS.filter((minor) =>
    fixturesOf(check, minor, ["containers"]).some((one) => one.system === system && one.expected === "fail"),
  );
  const [first] = minors;
  const last = minors.at(-1);
  if (first === undefined || last === undefined) return "never";
  if (last === NEWEST_MINOR) return `from v1.${first}`;
  return `v1.${first} to v1.${last}`;
}

export function checkTable(): string {
  const rows = CHECKS.map((check) => [
    `\`${check.id}\``,
    check.level,
    check.variants.map(({ since }) => `1.${since}`).join(", "),
    check.os,
    ...COLUMNS.map(([, system]) => failsAt(check, system)),
  ]);
  const head = ["check", "level", "variants", "its fields exist on", ...COLUMNS.map(([title]) => title)];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
