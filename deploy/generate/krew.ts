import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import type { GeneratedFile } from "./generated-files.ts";

interface Package {
  readonly version: string;
  readonly homepage: string;
  readonly engines: { readonly node: string };
  readonly bin: { readonly "kubectl-usher": string };
}

/**
 * `npm run deploy -- krew --archive FILE`: the manifest of the kubectl plugin `usher` for an archive of `npm pack`, which `krew install`
 * compares with the checksum.
 */
export function krewCommand(args: string[]): {
  readonly folder: string;
  readonly files: readonly GeneratedFile[];
} {
  const { values } = parseArgs({
    args,
    options: {
      archive: { type: "string" },
      url: { type: "string" },
      output: { type: "string", default: "krew" },
    },
  });
  const { archive, output } = values;
  if (archive === undefined) throw new Error("--archive is required: the file that npm pack wrote");
  const { version, homepage, engines, bin }: Package = JSON.parse(
    readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"),
  );
  const uri = values.url ?? `${homepage}/releases/download/v${version}/${basename(archive)}`;
  const manifest = {
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "usher" },
    spec: {
      version: `v${version}`,
      homepage,
      shortDescription: "Test, explain and install placement policies",
      description:
        "Reviews manifests, tests and lints policies, shows what an edit would change and why an object is as it is, and installs usher, an admission and placement controller.",
      caveats: `Needs Node ${engines.node.replace(/^>=/, "")} or newer in PATH.`,
      // One archive for all: kubectl runs the program by its first line, which Windows does not read.
      platforms: [
        {
          selector: { matchExpressions: [{ key: "os", operator: "In", values: ["linux", "darwin"] }] },
          uri,
          sha256: createHash("sha256").update(readFileSync(archive)).digest("hex"),
          files: [{ from: "package/*", to: "." }],
          bin: bin["kubectl-usher"],
        },
      ],
    },
  };
  return { folder: output, files: [{ path: "usher.yaml", text: stringify(manifest, { lineWidth: 0 }) }] };
}
