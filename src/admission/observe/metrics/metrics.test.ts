import { expect, test } from "vitest";
import { testSource } from "../../../../test/support/admission/example-cluster.ts";
import { METRICS } from "../../../core/evaluate/effects.ts";
import { createMetrics, LabelCap } from "./metrics.ts";

async function make() {
  const { assembly } = testSource();
  return createMetrics({ assembly: () => assembly, certificateExpires: () => 1_800_000_000 });
}

test("calls are counted by phase and code, and timed", async () => {
  const metrics = await make();
  metrics.observe("mutate", 200, 0.00007);
  metrics.observe("mutate", 200, 20);
  metrics.observe("mutate", 400, 0.1);
  metrics.observe(undefined, 404, 0.1);
  const text = await metrics.text();
  expect(text).toContain('usher_requests_total{phase="mutate",code="200"} 2\n');
  expect(text).toContain('usher_requests_total{phase="mutate",code="400"} 1\n');
  expect(text).toContain('usher_requests_total{phase="none",code="404"} 1\n');
  expect(text).toContain('usher_request_duration_seconds_bucket{le="0.00005",phase="mutate"} 0\n');
  expect(text).toContain('usher_request_duration_seconds_bucket{le="0.0001",phase="mutate"} 1\n');
  expect(text).toContain('usher_request_duration_seconds_bucket{le="10",phase="mutate"} 2\n');
  expect(text).toContain('usher_request_duration_seconds_count{phase="mutate"} 3\n');
  metrics.stop();
});

test("exports controller metrics only in a process with a controller", async () => {
  const { assembly } = testSource();
  let count = 3;
  const controllerStats = () => ({
    items: { due: 2, later: 1, running: 4 },
    failing: new Map([["seating", 1]]),
    writes: [{ module: "seating", resource: "nodes", result: "failed" as const, count }],
    figures: [],
    leading: true,
    droppedEvents: 7,
  });
  const options = { assembly: () => assembly, certificateExpires: () => 0 };
  const metrics = await createMetrics({ ...options, controllerStats });
  const text = await metrics.text();
  expect(text).toContain('usher_plan_items{state="due"} 2\n');
  expect(text).toContain("usher_events_dropped_total 7\n");
  expect(text).toContain("usher_leader 1\n");
  expect(text).toContain('usher_plan_items_failing{module="seating"} 1\n');
  const failed = 'usher_plan_writes_total{module="seating",resource="nodes",result="failed"}';
  expect(text).toContain(`${failed} 3\n`);
  count = 5;
  expect(await metrics.text()).toContain(`${failed} 5\n`);
  metrics.stop();
  const bystander = await createMetrics(options);
  expect(await bystander.text()).not.toContain("usher_plan_");
  bystander.stop();
});

test("counts the counters of core", async () => {
  const metrics = await make();
  const labels = { hook: "a", phase: "mutate", verdict: "patch" };
  metrics.count([
    { metric: "usher_decisions_total", labels },
    { metric: "usher_decisions_total", labels },
  ]);
  const text = await metrics.text();
  expect(text).toContain('usher_decisions_total{hook="a",phase="mutate",verdict="patch"} 2\n');
  for (const name of Object.keys(METRICS)) expect(text).toContain(`# TYPE ${name} counter\n`);
  metrics.stop();
});

test("every metric has a help text and base units, and process metrics are included", async () => {
  const metrics = await make();
  const text = await metrics.text();
  for (const [, name, help] of text.matchAll(/^# HELP (\S+) (.*)$/gm)) {
    expect(name).toMatch(/^(usher|process)_[a-z_]+$/);
    expect(help).toMatch(/^[A-Z].{15,}\.$/);
  }
  expect(text).toMatch(/^process_resident_memory_bytes \d{7,}$/m);
  expect(text).toMatch(/^process_cpu_seconds_total [\d.]+$/m);
  expect(text).toMatch(/^process_start_time_seconds 1\d{9}/m);
  expect(text).toMatch(/^usher_event_loop_delay_seconds\{quantile="0.99"\} [\d.e-]+$/m);
  expect(text).toContain('usher_policies{module="tiny"} 0\n');
  expect(text).toContain('usher_policy_problems{module="tiny",severity="error"} 0\n');
  expect(text).toContain("usher_certificate_expiry_timestamp_seconds 1800000000\n");
  metrics.stop();
});

test("caps the number of series of user-chosen names", async () => {
  const metrics = await make();
  const labels = (i: number) => ({ module: "m", policy: `p${i}`, outcome: "applied" });
  metrics.count(
    Array.from({ length: 503 }, (_, i) => ({
      metric: "usher_policy_outcomes_total" as const,
      labels: labels(i),
    })),
  );
  const text = await metrics.text();
  expect(text).toContain('usher_policy_outcomes_total{module="m",policy="p499",outcome="applied"} 1\n');
  expect(text).toContain('usher_policy_outcomes_total{module="m",policy="other",outcome="applied"} 3\n');
  metrics.stop();
});

test("exports the age of each resource, and drops a resource that is gone", async () => {
  const { assembly } = testSource();
  let ages = [
    { resource: "nodes", ms: 4_500 },
    { resource: "pods", ms: 0 },
  ];
  const metrics = await createMetrics({
    assembly: () => assembly,
    viewAges: () => ages,
    certificateExpires: () => 0,
  });
  const text = await metrics.text();
  expect(text).toContain('usher_view_age_seconds{resource="nodes"} 4.5\n');
  expect(text).toContain('usher_view_age_seconds{resource="pods"} 0\n');
  ages = ages.slice(0, 1);
  expect(await metrics.text()).not.toContain('resource="pods"');
  metrics.stop();
});

test("counts truncated lists by resource and by what was truncated", async () => {
  const { assembly } = testSource();
  let count = 1;
  const metrics = await createMetrics({
    assembly: () => assembly,
    listCuts: () => [{ resource: "pods", what: "object", count }],
    certificateExpires: () => 0,
  });
  expect(await metrics.text()).toContain('usher_lists_cut_total{resource="pods",what="object"} 1\n');
  count = 3;
  expect(await metrics.text()).toContain('usher_lists_cut_total{resource="pods",what="object"} 3\n');
  metrics.stop();
});

test("counts connections closed by a limit, with each limit present from the start", async () => {
  const metrics = await make();
  metrics.connectionClosed("bytes");
  const text = await metrics.text();
  expect(text).toContain('usher_connections_closed_total{limit="bytes"} 1\n');
  expect(text).toContain('usher_connections_closed_total{limit="connections"} 0\n');
  expect(text).toContain('usher_connections_closed_total{limit="requests"} 0\n');
  metrics.stop();
});

test("the first values of a capped label keep their name permanently, and later ones become other", () => {
  const capped = new LabelCap({ label: "policy", most: 2 });
  const name = (policy: string) => capped.bounded({ policy, outcome: "applied" });
  expect(["a", "b", "c", "a", "d", "b"].map((policy) => name(policy)["policy"])).toEqual([
    "a",
    "b",
    "other",
    "a",
    "other",
    "b",
  ]);
  expect(name("e")).toEqual({ policy: "other", outcome: "applied" });
});
