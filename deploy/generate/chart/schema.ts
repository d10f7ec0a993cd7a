import { z } from "zod";
import { CONFIGURATION } from "../../../src/cli/configuration/configuration.ts";
import { at, type Json, type JsonObject } from "../../../src/core/json.ts";
import { loadModules } from "../../../src/core/module/declaration.ts";
import { customResources } from "../../../src/core/registration/crd.ts";
import { declarations } from "../../../src/modules/index.ts";
import type { Value } from "./values.ts";

/** The strict schema of all values: a mistyped name is an error of `helm install`, not a value without effect. */
export function valuesSchema(values: readonly Value[]): JsonObject {
  const root: Tree = { type: "object", additionalProperties: false, properties: {} };
  for (const { path, about, schema } of values) {
    const keys = path.split(".");
    const last = keys.pop() ?? "";
    let place = root;
    for (const key of keys) {
      place.properties[key] ??= { type: "object", additionalProperties: false, properties: {} };
      place = place.properties[key] as unknown as Tree;
    }
    place.properties[last] = { description: about, ...schema };
  }
  // A chart that has this one as its dependency sets these.
  root.properties["global"] = { description: "Values of a parent chart. Not used.", type: "object" };
  root.properties["enabled"] = {
    description: "For the condition of a parent chart. Not used.",
    type: "boolean",
  };
  // Gardener sets them for every chart that it renders.
  root.properties["gardener"] = {
    description: "What Gardener says of the garden and the seed. Policies of such a chart stay when it goes.",
    type: "object",
  };
  root.properties["usablePorts"] = {
    description: "Ports that Gardener finds free on the first node of a self-hosted cluster. Not used.",
    type: "array",
  };
  return { $schema: "http://json-schema.org/draft-07/schema#", ...root };
}

interface Tree {
  readonly type: "object";
  readonly additionalProperties: false;
  readonly properties: Record<string, JsonObject>;
}

/** Set by the release, and by separate values. */
const GIVEN = ["namespace", "manageCrds", "controlPlaneNodes", "networkPolicy"];

/** For the spec of an UsherConfiguration: values that its own check rejects are rejected here. */
export async function configurationSchema(): Promise<JsonObject> {
  const modules = await loadModules(declarations);
  const schema = jsonSchema(CONFIGURATION.versions[0]?.spec ?? z.never());
  const properties = { ...(schema["properties"] as Record<string, Json>) };
  for (const name of GIVEN) delete properties[name];
  const gates = modules.flatMap((module) => module.gates ?? []);
  properties["featureGates"] = {
    ...(properties["featureGates"] as JsonObject),
    ...strict(
      Object.fromEntries(gates.map(({ name, summary }) => [name, { type: "boolean", description: summary }])),
    ),
  };
  const settings = modules.map((module): [string, JsonObject] => {
    const own = module.settings === undefined ? strict({}) : jsonSchema(module.settings);
    const enabled = { type: "boolean", description: "Whether the module takes part. Default true." };
    const settings = { enabled, ...(own["properties"] as JsonObject) };
    return [module.name, { description: module.summary, ...own, properties: settings }];
  });
  properties["modules"] = {
    description: at(properties["modules"], "description") ?? "",
    ...strict(Object.fromEntries(settings)),
  };
  return strict(properties);
}

function strict(properties: Readonly<Record<string, Json>>): JsonObject {
  return { type: "object", additionalProperties: false, properties };
}

function jsonSchema(schema: z.ZodType): JsonObject {
  const { $schema: _draft, ...rest } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "input",
    unrepresentable: "any",
  });
  return rest as JsonObject;
}

/** A policy of any kind that usher has. Its spec is checked by the CRD and by usher. */
export async function policySchema(): Promise<JsonObject> {
  const kinds = customResources(await loadModules(declarations)).filter(
    (resource) => "standing" in resource && resource.standing === "resource",
  );
  const metadata = {
    type: "object",
    required: ["name"],
    properties: { name: { type: "string", minLength: 1 } },
  };
  return {
    type: "object",
    required: ["apiVersion", "kind", "metadata"],
    additionalProperties: false,
    properties: {
      apiVersion: {
        enum: [
          ...new Set(kinds.flatMap(({ group, versions }) => versions.map(({ name }) => `${group}/${name}`))),
        ],
      },
      kind: { enum: [...new Set(kinds.map(({ kind }) => kind))] },
      metadata,
      spec: { type: "object" },
    },
  };
}
