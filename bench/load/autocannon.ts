// autocannon: for machines without Go. Installed once as package-lock.json in `npm` pins it, into the cache outside the repository,
// so that developing usher does not need it.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { cacheFolder } from "../../test/cluster/binaries/places.ts";
import { showProgress } from "../../test/cluster/binaries/progress.ts";
import { output } from "../servers/child-process.ts";
import { onLoadCore } from "../servers/cores.ts";
import type { Attack, Figures, Generator } from "./generator.ts";

const PINNED = join(import.meta.dirname, "npm");
const FILES = ["package.json", "package-lock.json"] as const;
const INSTALL_WITHIN_MS = 5 * 60_000;
const GRACE_MS = 30_000;

export async function autocannon(): Promise<Generator> {
  const hash = createHash("sha256");
  for (const file of FILES) hash.update(readFileSync(join(PINNED, file)));
  const folder = join(cacheFolder(process.env), "load", `autocannon-${hash.digest("hex").slice(0, 12)}`);
  const stamp = join(folder, ".installed");
  if (!existsSync(stamp)) await install(folder, stamp);
  const library = pathToFileURL(join(folder, "node_modules", "autocannon", "autocannon.js")).href;
  return {
    name: "autocannon",
    note: "the load took more CPU time than the server: differences look smaller than they are",
    attack: (attack) => run(library, attack),
  };
}

async function install(folder: string, stamp: string): Promise<void> {
  const end = showProgress(
    process.stderr,
    "installing the load generator autocannon, once, usually some seconds",
  );
  mkdirSync(folder, { recursive: true });
  for (const file of FILES) copyFileSync(join(PINNED, file), join(folder, file));
  try {
    await output(
      "npm",
      ["ci", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts"],
      INSTALL_WITHIN_MS,
    );
    writeFileSync(stamp, "");
    end("installed autocannon");
  } catch (error) {
    end("could not install autocannon");
    throw error;
  }
}

async function run(library: string, attack: Attack): Promise<Figures> {
  const job = join(attack.scratch, "attack.json");
  writeFileSync(job, JSON.stringify(attack));
  const script = join(import.meta.dirname, "autocannon-process.ts");
  const [program, args] = onLoadCore(process.execPath, [script, library, job]);
  return JSON.parse(await output(program, args, attack.seconds * 1_000 + GRACE_MS)) as Figures;
}
