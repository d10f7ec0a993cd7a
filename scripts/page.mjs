// The page of the dashboard as files that a browser loads: `node scripts/page.mjs DIRECTORY`.
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./setup.mjs";

const FOLDER = "src/dashboard/page";

/** Bundles script and style into a folder, with the document beside them; gives the names of the files, and what is in the script. */
export async function bundlePage(outdir) {
  const { build } = await import("esbuild");
  mkdirSync(outdir, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { page: `${FOLDER}/page.tsx`, style: `${FOLDER}/page.css` },
    outdir,
    // Both entries are called page where they are served.
    entryNames: "[name]",
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2023",
    jsx: "automatic",
    jsxImportSource: "preact",
    // Whatever a tsconfig says for the type check.
    tsconfigRaw: {},
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  copyFileSync(join(outdir, "style.css"), join(outdir, "page.css"));
  for (const file of ["index.html", "icon.svg"]) copyFileSync(join(root, FOLDER, file), join(outdir, file));
  return { files: ["icon.svg", "index.html", "page.css", "page.js"], inputs: Object.keys(metafile.inputs) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundlePage(process.argv[2]);
