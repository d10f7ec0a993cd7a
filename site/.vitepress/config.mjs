// The site of docs/, built by `npm run docs`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { addressOf, copyPages, pagesFolder, root, sidebar } from "../pages.mjs";

const { version, description } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** Releases whose documents stay published, newest first; each is served below its version. */
const versions = JSON.parse(readFileSync(join(root, "site/versions.json"), "utf8"));
const files = copyPages();

export default defineConfig({
  title: "Usher",
  description,
  lang: "en",
  base: process.env["SITE_BASE"] ?? "/",
  srcDir: pagesFolder,
  outDir: join(root, "site/dist"),
  cleanUrls: true,
  markdown: {
    languageAlias: { console: "shellsession" },
    // As GitHub names headings, so that a link with an anchor works in both places.
    anchor: {
      slugify: (text) =>
        text
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, "")
          .replace(/\s/g, "-"),
    },
    config: (md) => md.core.ruler.after("inline", "links-between-files", linksBetweenFiles),
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sidebar(),
    nav: [
      { text: "Five minutes", link: "/start#five-minutes" },
      { text: "Command line", link: "/cli" },
      {
        text: `v${version}`,
        items: [
          { text: "Changelog", link: "/changelog" },
          ...versions.map((one) => ({ text: `Documents of ${one}`, link: `/${one}/`, target: "_self" })),
        ],
      },
    ],
  },
});

/** Turns links between files into links between pages. A link to a file that is not a page keeps only its text. */
function linksBetweenFiles(state) {
  const file = files.get(state.env.relativePath);
  for (const token of state.tokens) {
    let inPage = true;
    token.children = token.children?.filter((child) => {
      if (child.type === "link_open") {
        const href = child.attrGet("href");
        const address = /^(https?:|mailto:)/.test(href) ? href : addressOf(file, decodeURI(href));
        inPage = address !== undefined;
        if (inPage) child.attrSet("href", address);
      }
      return inPage || !child.type.startsWith("link_");
    });
  }
}
