import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Mount } from "./mount.ts";
import { mount } from "./program.ts";

const folder = mkdtempSync(join(tmpdir(), "usher-mount-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function files(entries: Record<string, string>): Map<string, Buffer> {
  return new Map(Object.entries(entries).map(([path, text]) => [path, Buffer.from(text)]));
}

test("files come, change and go together, and an unchanged volume is left alone", () => {
  const mount = new Mount(join(folder, "volume"));
  const read = (path: string): string => readFileSync(join(mount.folder, path), "utf8");
  expect(mount.write(files({ a: "1", "deep/b": "2" }))).toBe(true);
  expect([read("a"), read("deep/b")]).toEqual(["1", "2"]);
  expect(mount.write(files({ "deep/b": "2", a: "1" }))).toBe(false);
  expect(mount.write(files({ a: "3", c: "4" }))).toBe(true);
  expect([read("a"), read("c")]).toEqual(["3", "4"]);
  expect(existsSync(join(mount.folder, "deep"))).toBe(false);
  expect(readdirSync(mount.folder).filter((name) => name.startsWith("..version-"))).toHaveLength(1);
});

test("a subPath mount stays until the container restarts; other mounts follow changes", () => {
  const volume = new Mount(join(folder, "followed"));
  const own = new Mount(join(folder, "own"));
  mkdirSync(join(own.folder, "part"));
  const root = join(folder, "root");
  const container = {
    name: "main",
    image: "any",
    volumeMounts: [
      { name: "followed", mountPath: "/etc/all" },
      { name: "followed", mountPath: "/etc/one/a.yaml", subPath: "a" },
      { name: "own", mountPath: "/var/part", subPath: "part" },
    ],
  };
  const place = (name: string) => join(folder, name);
  const read = () => ["etc/all/a", "etc/one/a.yaml"].map((path) => readFileSync(join(root, path), "utf8"));
  volume.write(files({ a: "1" }));
  const paths = mount(root, container, place);
  expect(paths.get("/etc/one/a.yaml")).toBe(join(root, "etc/one/a.yaml"));
  expect(read()).toEqual(["1", "1"]);
  volume.write(files({ a: "2" }));
  expect(read()).toEqual(["2", "1"]);
  // A probe's command sees what the container sees.
  expect(mount(root, container, place, false)).toEqual(paths);
  expect(read()).toEqual(["2", "1"]);
  writeFileSync(join(root, "var/part/state"), "kept");
  mount(root, container, place);
  expect(read()).toEqual(["2", "2"]);
  expect(readFileSync(join(own.folder, "part/state"), "utf8")).toBe("kept");
});
