import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { Operator } from "../../../src/core/module/operator.ts";
import type { CustomResource } from "../../../src/core/policy/kind.ts";
import { customResources } from "../../../src/core/registration/crd.ts";
import { operatorNamespace, operatorObjects } from "../../../src/core/registration/operator.ts";
import { allModules } from "../../../src/modules/all.ts";
import { KUBERNETES } from "../kubernetes.ts";
import { byDigest } from "./digest.ts";
import { ICON } from "./icon.ts";

/** The module whose operator is bundled. */
export const MODULE = "project-limit";

export const CHANNEL = "stable";

/** OpenShift 4.N has Kubernetes 1.(N + 13). */
const NEWEST_OPENSHIFT = `4.${KUBERNETES.newest - 13}`;

export interface BundleOptions {
  readonly version: string;
  /** By digest. */
  readonly image: string;
  /** The version that this one replaces. @default none: it is the first */
  readonly replaces?: string | undefined;
}

/** An OLM bundle: its ClusterServiceVersion, CRDs and annotations, and its catalog entry. */
export interface Bundle {
  readonly packageName: string;
  readonly name: string;
  readonly csv: JsonObject;
  readonly crds: readonly JsonObject[];
  readonly annotations: JsonObject;
  /** Fields that OLM can't derive from the manifests. */
  readonly ownProperties: JsonObject;
  readonly properties: readonly JsonObject[];
  readonly relatedImages: readonly JsonObject[];
  readonly replaces: string | undefined;
  readonly skipRange: string;
}

export function bundleOf({ version, image, replaces }: BundleOptions): Bundle {
  const module = allModules.find(({ name }) => name === MODULE);
  if (module?.operator === undefined) throw new Error(`module ${MODULE} has no operator`);
  const { operator } = module;
  const digest = byDigest(image);
  const name = `${operator.name}.v${version}`;
  const kinds = customResources([module]);
  const objects = operatorObjects(module, operator, { image: digest, operandImage: digest, version });
  const of = (kind: string) => objects.filter((one) => one["kind"] === kind);
  const stateKinds = (module.stateKinds ?? []).map(({ plural, group }) => `${plural}.${group}`);
  // Every older release may be replaced: the operator adopts existing objects.
  const skipRange = `<${version}`;
  const relatedImages = [
    { name: operator.name, image: digest },
    { name: operandName(operator), image: digest },
  ];
  const before = replaces === undefined ? undefined : `${operator.name}.v${replaces}`;
  const max = { type: "olm.maxOpenShiftVersion", value: NEWEST_OPENSHIFT };
  const packaged = { type: "olm.package", value: { packageName: operator.name, version } };
  const owned = kinds.map(({ group, kind, versions, plural, summary }) => ({
    name: `${plural}.${group}`,
    version: versions.find(({ storage }) => storage)?.name ?? "",
    kind,
    displayName: kind,
    description: summary,
  }));
  const provided = kinds.flatMap(({ group, kind, versions }) =>
    versions.map((one) => ({ type: "olm.gvk", value: { group, kind, version: one.name } })),
  );
  const permissions = (kind: string) => [
    { serviceAccountName: operator.name, rules: of(kind).flatMap((role) => listAt(role, "rules")) },
  ];
  const csv = {
    apiVersion: "operators.coreos.com/v1alpha1",
    kind: "ClusterServiceVersion",
    metadata: {
      name,
      namespace: operator.namespace,
      annotations: {
        "alm-examples": JSON.stringify(kinds.map((kind) => exampleOf(kind, operator))),
        capabilities: "Seamless Upgrades",
        categories: "Security",
        containerImage: digest,
        description: SUMMARY,
        "features.operators.openshift.io/disconnected": "true",
        "features.operators.openshift.io/fips-compliant": "false",
        "features.operators.openshift.io/proxy-aware": "false",
        "features.operators.openshift.io/tls-profiles": "false",
        "olm.skipRange": skipRange,
        "operatorframework.io/suggested-namespace": operator.namespace,
        "operatorframework.io/suggested-namespace-template": JSON.stringify(operatorNamespace(operator)),
        // The console lists kinds that users write, and not usher's own state.
        "operators.operatorframework.io/internal-objects": JSON.stringify(stateKinds),
        repository: HOME,
        support: "usher",
      },
    },
    spec: {
      displayName: "Project Request Limit",
      description: DESCRIPTION,
      version,
      ...(before === undefined ? {} : { replaces: before }),
      maturity: "alpha",
      minKubeVersion: `1.${KUBERNETES.oldest}.0`,
      provider: { name: "usher" },
      maintainers: [{ name: "usher", email: "maintainers@usher.dev" }],
      keywords: ["project", "quota", "admission"],
      links: [{ name: "usher", url: HOME }],
      icon: [ICON],
      installModes: ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map((type) => ({
        type,
        supported: type === "AllNamespaces",
      })),
      customresourcedefinitions: { owned },
      install: {
        strategy: "deployment",
        spec: {
          clusterPermissions: permissions("ClusterRole"),
          permissions: permissions("Role"),
          deployments: of("Deployment").map(({ metadata, spec }) => ({
            name: operator.name,
            label: at(metadata, "labels") ?? {},
            spec: spec ?? {},
          })),
        },
      },
      relatedImages,
    },
  };
  refuseTags(csv);
  return {
    packageName: operator.name,
    name,
    csv,
    crds: of("CustomResourceDefinition"),
    annotations: { annotations: bundleAnnotations(operator.name) },
    ownProperties: { properties: [max] },
    properties: [packaged, ...provided, max],
    relatedImages,
    replaces: before,
    skipRange,
  };
}

