import { type JsonObject, stringAt } from "../../core/json.ts";
import { compareVersions, parseVersion } from "../../core/kubernetes/versions.ts";
import { VERSION_LABEL } from "../../core/registration/names.ts";

/** The version of the usher that wrote an object. */
export function versionOf(object: JsonObject): string {
  // Versions with the `+` of a build were once written with `_`: a label can't hold it, and nothing else there has one.
  return (stringAt(object, "metadata", "labels", VERSION_LABEL) ?? "").replace("_", "+");
}

/** Whether a newer usher than this one wrote it. Text that is not a version is not newer than any. */
export function isNewer(live: JsonObject, version: string): boolean {
  const theirs = parseVersion(versionOf(live));
  const ours = parseVersion(version);
  return theirs !== undefined && ours !== undefined && compareVersions(theirs, ours) > 0;
}
