// Pods that pass and pods that fail, derived from the declared values of each Pod Security check: a minimal pod that
// passes, with one declared value set in one declared field.
import { copyOf, isObject, type Json, type JsonObject, setOwn } from "../../src/core/json.ts";
import type { Path } from "../../src/core/path.ts";
import type { Check, RestrictedField, Variant } from "../../src/modules/pod-os/security/check.ts";
import { CHECKS, NEWEST_MINOR } from "../../src/modules/pod-os/security/checks.ts";

export const LISTS = ["initContainers", "containers", "ephemeralContainers"] as const;
export type List = (typeof LISTS)[number];

/** `userns` is a Linux pod with `hostUsers: false`. */
export const SYSTEMS = ["none", "linux", "windows", "userns"] as const;
export type System = (typeof SYSTEMS)[number];

export interface PodFixture {
  readonly name: string;
  readonly check: Check;
  readonly variant: Variant;
  readonly minor: number;
  readonly system: System;
  /** For a field of containers: the list of the container that has the value. */
  readonly list: List | undefined;
  /** Whether the value is declared as allowed or forbidden; a skipped check passes either. */
  readonly declared: "allowed" | "forbidden";
  readonly expected: "pass" | "fail";
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
}

type Mutable = Record<string, Json | undefined>;

/** The minimum that a pod needs to pass a level at a version. */
export function minimalPod(
  level: Check["level"],
  minor: number,
  system: System,
  lists: readonly List[],
): JsonObject {
  const linuxFields = level === "restricted" && (system !== "windows" || minor < 25);
  const container = (name: string): JsonObject => {
    const context: Mutable = {};
    if (linuxFields && minor >= 8) context["allowPrivilegeEscalation"] = false;
    if (linuxFields && minor >= 22) context["capabilities"] = { drop: ["ALL"] };
    return { name, image: "registry.example/app", ...(linuxFields ? { securityContext: context } : {}) };
  };
  const context: Mutable = level === "restricted" ? { runAsNonRoot: true } : {};
  if (linuxFields && minor >= 19) context["seccompProfile"] = { type: "RuntimeDefault" };
  return {
    ...Object.fromEntries(lists.map((list) => [list, [container(list.toLowerCase())]])),
    securityContext: context,
    ...(system === "linux" || system === "windows" ? { os: { name: system } } : {}),
    ...(system === "userns" ? { hostUsers: false } : {}),
  };
}

function put(target: Mutable, path: Path, value: Json): void {
  let here = target;
  for (const step of path.slice(0, -1)) {
    const next = isObject(here[step]) ? here[step] : {};
    setOwn(here, String(step), next);
    here = next as Mutable;
  }
  const last = String(path.at(-1));
  if (value === null) delete here[last];
  else setOwn(here, last, value);
}

function built(
  level: Check["level"],
  minor: number,
  system: System,
  lists: readonly List[],
  field: RestrictedField,
  list: List | undefined,
  value: Json,
): { metadata: JsonObject; spec: JsonObject } {
  const spec = copyOf(minimalPod(level, minor, system, lists)) as Mutable;
  const metadata: Mutable = { name: "p" };
  if (field.scope === "pod") put(spec, field.path, value);
  if (field.scope === "container") put((spec[list ?? "containers"] as Mutable[])[0] ?? {}, field.path, value);
  if (field.scope === "volume") spec["volumes"] = [{ name: "v", ...(value as JsonObject) }];
  if (field.scope === "annotation")
    put(metadata, ["annotations", String(field.path[0]).replace("*", list?.toLowerCase() ?? "*")], value);
  return { metadata, spec };
}

function isSkipped({ skips }: Variant, system: System): boolean {
  return (skips === "windows" && system === "windows") || (skips === "userNamespace" && system === "userns");
}

/** The fixtures of one check at one version. `lists` are the container lists that the pods have. */
export function fixturesOf(check: Check, minor: number, lists: readonly List[] = LISTS): PodFixture[] {
  const variant = check.variants.findLast(({ since }) => since <= minor);
  if (variant === undefined) return [];
  const found: PodFixture[] = [];
  for (const field of variant.fields) {
    const perContainer =
      field.scope === "container" || (field.scope === "annotation" && String(field.path[0]).endsWith("*"));
    for (const system of SYSTEMS)
      for (const list of perContainer ? lists : [undefined])
        for (const declared of ["allowed", "forbidden"] as const)
          for (const [i, value] of field[declared].entries())
            found.push({
              name: `${check.id} v1.${minor} ${system} ${list ?? field.scope} ${field.path.join(".")} ${declared} ${i}`,
              check,
              variant,
              minor,
              system,
              list,
              declared,
              expected: declared === "allowed" || isSkipped(variant, system) ? "pass" : "fail",
              ...built(check.level, minor, system, lists, field, list, value),
            });
  }
  return found;
}

export const MINORS: readonly number[] = Array.from({ length: NEWEST_MINOR + 1 }, (_, minor) => minor);

/** Versions at which any check changes. */
export const BREAKPOINTS: readonly number[] = [
  ...new Set(CHECKS.flatMap(({ variants }) => variants.map(({ since }) => since))),
].sort((a, b) => a - b);
