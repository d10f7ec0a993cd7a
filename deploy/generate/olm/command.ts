import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { parseAllDocuments } from "yaml";
import { version } from "../../../src/cli/version.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import type { GeneratedFile } from "../generated-files.ts";
import { olmFiles } from "./files.ts";

/** `npm run deploy -- olm --image NAME@sha256:… --bundle-image NAME@sha256:…`: the files of a release, and the folder for them. */
export function olmCommand(args: string[]): {
  readonly folder: string;
  readonly files: readonly GeneratedFile[];
} {
  const { values } = parseArgs({
    args,
    options: {
      image: { type: "string" },
      "bundle-image": { type: "string" },
      replaces: { type: "string" },
      catalog: { type: "string" },
      version: { type: "string" },
      output: { type: "string", default: "olm" },
    },
  });
  const { image, "bundle-image": bundleImage, catalog, output } = values;
  if (image === undefined || bundleImage === undefined)
    throw new Error("--image and --bundle-image are required, each as NAME@sha256:DIGEST");
  if ((values.replaces === undefined) !== (catalog === undefined))
    throw new Error("--replaces VERSION and --catalog FILE, the catalog that has it, come together");
  const earlier =
    catalog === undefined
      ? undefined
      : parseAllDocuments(readFileSync(catalog, "utf8")).map((one) => one.toJS() as JsonObject);
  return {
    folder: output,
    files: olmFiles({
      version: values.version ?? version(),
      image,
      bundleImage,
      replaces: values.replaces,
      earlier,
    }),
  };
}
