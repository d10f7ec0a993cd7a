import { at, isObject, type JsonObject, listAt, stringAt } from "../json.ts";
import { OWN_LABELS, VERSION_LABEL } from "./names.ts";
import { CONFIGURATION_FILE } from "./pods/restricted-pod.ts";
import { CONTAINER, POD_LABELS } from "./workload.ts";

/** The options of an existing installation: the input of `workloadObjects`, read back. */
export interface InstalledWorkload {
  readonly image?: string;
  readonly replicas?: number;
  readonly podLabels: Readonly<Record<string, string>>;
  /** The file that the replicas read; an administrator may have written YAML. */
  readonly configuration?: string;
}

/** @param next The version that is to be installed: an image whose tag was the version before becomes that of this one. */
export function installedWorkload(
  deployment: JsonObject | undefined,
  configMap: JsonObject | undefined,
  next: string,
): InstalledWorkload {
  const template = at(deployment, "spec", "template");
  const container = listAt(template, "spec", "containers").find((one) => stringAt(one, "name") === CONTAINER);
  const image = stringAt(container, "image");
  const before = stringAt(deployment, "metadata", "labels", VERSION_LABEL);
  const replicas = at(deployment, "spec", "replicas");
  const configuration = stringAt(configMap, "data", CONFIGURATION_FILE);
  return {
    ...(image === undefined ? {} : { image: renewed(image, before, next) }),
    // replicas: 0 means "paused"; it is not carried over.
    ...(typeof replicas === "number" && replicas > 0 ? { replicas } : {}),
    podLabels: furtherLabels(at(template, "metadata", "labels")),
    ...(configuration === undefined ? {} : { configuration }),
  };
}

/** A tag other than usher's version, or a digest, has no successor. */
function renewed(image: string, before: string | undefined, next: string): string {
  const tag = `:${before ?? ""}`;
  return before !== undefined && image.endsWith(tag) ? `${image.slice(0, -tag.length)}:${next}` : image;
}

function furtherLabels(labels: unknown): Record<string, string> {
  const own: Readonly<Record<string, string>> = { ...OWN_LABELS, ...POD_LABELS };
  const all = isObject(labels) ? Object.entries(labels) : [];
  return Object.fromEntries(
    all.flatMap(([key, value]) =>
      typeof value === "string" && own[key] !== value && !isOfChart(key, value)
        ? [[key, value] as const]
        : [],
    ),
  );
}

/** Labels that a chart puts on pods: they name the manager, and no other manager keeps them. */
function isOfChart(key: string, value: string): boolean {
  const isManager = key === "app.kubernetes.io/managed-by" && value === "Helm";
  return (
    isManager || key === "app.kubernetes.io/instance" || key === "helm.sh/chart" || key === VERSION_LABEL
  );
}
