import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, usher } from "./usher.ts";

const NAME = "project-request-limit-admission";

function run(text: string | Buffer | undefined, ...more: string[]) {
  const file = join(folder(text === undefined ? {} : { "limits.yaml": text }), "limits.yaml");
  return usher([`--configuration=${file}`, ...more], { name: NAME });
}

describe("the operand's command line", () => {
  test("a file that can't be used is an error with its position and exit code 2", async () => {
    const head = "apiVersion: v1\nkind: ProjectRequestLimitConfig\n";
    const wrong: [string | Buffer | undefined, RegExp][] = [
      [undefined, /--configuration \S+limits\.yaml does not exist/],
      ["", /must hold one ProjectRequestLimitConfig, and holds 0/],
      ["kind: ConfigMap\napiVersion: v1\n", /must hold one ProjectRequestLimitConfig, and holds 0/],
      [`${head}---\n${head}`, /must hold one ProjectRequestLimitConfig, and holds 2/],
      ["a: [", /limits\.yaml:1:\d+: /],
      [Buffer.from([0x61, 0xff, 0xfe]), /invalid UTF-8/],
      [`${head}limits:\n- maxProjects: -1\n`, /limits\.yaml:4:16: limits\[0\]\.maxProjects: /],
      [`${head}limits: 3\n`, /limits\.yaml:3:\d+: limits: /],
      [`${head}limits:\n- selector: {"*x": y}\n`, /limits\.yaml:4:\d+: limits\[0\]\.selector/],
      [
        "apiVersion: v9\nkind: ProjectRequestLimitConfig\n",
        /apiVersion: ProjectRequestLimitConfig has no version "v9"; use v1 or /,
      ],
    ];
    for (const [text, message] of wrong) {
      const { code, err } = await run(text);
      expect([code, err]).toEqual([2, expect.stringMatching(message)]);
      expect(err.startsWith(`${NAME}: `)).toBe(true);
    }
  });

  test.each([
    "v1",
    "requestlimit.project.openshift.io/v1",
    "project.openshift.io/v1",
    "operator.project.openshift.io/v1",
  ])("reads %s; then it requires its certificate", async (apiVersion) => {
    const text = `apiVersion: ${apiVersion}\nkind: ProjectRequestLimitConfig\nlimits: []\n`;
    const { code, err } = await run(text, "--tls-cert=/none/tls.crt");
    expect([code, err]).toEqual([
      2,
      `${NAME}: can't read the certificate /none/tls.crt: it does not exist\n`,
    ]);
  });

  test("requires its file, has none of usher's commands, and prints its own help", async () => {
    expect(await usher([], { name: NAME })).toMatchObject({
      code: 2,
      err: `${NAME}: required option '--configuration <file>' not specified\n`,
    });
    expect((await run("", "serve")).code).toBe(2);
    const { code, out } = await usher(["--help"], { name: NAME });
    expect([code, out]).toEqual([0, expect.stringContaining("/etc/projectrequestlimit/config/limits.yaml")]);
  });
});
