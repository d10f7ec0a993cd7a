import { expect, test } from "vitest";
import { responseOf, review, testSource } from "../../../test/support/admission/example-cluster.ts";
import { effectsOf } from "../../core/evaluate/effects.ts";
import { SILENT } from "../../core/log.ts";
import { ReviewHandler } from "./handle.ts";
import { Routes } from "./routes.ts";

const BODY = Buffer.from(JSON.stringify(review()));
const TOKEN = "0123456789abcdef0123456789abcdef01234567";
const OTHER = TOKEN.replaceAll("0", "f");

function asked(path: string, commit = async () => "done" as const) {
  const acceptsToken = (token: string | undefined) => token === TOKEN;
  return new ReviewHandler({ source: testSource({ commit }), log: SILENT, acceptsToken }).handle(BODY, path);
}

test("a token before the path changes neither phase nor hooks nor deadline", () => {
  const { hooks } = testSource().assembly;
  const plain = new Routes().find("/validate/welcome?timeout=2s", hooks);
  expect(new Routes().find(`/${TOKEN}/validate/welcome?timeout=2s`, hooks)).toEqual({
    ...plain,
    token: TOKEN,
  });
  expect(plain).toMatchObject({ token: undefined });
});

test.each([
  `/${TOKEN}`,
  `/${TOKEN}/`,
  `/${TOKEN}/${TOKEN}/mutate`,
  `/${TOKEN.slice(1)}/mutate`,
  `/${TOKEN.toUpperCase()}x/mutate`,
])("has no route at %s", async (path) => {
  expect(await asked(path)).toMatchObject({ status: 404 });
});

test("a review with the token counts", async () => {
  const { evaluation } = await asked(`/${TOKEN}/validate/welcome`);
  if (evaluation === undefined) throw new Error("nothing was evaluated");
  expect(effectsOf(evaluation).counts.length).toBeGreaterThan(0);
});

test.each(["/validate/welcome", `/${OTHER}/validate/welcome`])(
  "a review at %s gets the same answer, and does not count",
  async (path) => {
    const reply = await asked(path);
    expect(responseOf(reply)).toEqual(responseOf(await asked(`/${TOKEN}/validate/welcome`)));
    if (reply.evaluation === undefined) throw new Error("nothing was evaluated");
    expect(effectsOf(reply.evaluation)).toEqual({ events: [], tallies: [], counts: [], observed: [] });
  },
);

test("a review without the token commits nothing, and is denied if it needs a commit", async () => {
  let commits = 0;
  const commit = async () => {
    commits += 1;
    return "done" as const;
  };
  for (const path of ["/validate/record", `/${OTHER}/validate/record`]) {
    expect(responseOf(await asked(path, commit))).toMatchObject({ allowed: false });
    expect(commits).toBe(0);
  }
  expect(responseOf(await asked(`/${TOKEN}/validate/record`, commit))).toMatchObject({ allowed: true });
  expect(commits).toBe(1);
});

test("fetches a need with or without a token", async () => {
  expect(responseOf(await asked("/validate/pool"))).toMatchObject({ allowed: true });
});

test("waits for the lookup of a token", async () => {
  const { handle } = new ReviewHandler({
    source: testSource({ commit: async () => "done" as const }),
    log: SILENT,
    acceptsToken: async (token) => token === TOKEN,
  });
  for (const [token, allowed] of [
    [TOKEN, true],
    [OTHER, false],
  ] as const)
    expect(responseOf(await handle(BODY, `/${token}/validate/record`))).toMatchObject({ allowed });
});
