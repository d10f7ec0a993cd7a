import type { Gates } from "../module/gates.ts";
import type { Installation } from "../module/installation.ts";
import type { Module } from "../module/module.ts";
import type { CustomResource } from "../policy/kind.ts";

/** Whose custom resources are registered: an assembly is such. */
export interface Declarations {
  readonly modules: readonly Module[];
  readonly installation: Installation;
  readonly gates: Gates;
}

/** Every custom resource that modules declare, policies first. */
export function customResources(modules: readonly Module[]): CustomResource[] {
  const policies = modules.flatMap(({ kinds }) => kinds).filter(({ standing }) => standing === "resource");
  return [...policies, ...modules.flatMap(({ stateKinds }) => stateKinds ?? [])];
}

/** Those whose CRD usher registers in this installation. */
export function registeredResources({ modules, installation, gates }: Declarations): CustomResource[] {
  return customResources(modules).filter(({ registered }) => registered?.(installation, gates) ?? true);
}

/** The name of a CRD that another owner keeps, whatever an administrator asks for. */
export function excludedFromTakeOver(modules: readonly Module[], crd: string): boolean {
  return customResources(modules).some(
    ({ plural, group, takeOver }) => takeOver === "never" && `${plural}.${group}` === crd,
  );
}
