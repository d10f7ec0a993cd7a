import { expect, test } from "vitest";
import { testSource } from "../../../../test/support/admission/example-cluster.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import type { Figure, Metric } from "../../../core/module/metric.ts";
import { createMetrics } from "./metrics.ts";

const EVALUATIONS: Metric = {
  name: "pod_security_evaluations_total",
  type: "counter",
  help: "Number of policy evaluations that occurred.",
  labels: [
    { name: "decision", values: ["allow", "deny"] },
    { name: "policy_version", limit: 2 },
  ],
};

const PROJECTS: Metric = {
  name: "usher_projects",
  type: "gauge",
  help: "Projects of users at or over their limit.",
  labels: [{ name: "user", limit: 2 }],
};

async function metricsOf(declared: readonly Metric[], figures: () => readonly Figure[] = () => []) {
  const { assembly } = testSource();
  const modules = assembly.modules.map((module) => ({ ...module, metrics: declared }));
  const own = new Assembly(modules, assembly.installation, assembly.gates);
  return createMetrics({
    assembly: () => own,
    certificateExpires: () => 0,
    controllerStats: () => ({
      items: { due: 0, later: 0, running: 0 },
      failing: new Map(),
      writes: [],
      figures: figures(),
    }),
  });
}

function seriesOf(text: string, name: string): string[] {
  return text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

const step = (decision: string, version: string, by?: number) => ({
  metric: EVALUATIONS.name,
  labels: { decision, policy_version: version, user: "jane" },
  ...(by === undefined ? {} : { by }),
});

test("a declared counter, under upstream's name, counts with bounded labels", async () => {
  const metrics = await metricsOf([EVALUATIONS]);
  metrics.count([step("allow", "latest"), step("allow", "latest", 2), step("perhaps", "v1.30")]);
  metrics.count([step("deny", "v1.31"), step("deny", "v1.32"), step("deny", "")]);
  expect(seriesOf(await metrics.text(), EVALUATIONS.name)).toEqual([
    'pod_security_evaluations_total{decision="allow",policy_version="latest"} 3',
    'pod_security_evaluations_total{decision="other",policy_version="v1.30"} 1',
    'pod_security_evaluations_total{decision="deny",policy_version="other"} 2',
    'pod_security_evaluations_total{decision="deny",policy_version=""} 1',
  ]);
  metrics.stop();
});

test("ignores invalid increments and undeclared metrics", async () => {
  const metrics = await metricsOf([EVALUATIONS]);
  const wrong = [0, -1, Number.NaN, Number.POSITIVE_INFINITY].map((by) => step("allow", "latest", by));
  metrics.count([...wrong, { metric: "nobody_declares_this_total", labels: {} }]);
  const text = await metrics.text();
  expect(seriesOf(text, EVALUATIONS.name)).toEqual([]);
  expect(text).not.toContain("nobody_declares_this_total");
  metrics.stop();
});

test("reads a declared gauge from the reconciler at each scrape, drops removed values, and sums values beyond the limit", async () => {
  let figures: Figure[] = [];
  const metrics = await metricsOf([PROJECTS], () => figures);
  const projects = (user: string, value: number) => ({ metric: PROJECTS.name, labels: { user }, value });
  expect(seriesOf(await metrics.text(), PROJECTS.name)).toEqual([]);
  figures = [projects("ann", 3), projects("bob", 5), projects("cat", 7), projects("dan", 11)];
  expect(seriesOf(await metrics.text(), PROJECTS.name)).toEqual([
    'usher_projects{user="ann"} 3',
    'usher_projects{user="bob"} 5',
    'usher_projects{user="other"} 18',
  ]);
  figures = [projects("eve", 1), projects("ann", 0), projects("eve", Number.NaN)];
  expect(seriesOf(await metrics.text(), PROJECTS.name)).toEqual([
    'usher_projects{user="eve"} 1',
    'usher_projects{user="ann"} 0',
  ]);
  metrics.stop();
});

test("initial series of a counter start at zero, and count", async () => {
  const series = { decision: "allow", policy_version: "latest" };
  const metrics = await metricsOf([{ ...EVALUATIONS, initial: [series] }]);
  const zero = 'pod_security_evaluations_total{decision="allow",policy_version="latest"} 0';
  expect(seriesOf(await metrics.text(), EVALUATIONS.name)).toEqual([zero]);
  metrics.count([step("allow", "latest")]);
  expect(seriesOf(await metrics.text(), EVALUATIONS.name)).toEqual([zero.replace(/0$/, "1")]);
  metrics.stop();
});

test("a metric that is not registered in this installation is neither exported nor counted", async () => {
  const metrics = await metricsOf([{ ...EVALUATIONS, registered: () => false }]);
  metrics.count([step("allow", "latest")]);
  expect(await metrics.text()).not.toContain(EVALUATIONS.name);
  metrics.stop();
});
