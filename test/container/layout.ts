// Reads an OCI layout as a registry or a runtime would, and checks each blob against its digest.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { fromTar } from "../../deploy/image/tar.ts";

export interface Described {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

export interface ImageManifest {
  readonly mediaType: string;
  readonly config: Described;
  readonly layers: readonly Described[];
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Configuration {
  readonly architecture: string;
  readonly os: string;
  readonly created: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

export interface FileEntry {
  readonly type: string;
  readonly mode: number;
  readonly owner: string;
  /** The hash of a file, the target of a link. */
  readonly content: string;
}

export function readIndex(folder: string): { readonly manifests: readonly Described[] } {
  return JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));
}

function readBlob(folder: string, { digest, size }: Described): Buffer {
  const content = readFileSync(join(folder, "blobs", digest.replace(":", "/")));
  const actual = `sha256:${createHash("sha256").update(content).digest("hex")}`;
  if (actual !== digest || content.length !== size) throw new Error(`${digest} is not what its blob holds`);
  return content;
}

export function readJson<T>(folder: string, described: Described): T {
  return JSON.parse(readBlob(folder, described).toString("utf8"));
}

/** The image of one architecture in a layout of one index. */
export function manifestFor(folder: string, architecture: string): ImageManifest {
  const [named] = readIndex(folder).manifests;
  if (named === undefined) throw new Error("the layout is empty");
  const { manifests } = readJson<{ manifests: readonly Described[] }>(folder, named);
  const own = manifests.find(({ platform }) => platform?.architecture === architecture);
  if (own === undefined) throw new Error(`the index has no image for ${architecture}`);
  return readJson(folder, own);
}

export function configurationFor(folder: string, architecture: string): Configuration {
  return readJson(folder, manifestFor(folder, architecture).config);
}

/** The content of a layer, by path; and the diffID that its configuration must have. */
export async function readLayer(
  folder: string,
  described: Described,
): Promise<{ diffId: string; entries: Map<string, FileEntry> }> {
  const blob = readBlob(folder, described);
  const tar = described.mediaType.endsWith("gzip") ? gunzipSync(blob) : blob;
  const entries = new Map<string, FileEntry>();
  for await (const { header, content } of fromTar(tar)) {
    const type = header.type ?? "file";
    entries.set(header.name.replace(/\/$/, ""), {
      type,
      // Some tools write the file type into the mode too.
      mode: type === "symlink" ? 0o777 : (header.mode ?? 0) & 0o7777,
      owner: `${header.uid}:${header.gid}`,
      content: type === "file" ? createHash("sha256").update(content).digest("hex") : (header.linkname ?? ""),
    });
  }
  return { diffId: `sha256:${createHash("sha256").update(tar).digest("hex")}`, entries };
}
