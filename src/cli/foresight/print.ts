import { type ChangedLine, newWarnings, type Side } from "../../core/foresight/compare.ts";
import { type Foresight, fitsNowhere, type WorkloadDifference } from "../../core/foresight/foresee.ts";
import type { NodeReach } from "../../core/foresight/node-reach.ts";
import type { StandingDifference } from "../../core/foresight/standing-differences.ts";
import { tableRows } from "../output/table.ts";
import { printable, type Terminal } from "../output/terminal.ts";

const COLUMNS = ["OBJECT", "BEFORE", "AFTER", "CHANGES", "BY"];

/** How many names of objects with one result, or of nodes, a row has; `-o wide` and `-o json` have all names. */
const SHOWN_NAMES = 3;

/** One object, or several with the same result. */
export interface PrintedEntry {
  /** `Deployment shop/web` */
  readonly names: readonly string[];
  readonly before: string;
  readonly after: string;
  readonly changes: readonly (readonly [text: string, by: string])[];
  readonly style: "red" | "yellow" | undefined;
}

/** The entries to show, the worst first. Objects with the same result are one entry, unless all are requested. */
export function entriesOf(
  { workloads, nodes, users }: Pick<Foresight, "workloads" | "nodes" | "users">,
  all: boolean,
): PrintedEntry[] {
  const entries = [
    ...workloads.map((one) => workloadEntry(one, all)),
    // Added and removed nodes are the edits themselves.
    ...nodes.filter(({ effect }) => effect === "changed").map(standingEntry),
    ...users.map(standingEntry),
  ];
  if (all) return entries;
  const groups = Map.groupBy(entries, ({ names: _, ...rest }) => JSON.stringify(rest));
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ ...first, names: group.flatMap(({ names }) => names) }];
  });
}

function workloadEntry(one: WorkloadDifference, all: boolean): PrintedEntry {
  const { object, before, after, lines, nodes, effect } = one;
  const name = `${object.kind} ${object.namespace === "" ? "" : `${object.namespace}/`}${object.name}`;
  const refusals = effect === "refused" || effect === "still refused" || (effect === "new" && after?.refused);
  const changes: (readonly [string, string])[] = [
    ...lines.map(lineCells),
    ...(refusals ? (after?.violations ?? []) : []).map(violationCells),
    ...newWarnings(before, after).map((text) => [`! ${text}`, "-"] as const),
  ];
  if (nodes !== undefined && effect !== "new" && effect !== "gone")
    changes.push(...nodeCells(nodes, fitsNowhere(one), all));
  if (fitsNowhere(one))
    for (const { reason, nodes: count } of nodes?.after?.rejected ?? [])
      changes.push([`! ${number(count)} ${reason}`, "scheduler"]);
  return {
    names: [name],
    before: sideCell(before, nodes?.before),
    after: effect === "changed" && nodes === undefined ? "changed" : sideCell(after, nodes?.after),
    changes,
    style: after?.refused || fitsNowhere(one) ? "red" : effect === "warned" ? "yellow" : undefined,
  };
}

function lineCells({ sign, message, by }: ChangedLine): readonly [string, string] {
  return [`${sign} ${message}`, by];
}

function violationCells({ message, code, policy, module }: Side["violations"][number]) {
  return [`! ${message}${code === "" ? "" : ` (${code})`}`, policy === "" ? module : policy] as const;
}

/** If a pod fits nowhere, the reasons of all nodes follow. */
function nodeCells(
  { gained, lost }: NonNullable<WorkloadDifference["nodes"]>,
  nowhere: boolean,
  all: boolean,
): (readonly [string, string])[] {
  const byReason = Map.groupBy(lost, ({ reason }) => (nowhere ? "" : `: ${reason}`));
  return [
    ...[...byReason].map(
      ([reason, nodes]) =>
        [
          `- ${namesText(
            "node",
            nodes.map(({ node }) => node),
            all,
          )}${reason}`,
          "scheduler",
        ] as const,
    ),
    ...(gained.length === 0 ? [] : [[`+ ${namesText("node", gained, all)}`, "scheduler"] as const]),
  ];
}

