import type { Json } from "../../core/json.ts";
import type { CommandReport, OutputFormat } from "../../core/module/command.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal } from "../output/terminal.ts";
import { yamlText } from "../output/yaml.ts";
import { emitText } from "../review/emit.ts";

/** Prints a report in the chosen format. Notes are on stderr, so they come with every format. */
export function printReport(report: CommandReport, format: OutputFormat, screen: Terminal): void {
  printBody(report, format, screen);
  for (const note of report.notes ?? []) screen.note(printable(note));
}

function printBody(report: CommandReport, format: OutputFormat, screen: Terminal): void {
  if (report.manifests !== undefined) {
    screen.out(emitText(report.manifests, format === "json" ? "json" : "yaml"));
    return;
  }
  if (format !== "table") {
    printData(report.data, format, screen);
    return;
  }
  const { columns = [], rows = [] } = report.table ?? {};
  printTable(columns, rows, screen);
  if (report.summary !== undefined)
    screen.out(`${rows.length === 0 ? "" : "\n"}${printable(report.summary)}`);
}

export function printTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  { out, width }: Terminal,
): void {
  if (rows.length === 0) return;
  const safe = rows.map((row) => row.map(printable));
  for (const line of table(columns, safe, width)) out(line);
}

export function printData(data: Json, format: "json" | "yaml", { out }: Terminal): void {
  out(format === "json" ? JSON.stringify(data, null, 2) : yamlText(data));
}
