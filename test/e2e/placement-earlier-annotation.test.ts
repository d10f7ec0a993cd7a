// A workload whose provenance annotation has the shape of the version before: it is restored, brought up to date when it is next
// written, and taken back, on a real API server.
import { beforeAll, expect, test } from "vitest";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { PROVENANCE, readProvenance } from "../../src/core/provenance/annotation.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { PlacementStage, podSpecOf } from "./fixtures/placement-stage.ts";
import { DISK, POOL, requiring } from "./placing/objects.ts";
import { DEDICATED, deployment, HOME, OWN } from "./placing/workloads.ts";

const SPEC = "/spec/template/spec";
const TERMS = `${SPEC}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms`;

/** As the version before wrote it: places and elements, and no values from before. */
const EARLIER = JSON.stringify({
  placement: [
    {
      policy: "ClusterPodSchedulingPolicy/home",
      set: [`${SPEC}/nodeSelector/pool`],
      added: {
        [TERMS]: [{ matchExpressions: [POOL] }],
        [`${SPEC}/tolerations`]: [DEDICATED],
      },
    },
  ],
});

const MANIFEST = deployment("web", "web", OWN);
const PLACED = deployment("web", "web", {
  nodeSelector: { disk: "ssd", pool: "etcd" },
  tolerations: [{ key: "own", operator: "Exists" }, DEDICATED],
  affinity: requiring([DISK, POOL]),
});
const { podAntiAffinity: _, ...NODE_AFFINITY } = HOME["affinity"] as JsonObject;
const POLICY: JsonObject = { ...HOME, affinity: NODE_AFFINITY };

describeOwnCluster("a workload with an annotation of the version before", {}, (cluster) => {
  const stage = new PlacementStage(cluster, "apps");
  const earlier = new PlacementStage(cluster, "earlier");

  const stored = () => earlier.get("deployments/web");
  const placementOf = (object: Json) => {
    const { nodeSelector, tolerations, affinity } = podSpecOf(object);
    return { nodeSelector, tolerations, affinity };
  };
  const annotated = async () => readProvenance((await stored()) as JsonObject);
  const reapply = () =>
    earlier.kubectl(["annotate", "--overwrite", "deployment", "web", "usher.dev/reapply=now"]);

  beforeAll(async () => {
    await cluster().createNode("w0", { labels: { pool: "etcd", disk: "ssd" } });
    // Usher is not installed yet: nothing judges the annotation of a new object.
    await earlier.createNamespace("earlier", {});
    const metadata = { name: "web", annotations: { [PROVENANCE]: EARLIER } };
    await earlier.call("POST", "deployments", { ...PLACED, metadata });
    await stage.install();
    await stage.policies({ home: POLICY });
  });

  test("an installation and a policy leave the stored annotation as it is", async () => {
    expect(stringAt(await stored(), "metadata", "annotations", PROVENANCE)).toBe(EARLIER);
  });

  test("a replaced manifest gets its placement back, without a rollout", async () => {
    const before = await stored();
    await earlier.kubectl(["replace", "-f", "-"], MANIFEST);
    const after = await stored();
    expect(at(after, "spec", "template")).toEqual(at(before, "spec", "template"));
    expect((await annotated()).origins.map(({ policy }) => policy)).toEqual([
      "ClusterPodSchedulingPolicy/home",
    ]);
  });

  test("a reapply brings the annotation up to date and changes no template", async () => {
    const before = await stored();
    await reapply();
    expect(at(await stored(), "spec", "template")).toEqual(at(before, "spec", "template"));
    const { was } = await annotated();
    expect(was.get(TERMS)?.value).toEqual([{ matchExpressions: [DISK] }]);
  });

  test("once the policy is deleted, a reapply puts back what the user wrote", async () => {
    await stage.dropPolicy("home");
    await reapply();
    expect(placementOf(await stored())).toEqual(placementOf(MANIFEST));
    expect((await annotated()).origins).toEqual([]);
  });
});
