// `npm run image`: the OCI image of usher for linux/amd64 and linux/arm64.
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildImage } from "./build.ts";
import { Fetcher } from "./fetch.ts";
import { DEBIAN_LOCK, readLock, writeLock } from "./lock.ts";

const USAGE = `npm run image -- [--output FOLDER] [--label KEY=VALUE]... [--lock FILE] [--update]

  --output  where to put it (default: image)
  --label   a label and annotation of the image, for instance org.opencontainers.image.revision=COMMIT
  --lock    the Debian packages (default: deploy/image/debian.lock.json)
  --update  first write the lock anew, with the newest packages of this machine's apt

SOURCE_DATE_EPOCH replaces the time of the lock as the time of everything in the image.
`;

/** Set by scripts/image.mjs. */
const kept = join(process.env["USHER_CACHE"] ?? ".cache", "image");

function labelsOf(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((label) => {
      const [key = "", value] = label.split(/=(.*)/s);
      if (key === "" || value === undefined) throw new Error(`--label ${label}: must be KEY=VALUE`);
      return [key, value];
    }),
  );
}

function timeOf(epoch: string | undefined): Date | undefined {
  if (epoch === undefined || epoch === "") return undefined;
  if (!/^\d+$/.test(epoch)) throw new Error(`SOURCE_DATE_EPOCH is ${epoch}: must be a number of seconds`);
  return new Date(Number(epoch) * 1000);
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      output: { type: "string", default: "image" },
      label: { type: "string", multiple: true, default: [] },
      lock: { type: "string", default: DEBIAN_LOCK },
      update: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return void process.stdout.write(USAGE);
  if (values.update)
    writeLock(values.lock, new Fetcher(kept).apt.resolve(new Date(Math.floor(Date.now() / 1000) * 1000)));
  const output = resolve(values.output);
  const created = timeOf(process.env["SOURCE_DATE_EPOCH"]);
  const lock = readLock(values.lock);
  const built = await buildImage({
    lock,
    output,
    cache: kept,
    labels: labelsOf(values.label),
    ...(created === undefined ? {} : { created }),
  });
  writeLock(join(output, "debian.lock.json"), lock);
  writeFileSync(join(output, "digest"), `${built.digest}\n`);
  for (const [architecture, digest] of Object.entries(built.digests))
    writeFileSync(join(output, `usher-linux-${architecture}.digest`), `${digest}\n`);
  const sizes = Object.entries(built.sizes).map(
    ([architecture, size]) => `linux/${architecture}: ${(size / 1e6).toFixed(1)} MB`,
  );
  process.stdout.write(`usher:${built.version} ${built.digest}\n${sizes.join("\n")}\n${output}/oci\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
