import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PageFile } from "./server.ts";

/** The files of the page, by the path that each is served at. */
const FILES: readonly (readonly [path: string, file: string, type: string])[] = [
  ["/", "index.html", "text/html; charset=utf-8"],
  ["/page.js", "page.js", "text/javascript; charset=utf-8"],
  ["/page.css", "page.css", "text/css; charset=utf-8"],
  ["/icon.svg", "icon.svg", "image/svg+xml"],
];

/** Reads the page: in the package it is beside the bundle; from a clone it is bundled now, from its sources. */
export async function loadPage(): Promise<Map<string, PageFile>> {
  if (!import.meta.url.endsWith(".ts")) return read(join(import.meta.dirname, "page"));
  const folder = await mkdtemp(join(tmpdir(), "usher-page-"));
  try {
    const script = join(import.meta.dirname, "..", "..", "scripts", "page.mjs");
    await promisify(execFile)(process.execPath, [script, folder]);
    return await read(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function read(folder: string): Promise<Map<string, PageFile>> {
  const files = FILES.map(
    async ([path, file, type]) => [path, { type, body: await readFile(join(folder, file)) }] as const,
  );
  return new Map(await Promise.all(files));
}
