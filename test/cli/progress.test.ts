import { expect, test } from "vitest";
import { Progress } from "../../src/cli/output/terminal.ts";

function shown(
  isTTY: boolean,
  steps: readonly (readonly [ms: number, done: number])[],
  total: number | "unknown" = 1_000,
) {
  const written: string[] = [];
  let now = 0;
  const progress = new Progress({ write: (text) => written.push(text), isTTY }, () => now);
  for (const [ms, done] of steps) {
    now = ms;
    progress.show("reading", "documents", done, total === "unknown" ? undefined : total);
  }
  progress.clear();
  return written;
}

test("a terminal shows one line that is rewritten after the first second, and cleared at the end", () => {
  const written = shown(true, [
    [0, 0],
    [900, 90],
    [1_000, 100],
    [1_050, 105],
    [1_100, 110],
  ]);
  expect(written).toEqual([
    "\r\u001b[Kreading [##..................] 100 of 1000 documents, 100/s, 9 s left",
    "\r\u001b[Kreading [##..................] 110 of 1000 documents, 100/s, 9 s left",
    "\r\u001b[K",
  ]);
});

test("without a terminal, prints a line every ten seconds", () => {
  const steps = Array.from({ length: 25 }, (_, i) => [i * 1_000, i * 10] as const);
  expect(shown(false, steps)).toEqual([
    "reading 100 of 1000 documents, 10/s, 90 s left\n",
    "reading 200 of 1000 documents, 10/s, 80 s left\n",
  ]);
});

test("quick work shows no progress", () => {
  expect(
    shown(true, [
      [0, 0],
      [500, 1_000],
    ]),
  ).toEqual([]);
});

test("few items are shown without a rate", () => {
  expect(
    shown(
      false,
      [
        [0, 0],
        [10_000, 2],
      ],
      2,
    ),
  ).toEqual(["reading 2 of 2 documents\n"]);
});

test("the bar is full at the end, and work that begins again has its own rate", () => {
  const [last = ""] = shown(true, [
    [0, 0],
    [2_000, 1_000],
  ]);
  expect(last).toContain("[####################] 1000 of 1000");
  const again = shown(true, [
    [0, 0],
    [2_000, 1_000],
    [3_000, 0],
    [4_000, 10],
  ]);
  expect(again.at(-2)).toContain("10 of 1000 documents, 10/s, 99 s left");
});

test("work without a known end has a count and a rate, and no bar", () => {
  const steps = [
    [0, 0],
    [2_000, 100],
  ] as const;
  expect(shown(true, steps, "unknown")[0]).toBe("\r\u001b[Kreading 100 documents, 50/s");
});
