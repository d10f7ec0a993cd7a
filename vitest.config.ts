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
          // The files share one control plane and two cores; the quick tests have run before.
          fileParallelism: false,
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
