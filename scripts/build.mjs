// `npm run build`: the files of the package and the image: one bundled file for the command line, its worker beside it,
// the library, and the types.
import { chmodSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle, common } from "./bundle.mjs";
import { environment, root, run, setup } from "./setup.mjs";

const node = setup();
process.env.PATH = environment(node).PATH;
const { build } = await import("esbuild");
const dist = join(root, "dist");
rmSync(dist, { recursive: true, force: true });

await bundle(dist);
chmodSync(join(dist, "usher.mjs"), 0o755);

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
  outdir: dist,
  entryPoints: { index: "src/index.ts", ...moduleEntries() },
  packages: "external",
});

process.exit(run(node, "typescript/bin/tsc", ["-p", "tsconfig.types.json"]));
