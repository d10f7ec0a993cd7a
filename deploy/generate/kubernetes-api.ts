import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiData } from "../../src/cli/input/api-types.ts";
import { moduleFolder } from "../../test/cluster/binaries/module-folder.ts";
import type { GeneratedFile } from "./generated-files.ts";
import { KUBERNETES } from "./kubernetes.ts";

/** The kinds that modules evaluate, by API group and version. */
export const KINDS: Readonly<Record<string, readonly string[]>> = {
  v1: ["Binding", "Namespace", "Node", "Pod", "PodTemplate", "ReplicationController"],
  "apps/v1": ["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
  "batch/v1": ["CronJob", "Job"],
};

/** Types that accept any fields. */
const FREE_FORM = ["FieldsV1", "RawExtension"];

/** The part of an OpenAPI schema that defines the values of a field. */
interface Schema {
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly "x-kubernetes-group-version-kind"?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

/** The API server's document of one group and version at `/openapi/v3`. */
export interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

type Types = Map<string, Map<string, string>>;

/** `npm run deploy -- kubernetes-api`: the fields of Kubernetes' own kinds, of every minor version that usher is tested with. */
export function kubernetesApiFile(): GeneratedFile {
  const { oldest, newest } = KUBERNETES;
  const releases = new Map<number, Types>();
  const kinds: Record<string, string> = {};
  for (let minor = oldest; minor <= newest; minor++) releases.set(minor, typesOf(openApiOf(minor), kinds));
  const data: ApiData = { oldest, newest, kinds, types: merged(releases) };
  return { path: "src/cli/input/kubernetes-api.json", text: `${JSON.stringify(data, null, 2)}\n` };
}

/** The module of the newest minor version, with which `npm test` runs, has no version in its name. */
function openApiOf(minor: number): (apiVersion: string) => OpenApi {
  const name = minor === KUBERNETES.newest ? "kubernetes" : `kubernetes-1.${minor}`;
  const folder = join(moduleFolder(name, "k8s.io/kubernetes"), "api", "openapi-spec", "v3");
  return (apiVersion) => {
    const file = apiVersion.includes("/") ? `apis__${apiVersion.replace("/", "__")}` : `api__${apiVersion}`;
    return JSON.parse(readFileSync(join(folder, `${file}_openapi.json`), "utf8"));
  };
}

/** The types of one release: each with its fields, and their types. */
export function typesOf(openApi: (apiVersion: string) => OpenApi, kinds: Record<string, string> = {}): Types {
  const types: Types = new Map();
  const origins = new Map<string, string>();
  for (const [apiVersion, names] of Object.entries(KINDS)) {
    const { components } = openApi(apiVersion);
    const { schemas } = components;
    const typeOf = (schema: Schema): string => {
      const ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
      if (ref !== undefined) return named(ref.replace("#/components/schemas/", ""));
      if (schema.oneOf !== undefined) return schema.oneOf.map(typeOf).sort().join("|");
      if (schema.items !== undefined) return `[]${typeOf(schema.items)}`;
      if (schema.additionalProperties !== undefined) return `{}${typeOf(schema.additionalProperties)}`;
      if (schema.type === "integer") return schema.format === "int32" ? "int32" : "int64";
      return schema.type === undefined || schema.type === "object" ? "any" : schema.type;
    };
    const named = (whole: string): string => {
      const schema = schemas[whole];
      if (schema === undefined) throw new Error(`${apiVersion}: no schema ${whole}`);
      const name = whole.slice(whole.lastIndexOf(".") + 1);
      // A type without fields, such as a mode that has no settings, is written as free-form ones are.
      const isEmpty = schema.type === "object" && !FREE_FORM.includes(name);
      if (schema.properties === undefined && !isEmpty) return typeOf(schema);
      const origin = origins.get(name) ?? whole;
      if (origin !== whole) throw new Error(`${whole} and ${origin} have one name`);
      origins.set(name, whole);
      if (types.has(name)) return name;
      const fields = new Map<string, string>();
      types.set(name, fields);
      for (const [field, one] of Object.entries(schema.properties ?? {})) fields.set(field, typeOf(one));
      return name;
    };
    for (const [whole, schema] of Object.entries(schemas))
      for (const { group, version, kind } of schema["x-kubernetes-group-version-kind"] ?? [])
        if (apiVersion === (group === "" ? version : `${group}/${version}`) && names.includes(kind))
          kinds[`${apiVersion} ${kind}`] = named(whole);
  }
  return types;
}

/** All releases in one: a field that some do not have lists its minor versions. */
function merged(releases: ReadonlyMap<number, Types>): ApiData["types"] {
  const all: Record<string, Record<string, string>> = {};
  const names = new Set([...releases.values()].flatMap((types) => [...types.keys()]));
  for (const name of [...names].sort()) {
    const having = [...releases].filter(([, types]) => types.has(name));
    const fields: Record<string, string> = {};
    for (const field of new Set(having.flatMap(([, types]) => [...(types.get(name)?.keys() ?? [])]))) {
      const found = having.filter(([, types]) => types.get(name)?.has(field));
      const [type, ...others] = new Set(found.map(([, types]) => types.get(name)?.get(field)));
      if (type === undefined || others.length > 0) throw new Error(`${name}.${field} has several types`);
      const minors = found.map(([minor]) => minor);
      const [first = 0, last = 0] = [minors[0], minors.at(-1)];
      if (last - first + 1 !== minors.length) throw new Error(`${name}.${field} comes and goes`);
      fields[field] = minors.length === having.length ? type : `${type} ${first}-${last}`;
    }
    all[name] = Object.fromEntries(Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  return all;
}