/** `node etcd-0`, `nodes etcd-0, etcd-1 and 7 more` */
function namesText(noun: string, names: readonly string[], all: boolean): string {
  const shown = all ? names : names.slice(0, SHOWN_NAMES);
  const more = names.length - shown.length;
  return `${noun}${names.length === 1 ? "" : "s"} ${shown.join(", ")}${more > 0 ? ` and ${number(more)} more` : ""}`;
}

function sideCell(side: Side | undefined, reach: NodeReach | undefined): string {
  if (side === undefined) return "-";
  if (side.refused) return "refused";
  if (reach === undefined || reach.total === 0) return "admitted";
  const { fits, unknown, total } = reach;
  if (fits + unknown === 0) return "fits nowhere";
  const nodes = plural(total, "node");
  if (unknown === 0) return `${number(fits)} of ${nodes}`;
  return fits === 0
    ? `perhaps ${number(unknown)} of ${nodes}`
    : `${number(fits)} of ${nodes}, ${number(unknown)} unknown`;
}

/** `1,667`, as in all sentences. */
function number(count: number): string {
  return count.toLocaleString("en");
}

const STANDING_CELLS: Readonly<Record<StandingDifference["effect"], readonly [string, string]>> = {
  changed: ["-", "changed"],
  new: ["-", "added"],
  gone: ["-", "removed"],
  "over its limit": ["-", "over its limit"],
  "within its limit": ["over its limit", "-"],
};

function standingEntry({ object, effect, lines }: StandingDifference): PrintedEntry {
  const [before, after] = STANDING_CELLS[effect];
  return {
    names: [`${object.kind} ${object.namespace === undefined ? "" : `${object.namespace}/`}${object.name}`],
    before,
    after,
    changes: lines.map(lineCells),
    style: effect === "over its limit" ? "red" : undefined,
  };
}

/** Rows of a table: further names and changes on separate rows. */
function rowsOf({ names, before, after, changes }: PrintedEntry): string[][] {
  const more = names.length - SHOWN_NAMES - 1;
  const shown = more > 0 ? [...names.slice(0, SHOWN_NAMES), `and ${number(more + 1)} more`] : names;
  const height = Math.max(shown.length, changes.length, 1);
  return Array.from({ length: height }, (_, i) => {
    const [text = i === 0 ? "-" : "", by = i === 0 ? "-" : ""] = changes[i] ?? [];
    return [shown[i] ?? "", i === 0 ? before : "", i === 0 ? after : "", text, by].map(printable);
  });
}

export function printEntries(entries: readonly PrintedEntry[], { out, paint, width }: Terminal): void {
  if (entries.length === 0) return;
  const rows = entries.flatMap((entry) => rowsOf(entry).map((row, i) => ({ row, entry, first: i === 0 })));
  const [header = [], ...printed] = tableRows(
    COLUMNS,
    rows.map(({ row }) => row),
    width,
  );
  for (const line of header) out(line);
  const start = (header[0] ?? "").indexOf("AFTER");
  for (const [i, [line = "", ...more]] of printed.entries()) {
    const { entry, first } = rows[i] ?? {};
    const { after = "", style } = entry ?? {};
    const at = first && style !== undefined ? line.indexOf(after, start) : -1;
    // Coloured last, as escape sequences have no width.
    out(
      at < 0 || style === undefined
        ? line
        : `${line.slice(0, at)}${paint(style, after)}${line.slice(at + after.length)}`,
    );
    for (const text of more) out(text);
  }
}

/** Counts of differences; the JSON output has them as `summary`. */
export function countsOf({ workloads, nodes, users, pools, notAdmitted }: Foresight) {
  const count = (effect: WorkloadDifference["effect"]) =>
    workloads.filter((one) => one.effect === effect).length;
  const moved = workloads.filter(
    ({ effect, nodes: reach }) =>
      effect === "same" && reach !== undefined && reach.gained.length + reach.lost.length > 0,
  );
  return {
    workloads: workloads.length,
    newlyRefused: count("refused"),
    admittedAgain: count("admitted"),
    changed: count("changed"),
    warned: count("warned"),
    added: count("new"),
    removed: count("gone"),
    otherNodes: moved.length,
    fitNowhere: workloads.filter(fitsNowhere).length,
    daemonSets: workloads.filter(({ object, effect }) => object.kind === "DaemonSet" && effect === "changed")
      .length,
    nodes: nodes.length,
    usersOverLimit: users.filter(({ effect }) => effect === "over its limit").length,
    poolsThatEmpty: pools.filter(({ effect }) => effect === "empties").length,
    poolsThatFill: pools.filter(({ effect }) => effect === "fills").length,
    podsNotAdmitted: notAdmitted.reduce((sum, { pods }) => sum + pods, 0),
  };
}

