import { at, type JsonObject, listAt, stringAt } from "../../core/json.ts";

/** Who manages a stored object of an installation: deploys it, and would write it again. */
export interface Manager {
  readonly name: "usher install" | "Helm" | "Argo CD" | "Flux" | "Gardener" | "kubectl";
  /** What it calls the installation: `the Helm release usher in namespace ops`. */
  readonly what: string;
}

export function managerOf(live: JsonObject): Manager | undefined {
  const labels = at(live, "metadata", "labels");
  const annotations = at(live, "metadata", "annotations");
  const tracked =
    stringAt(annotations, "argocd.argoproj.io/tracking-id")?.split(":")[0] ??
    stringAt(labels, "argocd.argoproj.io/instance");
  const applied = listAt(live, "metadata", "managedFields").some((entry) =>
    stringAt(entry, "manager")?.startsWith("argocd-"),
  );
  if (tracked !== undefined || applied)
    return {
      name: "Argo CD",
      what: `the Argo CD application ${tracked ?? stringAt(labels, "app.kubernetes.io/instance") ?? ""}`,
    };
  return undefined;
}
