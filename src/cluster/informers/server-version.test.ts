import { expect, test } from "vitest";
import { answerOf, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { until } from "../../../test/support/cluster/controller.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { atLeast } from "../../core/kubernetes/versions.ts";
import { SILENT } from "../../core/log.ts";
import { Assembly } from "../../core/module/assembly.ts";
import { defineModule } from "../../core/module/module.ts";
import { type ApiResponse, ConnectionError } from "../client/client.ts";
import { openCluster } from "../source/cluster-source.ts";
import { ServerVersionPoller } from "./server-version.ts";

const version = (minor: string) => answerOf(200, { major: "1", minor, gitVersion: `v1.${minor}.0` });

function polling(answers: (ApiResponse | Error)[]) {
  const server = new TestApiServer();
  server.fault = () => answers.shift() ?? version("39");
  const observed: number[] = [];
  const warnings: string[] = [];
  const poller = new ServerVersionPoller({
    client: server.client,
    log: { ...SILENT, warn: (_facts, message) => void warnings.push(message) },
    observed: ({ effective }) => void observed.push(effective.minor),
    pollMs: 1,
    retryMs: 1,
  });
  return { poller, observed, warnings, server };
}

test("the version is read at the start and periodically: an API server may be upgraded", async () => {
  const { poller, observed } = polling([version("37"), version("37"), version("38")]);
  await poller.first;
  expect(observed).toEqual([37]);
  await until(() => observed.length > 3);
  expect(observed.slice(0, 4)).toEqual([37, 37, 38, 39]);
  poller.stop();
});

test("a failed read is retried, and warned about once", async () => {
  const { poller, observed, warnings } = polling([
    refuse(403, "Forbidden"),
    new ConnectionError("socket hang up"),
    answerOf(200, { gitVersion: "main" }),
    version("37"),
  ]);
  await poller.first;
  expect(observed).toEqual([]);
  await until(() => observed.length > 0);
  expect(warnings).toEqual(["failed to read the API server's version"]);
  poller.stop();
});

test("nothing is read after a stop", async () => {
  const { poller, server } = polling([]);
  poller.stop();
  await poller.first;
  const asked = server.asked.length;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(server.asked).toHaveLength(asked);
});

/** A hook that exists since 1.38. */
const modern = defineModule({
  name: "modern",
  summary: "for tests",
  kinds: [],
  reads: [],
  hooks: (_policies, { serverVersion }) =>
    serverVersion === undefined || !atLeast(serverVersion.effective, 38)
      ? []
      : [
          {
            name: "modern",
            module: "modern",
            phase: "validate",
            rules: [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
            failure: "open",
            tooLarge: "allow",
            timeoutSeconds: 1,
            sideEffects: "None",
          },
        ],
  assemble: () => ({}),
});

test("a cluster is ready once its version is known, and an upgrade changes hooks and is announced", async () => {
  const server = new TestApiServer();
  const gate = Promise.withResolvers<ApiResponse>();
  server.fault = () => gate.promise;
  const assembly = new Assembly([modern], DEFAULT_INSTALLATION, new Gates([]));
  let changes = 0;
  const changed = () => void changes++;
  const source = openCluster({ client: server.client, assembly, log: SILENT, changed });
  expect(source.ready).toBe(false);
  gate.resolve(version("37"));
  await source.cache.waitForSync();
  expect(source.ready).toBe(true);
  expect(assembly.view.serverVersion?.binary.minor).toBe(37);
  expect(assembly.hooks).toEqual([]);
  expect(changes).toBe(1);
  expect(assembly.observeServerVersion({ ...versionOf(37) })).toBe(false);
  expect(assembly.observeServerVersion(versionOf(38))).toBe(true);
  expect(assembly.hooks).toMatchObject([{ name: "modern" }]);
  expect(assembly.view.with([]).serverVersion).toEqual(versionOf(38));
  await source.stop();
});

function versionOf(minor: number) {
  const release = { major: 1, minor, patch: 0, prerelease: [], build: "" };
  return { effective: release, binary: release };
}