/** Sentences, the most important first. */
export function summaryLines(foresight: Foresight): string[] {
  const counts = countsOf(foresight);
  const { looked, pools, notAdmitted } = foresight;
  const verbs: readonly (readonly [number, string])[] = [
    [counts.newlyRefused, "newly refused"],
    [counts.admittedAgain, "admitted again"],
    [counts.changed, "changed"],
    [counts.otherNodes, "on other nodes"],
    [counts.warned, "warned about"],
    [counts.added, "new"],
    [counts.removed, "gone"],
  ];
  const parts = verbs.filter(([count]) => count > 0).map(([count, verb]) => `${number(count)} ${verb}`);
  const differ = `${number(counts.workloads)} of ${plural(looked.workloads, "workload")} ${counts.workloads === 1 ? "differs" : "differ"}: ${parts.join(", ")}`;
  const nowhere =
    counts.fitNowhere === 0
      ? ""
      : `; ${number(counts.fitNowhere)} ${counts.fitNowhere === 1 ? "fits" : "fit"} nowhere`;
  const pool = (effect: string) => pools.filter((one) => one.effect === effect).map((one) => one.pool);
  return [
    ...(counts.workloads > 0 ? [`${differ}${nowhere}`] : []),
    ...(counts.daemonSets > 0 ? [`${plural(counts.daemonSets, "DaemonSet")} with other pods`] : []),
    ...(counts.nodes > 0
      ? [
          `${number(counts.nodes)} of ${plural(looked.nodes, "node")} ${counts.nodes === 1 ? "differs" : "differ"}`,
        ]
      : []),
    ...(counts.usersOverLimit > 0 ? [`${plural(counts.usersOverLimit, "user")} over the limit`] : []),
    ...pool("empties").map((name) => `pool ${name} empties: no workload may run there`),
    ...pool("fills").map((name) => `pool ${name} fills: workloads may run there`),
    ...(counts.podsNotAdmitted > 0
      ? [
          `${plural(counts.podsNotAdmitted, "running pod")} of ${plural(notAdmitted.length, "workload")} would not be admitted again`,
        ]
      : []),
  ];
}

/** The scope: `looked at 3 workloads with 5 pods and 6 nodes` */
export function lookedAt({ looked: { workloads, pods, nodes } }: Foresight): string {
  return `looked at ${plural(workloads, "workload")} with ${plural(pods, "pod")}, and ${plural(nodes, "node")}`;
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** As a table for a pull request. */
export function markdownOf(entries: readonly PrintedEntry[]): string[] {
  const cell = (text: string) => printable(text).replaceAll("|", "\\|") || " ";
  const code = (text: string) =>
    text === "-" ? "-" : `\`${printable(text).replaceAll("`", "'")}\``.replaceAll("|", "\\|");
  return [
    `| ${COLUMNS.map((one) => one.toLowerCase()).join(" | ")} |`,
    `| ${COLUMNS.map(() => "---").join(" | ")} |`,
    ...entries.map(({ names, before, after, changes }) => {
      const more = names.length - SHOWN_NAMES - 1;
      const shown = more > 0 ? [...names.slice(0, SHOWN_NAMES), `and ${number(more + 1)} more`] : names;
      const texts = changes.length === 0 ? ["-"] : changes.map(([text]) => code(text));
      const by = [...new Set(changes.map(([, one]) => one))].filter((one) => one !== "-");
      return `| ${shown.map(cell).join("<br>")} | ${cell(before)} | ${cell(after)} | ${texts.join("<br>")} | ${by.map(cell).join(", ") || "-"} |`;
    }),
  ];
}
