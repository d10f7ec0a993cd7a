import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { ROOT, usher } from "./usher.ts";

const COMMANDS = [
  [],
  ["review"],
  ["compile"],
  ["diff"],
  ["what-if"],
  ["explain"],
  ["replay"],
  ["placement"],
  ["placement", "status"],
  ["node-labels"],
  ["node-labels", "plan"],
];

/** The examples of a help text that need only this clone. */
async function examplesOf(command: readonly string[]): Promise<string[]> {
  const { out } = await usher([...command, "--help"]);
  const lines = out.split("\n").filter((line) => line.startsWith("  usher ") && line.includes("examples/"));
  return lines.map((line) => line.trim()).filter((line) => !line.startsWith("usher serve"));
}

describe.each(COMMANDS.map((command) => [command.join(" "), command] as const))(
  "the help of usher %s",
  (_name, command) => {
    it("has examples that produce output", async () => {
      for (const example of await examplesOf(command)) {
        const [, ...args] = example.split(" ");
        const { code, out, err } = await usher(
          args.map((one) => one.replace(/^examples\//, `${ROOT}/examples/`)),
        );
        expect([0, 1], `${example}: ${err}`).toContain(code);
        expect(out, example).toMatch(/[+~-] |kind: |^MODULE /);
      }
    });
  },
);

test("has examples for each way to use files", async () => {
  const all = await Promise.all(COMMANDS.map(examplesOf));
  expect(all.flat().length).toBeGreaterThanOrEqual(6);
});

test("placement status prints the documented output", () => {
  const text = readFileSync(join(ROOT, "docs/cli.md"), "utf8");
  const [, block = ""] = /^```text status\n([\s\S]*?)^```/m.exec(text) ?? [];
  const [first = "", ...prints] = block.trimEnd().split("\n");
  const ran = spawnSync("sh", ["-c", first.replace(/^\$ /, "")], { cwd: ROOT, encoding: "utf8" });
  expect(ran.stdout.trimEnd()).toBe(prints.join("\n"));
  expect(ran.status).toBe(1);
});