/** Every image that a bundle names must be one of its related images, by digest: a mirror copies those alone. */
export function refuseTags(csv: JsonObject): void {
  const related = new Set<string>();
  const spec = isObject(csv["spec"]) ? csv["spec"] : {};
  for (const one of Array.isArray(spec["relatedImages"]) ? spec["relatedImages"] : [])
    related.add(byDigest(stringAt(one as Json, "image") ?? ""));
  for (const image of imagesIn(csv)) {
    byDigest(image);
    if (!related.has(image)) throw new Error(`${image} is not in relatedImages`);
  }
}

/** Every image: of containers, of annotations, and of the variables by which an operator names others. */
function imagesIn(value: Json | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(imagesIn);
  if (!isObject(value)) return [];
  const { image, containerImage, name, value: variable } = value;
  const named = typeof name === "string" && name.startsWith("RELATED_IMAGE_") ? [variable] : [];
  const own = [image, containerImage, ...named].filter((one) => typeof one === "string");
  return [...own, ...Object.values(value).flatMap(imagesIn)];
}

/** Operator and operand are one image in one repository, so that a mirror has both or none. */
function operandName({ imageVariable }: Operator): string {
  return imageVariable.replace("RELATED_IMAGE_", "").toLowerCase().replaceAll("_", "-");
}

function bundleAnnotations(packageName: string): JsonObject {
  return {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": packageName,
    "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    "operators.operatorframework.io.bundle.channel.default.v1": CHANNEL,
  };
}

const HOME = "https://usher.dev";

const SUMMARY = "Limits how many projects a user may request.";

const DESCRIPTION = `Limits how many projects a user may request, by the labels of the user, as the admission plugin
ProjectRequestLimit of OpenShift 3 did.

Create a ProjectRequestLimit named \`cluster\`. The operator then keeps an admission server on the nodes of the control plane and
registers it for ProjectRequests. Delete the object to end all limits. The admission server works on while the operator is away.
`;

function exampleOf({ group, kind, versions }: CustomResource, { resource }: Operator): JsonObject {
  if (resource["kind"] === kind)
    return {
      ...resource,
      spec: { limits: [{ selector: { level: "gold" }, maxProjects: 10 }, { maxProjects: 2 }] },
    };
  const stored = versions.find(({ storage }) => storage)?.name ?? "";
  return { apiVersion: `${group}/${stored}`, kind, metadata: { name: "written-by-usher" } };
}
