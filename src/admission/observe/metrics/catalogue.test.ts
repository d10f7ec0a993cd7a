import { expect, test } from "vitest";
import { testSource } from "../../../../test/support/admission/example-cluster.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import { watchdogPage } from "../../../operator/watchdog/watchdog.ts";
import { Health } from "../health.ts";
import { ownMetrics } from "../ops-pages.ts";
import { exportedMetrics } from "./catalogue.ts";
import { createMetrics } from "./metrics.ts";

const WATCHING = { unreadyMs: 0, opened: 0, lookAgeMs: 0, stepAgeMs: 0 };

/** `usher_ready gauge 1 if …`, for every metric on a page. */
function described(text: string): string[] {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
  return [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(
    ([, name, help]) => `${name} ${types.get(name)} ${help}`,
  );
}

test("the catalogue lists exactly the metrics that a replica or the watchdog exports", async () => {
  const { assembly } = testSource();
  const seats = { name: "usher_seats", type: "gauge", help: "Seats.", labels: [] } as const;
  const modules = assembly.modules.map((module) => ({ ...module, metrics: [seats] }));
  const own = new Assembly(modules, assembly.installation, assembly.gates);
  const metrics = await createMetrics({
    assembly: () => own,
    certificateExpires: () => 0,
    controllerStats: () => ({
      items: { due: 0, later: 0, running: 0 },
      failing: new Map(),
      writes: [],
      figures: [],
    }),
  });
  const page =
    (await metrics.text()) + ownMetrics(new Health(), 1_000, 0) + watchdogPage("/metrics", WATCHING).body;
  metrics.stop();
  const listed = exportedMetrics(modules).flatMap((group) => group.metrics);
  expect(listed.map(({ name, type, help }) => `${name} ${type} ${help}`).sort()).toEqual(
    described(page).sort(),
  );
});
