import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { workerUrl } from "./worker-url.ts";

test("from source the worker stands beside the code", () => {
  expect(workerUrl().pathname.endsWith("/src/files/reader/reader-worker.ts")).toBe(true);
  expect(existsSync(workerUrl())).toBe(true);
});

test("from a bundle it is a bundle beside the main one", () => {
  expect(workerUrl("file:///opt/usher/dist/usher.mjs").href).toBe("file:///opt/usher/dist/reader-worker.mjs");
});
