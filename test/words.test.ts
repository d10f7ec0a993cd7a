import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT } from "../src/cli/exit.ts";
import { usher } from "./cli/usher.ts";
import { ALLOWED, IN_TEXT, METAPHORS, WORDS, type Words } from "./support/words/banned.ts";
import { type Token, tokensOf, wordsIn } from "./support/words/tokens.ts";

const SAMPLE = "const a = `x $" + '{lane(`y`)} z`; // c\n+ /re"x/;';

/**
 * The words that the project does not use, as listed in CONTRIBUTING.md: identifiers, file names and user-facing text
 * do not contain them.
 */
const root = join(import.meta.dirname, "..");
const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .trim()
  .split("\n")
  .filter((file) => existsSync(join(root, file)) && !file.startsWith("test/support/words/"));
const sources = files.filter((file) => /\.(?:ts|mjs)$/.test(file) && file !== "test/words.test.ts");
const documents = files.filter((file) => [".md", ".yaml"].includes(extname(file)));

interface Banned {
  readonly word: string;
  readonly instead: string;
}

const entries = (...lists: readonly Words[]): readonly Banned[] =>
  lists.flatMap((list) =>
    Object.entries(list).flatMap(([words, instead]) =>
      words.split(", ").map((word) => ({ word: ` ${word} `, instead })),
    ),
  );
const EVERYWHERE = entries(METAPHORS);
const NAMES = entries(METAPHORS, WORDS);
const TEXT = entries(METAPHORS, WORDS, IN_TEXT);

function find(text: string, banned: readonly Banned[], where: string): string[] {
  let words = ` ${wordsIn(text).join(" ")} `;
  let found = banned.filter(({ word }) => words.includes(word));
  if (found.length === 0) return [];
  for (const { phrase, file = "" } of ALLOWED)
    if (where.startsWith(file)) words = words.replaceAll(` ${phrase} `, " ");
  found = found.filter(({ word }) => words.includes(word));
  return found.map(({ word, instead }) => `${where}: "${word.trim()}"; use: ${instead}`);
}

function bannedIn(file: string, kind: Token["kind"]): readonly Banned[] {
  if (kind === "identifier") return NAMES;
  // Users do not read the texts of tests and comments; metaphors confuse every reader.
  const shown = kind === "string" && file.startsWith("src/") && !file.endsWith(".test.ts");
  return shown ? TEXT : EVERYWHERE;
}

describe("words", () => {
  test("finds banned words in every spelling, and not inside other words", () => {
    const found = (text: string) => find(text, NAMES, "x").map((one) => /"(.*)"/.exec(one)?.[1]);
    expect(found("tellNoRoom")).toEqual(["tell"]);
    expect(found("EVENT_BOOK event-book the Event book")).toContain("event book");
    expect(found("tallies island planet bookkeeping Promise.allSettled heartbeat")).toEqual([]);
    expect(tokensOf(SAMPLE).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      "identifier const",
      "identifier a",
      `string ${"`x $"}{`,
      "identifier lane",
      "string `y`",
      "string } z`",
      "comment // c",
    ]);
  });

  test("file names contain no banned words", () =>
    expect(files.flatMap((file) => find(file, NAMES, file))).toEqual([]));

  test("identifiers, strings and comments contain no banned words", () => {
    const found = sources.flatMap((file) =>
      tokensOf(readFileSync(join(root, file), "utf8")).flatMap(({ kind, text, line }) =>
        find(text, bannedIn(file, kind), `${file}:${line}`),
      ),
    );
    expect(found).toEqual([]);
  });

  test("documents and examples contain no banned words", () => {
    const found = documents.flatMap((file) =>
      readFileSync(join(root, file), "utf8")
        .split("\n")
        .flatMap((line, i) => find(line, TEXT, `${file}:${i + 1}`)),
    );
    expect(found).toEqual([]);
  });

  test.each([
    ["--help"],
    ["manifests"],
    ["serve", "--help"],
    ["review", "--help"],
    ["install", "--help"],
    ["uninstall", "--help"],
  ])("the output of usher %s %s contains no banned words", async (...args) => {
    const { out, code } = await usher(args);
    expect(code).toBe(EXIT.fine);
    expect(out.split("\n").flatMap((line) => find(line, TEXT, line.trim()))).toEqual([]);
  });
});
