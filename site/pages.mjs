// The Markdown files of the repository that are pages of the site, their addresses, and the sidebar, which is
// docs/README.md.
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const pagesFolder = join(root, "site/pages");

/** Files that are pages, by the address that they get. */
const ADDRESSES = [
  [/^README\.md$/, "start.md"],
  [/^docs\/(decisions\/|)README\.md$/, "$1index.md"],
  [/^docs\/((decisions\/|)[^/]+\.md)$/, "$1"],
  [/^src\/modules\/([^/]+)\/README\.md$/, "modules/$1.md"],
  [/^deploy\/chart\/README\.md$/, "chart.md"],
  [/^(CHANGELOG|CONTRIBUTING)\.md$/, "$1.md"],
];

/** The page of a Markdown file, as a path of the site: `docs/helm.md` is `helm.md`. Undefined for other files. */
function pageOf(file) {
  const found = ADDRESSES.find(([pattern]) => pattern.test(file));
  return found && file.replace(found[0], found[1]).toLowerCase();
}

/**
 * The address of a relative link in a file: links in the repository are between files, so that they work there, too.
 * Undefined for a link to a file that is not a page, such as a source file.
 */
export function addressOf(file, href) {
  const [target, anchor] = href.split("#");
  const page = target === "" ? pageOf(file) : pageOf(relative(root, join(root, dirname(file), target)));
  if (page === undefined) return undefined;
  const address = `/${page.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, "")}`;
  return anchor === undefined ? address : `${address}#${anchor}`;
}

/** Copies pages and pictures into the folder that VitePress builds from, and returns the file of each page. */
export function copyPages() {
  rmSync(pagesFolder, { recursive: true, force: true });
  const files = new Map();
  for (const file of globSync(["*.md", "docs/**/*.md", "src/modules/*/README.md", "deploy/chart/README.md"], {
    cwd: root,
  })) {
    const page = pageOf(file);
    if (page === undefined) continue;
    files.set(page, file);
    mkdirSync(dirname(join(pagesFolder, page)), { recursive: true });
    writeFileSync(join(pagesFolder, page), withPictures(readFileSync(join(root, file), "utf8")));
  }
  cpSync(join(root, "docs/images"), join(pagesFolder, "public/images"), { recursive: true });
  return files;
}

const PICTURE =
  /<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]+)" src="([^"]+)">\s*<\/picture>/g;

/**
 * Pictures are served from one folder. GitHub chooses between the two of a `<picture>` by the reader's system; the site
 * has a switch.
 */
function withPictures(text) {
  return text
    .replaceAll(/(src="|srcset="|\]\()(?:\.\.\/|docs\/)*images\//g, "$1/images/")
    .replaceAll(PICTURE, '<img class="by-day" alt="$2" src="$3"><img class="by-night" alt="$2" src="$1">');
}

/** A group for each heading of docs/README.md, with the links of its list. */
export function sidebar() {
  const groups = [];
  for (const line of readFileSync(join(root, "docs/README.md"), "utf8").split("\n")) {
    const heading = /^## (.+)$/.exec(line);
    if (heading) groups.push({ text: heading[1], collapsed: false, items: [] });
    const entry = /^- \[(.+?)\]\((.+?)\)/.exec(line);
    if (entry) groups.at(-1).items.push({ text: entry[1], link: addressOf("docs/README.md", entry[2]) });
  }
  return groups;
}
