import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { ALERTS, ruleGroups } from "../../deploy/generate/observability/alerts.ts";
import { ROWS } from "../../deploy/generate/observability/dashboard.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { CASES, type Series } from "./fixtures/alert-cases.ts";

const FIRST_BUILD_MS = 60 * 60_000;
const RULES = join(import.meta.dirname, "..", "..", "deploy", "monitoring", "rules.yaml");

// Only if promtool can't be built; global-setup.ts reports it after the summary.
describe.skipIf(inject("clusterUnavailable") !== "")("promtool", () => {
  const folder = mkdtempSync(join(tmpdir(), "usher-alerts-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let promtool = "";
  beforeAll(async () => {
    promtool = await ensureTool("promtool");
  }, FIRST_BUILD_MS);

  /** JSON is YAML too. */
  function written(name: string, value: unknown): string {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(value));
    return path;
  }

  function run(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: "utf8" });
    expect(status, stdout + stderr).toBe(0);
    return stdout + stderr;
  }

  test("the rules are valid, also for the linter", () => {
    expect(run("check", "rules", "--lint=all", "--lint-fatal", RULES)).toContain(
      `${ALERTS.length} rules found`,
    );
  });

  test("every query of the dashboard parses", () => {
    const queries = ROWS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries));
    const rules = queries.map(({ expr }, i) => ({
      record: `query:${i}`,
      // Grafana's own variable.
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
    const path = written("queries.yaml", { groups: [{ name: "dashboard", rules }] });
    expect(run("check", "rules", "--lint=none", path)).toContain(`${queries.length} rules found`);
  });

  test("each alert fires for its condition with its text, and not for a healthy state", () => {
    const rules = new Map(
      ruleGroups("docs/runbook.md").flatMap((group) => group.rules.map((rule) => [rule.alert, rule])),
    );
    expect(Object.keys(CASES).sort()).toEqual([...rules.keys()].sort());
    const tests = Object.entries(CASES).flatMap(([alertname, { fires, silent }]) => {
      const rule = rules.get(alertname);
      const exp_annotations = { ...rule?.annotations, description: fires.says };
      const exp_labels = { ...rule?.labels, ...fires.labels };
      return [
        alertTest(alertname, fires, [{ exp_labels, exp_annotations }]),
        alertTest(alertname, silent, []),
      ];
    });
    const path = written("tests.yaml", { rule_files: [RULES], evaluation_interval: "1m", tests });
    expect(run("test", "rules", path)).toContain("SUCCESS");
  });
});

function alertTest(alertname: string, { series, at }: { series: Series; at: string }, exp_alerts: unknown[]) {
  return {
    interval: "1m",
    name: `${alertname} ${exp_alerts.length === 0 ? "silent" : "fires"}`,
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [{ eval_time: at, alertname, exp_alerts }],
  };
}
