import { beforeEach, expect, test } from "vitest";
import { node } from "../../../test/builders/node.ts";
import { installedObjects, pathOf, TestInstallation } from "../../../test/support/operator/installation.ts";
import { type Gate, Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { gateEnabled } from "../../core/installation/setting-condition.ts";
import type { JsonObject } from "../../core/json.ts";
import { defineModule, type Module } from "../../core/module/module.ts";
import { findLeftovers, leftoversOf, removeLeftovers } from "./leftovers.ts";

const GATE: Gate = { name: "Walls", stage: "alpha", default: false, summary: "" };
const ON = new Gates([GATE], new Map([["Walls", true]]));
const OFF = new Gates([GATE]);

const WALLS: Module = defineModule({
  name: "walls",
  summary: "",
  kinds: [],
  reads: [],
  hooks: () => [],
  assemble: () => ({}),
  managed: {
    why: "",
    when: [gateEnabled(GATE)],
    resources: [
      {
        group: "coordination.k8s.io",
        version: "v1",
        resource: "leases",
        kind: "Lease",
        scope: "Namespaced",
      },
    ],
    desired: () => [],
  },
  cleanup: ({ settings }) => [
    {
      group: "",
      version: "v1",
      resource: "nodes",
      kind: "Node",
      what: `the label ${settings?.["walls"]?.["label"] ?? "wall"}`,
      patch: () => [],
      byHand: () => "",
    },
  ],
});

function wall(name: string, labels: JsonObject): JsonObject {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name, namespace: "hall", labels },
  };
}

const OURS = {
  "app.kubernetes.io/name": "usher",
  "app.kubernetes.io/managed-by": "usher",
  "usher.dev/module": "walls",
};

let cluster: TestInstallation;
beforeEach(() => {
  cluster = new TestInstallation();
  cluster.have(wall("mine", OURS));
  cluster.have(wall("other-module", { ...OURS, "usher.dev/module": "else" }));
  cluster.have(wall("theirs", {}));
  cluster.have(node("n"));
});

const leftovers = (enabled: readonly Module[], gates: Gates, settings = {}) =>
  leftoversOf(
    cluster.objects,
    [WALLS],
    { modules: enabled, installation: { ...DEFAULT_INSTALLATION, settings }, gates },
    installedObjects(),
  );

test.each<[string, readonly Module[], Gates, boolean]>([
  ["of an enabled module, nothing", [WALLS], ON, false],
  ["of a disabled one, its managed objects", [], ON, true],
  ["of one whose gate is off, its managed objects", [WALLS], OFF, true],
])("%s", async (_what, enabled, gates, gone) => {
  const found = await leftovers(enabled, gates);
  const { objects } = await findLeftovers(cluster.objects, found);
  expect(objects.map((one) => pathOf(one).split("/").at(-1))).toEqual(gone ? ["mine"] : []);
  expect(await removeLeftovers(cluster.objects, found)).toEqual([]);
  expect(cluster.server.objects.has(pathOf(wall("mine", {})))).toBe(!gone);
  for (const name of ["other-module", "theirs"])
    expect(cluster.server.objects.has(pathOf(wall(name, {})))).toBe(true);
});

test("marks of a disabled module are those of the running configuration and of the new one", async () => {
  const [configMap] = installedObjects().filter((object) => object["kind"] === "ConfigMap");
  const running = JSON.stringify({ spec: { modules: { walls: { label: "old" } } } });
  cluster.have({ ...configMap, data: { "configuration.yaml": running } });
  const what = async (enabled: readonly Module[]) =>
    (await leftovers(enabled, ON, { walls: { label: "new" } })).cleanups.map((one) => one.what);
  expect(await what([])).toEqual(["the label old", "the label new"]);
  expect(await what([WALLS])).toEqual([]);
});

test("without permission to read the configuration, the given one counts", async () => {
  cluster.refusing = (_method, path) => path.includes("configmaps");
  const { cleanups } = await leftovers([], ON, { walls: { label: "new" } });
  expect(cleanups.map((one) => one.what)).toEqual(["the label new"]);
});
