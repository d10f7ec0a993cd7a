import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ensurePrograms } from "../container/programs.ts";
import { folder, ROOT, usher } from "./usher.ts";

async function completed(...words: string[]): Promise<string[]> {
  const { out, code } = await usher(["__complete", ...words]);
  expect(code).toBe(0);
  return out.trimEnd().split("\n");
}

const values = (lines: readonly string[]) => lines.slice(0, -1).map((line) => line.split("\t")[0]);

describe("usher __complete, in the protocol of kubectl's completion, offers", () => {
  const source = ["--source", join(ROOT, "examples/cluster")];
  test.each<[string, string[], string[]]>([
    ["commands", ["rev"], ["review"]],
    ["commands of commands", ["placement", ""], ["status", "reapply"]],
    ["flags", ["lint", "--fa"], ["--fail-on"]],
    ["choices of a flag", ["review", "-o", "s"], ["sarif"]],
    ["choices after the sign of equality", ["review", "--output=s"], ["sarif"]],
    ["the same where the shell splits at the sign", ["review", "--output", "=", "s"], ["sarif"]],
    ["kinds", ["schema", "Cl"], ["ClusterPodSchedulingPolicy"]],
    [
      "error codes",
      ["help", "USHER-E1"],
      [
        "USHER-E10",
        "USHER-E11",
        "USHER-E12",
        "USHER-E13",
        "USHER-E14",
        "USHER-E15",
        "USHER-E16",
        "USHER-E17",
        "USHER-E18",
      ],
    ],
    ["policies of the source", ["placement", "status", ...source, "e"], ["etcd-pool"]],
    [
      "policies for a flag",
      ["diff", ...source, "--remove", "clusterpodschedulingpolicy/e"],
      ["clusterpodschedulingpolicy/etcd-pool"],
    ],
    ["namespaces of the source", ["review", ...source, "-n", "te"], ["team-a"]],
    ["modules", ["operator", "pl"], ["placement"]],
  ])("%s", async (_name, words, expected) => {
    const lines = await completed(...words);
    expect(values(lines)).toEqual(expected);
    expect(lines.at(-1)).toBe(":4");
  });

  test("contexts of the kubeconfig", async () => {
    const directory = folder({ config: "contexts: [{name: staging}, {name: production}]\n" });
    const { out } = await usher(["__complete", "review", "--context", "s"], {
      env: { KUBECONFIG: `${directory}/config` },
    });
    expect(out).toBe("staging\n:4\n");
  });

  test("files where a command reads them, and nothing that fails", async () => {
    expect(await completed("review", "")).toEqual([":0"]);
    expect(await completed("review", "--source", "")).toEqual([":0"]);
    expect(await completed("review", "--source", "/does/not/exist", "-n", "")).toEqual([":4"]);
    expect(await completed("nonsense", "-", "--", "")).toEqual([":4"]);
    expect(await completed("help", "\u001b[31m")).toEqual([":4"]);
  });
});

describe("completion in a real shell", () => {
  let folderOfScripts = "";
  const env = { ...process.env, PATH: `${join(ROOT, "bin")}:${process.env["PATH"]}`, TERM: "dumb" };
  const run = (program: string, args: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, {
      encoding: "utf8",
      env,
      cwd: ROOT,
      timeout: 60_000,
    });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    return stdout;
  };

  beforeAll(async () => {
    await ensurePrograms("zsh", "fish");
    folderOfScripts = mkdtempSync(join(tmpdir(), "usher-completion-"));
    for (const shell of ["bash", "zsh", "fish"])
      writeFileSync(join(folderOfScripts, shell), (await usher(["completion", shell])).out);
  }, 300_000);
  afterAll(() => rmSync(folderOfScripts, { recursive: true, force: true }));

  test("bash completes commands, flags' values with =, and files", () => {
    const reply = (line: string) =>
      run("bash", [
        "--norc",
        "-c",
        `source ${folderOfScripts}/bash; COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _usher; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ])
        .trim()
        .split("\n");
    expect(reply("usher rev")).toEqual(["review"]);
    expect(reply("usher review -o s")).toEqual(["sarif"]);
    expect(reply("usher review --output = s")).toEqual(["sarif"]);
    expect(reply("usher schema Lab")).toEqual(["Labels"]);
    expect(reply("usher review examples/pods/etcd")).toEqual(["examples/pods/etcd.yaml"]);
    expect(run("bash", ["--norc", "-c", `source ${folderOfScripts}/bash; complete -p usher`])).toContain(
      "_usher usher",
    );
  }, 60_000);

  test("zsh completes at the key Tab", () => {
    const line = join(folderOfScripts, "line");
    const script = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -Uz compinit; compinit -u -D; source ${folderOfScripts}/zsh'
zpty -w shell 'show() { print -r -- "$BUFFER" > ${line}; }; zle -N show; bindkey "^T" show'
zpty -w shell 'print > ${line}.ready'
until [[ -e ${line}.ready ]]; do sleep 0.1; done
# Typed again until the shell has drawn its prompt and completed the line. Ctrl-T begins no longer key, so that a slow
# shell does not read it together with the first key of the next attempt.
until grep -q review ${line} 2>/dev/null; do
  zpty -w -n shell $'\\C-uusher rev\\t\\C-t'
  sleep 1
done
zpty -d shell
`;
    run("zsh", ["-f", "-c", script]);
    expect(readFileSync(line, "utf8")).toMatch(/^usher review ?\n$/);
  }, 60_000);

  test("fish completes with descriptions", () => {
    const offered = (line: string) =>
      run("fish", ["--no-config", "-c", `source ${folderOfScripts}/fish; complete -C '${line}'`]);
    expect(offered("usher rev")).toBe("review\tevaluate manifests exactly as the webhook would\n");
    expect(offered("usher help USHER-P0")).toContain("USHER-P01\tConflicting values");
    expect(offered("usher review examples/pods/etcd")).toContain("examples/pods/etcd.yaml");
  }, 60_000);

  test("an unknown shell is an error", async () => {
    expect(await usher(["completion", "tcsh"])).toMatchObject({ code: 2, out: "" });
  });
});
