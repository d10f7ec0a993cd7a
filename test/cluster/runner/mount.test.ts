import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Mount } from "./mount.ts";

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
