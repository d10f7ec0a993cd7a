import type { Declarations, Module } from "../module/module.ts";
import { configuredValues, holds } from "../module/setting-condition.ts";
import type { CustomResource } from "../policy/kind.ts";

/** Every custom resource that modules declare, policies first. */
export function customResources(modules: readonly Module[]): CustomResource[] {
  const policies = modules.flatMap(({ kinds }) => kinds).filter(({ standing }) => standing === "resource");
  return [...policies, ...modules.flatMap(({ stateKinds }) => stateKinds ?? [])];
}

/** Those whose CRD usher registers in this installation. */
export function registeredResources({ modules, installation, gates }: Declarations): CustomResource[] {
  const values = configuredValues(installation, gates);
  return customResources(modules).filter(({ registered }) => holds(registered, values));
}

/** The name of a CRD that another owner keeps, whatever an administrator asks for. */
export function excludedFromTakeOver(modules: readonly Module[], crd: string): boolean {
  return customResources(modules).some(
    ({ plural, group, takeOver }) => takeOver === "never" && `${plural}.${group}` === crd,
  );
}
