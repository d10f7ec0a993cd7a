import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const text = readFileSync(join(root, "docs/architecture.md"), "utf8");
const named = [
  ...new Set([...text.matchAll(/`((?:src|test|docs)(?:\/[\w./-]+)?)`/g)].map(([, path = ""]) => path)),
];

describe("docs/architecture.md", () => {
  test("names files and folders", () => expect(named.length).toBeGreaterThan(40));

  test.each(named)("%s exists", (path) => expect(existsSync(join(root, path))).toBe(true));

  test.each(
    readdirSync(join(root, "src"), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name),
  )("has src/%s on its map", (name) => {
    expect(named.some((path) => path === `src/${name}` || path.startsWith(`src/${name}/`))).toBe(true);
  });

  test.each(
    readdirSync(join(root, "src/core"), { withFileTypes: true }).filter((entry) => entry.isDirectory()),
  )("has src/core/$name on its map", ({ name }) => expect(named).toContain(`src/core/${name}`));
});
