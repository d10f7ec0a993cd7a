import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { CI_SYSTEMS, ciFile } from "../../src/cli/init/ci.ts";
import { writtenKinds } from "../../src/cli/schema/json-schemas.ts";
import { version } from "../../src/cli/version.ts";
import { declarations } from "../../src/modules/index.ts";
import { cacheFolder } from "../cluster/binaries/places.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { folder, ROOT, usher } from "./usher.ts";

const all = await writtenKinds(declarations);
const kinds = all.filter(({ sample }) => sample !== undefined).map(({ kind }) => kind);

/** Kinds that no one begins with, and why. */
const WITHOUT = {
  NodeSchedulingPolicyConfig: "the file that OpenShift's API server reads in place of a NodeSchedulingPolicy",
  Scheduler: "OpenShift's own object, which exists in every cluster of OpenShift",
  NodeGuardOverride: "usher node-guard override grant writes it, for a day at most",
  UsherConfiguration: "written beside a policy that needs one",
  TestSuite: "written beside every policy",
};

describe("usher init", () => {
  test("knows a first object of every kind of every module, but of those with a reason", () => {
    expect(all.map(({ kind }) => kind).filter((kind) => !kinds.includes(kind))).toEqual(Object.keys(WITHOUT));
  });

  test.each(kinds)(
    "%s: the policy has no problem, and its suite passes and notices every change",
    async (kind) => {
      const directory = folder({ "README.md": "" });
      const { code, out, err } = await usher(["init", kind, "--directory", directory, "--ci", "none"]);
      expect({ code, err }).toMatchObject({ code: 0 });
      const policies = join(directory, "policies");
      expect(out.trim().split("\n").sort()).toEqual(readdirSync(policies).map((one) => join(policies, one)));
      expect(await usher(["lint", policies, "--fail-on", "warning"])).toMatchObject({ code: 0 });
      // The suite and the configuration beside the policy are not part of the cluster.
      const pod =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n";
      expect((await usher(["review", "-", "--source", policies], { stdin: pod })).code).toBe(0);
      const tested = await usher(["test", policies, "--mutate"]);
      expect(tested.err + tested.out).toContain(": score 1: ");
      expect(tested.code).toBe(0);
    },
  );

  test("overwrites nothing, and writes nothing where one file exists", async () => {
    const directory = folder({ "policies/team-pool.suite.yaml": "mine" });
    const args = ["init", "cpsp", "--directory", directory];
    expect(await usher(args)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("nothing was written"),
    });
    expect(readFileSync(`${directory}/policies/team-pool.suite.yaml`, "utf8")).toBe("mine");
    expect(readdirSync(join(directory, "policies"))).toEqual(["team-pool.suite.yaml"]);
    expect(existsSync(join(directory, ".github"))).toBe(false);
  });

  test("asks on a terminal, and takes defaults for empty answers", async () => {
    const directory = folder({ "README.md": "" });
    const { code, out } = await usher(["init", "--directory", directory], {
      tty: true,
      stdin: "Labels\n\ngitlab\n",
    });
    expect(code).toBe(0);
    expect(out).toContain("Name [edge-nodes]: ");
    expect(readdirSync(directory).sort()).toEqual(["README.md", "policies", "usher.gitlab-ci.yml"]);
  });

  test.each([
    [["init", "Pod"], "init has no first object of kind Pod"],
    [["init", "cpsp", "--name", "A B"], "--name: "],
    [["init", "projectrequestlimit", "--name", "mine"], "only the ProjectRequestLimit named cluster counts"],
    [["init", "cpsp", "--ci", "jenkins"], "Allowed choices are github"],
  ])("%j is an error", async (args, message) => {
    expect(await usher([...args, "--directory", folder({})])).toMatchObject({
      code: 2,
      err: expect.stringContaining(message),
    });
  });
});

