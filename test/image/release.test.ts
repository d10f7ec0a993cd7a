import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { parse } from "yaml";
import { ensureTool } from "../cluster/binaries.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const FOLDER = join(ROOT, ".github", "workflows");
const workflows = readdirSync(FOLDER).map((name) => join(FOLDER, name));

interface Workflow {
  readonly permissions: object;
  readonly jobs: Readonly<
    Record<string, { readonly permissions?: object; readonly steps: readonly { readonly uses?: string }[] }>
  >;
}

function release(tag: string): { readonly status: number | null; readonly stderr: string } {
  return spawnSync(process.execPath, ["scripts/release-version.mjs", tag], { cwd: ROOT, encoding: "utf8" });
}

// Built with Go, like the control plane.
describe.skipIf(inject("clusterUnavailable") !== "")("workflows", () => {
  test("pass actionlint", async () => {
    const actionlint = await ensureTool("actionlint");
    // Not with tools that happen to be on this machine.
    const { status, stdout } = spawnSync(actionlint, ["-shellcheck=", "-pyflakes=", ...workflows], {
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  }, 600_000);
});

test.each(workflows)("%s pins actions by version, and declares the permissions of each job", (file) => {
  const { permissions, jobs }: Workflow = parse(readFileSync(file, "utf8"));
  expect(permissions).toEqual({});
  for (const job of Object.values(jobs)) {
    expect(job.permissions).toBeDefined();
    for (const { uses } of job.steps)
      if (uses !== undefined) expect(uses).toMatch(/^[\w.-]+\/[\w.-]+@v\d+(?:\.\d+)*$/);
  }
});

test("a tag that differs from the version of the files is refused, with every file that differs", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const { status, stderr } = release("v99.0.0");
  expect(status).toBe(1);
  for (const file of ["package.json", "package-lock.json", "Chart.yaml, version", "Chart.yaml, appVersion"])
    expect(stderr).toContain(`${file}: is of version ${version}, and the tag is v99.0.0\n`);
  expect(stderr).toContain("CHANGELOG.md: does not name 99.0.0");
  // Before its release, a version is missing only from the CHANGELOG.
  expect(release(`v${version}`).stderr).toMatch(
    /^(?:CHANGELOG\.md: does not name \S+, and the tag is \S+\n)?$/,
  );
});
