import { codesOf } from "../../../src/core/module/codes.ts";
import type { Module } from "../../../src/core/module/module.ts";
import { ALERTS } from "./alerts.ts";

/** Regenerates the generated parts of the page: one section for each alert and each error code. The rest is written by hand. */
export function runbook(page: string, modules: readonly Module[]): string {
  const alerts = ALERTS.map(({ name, severity, summary, description, remedy, expr, for: lasting }) =>
    [
      `### ${name}`,
      `${summary} ${plain(description)} (${severity})`,
      `\`${expr}\`${lasting === "0m" ? "" : `, for ${lasting}`}`,
      remedy,
    ].join("\n\n"),
  );
  const codes = codesOf(modules).map(({ code, title, meaning, remedy }) =>
    [`### ${code}`, `**${title}.** ${meaning}`, remedy].join("\n\n"),
  );
  return replaced(replaced(page, "alerts", alerts), "codes", codes);
}

/** Prometheus' templates, as words. */
function plain(description: string): string {
  return description
    .replace(/\{\{ \$labels\.(\w+) \}\}/g, "`$1`")
    .replace(/\{\{ \$value[^}]*\}\}/g, "(the value)");
}

function replaced(page: string, part: string, sections: readonly string[]): string {
  const [begin, end] = [`<!-- generated: ${part} -->`, `<!-- end of ${part} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/runbook.md: no lines ${begin} and ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${sections.join("\n\n")}\n\n${page.slice(to)}`;
}
