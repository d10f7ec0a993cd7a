import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { cacheFolder } from "../cluster/binaries/places.ts";
import { describeImage } from "../container/describe.ts";

const MAIN = join(import.meta.dirname, "..", "..", "deploy", "image", "main.ts");

describeImage("two builds of one lock", (image) => {
  // On the file system of the cache: downloads are linked, not fetched again.
  const downloads = join(cacheFolder(process.env), "image");
  mkdirSync(downloads, { recursive: true });
  const folder = mkdtempSync(join(downloads, "twice-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("have the same digest in another folder, with other settings, and without layers of the first", () => {
    const cache = join(folder, "cache", "image");
    mkdirSync(cache, { recursive: true });
    for (const name of readdirSync(downloads))
      if (/\.(?:deb|tgz)$/.test(name)) linkSync(join(downloads, name), join(cache, name));
    const output = join(folder, "output");
    const lock = join(image(), "debian.lock.json");
    const command = ["umask 077", `exec "$0" "$@"`].join("; ");
    const { status, stderr } = spawnSync(
      "sh",
      ["-c", command, process.execPath, MAIN, "--output", output, "--lock", lock],
      {
        encoding: "utf8",
        cwd: folder,
        env: {
          PATH: process.env["PATH"],
          HOME: folder,
          USHER_CACHE: join(folder, "cache"),
          TZ: "Pacific/Chatham",
          LC_ALL: "tr_TR.UTF-8",
        },
      },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(readdirSync(cache).filter((name) => name.startsWith("layer-"))).not.toEqual([]);
    const digest = readFileSync(join(output, "digest"), "utf8");
    console.log(`both: ${digest.trim()}`);
    expect(digest).toBe(readFileSync(join(image(), "digest"), "utf8"));
  }, 300_000);
});
