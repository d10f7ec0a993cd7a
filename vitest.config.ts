import { defineConfig } from "vitest/config";

const CLUSTER = ["test/cluster/**/*.test.ts", "test/e2e/**/*.test.ts"];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          exclude: CLUSTER,
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
          name: "cluster",
          include: CLUSTER,
          globalSetup: ["test/cluster/global-setup.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          // Much of a file is waiting for controllers, leases and grace periods: two at a time fill two cores, more would only
          // make each other late. The quick tests have run before.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
    ],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      reporter: ["text-summary", "json-summary"],
    },
  },
});
