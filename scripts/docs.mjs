// `npm run docs`: builds the site of docs/ into site/dist and checks its links; `-- --serve` shows it while you write.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { environment, root, setup } from "./setup.mjs";

const node = setup();
const site = join(root, "site");
const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");
if (!existsSync(vitepress)) {
  console.error("Installing VitePress for the site (once) …");
  // `npm ci` refuses a lock without rollup's packages for other platforms, which not every registry has.
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const installed = spawnSync("npm", args, { cwd: site, stdio: ["ignore", 2, 2] });
  if (installed.status !== 0) process.exit(2);
}
const command = process.argv.includes("--serve") ? "dev" : "build";
const built = spawnSync(node, [vitepress, command, site], { stdio: "inherit", env: environment(node) });
if (built.status !== 0) process.exit(built.status ?? 3);

const dead = command === "build" ? deadAnchors(join(site, "dist")) : [];
for (const line of dead) console.error(line);
process.exit(dead.length === 0 ? 0 : 1);

/** VitePress itself fails for a link to a page that does not exist, but not for a heading that does not. */
function deadAnchors(folder) {
  const pages = new Map(
    htmlFiles(folder).map((file) => [
      `/${file.replace(/(^|\/)index\.html$/, "$1").replace(/\.html$/, "")}`,
      readFileSync(join(folder, file), "utf8"),
    ]),
  );
  const lines = [];
  for (const [page, text] of pages)
    for (const [, path, anchor] of text.matchAll(/<a [^>]*href="([^"#:]*)#([^"]+)"/g)) {
      const target = path === "" ? page : path;
      if (!pages.get(target)?.includes(`id="${decodeURIComponent(anchor)}"`))
        lines.push(`${page} links to ${target}#${anchor}, and there is no such heading`);
    }
  return lines;
}

function htmlFiles(folder) {
  return readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".html"));
}
