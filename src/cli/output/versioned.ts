import type { JsonObject } from "../../core/json.ts";

/** The version of all JSON and YAML that commands print. A field is removed or changes its meaning only with another version. */
export const OUTPUT_VERSION = "cli.usher.dev/v1";

/** The output of a command for programs: `kind` names the shape, and the published JSON Schema. */
export function versioned(kind: string, data: JsonObject): JsonObject {
  return { apiVersion: OUTPUT_VERSION, kind, ...data };
}

/** `NodeGuardOverrideList` of `usher node-guard override list`. */
export function kindOf(path: string): string {
  const [, ...words] = path.replace(/^kubectl usher/, "usher").split(/[ -]/);
  return words.map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`).join("");
}