describe("the step of a CI system", () => {
  const documented = readFileSync(join(ROOT, "docs/pipelines.md"), "utf8");
  const systems = CI_SYSTEMS.filter((one) => one !== "none");

  test.each(systems)("%s is in the documents as usher init writes it", (system) => {
    expect(documented).toContain(ciFile(system, version())?.text);
  });

  /** A repository with policies, and npx that runs this clone. */
  function repository(policy?: string): { directory: string; env: NodeJS.ProcessEnv } {
    const directory = folder({
      "bin/npx": `#!/bin/sh\n[ "$1 $2" = "--yes @usher-dev/usher@${version()}" ] || exit 9\nshift 2\nexec ${ROOT}/bin/usher "$@"\n`,
      ...(policy === undefined ? {} : { "policies/policy.yaml": policy }),
    });
    chmodSync(join(directory, "bin/npx"), 0o755);
    return { directory, env: { ...process.env, PATH: `${directory}/bin:${process.env["PATH"]}` } };
  }

  function steps(system: (typeof systems)[number]): string[] {
    const file = parse(ciFile(system, version())?.text ?? "");
    if (system === "github")
      return file.jobs.policies.steps.flatMap(({ run }: { run?: string }) => run ?? []);
    return system === "gitlab" ? file.usher.script : [file.repos[0].hooks[0].entry];
  }

  test.each(systems)(
    "%s passes on what usher init writes, and fails on a policy with an error",
    async (system) => {
      const good = repository();
      await usher(["init", "cpsp", "--ci", "none", "--directory", good.directory]);
      const run = ({ directory, env }: typeof good) =>
        steps(system).map((step) => spawnSync("sh", ["-c", step], { cwd: directory, env }).status);
      expect(steps(system).length).toBeGreaterThan(0);
      expect(run(good).every((status) => status === 0)).toBe(true);
      const bad = repository(
        "apiVersion: kupid.gardener.cloud/v1alpha1\nkind: ClusterPodSchedulingPolicy\nmetadata: {name: a}\nspec: {nodeSelectr: {}}\n",
      );
      expect(run(bad)[0]).toBe(1);
    },
    60_000,
  );

  test("GitHub's workflow passes actionlint", async () => {
    const { directory } = repository();
    mkdirSync(join(directory, ".github/workflows"), { recursive: true });
    const file = join(directory, ".github/workflows/usher.yml");
    writeFileSync(file, ciFile("github", version())?.text ?? "");
    const { status, stdout } = spawnSync(
      await ensureTool("actionlint"),
      ["-shellcheck=", "-pyflakes=", file],
      { encoding: "utf8" },
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
  }, 600_000);

  /** pre-commit from PyPI, once, outside the clone; absent where Python has no pip. */
  function preCommit(): string | undefined {
    const place = join(cacheFolder(process.env), "pre-commit-4.7.0");
    if (!existsSync(join(place, "pre_commit"))) {
      const args = ["-m", "pip", "install", "--quiet", "--target", place, "pre-commit==4.7.0"];
      if (spawnSync("python3", args).status !== 0) return undefined;
    }
    return place;
  }

  test("pre-commit itself refuses a commit with a wrong policy, and looks only at changes of policies", async ({
    skip,
  }) => {
    const place = preCommit();
    if (place === undefined) return skip("Python with pip is not installed");
    const { directory, env } = repository();
    expect((await usher(["init", "cpsp", "--ci", "pre-commit", "--directory", directory])).code).toBe(0);
    const run = (...args: string[]) =>
      spawnSync(args[0] ?? "", args.slice(1), {
        cwd: directory,
        encoding: "utf8",
        env: { ...env, PYTHONPATH: place, PRE_COMMIT_HOME: join(directory, ".git", "pre-commit") },
      });
    const identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    const commit = () => {
      run("git", "add", "--all");
      const { status, stdout, stderr } = run("git", ...identity, "commit", "--message", "a");
      return { status, text: stdout + stderr };
    };
    run("git", "init", "--quiet");
    const installed = run("python3", "-m", "pre_commit", "install");
    expect({ status: installed.status, err: installed.stderr }).toMatchObject({ status: 0 });
    const first = commit();
    expect(first.text).toMatch(/usher lint\.+Passed/);
    expect(first.status).toBe(0);
    const policy = join(directory, "policies/team-pool.yaml");
    const good = readFileSync(policy, "utf8");
    writeFileSync(policy, good.replace("nodeSelector:", "nodeSelectr:"));
    const bad = commit();
    expect(bad.text).toMatch(/usher lint\.+Failed[\s\S]*nodeSelectr/);
    expect(bad.status).not.toBe(0);
    writeFileSync(policy, good);
    writeFileSync(join(directory, "README.md"), "more\n");
    const other = commit();
    expect(other.text).toMatch(/usher lint\.+\(no files to check\)Skipped/);
    expect(other.status).toBe(0);
  }, 120_000);
});
