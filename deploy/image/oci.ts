// The image as an OCI layout: blobs by their digest, a manifest and a configuration for each platform, and one index over them.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { USER } from "./debian.ts";
import type { Architecture } from "./lock.ts";
import { sha256 } from "./tar.ts";
import { type Manifest, PROGRAM } from "./usher.ts";

const INDEX = "application/vnd.oci.image.index.v1+json";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIGURATION = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";

export interface Layer {
  readonly name: string;
  /** Of the tar, before it was compressed. */
  readonly diffId: string;
  readonly blob: Buffer;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: Architecture; readonly os: "linux" };
}

export type Labels = Readonly<Record<string, string>>;

export function labelsOf(manifest: Manifest, created: Date, more: Labels): Labels {
  const own = {
    title: "usher",
    description: manifest.description,
    version: manifest.version,
    licenses: manifest.license,
    created: created.toISOString(),
  };
  const named = Object.entries(own).map(([name, value]) => [`org.opencontainers.image.${name}`, value]);
  return { ...Object.fromEntries(named), ...more };
}

/** How a container of the image is started. The Dockerfile is equivalent, and a test compares them. */
export function containerConfiguration(labels: Labels): object {
  return {
    User: String(USER),
    ExposedPorts: { "8080/tcp": {}, "8443/tcp": {} },
    // glibc gives each thread its own arena; two are enough. A home, because a user without an entry in /etc/passwd has
    // none.
    Env: ["PATH=/usr/bin", "HOME=/home/usher", "MALLOC_ARENA_MAX=2"],
    Entrypoint: [`/${PROGRAM}`],
    WorkingDir: "/",
    Labels: labels,
  };
}

export class Layout {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(join(folder, "blobs", "sha256"), { recursive: true });
    writeFileSync(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  /** The image of one platform. */
  image(architecture: Architecture, layers: readonly Layer[], labels: Labels, created: Date): Descriptor {
    const time = created.toISOString();
    const configuration = {
      architecture,
      os: "linux",
      created: time,
      config: containerConfiguration(labels),
      rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ name }) => ({ created: time, created_by: name })),
    };
    const manifest = {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: this.#json(CONFIGURATION, configuration),
      layers: layers.map(({ blob }) => this.#blob(LAYER, blob)),
      annotations: labels,
    };
    return { ...this.#json(MANIFEST, manifest), platform: { architecture, os: "linux" } };
  }

  /** The index over all platforms, under a name by which tools find it in the layout. Its digest is the image's. */
  index(manifests: readonly Descriptor[], labels: Labels, tag: string): Descriptor {
    const index = { schemaVersion: 2, mediaType: INDEX, manifests, annotations: labels };
    const described = this.#json(INDEX, index);
    const entry = { ...described, annotations: { "org.opencontainers.image.ref.name": tag } };
    writeFileSync(
      join(this.#folder, "index.json"),
      JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [entry] }),
    );
    return described;
  }

  #json(mediaType: string, value: object): Descriptor {
    return this.#blob(mediaType, Buffer.from(JSON.stringify(value)));
  }

  #blob(mediaType: string, content: Buffer): Descriptor {
    const hash = sha256(content);
    writeFileSync(join(this.#folder, "blobs", "sha256", hash), content);
    return { mediaType, digest: `sha256:${hash}`, size: content.length };
  }
}
