import type { z } from "zod";
import { configuredValues, holds } from "../installation/setting-condition.ts";
import type { JsonObject } from "../json.ts";
import type { Declarations, Module } from "../module/module.ts";
import type { Column, CustomResource, KindVersion } from "../policy/kind.ts";
import { structuralSchema } from "./structural.ts";

/** A kind with its own columns loses the age that kubectl shows by default. */
const AGE: Column = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

/** The CRD of a kind, derived from the declaration. Throws if a CRD can't express the declaration. */
export function customResourceDefinition(kind: CustomResource): JsonObject {
  const { group, plural, singular, shortNames = [] } = kind;
  const stored = kind.versions.filter(({ storage }) => storage);
  if (stored.length !== 1)
    throw new Error(`${kind.kind} must have exactly one storage version, not ${stored.length}`);
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural,
        singular,
        ...(shortNames.length === 0 ? {} : { shortNames: [...shortNames] }),
        categories: ["usher"],
      },
      scope: kind.scope,
      versions: kind.versions.map((version) => versionOfCrd(kind, version)),
    },
  };
}

function versionOfCrd(kind: CustomResource, version: KindVersion): JsonObject {
  const { columns = [] } = version;
  return {
    name: version.name,
    served: true,
    storage: version.storage,
    schema: { openAPIV3Schema: wholeSchema(kind, version) },
    ...(version.status === undefined ? {} : { subresources: { status: {} } }),
    ...(columns.length === 0 ? {} : { additionalPrinterColumns: columnsOf(columns) }),
  };
}

function wholeSchema(kind: CustomResource, version: KindVersion): JsonObject {
  const { celRules = [] } = version;
  const spec: JsonObject = {
    ...described(version.spec, "The desired state."),
    // `self` is the spec.
    ...(celRules.length === 0
      ? {}
      : { "x-kubernetes-validations": celRules.map(({ rule, message }) => ({ rule, message })) }),
  };
  return {
    description: kind.summary,
    type: "object",
    // An absent spec counts as an empty one, so it may be absent if an empty one is valid.
    ...(spec["required"] === undefined ? {} : { required: ["spec"] }),
    properties: {
      apiVersion: { description: "The group and version in which this object is written.", type: "string" },
      kind: { description: `Always ${kind.kind}.`, type: "string" },
      metadata: { type: "object" },
      spec,
      ...(version.status === undefined
        ? {}
        : { status: described(version.status, "Latest observations of the object's state.") }),
    },
  };
}

function described(schema: z.ZodType, otherwise: string): JsonObject {
  const { description, ...rest } = structuralSchema(schema);
  return { description: description ?? otherwise, ...rest };
}

function columnsOf(columns: readonly Column[]): JsonObject[] {
  const dated = columns.some(({ jsonPath }) => jsonPath === AGE.jsonPath);
  return [...columns, ...(dated ? [] : [AGE])].map(({ name, type, jsonPath, description, priority }) => ({
    name,
    type,
    jsonPath,
    ...(description === undefined ? {} : { description }),
    ...(priority === undefined || priority === 0 ? {} : { priority }),
  }));
}

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

/** The name of a CRD that always stays with its other owner. */
export function excludedFromTakeOver(modules: readonly Module[], crd: string): boolean {
  return customResources(modules).some(
    ({ plural, group, takeOver }) => takeOver === "never" && `${plural}.${group}` === crd,
  );
}
