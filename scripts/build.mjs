// `npm run build`: what is published and put into the image: one bundled file for the command line, its workers beside it, the
// library, and the types.
import { chmodSync, copyFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { environment, root, run, setup } from "./setup.mjs";

const node = setup();
process.env.PATH = environment(node).PATH;
const { build } = await import("esbuild");
const dist = join(root, "dist");
rmSync(dist, { recursive: true, force: true });

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node24",
  format: "esm",
  outdir: dist,
  outExtension: { ".js": ".mjs" },
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

await build({
  ...common,
  entryPoints: {
    main: "src/cli/main.ts",
    "ops-worker": "src/admission/observe/ops-worker.ts",
    "reader-worker": "src/files/reader/reader-worker.ts",
  },
  splitting: true,
  // Beside the entries: a chunk finds the workers by its own address.
  chunkNames: "chunk-[hash]",
  banner: { js: banner.js },
});

/** Each module can be imported by its name: `@usher-dev/usher/placement`. */
function moduleEntries() {
  const folders = readdirSync(join(root, "src/modules"), { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );
  return Object.fromEntries(folders.map(({ name }) => [name, `src/modules/${name}/index.ts`]));
}

// The library leaves zod outside: a schema that a consumer writes must be of the same zod as ours.
await build({
  ...common,
  entryPoints: { index: "src/index.ts", ...moduleEntries() },
  splitting: true,
  chunkNames: "chunk-[hash]",
  packages: "external",
});

copyFileSync(join(root, "bin/usher.mjs"), join(dist, "usher.mjs"));
chmodSync(join(dist, "usher.mjs"), 0o755);
process.exit(run(node, "typescript/bin/tsc", ["-p", "tsconfig.types.json"]));
