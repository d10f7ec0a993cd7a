// Replaces kube-proxy: the address of a Service maps to the ready endpoints behind it.
import { at, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { address } from "../egress/routes.ts";

function slicesOf(service: JsonObject, slices: readonly JsonObject[]): readonly JsonObject[] {
  const name = stringAt(service, "metadata", "name");
  const namespace = stringAt(service, "metadata", "namespace");
  return slices.filter(
    (slice) =>
      stringAt(slice, "metadata", "namespace") === namespace &&
      stringAt(slice, "metadata", "labels", "kubernetes.io/service-name") === name,
  );
}

/** Addresses behind one named port of a Service; a port without a name is named "" in both. */
function behind(slices: readonly JsonObject[], portName: string): readonly string[] {
  return slices.flatMap((slice) => {
    const entry = listAt(slice, "ports").find(
      (candidate) => (stringAt(candidate, "name") ?? "") === portName,
    );
    const port = at(entry, "port");
    if (typeof port !== "number") return [];
    return listAt(slice, "endpoints")
      .filter((endpoint) => at(endpoint, "conditions", "ready") !== false)
      .flatMap((endpoint) => listAt(endpoint, "addresses"))
      .flatMap((host) => (typeof host === "string" ? [address(host, port)] : []));
  });
}

export function serviceRoutes(
  services: Iterable<JsonObject>,
  slices: Iterable<JsonObject>,
): ReadonlyMap<string, readonly string[]> {
  const all = [...slices];
  const routes = new Map<string, readonly string[]>();
  for (const service of services) {
    const host = stringAt(service, "spec", "clusterIP");
    if (host === undefined || host === "None" || host === "") continue;
    const own = slicesOf(service, all);
    for (const entry of listAt(service, "spec", "ports")) {
      const port = at(entry, "port");
      if (typeof port === "number")
        routes.set(address(host, port), behind(own, stringAt(entry, "name") ?? ""));
    }
  }
  return routes;
}
