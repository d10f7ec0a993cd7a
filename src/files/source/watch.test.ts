import { mkdir, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Directory, greetingYaml, until, wordsOf } from "../../../test/conformance/directory.ts";
import type { FileSource } from "./file-source.ts";

let directory: Directory;
let source: FileSource;

beforeEach(async () => {
  directory = await Directory.make({ "a.yaml": greetingYaml("one", "a") });
  source = await directory.open({ watch: true });
});

afterEach(() => directory.end());

const is = (words: Record<string, string>) => () => JSON.stringify(wordsOf(source)) === JSON.stringify(words);

test("notices a file that is rewritten", async () => {
  await directory.write("a.yaml", greetingYaml("one", "b"));
  await until(is({ one: "b" }));
  expect(directory.said()).toBe("a.yaml: 1 policy changed (one)");
});

test("notices an editor that writes another file and renames it", async () => {
  await directory.write(".a.yaml.swp", greetingYaml("one", "b"));
  await rename(directory.at(".a.yaml.swp"), directory.at("a.yaml"));
  await until(is({ one: "b" }));
});

test("notices a file that is deleted and recreated", async () => {
  await rm(directory.at("a.yaml"));
  await until(is({}));
  await directory.write("a.yaml", greetingYaml("one", "c"));
  await until(is({ one: "c" }));
});

test("notices a new directory, and later changes in it", async () => {
  await directory.write("new/deep/b.yaml", greetingYaml("two", "a"));
  await until(is({ one: "a", two: "a" }));
  await directory.write("new/deep/b.yaml", greetingYaml("two", "b"));
  await until(is({ one: "a", two: "b" }));
  await rm(directory.at("new"), { recursive: true });
  await until(is({ one: "a" }));
  await directory.write("new/deep/b.yaml", greetingYaml("two", "c"));
  await until(is({ one: "a", two: "c" }));
});

test("notices a ConfigMap that the kubelet swaps", async () => {
  const mount = directory.at("mounted");
  await mkdir(`${mount}/..1`, { recursive: true });
  await writeFile(`${mount}/..1/p.yaml`, greetingYaml("two", "a"));
  await symlink("..1", `${mount}/..data`);
  await symlink("..data/p.yaml", `${mount}/p.yaml`);
  await until(is({ one: "a", two: "a" }));
  await mkdir(`${mount}/..2`);
  await writeFile(`${mount}/..2/p.yaml`, greetingYaml("two", "b"));
  await symlink("..2", `${mount}/..data_tmp`);
  await rename(`${mount}/..data_tmp`, `${mount}/..data`);
  await rm(`${mount}/..1`, { recursive: true });
  await until(is({ one: "a", two: "b" }));
});

test("notices a change under a linked directory", async () => {
  const elsewhere = await Directory.make({ "b.yaml": greetingYaml("two", "a") });
  await symlink(elsewhere.path, directory.at("link"));
  await until(is({ one: "a", two: "a" }));
  await elsewhere.write("b.yaml", greetingYaml("two", "b"));
  await until(is({ one: "a", two: "b" }));
  await elsewhere.end();
});

test("notices a change that keeps size and modification time", async () => {
  const past = new Date(1_700_000_000_000);
  await utimes(directory.at("a.yaml"), past, past);
  await directory.write("a.yaml", greetingYaml("one", "z"));
  await utimes(directory.at("a.yaml"), past, past);
  await until(is({ one: "z" }));
});

test("does nothing after stop", async () => {
  await source.stop();
  await directory.write("a.yaml", greetingYaml("one", "b"));
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(wordsOf(source)).toEqual({ one: "a" });
});
