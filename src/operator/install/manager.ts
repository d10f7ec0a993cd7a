import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";
import { describeObject } from "./apply.ts";

/** The tool that manages the objects of an installation: it deploys them, and would write them again. */
export interface Manager {
  readonly name: ManagerName;
  /** For users: `the Helm release usher in namespace ops`. */
  readonly what: string;
  /** The commands of this manager in place of `usher install` and `usher uninstall`. */
  readonly update: string;
  readonly remove: string;
  /**
   * How it releases the objects without deleting them, so that another tool can manage them. @default it can't: it must
   * remove them first
   */
  readonly release?: string;
  /** The Secrets that show that it still exists. @default unknown */
  readonly record?: { readonly namespace: string; readonly labelSelector: string };
  /** Its labels and annotations, by key: without them, the object is no longer its own. */
  readonly marks: readonly string[];
}

export type ManagerName = "Helm" | "Argo CD" | "Flux" | "Gardener";

/** Metadata of a stored object. */
interface Marks {
  readonly labels: Json | undefined;
  readonly annotations: Json | undefined;
  /** `argocd-controller`, `helm`: all its field managers. */
  readonly writers: readonly string[];
}

/** How a manager is recognized, and its commands. */
interface ManagerKind extends Pick<Manager, "name" | "marks"> {
  /** Its name for the installation, and the namespace if it has one. */
  readonly find: (marks: Marks) => Place | undefined;
  readonly describe: (place: Place) => Omit<Manager, "name" | "marks">;
}

interface Place {
  readonly name: string;
  readonly namespace: string;
}

const MANAGED_BY = "app.kubernetes.io/managed-by";
const HELM_RELEASE = "meta.helm.sh/release-name";
const HELM_NAMESPACE = "meta.helm.sh/release-namespace";
const ARGO_ID = "argocd.argoproj.io/tracking-id";
const ARGO_INSTANCE = "argocd.argoproj.io/instance";
const INSTANCE = "app.kubernetes.io/instance";
const FLUX_RELEASE = "helm.toolkit.fluxcd.io";
const FLUX_KUSTOMIZATION = "kustomize.toolkit.fluxcd.io";
const GARDENER_ORIGIN = "resources.gardener.cloud/origin";
const GARDENER_LABEL = "resources.gardener.cloud/managed-by";
const HELM_MARKS = [HELM_RELEASE, HELM_NAMESPACE, "helm.sh/chart", INSTANCE];

/** The first match counts: Argo CD, Flux and Gardener render charts, whose objects may have Helm's labels too. */
const KINDS: readonly ManagerKind[] = [
  {
    name: "Gardener",
    marks: [GARDENER_ORIGIN, GARDENER_LABEL, "resources.gardener.cloud/description"],
    find: ({ labels, annotations }) => {
      // [CLUSTER:]NAMESPACE/NAME of the ManagedResource.
      const origin = stringAt(annotations, GARDENER_ORIGIN)?.split(":").at(-1);
      if (origin === undefined && stringAt(labels, GARDENER_LABEL) === undefined) return undefined;
      const [namespace = "", name = ""] = origin?.split("/") ?? [];
      return { name, namespace };
    },
    describe: ({ name, namespace }) => ({
      what: `Gardener's ManagedResource ${name} in namespace ${namespace}`,
      update: "change the ControllerDeployment in the garden cluster",
      // gardenlet writes a ManagedResource that is deleted again, and deletes usher's namespace with its ControllerInstallation.
      remove: `delete the ControllerRegistration and the ControllerDeployment in the garden cluster, or leave this seed out of the seedSelector; where no gardenlet is left: kubectl delete managedresource ${name} -n ${namespace}`,
    }),
  },
  flux(FLUX_RELEASE, "HelmRelease", HELM_MARKS),
  flux(FLUX_KUSTOMIZATION, "Kustomization", []),
  {
    name: "Argo CD",
    marks: [ARGO_ID, ARGO_INSTANCE, ...HELM_MARKS],
    find: ({ labels, annotations, writers }) => {
      // APPLICATION:GROUP/KIND:NAMESPACE/NAME; an application in a namespace of its own is NAMESPACE_APPLICATION.
      const id = stringAt(annotations, ARGO_ID)?.split(":")[0] ?? stringAt(labels, ARGO_INSTANCE);
      // The usual label before Argo CD 3, which others set too.
      const known = writers.some((writer) => writer.startsWith("argocd-"));
      const application = id ?? (known ? stringAt(labels, INSTANCE) : undefined);
      return application === undefined ? undefined : { name: application.replace("_", "/"), namespace: "" };
    },
    describe: ({ name }) => ({
      what: `the Argo CD application ${name}`,
      update: `argocd app sync ${name}`,
      remove: `argocd app delete ${name}`,
      release: `argocd app delete ${name} --cascade=false`,
    }),
  },
  {
    name: "Helm",
    marks: HELM_MARKS,
    find: ({ labels, annotations }) => {
      // An object that usher install took over from Helm: Helm itself ignores objects without its label.
      const adopted = stringAt(labels, MANAGED_BY) === OWN_LABELS[MANAGED_BY];
      const name = adopted ? undefined : stringAt(annotations, HELM_RELEASE);
      return name === undefined
        ? undefined
        : { name, namespace: stringAt(annotations, HELM_NAMESPACE) ?? "" };
    },
    describe: ({ name, namespace }) => ({
      what: `the Helm release ${name} in namespace ${namespace}`,
      update: `helm upgrade ${name} CHART -n ${namespace}`,
      remove: `helm uninstall ${name} -n ${namespace}`,
      // Not `helm uninstall`, which would delete the objects.
      release: `kubectl delete secret -n ${namespace} -l owner=helm,name=${name}`,
      record: { namespace, labelSelector: `owner=helm,name=${name}` },
    }),
  },
];

