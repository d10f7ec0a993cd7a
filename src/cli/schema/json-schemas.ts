import { z } from "zod";
import { isObject, type Json, type JsonObject } from "../../core/json.ts";
import type { CommandGroup } from "../../core/module/command.ts";
import type { ModuleDeclaration } from "../../core/module/declaration.ts";
import { loadModules } from "../../core/module/declaration.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { SUITE, suiteFields } from "../../core/suite/suite.ts";
import { CONFIGURATION } from "../configuration/configuration.ts";
import { outputShape, SHAPES } from "../output/shapes.ts";
import { kindOf } from "../output/versioned.ts";

/** Draft 7, which editors and most validators read. */
const DRAFT = "http://json-schema.org/draft-07/schema#";

const [SUITE_GROUP = "", SUITE_VERSION = ""] = SUITE.apiVersion.split("/");

/** A suite of `usher test`, as a kind among others. */
const TEST_SUITE: Kind<never> = {
  group: SUITE_GROUP,
  kind: SUITE.kind,
  plural: "testsuites",
  singular: "testsuite",
  scope: "Cluster",
  standing: "file",
  configuration: { apiVersions: { [SUITE.apiVersion]: SUITE_VERSION } },
  summary: "cases of usher test, and the decisions that they expect",
  versions: [{ name: SUITE_VERSION, storage: true, spec: suiteFields }],
  prepare: () => ({ policy: undefined, problems: [] }),
};

/** Every kind that people write: policies, files of modules, the configuration of an installation, and test suites. */
export async function writtenKinds(declarations: readonly ModuleDeclaration[]): Promise<Kind[]> {
  const modules = await loadModules(declarations);
  return [...modules.flatMap(({ kinds }) => kinds), CONFIGURATION, TEST_SUITE];
}

/** The apiVersions that an object of a kind may have. */
export function apiVersionsOf({ group, versions, configuration }: Kind): string[] {
  if (configuration !== undefined) return Object.keys(configuration.apiVersions);
  return versions.map(({ name }) => (group === "" ? name : `${group}/${name}`));
}

/** A schema as JSON. Checks that only code can make are left out: the webhook and `usher lint` have them. */
export function jsonSchemaOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
  }) as JsonObject;
  return rest;
}

/** The JSON Schema of the objects of one kind, as an editor needs it. */
export function kindSchema(kind: Kind): JsonObject {
  const apiVersions = apiVersionsOf(kind);
  const version = kind.versions.find(({ storage }) => storage) ?? kind.versions[0];
  const spec = version === undefined ? {} : jsonSchemaOf(version.spec);
  const head: JsonObject = {
    apiVersion: { description: "The group and version of the kind.", enum: apiVersions },
    kind: { description: `Always ${kind.kind}.`, const: kind.kind },
  };
  const common = {
    title: kind.kind,
    description: `${kind.summary[0]?.toUpperCase()}${kind.summary.slice(1)}.`,
  };
  if (kind.configuration !== undefined) {
    const fields = isObject(spec["properties"]) ? spec["properties"] : {};
    const required = Array.isArray(spec["required"]) ? spec["required"] : [];
    return {
      ...common,
      ...spec,
      properties: { ...head, ...fields },
      required: ["apiVersion", "kind", ...required],
    };
  }
  const needed = Array.isArray(spec["required"]) && spec["required"].length > 0 ? ["spec"] : [];
  const named = kind.standing === "resource" ? ["metadata"] : [];
  return {
    ...common,
    type: "object",
    properties: {
      ...head,
      metadata: METADATA,
      spec,
      status: { type: "object", description: "Written by usher." },
    },
    required: ["apiVersion", "kind", ...named, ...needed],
    additionalProperties: false,
  };
}

const texts: JsonObject = { type: "object", additionalProperties: { type: "string" } };

const METADATA: JsonObject = {
  type: "object",
  properties: {
    name: { type: "string", description: "The name, unique among objects of the kind and namespace." },
    generateName: { type: "string" },
    namespace: { type: "string", description: "The namespace of a namespaced object." },
    labels: texts,
    annotations: texts,
  },
};

/** A schema for files of any content: objects of usher's kinds are checked, others are left alone. */
export function anySchema(kinds: readonly Kind[]): JsonObject {
  const definitions = Object.fromEntries(kinds.map((kind) => [kind.kind, kindSchema(kind)]));
  return {
    $schema: DRAFT,
    title: "Policies, configuration and test suites of usher",
    type: "object",
    allOf: kinds.map((kind) => ({
      if: {
        properties: { apiVersion: { enum: apiVersionsOf(kind) }, kind: { const: kind.kind } },
        required: ["apiVersion", "kind"],
      },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { $ref: `#/definitions/${kind.kind}` },
    })),
    definitions,
  };
}

/** All files of `schemas/`, by their path in it. */
export async function schemaFiles(declarations: readonly ModuleDeclaration[]): Promise<Record<string, Json>> {
  const kinds = await writtenKinds(declarations);
  const files: Record<string, Json> = { "usher.json": anySchema(kinds) };
  for (const kind of kinds) files[`kinds/${kind.kind}.json`] = { $schema: DRAFT, ...kindSchema(kind) };
  for (const [kind, shape] of Object.entries(await outputShapes(declarations)))
    files[`output/${kind}.json`] = {
      $schema: DRAFT,
      title: kind,
      ...jsonSchemaOf(outputShape(kind, shape)),
    };
  return files;
}

/** The shapes of all output, by kind. */
export async function outputShapes(
  declarations: readonly ModuleDeclaration[],
): Promise<Record<string, z.ZodObject>> {
  const shapes: Record<string, z.ZodObject> = { ...SHAPES };
  const walk = async (group: CommandGroup, path: string): Promise<void> => {
    for (const one of group.commands) {
      if ("commands" in one) await walk(one, `${path} ${one.name}`);
      else {
        const { shape } = await one.load();
        if (shape !== undefined) shapes[kindOf(`${path} ${one.name}`)] = shape;
      }
    }
  };
  for (const { commands = [] } of declarations)
    for (const group of commands) await walk(group, `usher ${group.name}`);
  return shapes;
}
