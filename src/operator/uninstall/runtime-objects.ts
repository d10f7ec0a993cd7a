import { StatusError } from "../../cluster/client/api-response.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { collectionOf, LABEL, tallyName } from "../../cluster/policy-statistics/tally-objects.ts";
import { OBSERVATIONS } from "../../core/evaluate/observations.ts";
import type { JsonObject } from "../../core/json.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import type { Objects } from "../install/apply.ts";
import { announcementName, HOOKS_LABEL } from "../webhooks/hook-announcement.ts";

/** Objects that usher created while it ran, and those that could not be read. */
export interface RuntimeObjects {
  readonly found: readonly JsonObject[];
  readonly unseen: readonly { readonly object: JsonObject; readonly why: string }[];
}

/** By exact names, and tallies and observations by their labels: a similar name is another owner's. */
export async function runtimeObjects(objects: Objects, namespace: string): Promise<RuntimeObjects> {
  const named = (apiVersion: string, kind: string, name: string): JsonObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace },
  });
  const reads: readonly (readonly [JsonObject, () => Promise<readonly (JsonObject | undefined)[]>])[] = [
    ...[
      named("v1", "Secret", OWN_NAMES.certificates),
      named("coordination.k8s.io/v1", "Lease", OWN_NAMES.lease),
    ].map((object) => [object, async () => [await objects.read(object)]] as const),
    ...(
      [
        [tallyName("*"), LABEL],
        [announcementName("*"), HOOKS_LABEL],
        [OBSERVATIONS.name("*"), OBSERVATIONS.label],
      ] as const
    ).map(
      ([name, labelSelector]) =>
        [
          named("v1", "ConfigMap", name),
          async () => {
            const items = await listAll(objects.client, collectionOf(namespace), { labelSelector });
            return items.map((item) => ({ apiVersion: "v1", kind: "ConfigMap", ...item }));
          },
        ] as const,
    ),
  ];
  const found: JsonObject[] = [];
  const unseen: { object: JsonObject; why: string }[] = [];
  for (const [object, read] of reads) {
    try {
      found.push(...(await read()).filter((one) => one !== undefined));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      unseen.push({ object, why: error.message });
    }
  }
  return { found, unseen };
}
