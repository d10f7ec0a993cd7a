import type { PatchOperation } from "../../../core/decision/patch.ts";
import { copyOf, isObject, type Json, type JsonObject, setOwn } from "../../../core/json.ts";
import { defaulted } from "../../../core/kubernetes/defaults/defaults.ts";
import { podTemplateOf, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import { pointer, steps } from "../../../core/path.ts";
import type { Violation } from "../security/check.ts";
import { evaluatePodSecurity } from "../security/evaluate.ts";
import type { LevelVersion } from "../security/policy.ts";

export interface FixedManifest {
  readonly object: JsonObject;
  /** The remaining problems: violations without a fix. */
  readonly left: readonly string[];
  readonly changed: boolean;
}

/** A manifest with the fixes of all violations that have one. The given object is unchanged. */
export function fixedManifest(
  object: JsonObject,
  workload: WorkloadKind,
  policy: LevelVersion,
  newest: number | undefined,
): FixedManifest {
  const violationsOf = (of: JsonObject, fixes: boolean): readonly Violation[] => {
    const template = podTemplateOf(of, workload);
    const options = newest === undefined ? { fixes } : { fixes, newest };
    return evaluatePodSecurity(policy, template?.metadata, template?.spec, options).violations;
  };
  const leftOf = (of: JsonObject): string[] =>
    violationsOf(defaulted(of, workload), false).map(({ reason, detail }) => `${reason} (${detail})`);
  // Defaults of the API server are not part of the manifest, so the fixes are those of the manifest as written.
  const fixes = violationsOf(object, true).flatMap(({ fix }) => fix ?? []);
  if (fixes.length === 0) return { object, left: leftOf(object), changed: false };
  const copy = copyOf(object);
  const prefix = pointer(workload.template);
  for (const operation of fixes) applyOperation(copy, { ...operation, path: `${prefix}${operation.path}` });
  const fixed = isObject(copy) ? copy : object;
  return { object: fixed, left: leftOf(fixed), changed: true };
}

type Container = Record<string, Json | undefined> | (Json | undefined)[];

/** Operations of fixes name places that are there: those that are not are left out. */
function applyOperation(root: Json, operation: PatchOperation): void {
  const path = steps(operation.path);
  const key = path.pop();
  let here: Json | undefined = root;
  for (const step of path) here = isContainer(here) ? read(here, step) : undefined;
  if (key === undefined || !isContainer(here)) return;
  if (Array.isArray(here)) {
    const index = key === "-" ? here.length : Number(key);
    if (operation.op === "remove") here.splice(index, 1);
    else if (operation.op === "add") here.splice(index, 0, copyOf(operation.value));
    else here[index] = copyOf(operation.value);
    return;
  }
  const object = here as Record<string, Json | undefined>;
  if (operation.op === "remove") delete object[key];
  else setOwn(object, key, copyOf(operation.value));
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

function read(container: Container, step: string): Json | undefined {
  if (Array.isArray(container)) return container[Number(step)];
  return Object.hasOwn(container, step) ? container[step] : undefined;
}