function flux(group: string, kind: "HelmRelease" | "Kustomization", marks: readonly string[]): ManagerKind {
  const resource = kind.toLowerCase();
  return {
    name: "Flux",
    marks: [`${group}/name`, `${group}/namespace`, ...marks],
    find: ({ labels }) => {
      const name = stringAt(labels, `${group}/name`);
      return name === undefined
        ? undefined
        : { name, namespace: stringAt(labels, `${group}/namespace`) ?? "" };
    },
    describe: ({ name, namespace }) => ({
      what: `Flux's ${kind} ${name} in namespace ${namespace}`,
      update: `flux reconcile ${resource} ${name} -n ${namespace} --with-source`,
      remove: `flux delete ${resource} ${name} -n ${namespace}`,
      // Flux deletes nothing that it suspended.
      release: `flux suspend ${resource} ${name} -n ${namespace} && kubectl delete ${resource} ${name} -n ${namespace}`,
    }),
  };
}

/** The manager of a stored object, by its labels or annotations. `usher install` and kubectl run once, and are not managers. */
export function managerOf(live: JsonObject): Manager | undefined {
  const { metadata } = live;
  const marks: Marks = {
    labels: at(metadata, "labels"),
    annotations: at(metadata, "annotations"),
    writers: listAt(metadata, "managedFields").flatMap((entry) => stringAt(entry, "manager") ?? []),
  };
  for (const { name, find, describe, marks: keys } of KINDS) {
    const place = find(marks);
    if (place === undefined) continue;
    return {
      name,
      marks: keys,
      ...describe({ name: word(place.name, "NAME"), namespace: word(place.namespace, "NAMESPACE") }),
    };
  }
  return undefined;
}

/** Only a plain shell word becomes part of a command. */
function word(text: string, otherwise: string): string {
  return /^[A-Za-z0-9][A-Za-z0-9./-]{0,252}$/.test(text) ? text : otherwise;
}

/** The objects that others manage, by manager, as lines: the objects, and the consequence for a command. */
export function describeManaged(
  objects: readonly JsonObject[],
  advice: (manager: Manager) => readonly string[],
): string[] {
  const found = objects.flatMap((object) => {
    const manager = managerOf(object);
    return manager === undefined ? [] : [{ object, manager }];
  });
  return [...Map.groupBy(found, ({ manager }) => manager.what)].flatMap(([what, all]) => {
    const [first] = all;
    if (first === undefined) return [];
    const subject =
      all.length === 1
        ? `${describeObject(first.object)} is`
        : `${all.length} objects, such as ${describeObject(first.object)}, are`;
    return [[`${subject} managed by ${what}`, ...advice(first.manager)].join("\n  ")];
  });
}
