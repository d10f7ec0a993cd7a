// Builds the image: for each architecture three layers (Debian, Node, usher), so that a new usher is a download of one megabyte.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "../../scripts/bundle.mjs";
import { debianTree } from "./debian.ts";
import { Fetcher } from "./fetch.ts";
import { ARCHITECTURES, type Architecture, type DebianLock, nodeFor, packagesFor } from "./lock.ts";
import { nodeTree } from "./node.ts";
import { type Descriptor, type Labels, type Layer, Layout, labelsOf } from "./oci.ts";
import { writeTree } from "./rootfs.ts";
import { sha256, toGzip, toTar } from "./tar.ts";
import type { Tree } from "./tree.ts";
import { BILL, type Manifest, usherTree } from "./usher.ts";

const ROOT = join(import.meta.dirname, "..", "..");

export interface BuildOptions {
  readonly lock: DebianLock;
  /** Gets `oci` (the layout), `linux-ARCH` (the files) and `usher-linux-ARCH.cdx.json` (the bill of materials). */
  readonly output: string;
  /** Downloads and compressed layers are kept here. */
  readonly cache: string;
  /** The time of everything; by default the lock's own. */
  readonly created?: Date;
  readonly labels?: Labels;
}

export interface Built {
  /** Of the index, and of the image of each architecture. */
  readonly digest: string;
  readonly digests: Readonly<Record<Architecture, string>>;
  readonly version: string;
  /** What a node downloads, in bytes. */
  readonly sizes: Readonly<Record<Architecture, number>>;
}

export async function buildImage(options: BuildOptions): Promise<Built> {
  const { lock, output, cache, created = new Date(lock.created) } = options;
  const manifest: Manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const labels = labelsOf(manifest, created, options.labels ?? {});
  const fetcher = new Fetcher(cache);
  for (const name of ["oci", "bundle", ...ARCHITECTURES.map((one) => `linux-${one}`)])
    rmSync(join(output, name), { recursive: true, force: true });
  const layout = new Layout(join(output, "oci"));
  const bundled = await bundle(join(output, "bundle"));
  const build = async (architecture: Architecture) => {
    const debian = packagesFor(lock, architecture);
    const node = nodeFor(architecture);
    const contents = {
      manifest,
      architecture,
      debian,
      release: lock.release,
      node,
      bundle: bundled,
      created,
    };
    const trees: [string, Tree][] = [
      ["debian", await debianTree(debian.map((one) => fetcher.debian(one)))],
      ["node", await nodeTree(fetcher.node(node))],
      ["usher", usherTree(join(output, "bundle"), ROOT, contents)],
    ];
    for (const [, tree] of trees) writeTree(tree, rootfs(output, architecture), created);
    const bill = trees.at(-1)?.[1].get(BILL);
    if (bill?.type === "file")
      writeFileSync(join(output, `usher-linux-${architecture}.cdx.json`), bill.content);
    const layers = await Promise.all(trees.map(([name, tree]) => layer(name, tree, created, cache)));
    return {
      image: layout.image(architecture, layers, labels, created),
      size: layers.reduce((sum, { blob }) => sum + blob.length, 0),
    };
  };
  const [amd64, arm64] = await Promise.all([build("amd64"), build("arm64")]);
  rmSync(join(output, "bundle"), { recursive: true, force: true });
  const index: Descriptor = layout.index([amd64.image, arm64.image], labels, manifest.version);
  return {
    digest: index.digest,
    digests: { amd64: amd64.image.digest, arm64: arm64.image.digest },
    version: manifest.version,
    sizes: { amd64: amd64.size, arm64: arm64.size },
  };
}

export function rootfs(output: string, architecture: Architecture): string {
  const folder = join(output, `linux-${architecture}`, "rootfs");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Compressing Node takes ten seconds, and gives the same result each time: cached by content. */
async function layer(name: string, tree: Tree, time: Date, cache: string): Promise<Layer> {
  const tar = await toTar(tree, time);
  const hash = sha256(tar);
  const file = join(cache, `layer-${hash}.tar.gz`);
  const kept = read(file);
  const blob = kept ?? (await toGzip(tar));
  if (kept === undefined) {
    mkdirSync(cache, { recursive: true });
    writeFileSync(`${file}.${process.pid}`, blob);
    renameSync(`${file}.${process.pid}`, file);
  }
  return { name, diffId: `sha256:${hash}`, blob };
}

function read(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}
