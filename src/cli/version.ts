import { readFileSync } from "node:fs";

/** The version from package.json, two levels up from the source and one from the bundle. */
export function version(): string {
  for (const place of ["../package.json", "../../package.json"]) {
    try {
      const found: unknown = JSON.parse(readFileSync(new URL(place, import.meta.url), "utf8"));
      if (typeof found === "object" && found !== null && "version" in found) return String(found.version);
    } catch {
      // Not at this path; the other one has it.
    }
  }
  return "unknown";
}
