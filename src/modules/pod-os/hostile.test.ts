// Every field of an object in turn has a value that no API server would send, with everything switched on that writes or refuses.
import { expect, test } from "vitest";
import { HOSTILE_VALUES, replaced } from "../../../test/builders/hostile.ts";
import { outside } from "../../../test/builders/outside.ts";
import { asksPodOS, osNode, podOSWith } from "../../../test/builders/pod-os.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { isObject, type Json, type JsonObject } from "../../core/json.ts";

const ALL = { write: true, harden: ["shop"], nodeMismatch: "Deny", contradictions: "Deny" };
const NODES = [osNode("lin", { label: "linux", reports: "linux" })];
const TERM = { matchExpressions: [{ key: "kubernetes.io/os", operator: "In", values: ["windows"] }] };
const SPEC = {
  os: { name: "windows" },
  nodeName: "lin",
  runtimeClassName: "windows",
  nodeSelector: { "kubernetes.io/os": "windows" },
  affinity: {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [TERM] } },
  },
  securityContext: { runAsUser: 1, windowsOptions: { hostProcess: false, runAsUserName: "x" } },
  containers: [{ name: "c", securityContext: { privileged: false, capabilities: { add: ["CHOWN"] } } }],
};
const METADATA = {
  name: "web",
  namespace: "shop",
  labels: { "kubernetes.io/os": "windows" },
  ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "1", controller: true }],
};

const OBJECTS: readonly JsonObject[] = [
  { apiVersion: "v1", kind: "Pod", metadata: METADATA, spec: SPEC },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "shop" },
    spec: { template: { metadata: METADATA, spec: SPEC } },
  },
  { apiVersion: "v1", kind: "Binding", metadata: METADATA, target: { kind: "Node", name: "lin" } },
];

test.each(OBJECTS.map((one) => [one["kind"], one] as const))(
  "%s with a hostile value in any field is decided by every hook",
  async (_kind, valid) => {
    const assembly = podOSWith(NODES, ALL);
    const about = requestFor(valid);
    for (const value of HOSTILE_VALUES) {
      // Fields of a pod or node that are read may be hostile too.
      const world = outside({ fact: () => ({ found: value as Json, complete: true }) });
      for (const object of replaced(valid, value)) {
        if (!isObject(object)) continue;
        for (const phase of ["mutate", "validate"] as const) {
          const copy = structuredClone(object) as JsonObject;
          const { findings } = await asksPodOS(assembly, { ...about, object: copy }, phase, world);
          expect(findings.filter(({ code }) => code === "USHER-E01")).toEqual([]);
        }
      }
    }
  },
);

test("terms of an affinity without anything in them match no node", async () => {
  const nodeSelectorTerms = [TERM, {}];
  const affinity = {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
  };
  const object = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", namespace: "lab" },
    spec: { affinity },
  };
  const { draft } = await asksPodOS(podOSWith(NODES, ALL), requestFor(object), "mutate");
  expect(draft.object["spec"]).toMatchObject({ os: { name: "windows" } });
});
