import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const CLUSTER = ["test/cluster/**/*.test.ts", "test/e2e/**/*.test.ts", "test/image/**/*.test.ts"];

/** What a busy machine would fail: timeouts are part of what is tested. */
const ALONE = ["project-limit-burst", "counting", "enforcement-bypass", "objects-at-the-limit"].map(
  (name) => `test/e2e/${name}.test.ts`,
);

/** Beside kube-scheduler's own filters, which are built first. */
const ORACLE = ["test/scheduling/**/*.test.ts"];

/** The page of the dashboard, in Chromium. */
const BROWSER = ["test/dashboard/**/*.test.ts"];

/** Whole replicas in simulated time: only work, and no waiting. `npm test` runs them beside everything else. */
const SIMULATION = ["test/simulation/simulation.test.ts"];

/** By `npm run test:long` alone. */
const LONG = ["test/chaos/**/*.test.ts"];

/**
 * Much of a file is waiting for controllers, leases and grace periods, some for a minute and a half: five at a time keep two cores busy, with the simulation beside them.
 * The quick tests have run before.
 */
const WITH_CONTROL_PLANE = 5;

/** Of tests with a control plane. */
const CONTROL_PLANE = {
  globalSetup: ["test/cluster/global-setup.ts"],
  testTimeout: 120_000,
  hookTimeout: 120_000,
};

/** Those that take longest, so that no worker begins one of them when the others are done; `npm test` names the first ten. */
const LONGEST = [
  "test/simulation/simulation",
  "test/dashboard/views",
  "test/dashboard/changes",
  "test/e2e/node-guard-enable",
  "test/e2e/install",
  "test/e2e/helm",
  "test/e2e/certificate-installs",
  "test/e2e/node-labels",
  "test/e2e/removal",
  "test/e2e/placement-drift",
  "test/e2e/project-limit-seats",
  "test/e2e/take-over",
  "test/e2e/all-modules",
  "test/e2e/project-limit-ledger",
  "test/e2e/upgrade",
  "test/e2e/gardener",
  "test/e2e/placement-standby",
  "test/e2e/gitops",
  "test/e2e/dashboard-page",
  "test/e2e/project-limit-operator",
  "test/e2e/project-limit-operand",
  "test/e2e/faults",
  "test/e2e/project-limit-aggregated",
  "test/e2e/placement-samples",
  "test/e2e/pod-os-nodes",
  "test/e2e/certificates",
  "test/cluster/lifetime",
  "test/e2e/node-guard-kept",
  "test/e2e/project-limit",
  "test/e2e/placement-objects",
  "test/e2e/closed-policy",
  "test/e2e/placement-updates",
  "test/e2e/first-rule",
  "test/e2e/pod-security",
  "test/e2e/chart",
  "test/image/run",
  "test/image/install",
  "test/image/reproducible",
  "test/image/dockerfile",
  "test/documents",
  "test/cli/serve-memory",
  "test/cli/dead-cluster",
  "test/growth/growth",
  "src/admission/observe/ops-connections",
  "test/package",
].map((name) => `/${name}.test.ts`);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return place < 0 ? LONGEST.length : place;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...CLUSTER, ...ORACLE, ...BROWSER, ...SIMULATION, ...LONG],
          testTimeout: 30_000,
          // Files share what they import: that took longer than the tests themselves. Much of those is waiting for timers and other
          // processes, so that one file more than cores keeps both busy.
          isolate: false,
          maxWorkers: 3,
        },
      },
      {
        extends: true,
        test: {
          name: "oracle",
          include: ORACLE,
          globalSetup: ["test/scheduling/global-setup.ts"],
          // The first build of the oracle takes minutes, and is no part of a test.
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          include: BROWSER,
          globalSetup: ["test/dashboard/global-setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // A busy machine draws a frame late.
          expect: { poll: { timeout: 30_000 } },
          isolate: false,
          // Beside the tests with a control plane, which wait much.
          maxWorkers: WITH_CONTROL_PLANE,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "simulation",
          include: SIMULATION,
          // With the lowest priority, whenever other tests wait.
          maxWorkers: WITH_CONTROL_PLANE,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: CLUSTER,
          exclude: ALONE,
          ...CONTROL_PLANE,
          // As above: that is a second of processor time for each file.
          isolate: false,
          maxWorkers: WITH_CONTROL_PLANE,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: ALONE,
          ...CONTROL_PLANE,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      ...(process.env["USHER_LONG"] === undefined
        ? []
        : [{ extends: true as const, test: { name: "long", include: LONG, ...CONTROL_PLANE } }]),
    ],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      reporter: ["text-summary", "json-summary"],
    },
  },
});
