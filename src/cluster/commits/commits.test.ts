import { expect, test } from "vitest";
import { TestApiServer, testDeadline } from "../../../test/support/cluster/api-server.ts";
import type { Commit } from "../../core/decision/decision.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { SILENT } from "../../core/log.ts";
import { Assembly } from "../../core/module/assembly.ts";
import { openCluster } from "../source/cluster-source.ts";

const LEDGER = { resource: "ledgers", namespace: "usher", name: "ann" };
const COMMIT: Commit = {
  ...LEDGER,
  object: {},
  resourceVersion: undefined,
  rests: { get: LEDGER, live: true },
};

test.each([
  [false, "done"],
  [true, { failed: "ledgers usher/ann: usher does not operate this cluster and writes nothing to it" }],
])("a read-only source (%s) commits for no request", async (readOnly, result) => {
  const { client, resources, bodies } = new TestApiServer();
  const assembly = new Assembly([], DEFAULT_INSTALLATION, new Gates([]));
  const source = openCluster({ client, resources, assembly, log: SILENT, readOnly });
  expect(await source.commit(COMMIT, testDeadline())).toEqual(result);
  expect(bodies).toHaveLength(readOnly ? 0 : 1);
  await source.stop();
});
