// The command line as one bundle, with its worker beside it: for the package and the image.
import { copyFileSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { bundlePage } from "./page.mjs";
import { root } from "./setup.mjs";

/** Of every bundle, including the library's. */
export const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node24",
  format: "esm",
  outExtension: { ".js": ".mjs" },
  splitting: true,
  // Beside the entries: a chunk finds the worker by its own URL.
  chunkNames: "chunk-[hash]",
  legalComments: "none",
  minifySyntax: true,
  // A package in both forms is taken as a module: its named exports survive a lazy import.
  mainFields: ["module", "main"],
  logLevel: "warning",
};

// Dependencies written for CommonJS call `require`, which a module does not have.
const banner = {
  js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
};

/** Bundles into a folder; returns the files beside `usher.mjs`, and the packages whose code is in them. */
export async function bundle(outdir) {
  const { build } = await import("esbuild");
  const { metafile } = await build({
    ...common,
    outdir,
    entryPoints: {
      main: "src/cli/main.ts",
      "ops-worker": "src/admission/observe/ops-worker.ts",
    },
    banner,
    metafile: true,
  });
  copyFileSync(join(root, "bin/usher.mjs"), join(outdir, "usher.mjs"));
  const page = await bundlePage(join(outdir, "page"));
  const files = [
    ...Object.keys(metafile.outputs).map((path) => basename(path)),
    ...page.files.map((file) => `page/${file}`),
  ];
  const inputs = [
    ...Object.values(metafile.outputs).flatMap((output) => Object.keys(output.inputs)),
    ...page.inputs,
  ];
  const folders = inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  const packages = [...new Set(folders)].filter((folder) => folder !== undefined).map(packageIn);
  return { files: files.sort(), packages: packages.sort((one, other) => (key(one) < key(other) ? -1 : 1)) };
}

function key({ name, version }) {
  return `${name}@${version}`;
}

function packageIn(relative) {
  const folder = join(root, relative);
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^licen[cs]e(?:\.|$)/i.test(one));
  const text = file === undefined ? "" : readFileSync(join(folder, file), "utf8");
  return { name, version, license, text };
}
