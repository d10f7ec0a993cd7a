import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { watched } from "./serving.ts";
import { ended, folder, ROOT, start } from "./usher.ts";

/** The commands to try, without their descriptions. */
function commandsIn(lines: readonly string[]): string[] {
  const first = lines.findIndex((line) => line.startsWith("Try, in another terminal:"));
  const after = lines.slice(first + 1);
  return after.slice(0, after.indexOf("")).map((line) => line.trim().split(/ {3,}/)[0] ?? "");
}

test("npm start serves the examples, prints three commands to try, and exits 0 on Ctrl-C", async () => {
  const child = start("npm", ["start", "--", "--port", "0", "--ops-port", "0"], { detached: true });
  const lines: string[] = [];
  const tips = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line);
      if (line.includes("Ctrl-C")) resolve();
    });
  });
  const served = await watched(child);
  await Promise.race([tips, served.end]);
  expect(lines.join("\n")).toMatch(
    /^ready in \d+\.\d s · webhook https:\/\/127\.0\.0\.1:\d+ · health and metrics http:/m,
  );
  // The README shows the same warning and the same figures.
  const said = await served.said(/^usher \d.* from examples\/cluster and examples\/every-module$/m);
  const printed = said.slice(said.indexOf("examples/every-module/policies.yaml:")).trimEnd();
  expect(readFileSync(join(ROOT, "README.md"), "utf8")).toContain(`$ npm start\n${printed}\nready in `);
  const commands = commandsIn(lines);
  expect(commands).toHaveLength(3);

  const [plain, traced] = await Promise.all(
    commands.slice(0, 2).map((line) => ended(start("sh", ["-c", line]))),
  );
  expect(plain).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^OBJECT .*\n(.*\n)*3 objects: 1 unchanged, 2 patched, 0 denied\n$/),
  });
  expect(traced).toMatchObject({
    code: 0,
    out: expect.stringContaining("  etcd-pool          applies    namespace shop (environment=prod), "),
  });
  const [, file = ""] = /^edit (.*)$/.exec(commands[2] ?? "") ?? [];
  expect(readFileSync(join(ROOT, file), "utf8")).toContain("kind: ClusterPodSchedulingPolicy");

  // A terminal sends Ctrl-C to every process of its group.
  if (child.pid === undefined) throw new Error("npm did not start");
  process.kill(-child.pid, "SIGINT");
  expect((await served.end).code).toBe(0);
});

test("an edit of a policy is shown in the terminal", async () => {
  const directory = folder({});
  cpSync(join(ROOT, "examples"), directory, { recursive: true });
  const args = ["serve", "--source", "cluster", "--port", "0", "--ops-port", "0"];
  const served = await watched(start(join(ROOT, "bin/usher"), args, { cwd: directory }));
  const file = join(directory, "cluster/policies.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("pool: etcd", "pool: databases"));
  await served.said(/^policies\.yaml: 1 policy changed \(etcd-pool\)$/m);
  served.child.kill("SIGINT");
  expect((await served.end).code).toBe(0);
});
