import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";
import { describeObject } from "./apply.ts";

/** What manages the objects of an installation: deploys them, and would write them again. */
export interface Manager {
  readonly name: ManagerName;
  /** For people: `the Helm release usher in namespace ops`. */
  readonly what: string;
  /** The commands of this manager: what to run in place of `usher install` and `usher uninstall`. */
  readonly update: string;
  readonly remove: string;
  /** How it lets go of the objects and leaves them, so that another can manage them. @default it can't: it must remove them first */
  readonly release?: string;
  /** The Secrets by which it is known to be there still. @default only people know */
  readonly record?: { readonly namespace: string; readonly labelSelector: string };
  /** Its labels and annotations, by key: gone, the object is no longer its own. */
  readonly marks: readonly string[];
}

export type ManagerName = "Helm" | "Argo CD" | "Flux" | "Gardener";

/** What a stored object says of itself. */
interface Marks {
  readonly labels: Json | undefined;
  readonly annotations: Json | undefined;
  /** `argocd-controller`, `helm`: everything that wrote to it. */
  readonly writers: readonly string[];
}

/** How a manager is recognised, and what it is told. */
interface ManagerKind extends Pick<Manager, "name" | "marks"> {
  /** Its name for the installation, and the namespace where it has one. */
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

/** The first that finds its marks: Argo CD, Flux and Gardener render charts, whose objects may have Helm's marks too. */
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
      // The usual label of before Argo CD 3, which others set too.
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
      // An object that usher install took over from Helm: Helm itself takes nothing for its own without its label.
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
      // Flux removes nothing of what it suspended.
      release: `flux suspend ${resource} ${name} -n ${namespace} && kubectl delete ${resource} ${name} -n ${namespace}`,
    }),
  };
}

/** What manages a stored object, where its labels or annotations say so. `usher install` and kubectl run once, and hold on to nothing. */
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

/** As part of a command only what a shell takes as one plain word. */
function word(text: string, otherwise: string): string {
  return /^[A-Za-z0-9][A-Za-z0-9./-]{0,252}$/.test(text) ? text : otherwise;
}

/** The objects that others manage, by manager, as lines: what they are, and what follows for a command. */
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
