// `npm run recording`: runs the commands of the README in the real program and draws them as an animated terminal,
// docs/images/five-minutes.svg. A reader whose system asks for less motion sees the last screen.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { environment, root, setup } from "./setup.mjs";

const COLUMNS = 126;
/** A longer output is cut with an ellipsis. */
const MOST_ROWS = 26;
const CELL = { width: 7.8, height: 18 };
const PADDING = 16;
/** Seconds to type a command, and to read its output. */
const TYPING = 1.6;
const READING = 5;

/** Colours of ECMA-48, as far as usher writes them, readable on a dark background. */
const COLOURS = { 31: "#ff8e85", 32: "#7ee787", 33: "#e3b341", 34: "#79c0ff", 36: "#76e3ea", 90: "#9aa4af" };
const TEXT = "#e6edf3";
const MUTED = "#9aa4af";

/** Commands before "How it works" that end by themselves and print something worth watching. */
function commands() {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const section = readme.slice(0, readme.indexOf("## How it works"));
  const found = section.matchAll(/^\$ (bin\/usher (?:review|what-if|explain) .+?)(?: \|\| true)?$/gm);
  return [...found].map(([, command]) => command);
}

function outputOf(command) {
  const env = { ...environment(setup()), FORCE_COLOR: "1", COLUMNS: String(COLUMNS) };
  const { stdout, stderr } = spawnSync("sh", ["-c", command], { cwd: root, encoding: "utf8", env });
  const lines = `${stderr}${stdout}`.trimEnd().split("\n");
  const room = MOST_ROWS - 1;
  return lines.length > room ? [...lines.slice(0, room - 1), "…"] : lines;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** One line with its colours as spans. */
function spans(line) {
  let style = "";
  const parts = line.split(/\x1b\[([\d;]*)m/);
  return parts
    .map((part, index) => {
      if (index % 2 === 0) return part === "" ? "" : `<tspan${style}>${escaped(part)}</tspan>`;
      const codes = part.split(";").map(Number);
      const colour = codes.map((code) => COLOURS[code]).find(Boolean);
      style = `${colour ? ` fill="${colour}"` : ""}${codes.includes(1) ? ' font-weight="600"' : ""}${codes.includes(2) ? ` fill="${MUTED}"` : ""}`;
      return "";
    })
    .join("");
}

function textAt(row, content) {
  return `<text x="${PADDING}" y="${(PADDING + 30 + row * CELL.height).toFixed(1)}" xml:space="preserve">${content}</text>`;
}

const screens = commands().map((command) => ({ command, output: outputOf(command) }));
const rows = 1 + Math.max(...screens.map(({ output }) => output.length));
const each = TYPING + READING;
const total = screens.length * each;
const width = Math.round(2 * PADDING + COLUMNS * CELL.width);
const height = 2 * PADDING + 30 + rows * CELL.height;
const percent = (seconds) => `${((100 * seconds) / total).toFixed(2)}%`;

/** Keyframes that show something from one moment to another, and hide it before and after. */
function shown(name, from, to) {
  const before = from === 0 ? "" : `0%,${percent(from - 0.01)}{opacity:0}`;
  const after = to >= total ? "" : `${percent(to)},100%{opacity:0}`;
  return `@keyframes ${name}{${before}${percent(from)},${percent(to - 0.01)}{opacity:1}${after}}`;
}

const style = screens.map((_, index) => {
  const start = index * each;
  return `${shown(`screen${index}`, start, start + each)}${shown(`output${index}`, start + TYPING, start + each)}
@keyframes typed${index}{0%,${percent(start)}{width:0}${percent(start + TYPING - 0.3)},100%{width:${width}px}}
#screen${index}{animation:screen${index} ${total}s infinite}#output${index}{animation:output${index} ${total}s infinite}#typed${index}{animation:typed${index} ${total}s infinite steps(40)}`;
});

const drawn = screens.map(({ command, output }, index) => {
  const last = index === screens.length - 1;
  const lines = output.map((line, row) => textAt(row + 1, spans(line))).join("\n");
  return `<clipPath id="clip${index}"><rect id="typed${index}" x="0" y="0" width="${width}" height="${height}"/></clipPath>
<g id="screen${index}"${last ? "" : ' opacity="0"'}><g clip-path="url(#clip${index})">${textAt(0, `<tspan fill="${COLOURS[32]}">$</tspan> ${escaped(command)}`)}</g><g id="output${index}">${lines}</g></g>`;
});

const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A terminal: ${escaped(screens.map(({ command }) => command).join("; ")).replaceAll('"', "&quot;")}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="${TEXT}">
<style>@media (prefers-reduced-motion: no-preference){${style.join("\n")}}</style>
<rect width="${width}" height="${height}" rx="10" fill="#0d1117" stroke="#3d444d"/>
${["#ff5f57", "#febc2e", "#28c840"].map((colour, index) => `<circle cx="${PADDING + 6 + index * 18}" cy="${PADDING + 2}" r="5" fill="${colour}"/>`).join("")}
${drawn.join("\n")}
</svg>
`;
writeFileSync(join(root, "docs/images/five-minutes.svg"), svg);
