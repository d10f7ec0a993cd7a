import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ALERTS, ruleGroups } from "../deploy/generate/observability/alerts.ts";
import { dashboard, ROWS } from "../deploy/generate/observability/dashboard.ts";
import { runbook } from "../deploy/generate/observability/runbook.ts";
import { exportedMetrics } from "../src/admission/observe/metrics/catalogue.ts";
import { at, listAt, stringAt } from "../src/core/json.ts";
import { codesOf } from "../src/core/module/codes.ts";
import { allModules } from "../src/modules/all.ts";

const page = readFileSync(join(import.meta.dirname, "..", "docs", "runbook.md"), "utf8");
const exported = new Map(
  exportedMetrics(allModules)
    .flatMap(({ metrics }) => metrics)
    .map((metric) => [metric.name, metric]),
);

/** The labels that Prometheus adds to every series that it scrapes from a pod. */
const OF_TARGET = ["pod", "instance", "job", "namespace"];

/** The metrics of a query, without the suffixes of a histogram's series. */
function metricsIn(expr: string) {
  const names = expr.match(/\b(?:usher|process|pod_security)_\w+/g) ?? [];
  return names.map((name) => {
    const base = name.replace(/_(?:bucket|sum|count)$/, "");
    const found = exported.get(name) ?? exported.get(base);
    expect(found, `${name} is not exported: ${expr}`).toBeDefined();
    if (!exported.has(name)) expect(found?.type, expr).toBe("histogram");
    const of = [...(found?.labels ?? []), ...OF_TARGET, ...(name.endsWith("_bucket") ? ["le"] : [])];
    return { name, labels: of };
  });
}

/** Labels that a query selects or groups by. */
function labelsIn(expr: string): string[] {
  const grouped = [...expr.matchAll(/\b(?:by|on|group_left)\s*\(([^()]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(","),
  );
  const selected = [...expr.matchAll(/\{([^{}]*)\}/g)].flatMap(([, list = ""]) =>
    [...list.matchAll(/(\w+)\s*[=!]/g)].map(([, label = ""]) => label),
  );
  return [...grouped, ...selected].map((label) => label.trim()).filter((label) => label !== "");
}

const queries = [
  ...ALERTS.map(({ name, expr }) => [name, expr] as const),
  ...ROWS.flatMap(({ panels }) =>
    panels.flatMap((panel) => panel.queries.map(({ expr }) => [panel.title, expr] as const)),
  ),
];

test.each(queries)("%s queries exported metrics and labels: %s", (_, expr) => {
  const metrics = metricsIn(expr);
  expect(metrics.length).toBeGreaterThan(0);
  const known = new Set(metrics.flatMap(({ labels }) => labels));
  expect(labelsIn(expr).filter((label) => !known.has(label))).toEqual([]);
});

test.each(ROWS.flatMap(({ panels }) => panels.flatMap(({ queries: all }) => all)))(
  "the legend $legend names labels of $expr",
  ({ expr, legend }) => {
    // Aggregation drops labels that it does not group by.
    const grouped = [...expr.matchAll(/\bby\s*\(([^()]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
    const aggregated = /\b(?:sum|max|min)\b/.test(expr);
    const known = aggregated ? grouped : metricsIn(expr).flatMap(({ labels }) => labels);
    const named = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
    expect(named.filter((label) => !known.includes(label))).toEqual([]);
  },
);

test("each alert has a summary, a description, a severity and a section of the runbook", () => {
  const rules = ruleGroups("docs/runbook.md").flatMap((group) => group.rules);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(ALERTS.length);
  for (const { alert, labels, annotations } of rules) {
    expect(alert).toMatch(/^Usher[A-Z]\w+$/);
    expect(["critical", "warning"]).toContain(labels.severity);
    expect(annotations.summary).toMatch(/^[A-Z].*\.$/);
    expect(annotations.description).toMatch(/\.$/);
    const [file, anchor] = annotations.runbook_url.split("#");
    expect(file).toBe("docs/runbook.md");
    expect(page.split("\n").map((line) => line.replace(/^### /, "").toLowerCase())).toContain(anchor);
  }
});

test("the query keeps the labels that descriptions name", () => {
  for (const { name, expr, description } of ALERTS) {
    const named = [...description.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label);
    const grouped = [...expr.matchAll(/\bby\s*\(([^()]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
    const aggregated = /\b(?:sum|max|min|absent)\b/.test(expr);
    for (const label of named) if (aggregated) expect(grouped, name).toContain(label);
  }
});

test("the runbook has a generated section for every alert and every code", () => {
  expect(runbook(page, allModules)).toBe(page);
  for (const { code } of codesOf(allModules)) expect(page).toContain(`\n### ${code}\n`);
  for (const title of ["Usher is down", "Turn it off", "Upgrade and roll back"])
    expect(page).toContain(`\n## ${title}\n`);
});

test("a runbook without its markers is an error", () => {
  expect(() => runbook("# Runbook\n", allModules)).toThrow(/no lines <!-- generated: alerts -->/);
});

test("panels of the dashboard do not overlap, and all use the selected data source", () => {
  const panels = listAt(dashboard(), "panels");
  const cells = panels.flatMap((panel) => {
    const { x, y, w, h } = at(panel, "gridPos") as { x: number; y: number; w: number; h: number };
    return Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`);
  });
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(panels.map((panel) => at(panel, "id"))).size).toBe(panels.length);
  for (const panel of panels)
    if (stringAt(panel, "type") !== "row") expect(stringAt(panel, "datasource", "uid")).toBe("$datasource");
});
