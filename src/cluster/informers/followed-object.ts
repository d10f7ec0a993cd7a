import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import type { Client } from "../client/client.ts";
import { createResources } from "../client/discovery.ts";
import { Reflector } from "./reflector.ts";
import type { ReflectorLimits } from "./reflector-limits.ts";
import { TimeSliceQueue } from "./time-slices.ts";

export interface FollowedObject {
  readonly client: Client;
  readonly log: Log;
  /** `configmaps`, `apiservices.apiregistration.k8s.io` */
  readonly resource: string;
  readonly namespace?: string;
  readonly name: string;
  /** Called with each state of the object; `undefined` if it does not exist. */
  readonly use: (object: JsonObject | undefined) => void;
  readonly limits?: ReflectorLimits;
}

/** Watches one object. Permissions to get, list and watch it by its name suffice. */
export function followObject(options: FollowedObject): { readonly stop: () => Promise<void> } {
  const { client, log, resource, namespace, name, use, limits } = options;
  let exists = false;
  const reflector = new Reflector({
    client,
    resources: createResources(client, []),
    resource,
    only: namespace === undefined ? { name } : { namespace, name },
    prune: (object) => object,
    timeSlices: new TimeSliceQueue(),
    log,
    ...(limits === undefined ? {} : { limits }),
    onChange: (changes, synced) => {
      for (const { object } of changes) {
        exists = object !== undefined;
        use(object);
      }
      if (synced && !exists) use(undefined);
    },
  });
  reflector.start();
  return { stop: () => reflector.stop() };
}
