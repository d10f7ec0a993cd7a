import { isObject, type Json } from "../../core/json.ts";
import type { CommandReport, OutputFormat } from "../../core/module/command.ts";
import type { Code } from "../../core/module/module.ts";
import { ITEM_PRINTERS, isChanged } from "../output/formats.ts";
import { table } from "../output/table.ts";
import { printable, type Terminal } from "../output/terminal.ts";
import { kindOf, versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { emitText } from "../review/emit.ts";

interface Printed {
  readonly output: OutputFormat;
  readonly changedOnly?: boolean;
}

/** The command that prints. */
interface Printer {
  /** `usher placement status` */
  readonly path: string;
  readonly codes: readonly Code[];
}

/** Prints a report in the chosen format. Notes are on stderr, with every format. */
export function printReport(
  report: CommandReport,
  options: Printed,
  printer: Printer,
  screen: Terminal,
): void {
  printBody(report, options, printer, screen);
  for (const note of report.notes ?? []) screen.note(printable(note));
}

function printBody(
  report: CommandReport,
  { output, changedOnly = false }: Printed,
  { path, codes }: Printer,
  screen: Terminal,
): void {
  if (report.manifests !== undefined) {
    screen.out(emitText(report.manifests, output === "json" ? "json" : "yaml"));
    return;
  }
  if (output === "json" || output === "yaml") {
    printData(path, report.data, output, screen);
    return;
  }
  if (output === "table" || output === "wide") {
    const { columns = [], rows = [] } = report.table ?? {};
    printTable(columns, rows, screen);
    if (report.summary !== undefined)
      screen.out(`${rows.length === 0 ? "" : "\n"}${printable(report.summary)}`);
    return;
  }
  const items = (report.items ?? []).filter((item) => !changedOnly || isChanged(item));
  const context = {
    command: path,
    summary: printable(report.summary ?? ""),
    codes: [...codes, ...(report.codes ?? [])],
  };
  const text = ITEM_PRINTERS[output](items, context);
  if (text !== "") screen.out(text);
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

/** Data that is an object of Kubernetes, such as a List, has a kind of its own. */
export function printData(path: string, data: Json, format: "json" | "yaml", { out }: Terminal): void {
  const shaped = isObject(data) && data["kind"] === undefined ? versioned(kindOf(path), data) : data;
  out(format === "json" ? JSON.stringify(shaped, null, 2) : yamlText(shaped));
}
