import type { Client } from "../../cluster/client/client.ts";
import type { PatchOperation } from "../../core/decision/patch.ts";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { STANDBY, STANDBY_LABEL } from "../../core/registration/webhooks.ts";

/** The configuration that has the label. */
export const STANDBY_PATH = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${OWN_NAMES.webhooks}`;

/** `ready`, `active`, or `undefined` where nothing stands in. */
export function standbyOf(live: JsonObject | undefined): string | undefined {
  return stringAt(live, "metadata", "labels", STANDBY_LABEL);
}

function isOnStandby(live: JsonObject | undefined): boolean {
  return standbyOf(live) === STANDBY.active;
}

/** The wanted object with the stored state of the standby. */
export function withStandbyOf(live: JsonObject, wanted: JsonObject): JsonObject {
  const metadata = wanted["metadata"] as JsonObject;
  const labels = metadata["labels"] as JsonObject;
  const value = standbyOf(live);
  return value === undefined
    ? wanted
    : { ...wanted, metadata: { ...metadata, labels: { ...labels, [STANDBY_LABEL]: value } } };
}

/** To be applied only to the version that was seen. */
export function standbyOperations(value: keyof typeof STANDBY): PatchOperation[] {
  const path = `/metadata/labels/${STANDBY_LABEL.replace("/", "~1")}`;
  return [{ op: "replace", path, value: STANDBY[value] }];
}

/** Both writers of the label may change it at the same time. */
const ATTEMPTS = 3;

/**
 * Ends the standby before this replica serves: API servers see the write within milliseconds, and the replica becomes
 * ready later. Never rejects: if it fails the watchdog ends it once the replica is ready, and what both would inject is
 * injected once.
 */
export async function endStandby(client: Client, log: Log, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const { status, body } = await client.request("GET", STANDBY_PATH, { signal });
      if (status !== 200 || !isObject(body) || !isOnStandby(body)) return;
      const value = stringAt(body, "metadata", "resourceVersion") ?? "";
      const answer = await client.request("PATCH", STANDBY_PATH, {
        contentType: "application/json-patch+json",
        body: [
          ...standbyOperations("ready"),
          { op: "add", path: "/metadata/resourceVersion", value },
        ] as unknown as Json,
        signal,
      });
      if (answer.status < 300) log.info({}, "standby ended: this replica begins to serve");
      if (answer.status !== 409) return;
    } catch (error) {
      log.warn({ error: String(error) }, "failed to end the standby");
      return;
    }
  }
}
