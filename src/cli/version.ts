import { readFileSync } from "node:fs";

/** The version of this usher: from the package, which is two levels up from the source and one from the bundle. */
export function version(): string {
  for (const place of ["../package.json", "../../package.json"]) {
    try {
      const found: unknown = JSON.parse(readFileSync(new URL(place, import.meta.url), "utf8"));
      if (typeof found === "object" && found !== null && "version" in found) return String(found.version);
    } catch {
      // Not there: the other place has it.
    }
  }
  return "unknown";
}
