import type { Json } from "../../core/json.ts";
import type { ITEM_FORMATS, ItemFinding, ReportItem, TextPlace } from "../../core/module/command.ts";
import type { Code } from "../../core/module/module.ts";
import { version } from "../version.ts";
import { junitText } from "./junit.ts";
import { printable } from "./terminal.ts";

/** The subject of a report, beside its items. */
export interface ItemContext {
  /** `usher review` */
  readonly command: string;
  /** For the heading of Markdown. */
  readonly summary: string;
  /** Explains the codes of findings. */
  readonly codes: readonly Code[];
}

/** The formats of pipelines: all are made of the same items. */
export const ITEM_PRINTERS: Readonly<
  Record<(typeof ITEM_FORMATS)[number], (items: readonly ReportItem[], context: ItemContext) => string>
> = { junit, sarif, markdown, name };

/** Whether an item has findings or changes: `--changed-only` leaves out the others. */
export function isChanged({ findings }: ReportItem): boolean {
  return findings.length > 0;
}

/** `Deployment shop/web` */
function title({ object: { kind, namespace = "", name: named } }: ReportItem): string {
  return printable(`${kind} ${namespace === "" ? "" : `${namespace}/`}${named}`);
}

/** As `kubectl -o name`: one `kind/name` a line, for `xargs`. */
function name(items: readonly ReportItem[]): string {
  return items.map(({ object }) => printable(`${object.kind.toLowerCase()}/${object.name}`)).join("\n");
}

/** For the comment of a pull request. */
function markdown(items: readonly ReportItem[], { command, summary }: ItemContext): string {
  const lines = [`**${command}**: ${summary}`];
  const shown = items.filter(isChanged);
  if (shown.length === 0) return lines.join("\n");
  lines.push("", "| object | verdict | what | by |", "| --- | --- | --- | --- |");
  for (const item of shown) {
    const what = item.findings.map(
      ({ message, code }) => `${cell(message)}${/^USHER-/.test(code) ? ` (${code})` : ""}`,
    );
    const by = [...new Set(item.findings.flatMap((one) => (one.by === undefined ? [] : [one.by])))];
    lines.push(
      `| ${cell(title(item))} | ${cell(item.verdict)} | ${what.join("<br>")} | ${by.map(cell).join(", ") || "-"} |`,
    );
  }
  return lines.join("\n");
}

/** Text of a manifest may hold anything: nothing of it becomes a link, a tag or another cell. */
function cell(text: string): string {
  return printable(text).replace(/[\\`*_{}[\]<>()#+!|~]/g, (one) => `\\${one}`);
}

/** One test case an item: errors are its failure, the rest its output. */
function junit(items: readonly ReportItem[], { command }: ItemContext): string {
  const cases = items.map((item) => {
    const [errors, others] = [item.findings.filter(isError), item.findings.filter((one) => !isError(one))];
    const text = (list: readonly ItemFinding[]) => list.map((one) => described(one, item)).join("\n");
    const { file = "", line } = item.at ?? {};
    return {
      name: title(item),
      seconds: 0,
      file: printable(file),
      ...(line === undefined ? {} : { line }),
      ...(errors.length === 0
        ? {}
        : {
            problem: {
              type: "failure" as const,
              message: printable(errors.map(({ message, code }) => `${message} (${code})`).join("; ")),
              text: text(errors),
            },
          }),
      ...(others.length === 0 ? {} : { note: text(others) }),
    };
  });
  return junitText([{ name: command, file: "", cases }]);
}

function isError({ level }: ItemFinding): boolean {
  return level === "error";
}

/** `policies/etcd.yaml:3:5: error: spec.podSelector: … (USHER-E13)` */
function described(finding: ItemFinding, item: ReportItem): string {
  const { level, message, code, hint } = finding;
  const where = placeText(finding.at ?? item.at);
  return `${where}${level}: ${printable(message)} (${code})${hint === undefined ? "" : `; ${printable(hint)}`}`;
}

/** `policies/etcd.yaml:3:5: `, or nothing. */
export function placeText(at: TextPlace | undefined): string {
  if (at === undefined) return "";
  const { file, line, column } = at;
  return printable(
    [file, ...(line === undefined ? [] : [line, ...(column === undefined ? [] : [column])])].join(":"),
  ).concat(": ");
}

const SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json";
const INFORMATION = "https://github.com/usher-dev/usher";

/** SARIF 2.1.0, which code scanning of GitHub and GitLab and most editors read. */
function sarif(items: readonly ReportItem[], { codes }: ItemContext): string {
  const found = items.flatMap((item) => item.findings.map((finding) => ({ item, finding })));
  const ids = [...new Set(found.map(({ finding }) => finding.code))].sort();
  const rules = ids.map((id) => rule(id, codes));
  const results = found.map(({ item, finding }) => result(item, finding, ids.indexOf(finding.code)));
  const driver = {
    name: "usher",
    semanticVersion: version(),
    informationUri: INFORMATION,
    rules,
  };
  const log: Json = {
    $schema: SARIF_SCHEMA,
    version: "2.1.0",
    runs: [{ tool: { driver }, columnKind: "utf16CodeUnits", results }],
  };
  return JSON.stringify(log, null, 2);
}

function rule(id: string, codes: readonly Code[]): Json {
  const known = codes.find(({ code }) => code === id);
  if (known === undefined) return { id, shortDescription: { text: id } };
  const { title: short, meaning, remedy } = known;
  return {
    id,
    name: short,
    shortDescription: { text: short },
    fullDescription: { text: meaning },
    help: {
      text: `${meaning}\n\nWhat to do: ${remedy}`,
      markdown: `${meaning}\n\n**What to do:** ${remedy}`,
    },
  };
}

function result(item: ReportItem, finding: ItemFinding, ruleIndex: number): Json {
  const { level, code, message, hint, at = item.at } = finding;
  const text = `${title(item)}: ${printable(message)}${hint === undefined ? "" : `; ${printable(hint)}`}`;
  const physical = at === undefined ? {} : { physicalLocation: physicalLocation(at) };
  const logical = { logicalLocations: [{ fullyQualifiedName: title(item), kind: "object" }] };
  return {
    ruleId: code,
    ruleIndex,
    level,
    message: { text },
    locations: [{ ...physical, ...logical }],
  };
}

/** A file as a URI reference, below the directory that usher runs in; standard input has no file. */
function physicalLocation({ file, line, column }: TextPlace): Json {
  const uri = encodeURI(file.replace(/^\.\//, "")).replaceAll("#", "%23").replaceAll("?", "%3F");
  return {
    artifactLocation: { uri },
    ...(line === undefined
      ? {}
      : { region: { startLine: line, ...(column === undefined ? {} : { startColumn: column }) } }),
  };
}
