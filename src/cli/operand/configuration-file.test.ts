import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { at } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import type { Change } from "../../core/view/view.ts";
import { limitConfiguration } from "../../modules/project-limit/policy/limit-configuration.ts";
import { followConfiguration } from "./configuration-file.ts";

function limits(max: number, more = ""): string {
  return `apiVersion: project.openshift.io/v1\nkind: ProjectRequestLimitConfig\nlimits:\n- maxProjects: ${max}\n${more}`;
}

async function followed(text: string) {
  const folder = mkdtempSync(join(tmpdir(), "usher-operand-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "limits.yaml");
  writeFileSync(file, text);
  const changes: Change[] = [];
  const log = { ...SILENT, error: vi.fn(), warn: vi.fn() };
  const { stop } = await followConfiguration({
    file,
    kind: limitConfiguration,
    use: (change) => changes.push(change),
    log,
    pollMs: 5,
  });
  onTestFinished(stop);
  // Atomically, as a kubelet changes files: a half-written one would be reported.
  const write = (next: string) => {
    writeFileSync(`${file}.next`, next);
    renameSync(`${file}.next`, file);
  };
  const used = () => changes.map(({ object }) => at(object, "spec", "limits", 0, "maxProjects"));
  return { file, write, log, changes, used };
}

test("a change takes effect, and an invalid file keeps the last configuration, reported once", async () => {
  const { file, write, log, changes, used } = await followed(limits(1));
  expect(changes).toMatchObject([
    { resource: "projectrequestlimits.project.openshift.io", namespace: "", name: "configuration" },
  ]);
  write(limits(2));
  await vi.waitFor(() => expect(used()).toEqual([1, 2]));
  for (const [wrong, message] of [
    [limits(-1), /limits\[0\]\.maxProjects: must be at least 0/],
    ["", /must hold one ProjectRequestLimitConfig, and holds 0/],
    ["{", /limits\.yaml:1/],
  ] as const) {
    log.error.mockClear();
    write(wrong);
    await vi.waitFor(() =>
      expect(log.error).toHaveBeenCalledWith(
        { error: expect.stringMatching(message) },
        "the last valid configuration stays in use",
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(log.error).toHaveBeenCalledTimes(1);
  }
  rmSync(file);
  await vi.waitFor(() => expect(log.error).toHaveBeenCalledTimes(2));
  expect(used()).toEqual([1, 2]);
  write(limits(3));
  await vi.waitFor(() => expect(used()).toEqual([1, 2, 3]));
});

test("an unknown field has no effect, with a warning", async () => {
  const { log, used } = await followed(limits(1, "maxProject: 3\n"));
  expect(used()).toEqual([1]);
  expect(log.warn).toHaveBeenCalledWith(
    expect.objectContaining({ warning: expect.stringContaining("maxProject") }),
    "the configuration is used, with a warning",
  );
});
