import fc from "fast-check";
import { expect, test } from "vitest";
import { LineTooLongError, linesOf } from "./lines.ts";

async function* stream(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function collect(chunks: readonly Uint8Array[], limit?: number): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(stream(chunks), limit)) lines.push(line);
  return lines;
}

/** The bytes of a text, cut at the given places. */
function cut(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const borders = [
    0,
    ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ];
  return borders.slice(1).map((end, i) => bytes.subarray(borders[i], end));
}

test("yields whole lines for any split into chunks, also inside a character", async () => {
  const line = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !text.includes("\n"));
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.array(fc.nat()), async (lines, places) => {
      const text = lines.map((one) => `${one}\n`).join("");
      expect(await collect(cut(text, places))).toEqual(lines);
    }),
  );
});

test("drops a last line without a newline", async () => {
  expect(await collect(cut('{"a":1}\n{"b":', []))).toEqual(['{"a":1}']);
});

test("rejects a line over the limit before buffering it, for any split into chunks", async () => {
  expect(await collect(cut("12345\n1234\n", []), 5)).toEqual(["12345", "1234"]);
  await expect(collect(cut("123456\n", []), 5)).rejects.toThrow(LineTooLongError);
  await expect(collect(cut("123456789", [2, 4, 6]), 5)).rejects.toThrow(LineTooLongError);
});
