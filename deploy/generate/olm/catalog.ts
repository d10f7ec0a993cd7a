import { type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { type Bundle, CHANNEL } from "./bundle.ts";
import { byDigest } from "./digest.ts";
import { ICON } from "./icon.ts";

/**
 * A file-based catalog with a bundle, after those of an earlier catalog. `bundleImage` contains the bundle's files. The
 * channel upgrades every release to the newest: by `replaces` from the previous one, by `skipRange` from any.
 */
export function catalogOf(
  bundle: Bundle,
  bundleImage: string,
  earlier: readonly JsonObject[] = [],
): JsonObject[] {
  const { packageName, name, properties, relatedImages, replaces, skipRange } = bundle;
  const bundles = earlier.filter(({ schema }) => schema === "olm.bundle");
  if (bundles.some((one) => stringAt(one, "name") === name))
    throw new Error(`the catalog has ${name} already`);
  if (replaces !== undefined && !bundles.some((one) => stringAt(one, "name") === replaces))
    throw new Error(`${name} replaces ${replaces}, which the earlier catalog does not have`);
  const entries = earlier
    .filter(({ schema }) => schema === "olm.channel")
    .flatMap((one) => listAt(one, "entries"));
  const image = byDigest(bundleImage);
  return [
    { schema: "olm.package", name: packageName, defaultChannel: CHANNEL, icon: ICON },
    {
      schema: "olm.channel",
      package: packageName,
      name: CHANNEL,
      entries: [...entries, { name, ...(replaces === undefined ? {} : { replaces }), skipRange }],
    },
    ...bundles,
    {
      schema: "olm.bundle",
      package: packageName,
      name,
      image,
      properties,
      relatedImages: [{ name: "", image }, ...relatedImages],
    },
  ];
}
