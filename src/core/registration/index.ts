import { controlPlaneOf, type Installation } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";
import type { Hook } from "../module/hook.ts";
import type { Declarations } from "../module/module.ts";
import { certificateObjects } from "./certificates.ts";
import { customResourceDefinition, registeredResources } from "./crd.ts";
import { flowControl } from "./flow-control.ts";
import { anchor } from "./managed-objects.ts";
import { labelled } from "./names.ts";
import { ownRoles } from "./own-access.ts";
import { criticalPodsQuota } from "./pods/restricted-pod.ts";
import { watchdogAccount, watchdogWorkload } from "./pods/watchdog.ts";
import { accessObjects, roleObjects } from "./rbac.ts";
import { type WebhookOptions, webhookConfigurations } from "./webhooks.ts";
import { type WorkloadOptions, workloadObjects } from "./workload.ts";

export type { WebhookOptions } from "./webhooks.ts";

/** The input of registration; an assembly is one. */
export interface Registrant extends Declarations {
  readonly declaredHooks: readonly Hook[];
}

interface RegistrationOptions extends WebhookOptions {
  /** The Deployment of usher, if the cluster itself runs it. @default usher runs elsewhere, and manages nothing in the cluster */
  readonly workload?: WorkloadOptions;
  /** Of this usher, for a label on every object. */
  readonly version?: string;
}

export interface Registration {
  /** In the order in which to apply them. */
  readonly objects: readonly JsonObject[];
  /** Changes to the modules' hooks so that usher can't lock its cluster. */
  readonly notes: readonly string[];
}

/**
 * All objects of usher in a cluster. Webhooks come last: from then on the API server calls, and everything needed for
 * the answer must exist.
 */
export function registration(registrant: Registrant, options: RegistrationOptions): Registration {
  const { modules, installation } = registrant;
  const { workload, version } = options;
  const webhooks = registeredWebhooks(registrant, options);
  const others = [
    ...accessObjects(registrant),
    ...(workload === undefined
      ? []
      : [
          anchor(),
          ...watchdogAccount(registrant),
          ...roleObjects(ownRoles(modules), registrant),
          ...flowControl(installation),
          criticalPodsQuota(installation.namespace),
          ...certificateObjects(installation),
          ...workloadObjects(installation, tolerating(workload, registrant)),
          ...watchdogWorkload(registrant, tolerating(workload, registrant)),
        ]),
  ];
  const objects = [
    ...namespaceOf(installation).map((object) => labelled(object, version)),
    ...registeredKinds(registrant, version),
    ...others.map((object) => labelled(object, version)),
    ...webhooks.objects,
  ];
  return { objects, notes: webhooks.notes };
}

/** With tolerations of the taints that modules set. */
function tolerating(workload: WorkloadOptions, { modules, installation }: Registrant): WorkloadOptions {
  return {
    ...workload,
    tolerations: modules.flatMap((module) => module.tolerations?.(installation) ?? []),
  };
}

/** Only the CRDs, if usher manages them: they depend on declarations and the installation, so once is enough. */
export function registeredKinds(declarations: Declarations, version?: string): JsonObject[] {
  if (declarations.installation.manageCrds === false) return [];
  return registeredResources(declarations).map((resource) =>
    labelled(customResourceDefinition(resource), version),
  );
}

/** The webhook configurations alone: they change with the policies. */
export function registeredWebhooks(
  { declaredHooks, installation }: Pick<Registrant, "declaredHooks" | "installation">,
  options: WebhookOptions & Pick<RegistrationOptions, "version">,
): Registration {
  const { mutating, validating, notes } = webhookConfigurations(declaredHooks, installation, options);
  return { objects: [mutating, validating].map((object) => labelled(object, options.version)), notes };
}

/** An existing namespace is not usher's: deleting the applied objects would delete it too. */
function namespaceOf(installation: Installation): JsonObject[] {
  const { namespace } = installation;
  if (namespace === "default" || controlPlaneOf(installation).includes(namespace)) return [];
  return [{ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }];
}
