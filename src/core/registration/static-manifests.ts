import { at, isObject, type JsonObject, stringAt } from "../json.ts";
import { checkSubdomain } from "../kubernetes/names.ts";
import { nameOf } from "../kubernetes/object.ts";
import type { LeftOut } from "../module/compile.ts";

/** Names of admission objects that only files have: an API server refuses them from its API. */
export const STATIC_SUFFIX = ".static.k8s.io";

/** A file below the folder that the API server reads. */
export interface StaticFile {
  /** `validating-policies/usher.yaml` */
  readonly path: string;
  readonly documents: readonly JsonObject[];
}

interface StaticFiles {
  readonly files: readonly StaticFile[];
  /** Objects that a file can't have. */
  readonly refused: readonly LeftOut[];
}

/** The folder on a control-plane node. kubeadm mounts none of /etc/kubernetes but what its configuration names. */
export const STATIC_FOLDER = "/etc/kubernetes/usher";

/** The admission plugin that reads the files of a kind. Each refuses to start with a file of another kind. */
const PLUGINS = [
  { plugin: "ValidatingAdmissionPolicy", folder: "validating-policies" },
  { plugin: "MutatingAdmissionPolicy", folder: "mutating-policies" },
] as const;

const fileOf = (folder: string): string => `${folder}/usher.yaml`;
const CONFIGURATION = "admission.yaml";

/** The paths of all files that there may be. */
export const STATIC_PATHS: readonly string[] = [
  CONFIGURATION,
  ...PLUGINS.map(({ folder }) => fileOf(folder)),
];

const API = "admissionregistration.k8s.io/v1";

/**
 * Compiled policies and bindings as files for `ManifestBasedAdmissionControlConfig`, with the AdmissionConfiguration that
 * names their folders. An API server does not start with a file that it refuses, so every rule of its loader is checked
 * here: the kinds, the names, no parameters, and bindings to policies of the same files.
 */
export function staticFiles(objects: readonly JsonObject[], folder = STATIC_FOLDER): StaticFiles {
  const refused: LeftOut[] = [];
  const accepted = objects.filter((object) => {
    const why = problemOf(object);
    if (why !== undefined)
      refused.push({ what: `${stringAt(object, "kind") ?? "object"} ${nameOf(object)}`, why });
    return why === undefined;
  });
  const policies = new Set(accepted.filter(isPolicy).map(identityOf));
  const bound = accepted.filter((object) => isPolicy(object) || policies.has(boundTo(object)));
  const files = PLUGINS.flatMap(({ plugin, folder: name }): StaticFile[] => {
    const documents = bound.filter((object) => pluginOf(object) === plugin).map(renamed);
    return documents.length === 0 ? [] : [{ path: fileOf(name), documents }];
  });
  if (files.length === 0) return { files, refused };
  return {
    files: [{ path: CONFIGURATION, documents: [configuration(files, folder)] }, ...files],
    refused,
  };
}

/** The file of `--admission-control-config-file`. An API server has one: with another, its plugins go there. */
function configuration(files: readonly StaticFile[], folder: string): JsonObject {
  const plugins = PLUGINS.filter(({ folder: name }) => files.some(({ path }) => path === fileOf(name)));
  return {
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "AdmissionConfiguration",
    plugins: plugins.map(({ plugin, folder: name }) => ({
      name: plugin,
      configuration: {
        apiVersion: "apiserver.config.k8s.io/v1",
        kind: `${plugin}Configuration`,
        staticManifestsDir: `${folder}/${name}`,
      },
    })),
  };
}

function problemOf(object: JsonObject): string | undefined {
  if (object["apiVersion"] !== API || pluginOf(object) === undefined)
    return "files have only policies and bindings of admissionregistration.k8s.io/v1; apply this object to the cluster";
  if (at(object, "spec", "paramKind") !== undefined || at(object, "spec", "paramRef") !== undefined)
    return "files have no parameters, and this object reads others; apply it to the cluster";
  const name = staticName(nameOf(object));
  const invalid = checkSubdomain(name);
  return invalid === undefined
    ? undefined
    : `with the suffix of files ${invalid}; shorten the name of its policy`;
}

function renamed(object: JsonObject): JsonObject {
  const { apiVersion = null, kind = null, spec } = object;
  const plain = isObject(spec) ? spec : {};
  const policyName = stringAt(plain, "policyName");
  return {
    apiVersion,
    kind,
    metadata: { name: staticName(nameOf(object)) },
    spec: { ...plain, ...(policyName !== undefined && { policyName: staticName(policyName) }) },
  };
}

const staticName = (name: string): string => `${name}${STATIC_SUFFIX}`;

function isPolicy(object: JsonObject): boolean {
  return PLUGINS.some(({ plugin }) => plugin === object["kind"]);
}

function pluginOf(object: JsonObject): string | undefined {
  return PLUGINS.find(({ plugin }) => object["kind"] === plugin || object["kind"] === `${plugin}Binding`)
    ?.plugin;
}

const identityOf = (policy: JsonObject): string => `${pluginOf(policy)} ${nameOf(policy)}`;
const boundTo = (binding: JsonObject): string =>
  `${pluginOf(binding)} ${stringAt(binding, "spec", "policyName") ?? ""}`;
