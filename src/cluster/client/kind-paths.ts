import { at, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { hasList } from "./api-response.ts";
import type { Client } from "./client.ts";
import { DiscoveryError } from "./discovery.ts";
import { pathSegment } from "./path-segment.ts";

/** The path of an object by its apiVersion, kind, namespace and name. */
export type PathOfObject = (object: JsonObject) => Promise<string>;

interface Served {
  readonly resource: string;
  readonly namespaced: boolean;
}

/** Discovers each kind once; a kind that is not served is looked up again the next time. */
export function createKindPaths(client: Client): PathOfObject {
  const known = new Map<string, Served>();

  return async (object) => {
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    const name = stringAt(object, "metadata", "name") ?? "";
    const namespace = stringAt(object, "metadata", "namespace");
    const root = rootOf(apiVersion);
    const key = `${apiVersion} ${kind}`;
    const served = known.get(key) ?? (await discover(client, root, kind));
    known.set(key, served);
    if (served.namespaced && namespace === undefined)
      throw new Error(`${kind} ${name}: metadata.namespace is required`);
    const scope = served.namespaced ? `/namespaces/${pathSegment("namespace", namespace ?? "")}` : "";
    return `${root}${scope}/${served.resource}/${pathSegment("name", name)}`;
  };
}

function rootOf(apiVersion: string): string {
  const parts = apiVersion.split("/").map((part) => pathSegment("API version", part));
  return parts.length === 1 ? `/api/${parts[0]}` : `/apis/${parts.join("/")}`;
}

async function discover(client: Client, root: string, kind: string): Promise<Served> {
  const answer = await client.request("GET", root);
  if (answer.status !== 200 || !hasList(answer.body, "resources")) throw new DiscoveryError(root, answer);
  for (const entry of listAt(answer.body, "resources")) {
    const resource = stringAt(entry, "name") ?? "";
    // `deployments/scale` is a subresource, and its kind may be that of a resource.
    if (stringAt(entry, "kind") === kind && !resource.includes("/"))
      return { resource, namespaced: at(entry, "namespaced") === true };
  }
  throw new Error(`${root} does not serve the kind ${kind}`);
}
