import { poll } from "../../cluster/client/retry.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import { isBeingDeleted } from "../../core/kubernetes/object.ts";
import { type InstalledWorkload, installedWorkload } from "../../core/registration/installed-workload.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { Objects } from "./apply.ts";
import { NotReadyError } from "./install.ts";
import { installedNamespaces } from "./installed-namespaces.ts";
import { isOurs } from "./ownership-conflict.ts";

/** An existing installation. */
export interface Installed extends InstalledWorkload {
  readonly namespace: string;
}

/**
 * The installation in a namespace; without one, wherever usher is, else the default namespace.
 * @param next The version to upgrade to.
 */
export async function readInstalled(
  objects: Objects,
  next: string,
  named: string | undefined,
): Promise<Installed> {
  const [found] = named === undefined ? await installedNamespaces(objects) : [];
  const namespace = named ?? found?.namespace ?? DEFAULT_INSTALLATION.namespace;
  const read = async (apiVersion: string, kind: string, name: string): Promise<JsonObject | undefined> => {
    const live = await objects.read({ apiVersion, kind, metadata: { name, namespace } });
    return live !== undefined && isOurs(live) ? live : undefined;
  };
  const deployment = await read("apps/v1", "Deployment", OWN_NAMES.deployment);
  const configMap = await read("v1", "ConfigMap", OWN_NAMES.configuration);
  return { namespace, ...installedWorkload(deployment, configMap, next) };
}

/**
 * Waits until a namespace that is being deleted, as after an uninstall, is gone: nothing can be created in it. False if
 * it is not being deleted; `waiting` is called once if it is.
 */
export async function namespaceGone(
  objects: Objects,
  name: string,
  { timeoutMs, waiting }: { readonly timeoutMs: number; readonly waiting: () => void },
): Promise<boolean> {
  let waited = false;
  const isGone = await poll(timeoutMs, async () => {
    const live = await objects.read({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
    if (live === undefined || !isBeingDeleted(live)) return true;
    if (!waited) waiting();
    waited = true;
    return false;
  });
  if (isGone) return waited;
  throw new NotReadyError(
    `nothing was changed: namespace ${name} is being deleted and is not gone within ${timeoutMs / 1_000} s\n  kubectl get namespace ${name} -o yaml says what remains in it`,
  );
}
