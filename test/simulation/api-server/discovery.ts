import type { Json } from "../../../src/core/json.ts";
import type { Resource } from "./resources.ts";

/** The documents of discovery, health and version; `undefined` for other paths. */
export function discoveryDocument(
  path: string,
  served: readonly Resource[],
  version: string,
): Json | undefined {
  // Objects have longer paths.
  if (path.split("/", 5).length > 4) return undefined;
  if (["/readyz", "/livez", "/healthz"].includes(path)) return "ok";
  const [, major = "1", minor = "0"] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  if (path === "/version") return { major, minor, gitVersion: version, platform: "linux/amd64" };
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"] };
  if (path === "/api/v1") return resourceList("v1", served);
  if (path === "/apis") return { kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(served) };
  const [, group, groupVersion] = /^\/apis\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (group === undefined) return undefined;
  const found = groupsOf(served).find(({ name }) => name === group);
  if (found === undefined) return undefined;
  if (groupVersion === undefined) return { kind: "APIGroup", apiVersion: "v1", ...found };
  return found.versions.some((one) => one.version === groupVersion)
    ? resourceList(`${group}/${groupVersion}`, served)
    : undefined;
}

function groupsOf(served: readonly Resource[]) {
  const names = [...new Set(served.map(({ group }) => group))].filter((group) => group !== "");
  return names.map((name) => {
    const versions = [...new Set(served.filter(({ group }) => group === name).map((one) => one.version))]
      .sort(byPriority)
      .map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions, preferredVersion: versions[0] ?? { groupVersion: "", version: "" } };
  });
}

/** `v2`, `v1`, `v1beta1`, `v1alpha1`: stable versions first, the newest of each first. */
function byPriority(a: string, b: string): number {
  const rank = (version: string): readonly number[] => {
    const [, major = "0", stage, minor = "0"] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
    return [stage === undefined ? 2 : stage === "beta" ? 1 : 0, Number(major), Number(minor)];
  };
  const [x, y] = [rank(a), rank(b)];
  const [stage = 0, major = 0, minor = 0] = y.map((one, i) => one - (x[i] ?? 0));
  return stage || major || minor;
}

function resourceList(groupVersion: string, served: readonly Resource[]): Json {
  const resources = served
    .filter(({ group, version }) => (group === "" ? version : `${group}/${version}`) === groupVersion)
    .flatMap(({ resource, kind, namespaced, status }) => {
      const verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
      const entry = { name: resource, singularName: kind.toLowerCase(), namespaced, kind, verbs };
      return status
        ? [entry, { ...entry, name: `${resource}/status`, verbs: ["get", "patch", "update"] }]
        : [entry];
    });
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
}
