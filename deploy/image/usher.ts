// The layer of usher: the bundle, under a name that is found on the PATH, with licences and the bill of materials.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Bundle } from "../../scripts/bundle.mjs";
import { declarations } from "../../src/modules/index.ts";
import type { Architecture, DebianPackage, NodePackage } from "./lock.ts";
import { NODE } from "./node.ts";
import { billOfMaterials } from "./sbom.ts";
import { Tree } from "./tree.ts";

const FOLDER = "usr/lib/usher";
export const PROGRAM = "usr/bin/usher";
/** Operands are usher under another name. */
const OPERANDS = declarations.flatMap(({ operand }) => operand ?? []).map(({ name }) => `usr/bin/${name}`);
export const BILL = "usr/share/sbom/usher.cdx.json";

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

export interface Contents {
  readonly manifest: Manifest;
  readonly architecture: Architecture;
  readonly debian: readonly DebianPackage[];
  readonly release: string;
  readonly node: NodePackage;
  readonly bundle: Bundle;
  readonly created: Date;
}

/** The bundled files in `folder`, in place of a clone's files. */
export function usherTree(folder: string, root: string, contents: Contents): Tree {
  const { manifest, bundle } = contents;
  const tree = new Tree();
  for (const name of bundle.files) tree.file(`${FOLDER}/dist/${name}`, readFileSync(join(folder, name)));
  // There is no `env` to look for Node, and no other Node to find.
  const start = readFileSync(join(folder, "usher.mjs"), "utf8").replace(/^#!.*/, `#!/${NODE}`);
  tree.file(`${FOLDER}/dist/usher.mjs`, start, 0o755);
  for (const name of [PROGRAM, ...OPERANDS]) tree.symlink(name, "../lib/usher/dist/usher.mjs");
  const { name, version, description, license } = manifest;
  tree.file(
    `${FOLDER}/package.json`,
    `${JSON.stringify({ name, version, description, license, type: "module" })}\n`,
  );
  tree.file("usr/share/doc/usher/copyright", licences(root, bundle));
  return tree.file(BILL, billOfMaterials(contents));
}

/** Usher's licence, and those of the packages in the bundle, which must accompany it. */
function licences(root: string, bundle: Bundle): string {
  const own = readFileSync(join(root, "LICENSE"), "utf8");
  const others = bundle.packages.map(
    ({ name, version, license, text }) => `\n${"-".repeat(80)}\n${name} ${version} (${license})\n\n${text}`,
  );
  return [own, ...others].join("\n");
}
