import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeImage } from "../container/describe.ts";
import { HOST_ARCHITECTURE } from "../container/image.ts";
import {
  type Configuration,
  type Described,
  type FileEntry,
  type ImageManifest,
  manifestFor,
  readIndex,
  readJson,
  readLayer,
} from "../container/layout.ts";
import { ensurePrograms } from "../container/programs.ts";

const DOCKERFILE = join(import.meta.dirname, "..", "..", "deploy", "image", "Dockerfile");

async function contents(layout: string, manifest: ImageManifest) {
  const layers = await Promise.all(manifest.layers.map((layer) => readLayer(layout, layer)));
  const entries = new Map<string, FileEntry>(layers.flatMap((layer) => [...layer.entries]));
  return { configuration: readJson<Configuration>(layout, manifest.config), entries };
}

describeImage("the Dockerfile, built by buildah", (image) => {
  const folder = mkdtempSync(join(tmpdir(), "usher-buildah-"));
  beforeAll(() => ensurePrograms("buildah"), 600_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function buildah(...args: string[]): void {
    const storage = ["--storage-driver=vfs", `--root=${folder}/root`, `--runroot=${folder}/run`];
    const result = spawnSync("buildah", [...storage, ...args], { encoding: "utf8" });
    expect(result.status, `buildah ${args.join(" ")}\n${result.stderr}`).toBe(0);
  }

  test("equals the image of the layout: the same files and the same configuration", async () => {
    const layout = join(image(), "oci");
    const expected = await contents(layout, manifestFor(layout, HOST_ARCHITECTURE));
    const { created } = expected.configuration;
    const { version } = JSON.parse(readFileSync(join(DOCKERFILE, "..", "..", "..", "package.json"), "utf8"));

    buildah(
      "build",
      "--isolation=chroot",
      `--platform=linux/${HOST_ARCHITECTURE}`,
      `--timestamp=${Date.parse(created) / 1000}`,
      "--identity-label=false",
      `--build-arg=VERSION=${version}`,
      `--build-arg=CREATED=${created}`,
      "--tag=usher-test",
      `--file=${DOCKERFILE}`,
      image(),
    );
    buildah("push", "--disable-compression", "usher-test", `oci:${folder}/oci:test`);
    const [built] = readIndex(join(folder, "oci")).manifests;
    const actual = await contents(join(folder, "oci"), readJson(join(folder, "oci"), built as Described));
    const files = ({ entries }: typeof actual) => Object.fromEntries([...entries].sort());
    expect(files(actual)).toEqual(files(expected));
    const { Env, ...config } = actual.configuration.config as { Env: string[] };
    const { Env: expectedEnv, ...expectedConfig } = expected.configuration.config as { Env: string[] };
    expect(config).toEqual(expectedConfig);
    expect(Env.sort()).toEqual(expectedEnv.sort());
  }, 300_000);
});
