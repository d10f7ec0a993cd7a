import { StatusError } from "../../cluster/client/api-response.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { collectionOf, LABEL, tallyName } from "../../cluster/tallies/tally-objects.ts";
import type { JsonObject } from "../../core/json.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { Objects } from "../install/apply.ts";

/** What usher made while it ran, and what of it nobody could look for. */
export interface RuntimeObjects {
  readonly found: readonly JsonObject[];
  readonly unseen: readonly { readonly object: JsonObject; readonly why: string }[];
}

/** By exact names, and tallies by their label: a name that only sounds like usher's is someone else's. */
export async function runtimeObjects(objects: Objects, namespace: string): Promise<RuntimeObjects> {
  const named = (apiVersion: string, kind: string, name: string): JsonObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace },
  });
  const looks: readonly (readonly [JsonObject, () => Promise<readonly (JsonObject | undefined)[]>])[] = [
    ...[
      named("v1", "Secret", OWN_NAMES.certificates),
      named("coordination.k8s.io/v1", "Lease", OWN_NAMES.lease),
    ].map((object) => [object, async () => [await objects.read(object)]] as const),
    [
      named("v1", "ConfigMap", tallyName("*")),
      async () => {
        const items = await listAll(objects.client, collectionOf(namespace), { labelSelector: LABEL });
        return items.map((item) => ({ apiVersion: "v1", kind: "ConfigMap", ...item }));
      },
    ],
  ];
  const found: JsonObject[] = [];
  const unseen: { object: JsonObject; why: string }[] = [];
  for (const [object, look] of looks) {
    try {
      found.push(...(await look()).filter((one) => one !== undefined));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      unseen.push({ object, why: error.message });
    }
  }
  return { found, unseen };
}
