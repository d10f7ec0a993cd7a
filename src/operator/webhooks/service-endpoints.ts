import { createHash } from "node:crypto";
import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { at, listAt, stringAt } from "../../core/json.ts";

/** One replica behind the Service. */
interface ServiceEndpoint {
  /** The name of its pod; `undefined` if it is not a pod. */
  readonly pod: string | undefined;
  readonly ready: boolean;
  /** Ready, or terminating and still serving requests in flight. */
  readonly serves: boolean;
}

export interface ServiceEndpoints {
  readonly endpoints: readonly ServiceEndpoint[];
  /** Changes with every change of an endpoint: while it is the same, none has become ready and gone again. Empty without slices. */
  readonly version: string;
}

/**
 * The endpoints of usher's Service. Throws if they can't be read: an API server that does not answer proves nothing
 * about replicas.
 */
export async function serviceEndpoints(
  client: Pick<Client, "request">,
  namespace: string,
  service: string,
): Promise<ServiceEndpoints> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${pathSegment("namespace", namespace)}/endpointslices`;
  const slices = await listAll(client, path, { labelSelector: `kubernetes.io/service-name=${service}` });
  const endpoints = slices.flatMap((slice) =>
    listAt(slice, "endpoints").map((endpoint): ServiceEndpoint => {
      const isPod = stringAt(endpoint, "targetRef", "kind") === "Pod";
      // By the API's definition, an unknown condition means ready.
      const ready = at(endpoint, "conditions", "ready") !== false;
      return {
        pod: isPod ? stringAt(endpoint, "targetRef", "name") : undefined,
        ready,
        serves: ready || at(endpoint, "conditions", "serving") === true,
      };
    }),
  );
  const versions = slices.map(
    ({ metadata }) => `${stringAt(metadata, "uid") ?? ""}/${stringAt(metadata, "resourceVersion") ?? ""}`,
  );
  const version = versions.length === 0 ? "" : hashOf(versions.sort().join());
  return { endpoints, version };
}

/**
 * Whether calls may have failed between two looks: a replica is ready after none was, one ended without draining, or
 * both looks missed a change. `undefined`: the first look.
 */
export function callsMayHaveFailed(before: ServiceEndpoints | undefined, now: ServiceEndpoints): boolean {
  if (before === undefined) return true;
  if (before.version === now.version) return false;
  const [was, is] = [before.endpoints, now.endpoints];
  if (!was.some(({ ready }) => ready)) return is.some(({ ready }) => ready);
  const serving = new Set(is.flatMap(({ pod, serves }) => (serves ? [pod] : [])));
  if (was.some(({ pod, ready }) => ready && !serving.has(pod))) return true;
  // One that is ready in both looks answered meanwhile; otherwise none may have been ready for a moment.
  const ready = new Set(is.flatMap((one) => (one.ready ? [one.pod] : [])));
  if (!was.some((one) => one.ready && ready.has(one.pod))) return true;
  return statesOf(was) === statesOf(is);
}

function statesOf(endpoints: readonly ServiceEndpoint[]): string {
  return endpoints
    .map(({ pod, ready, serves }) => `${pod} ${ready} ${serves}`)
    .sort()
    .join();
}

/** Short enough for an annotation, for any number of slices. */
function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
