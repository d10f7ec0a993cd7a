import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/discovery.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import type { PatchOperation } from "../../core/decision/patch.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { OPENABLE_ANNOTATION } from "../../core/registration/webhooks.ts";

/** On a webhook configuration with opened entries: since when, and why. */
const OPENED_ANNOTATION = "usher.dev/opened";

/** The watchdog's annotation on a webhook configuration with opened entries; `undefined` without one. */
export function openedNote(live: JsonObject | undefined): string | undefined {
  return stringAt(live, "metadata", "annotations", OPENED_ANNOTATION);
}

/**
 * Names of the fail-closed entries that may be opened: those that the replicas marked. An unmarked configuration stays
 * unchanged.
 */
export function openableEntries(live: JsonObject): string[] {
  const marked = openableNames(live);
  return listAt(live, "webhooks").flatMap((entry) => {
    const name = stringAt(entry, "name") ?? "";
    return marked.has(name) && at(entry, "failurePolicy") !== "Ignore" ? [name] : [];
  });
}

/** Opens these entries, with an annotation. To be applied only to the version that was seen. */
export function openOperations(
  live: JsonObject,
  names: readonly string[],
  note: { readonly time: string; readonly reason: string },
): PatchOperation[] {
  return [
    ...listAt(live, "webhooks").flatMap((entry, i): PatchOperation[] =>
      names.includes(stringAt(entry, "name") ?? "")
        ? [{ op: "replace", path: `/webhooks/${i}/failurePolicy`, value: "Ignore" }]
        : [],
    ),
    { op: "add", path: annotationPath(OPENED_ANNOTATION), value: JSON.stringify(note) },
  ];
}

export const FORGET_OPENED: readonly PatchOperation[] = [
  { op: "remove", path: annotationPath(OPENED_ANNOTATION) },
];

export function annotationPath(name: string): string {
  return `/metadata/annotations/${name.replace("/", "~1")}`;
}

/** The entries that replicas marked. */
export function openableNames(live: JsonObject): Set<string> {
  const text = stringAt(live, "metadata", "annotations", OPENABLE_ANNOTATION) ?? "";
  return new Set(text.split(",").filter((name) => name !== ""));
}

/** The configuration with these entries marked. */
export function withOpenable(configuration: JsonObject, names: readonly string[]): JsonObject {
  const metadata = (configuration["metadata"] ?? {}) as JsonObject;
  const annotations = { ...(metadata["annotations"] as JsonObject), [OPENABLE_ANNOTATION]: names.join(",") };
  return { ...configuration, metadata: { ...metadata, annotations } };
}

export function deploymentPath(namespace: string): string {
  return `/apis/apps/v1/namespaces/${pathSegment("namespace", namespace)}/deployments/${OWN_NAMES.deployment}`;
}

/** Events about opening and closing are on the Deployment, which an administrator describes first when usher is down. */
export function deploymentEvent(
  namespace: string,
  deployment: JsonObject | undefined,
  event: Pick<EventToWrite, "type" | "reason" | "message">,
): EventToWrite {
  const uid = stringAt(deployment, "metadata", "uid");
  const regarding = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    namespace,
    name: OWN_NAMES.deployment,
    ...(uid === undefined ? {} : { uid }),
  };
  return { ...event, regarding, policy: undefined };
}

/** That a ready replica closed what was opened. */
export async function closedEvent(
  { client, namespace, log }: { readonly client: Client; readonly namespace: string; readonly log: Log },
  object: string,
  opened: string,
): Promise<EventToWrite> {
  log.info({ object, opened }, "webhook configuration closed again");
  const answer = await client.request("GET", deploymentPath(namespace)).catch(() => undefined);
  const deployment = answer?.status === 200 && isObject(answer.body) ? answer.body : undefined;
  const message = `a replica is ready: closed the entries of ${object} that were opened (${opened})`;
  return deploymentEvent(namespace, deployment, { type: "Normal", reason: "WebhooksClosed", message });
}
