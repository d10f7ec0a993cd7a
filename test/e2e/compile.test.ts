// Compiled policies on a real API server: it must make of every pod what usher makes of it, but for provenance.
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { applyPatch } from "rfc6902";
import { afterAll, beforeAll, expect, test } from "vitest";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { assemblyOf, callOf } from "../builders/evaluation.ts";
import { outside } from "../builders/outside.ts";
import { requestFor } from "../builders/request.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeCluster, LONG } from "../cluster/describe.ts";
import { CLASSES, criteria, podSpec } from "./fixtures/generated-pods.ts";
import { SPEC } from "./fixtures/placement-stage.ts";
import { comparable } from "./fixtures/same-object.ts";

const ID = randomBytes(4).toString("hex");
const LABEL = `compiled-${ID}`;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const AT_ONCE = 20;
const [POLICIES, PODS] = LONG ? [200, 10_000] : [40, 300];
const SEED = 20_261_118;

/** Each with pods of its own, so that no order between policies counts. */
const SPECS = fc.sample(criteria, { numRuns: POLICIES, seed: SEED });
const WRITTEN = fc.sample(podSpec, { numRuns: PODS, seed: SEED });

function policyOf(name: string, spec: JsonObject): JsonObject {
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name },
    spec: {
      namespaceSelector: { matchLabels: { [LABEL]: "yes" } },
      podSelector: { matchLabels: { [LABEL]: name } },
      targets: "Pods",
      ...spec,
    },
  };
}

describeCluster("compiled placement on an API server", (cluster) => {
  const policies = [
    ...SPECS.map((spec, i) => policyOf(`${ID}-${i}`, spec)),
    policyOf(`${ID}-barrier`, { nodeSelector: { barrier: "reached" } }),
  ];
  const assembly = assemblyOf(
    [placement],
    [
      ...policies.map((object) => ({
        resource: "clusterpodschedulingpolicies.kupid.gardener.cloud",
        namespace: "",
        name: nameOf(object),
        object,
      })),
    ],
  );
  const rows =
    placement.compile?.({
      policies: [...assembly.policies("placement")].flatMap(({ policy }) => policy ?? []),
      view: assembly.view,
      installation: assembly.installation,
      gates: assembly.gates,
      now: 0,
    }) ?? [];
  const paths = rows
    .flatMap(({ objects }) => objects)
    .map((object) => {
      const kind = stringAt(object, "kind")?.toLowerCase() ?? "";
      return { object, path: `${ADMISSION}/${kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`}` };
    });
  let [placed, plain] = ["", ""];

  const create = (namespace: string, labels: JsonObject, spec: JsonObject) =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "generated", labels },
      spec: { ...spec, ...SPEC },
    });

  beforeAll(async () => {
    for (const object of CLASSES) {
      const group = `/apis/${stringAt(object, "apiVersion")}`;
      const resource = object["kind"] === "PriorityClass" ? "priorityclasses" : "runtimeclasses";
      await cluster().request("POST", `${group}/${resource}`, object);
    }
    placed = await createNamespace(cluster(), { [LABEL]: "yes" });
    plain = await createNamespace(cluster());
    assembly.apply([
      {
        resource: "namespaces",
        namespace: "",
        name: placed,
        object: { metadata: { name: placed, labels: { [LABEL]: "yes" } } },
      },
    ]);
    // The barrier is last: policies and bindings before it are in force with it.
    const barrier = paths.filter(({ object }) => nameOf(object).endsWith("-barrier"));
    const others = paths.filter((one) => !barrier.includes(one));
    for (const { object, path } of [...others, ...barrier]) await cluster().call("POST", path, object);
    await eventually("the last policy is in force", async () => {
      const { body } = await create(placed, { [LABEL]: `${ID}-barrier` }, {});
      return stringAt(body, "spec", "nodeSelector", "barrier") === "reached";
    });
  });

  afterAll(async () => {
    await Promise.all(
      [
        ...paths.map(({ object, path }) => `${path}/${nameOf(object)}`),
        `/api/v1/namespaces/${placed}`,
        `/api/v1/namespaces/${plain}`,
      ].map((path) => cluster().request("DELETE", path)),
    );
  });

  /** The object that usher makes of a pod as the API server has it before policies and webhooks; undefined if it refuses it. */
  async function byUsher(pod: Json): Promise<JsonObject | undefined> {
    const object = structuredClone(pod) as JsonObject & { metadata: JsonObject };
    const request = requestFor({ ...object, metadata: { ...object.metadata, namespace: placed } });
    // An evaluation edits its object.
    const result = structuredClone(request.object) as JsonObject;
    const world = outside({ fact: () => ({ found: { metadata: {} }, complete: true }) });
    const { patch } = responseOf(await evaluate(callOf(assembly, request), world));
    const problems = applyPatch(result, (patch ?? []) as unknown as Parameters<typeof applyPatch>[1]);
    expect(problems.filter((problem) => problem !== null)).toEqual([]);
    const validated = { ...request, object: structuredClone(result) };
    const { denials } = await evaluate(callOf(assembly, validated, { phase: "validate" }), world);
    return denials.length > 0 ? undefined : result;
  }

  const withoutProvenance = (object: Json) =>
    JSON.parse(
      JSON.stringify(comparable(object), (key, value) =>
        key === PROVENANCE || (key === "annotations" && Object.keys(value).every((one) => one === PROVENANCE))
          ? undefined
          : value,
      ),
    );

  test(`is what usher makes of ${PODS} pods with ${POLICIES} policies`, async () => {
    const differences: JsonObject[] = [];
    let [changed, refused] = [0, 0];
    const queue = WRITTEN.map((spec, i) => ({ spec, name: `${ID}-${i % POLICIES}` }));
    const work = async () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        const labels = { [LABEL]: next.name };
        const [before, after] = [
          await create(plain, labels, next.spec),
          await create(placed, labels, next.spec),
        ];
        if (before.status !== 201) {
          expect(after.status, JSON.stringify(after.body)).toBe(before.status);
          continue;
        }
        const placedByUsher = await byUsher(before.body);
        const expected = placedByUsher === undefined ? "refused" : withoutProvenance(placedByUsher);
        const real =
          after.status === 201
            ? withoutProvenance(after.body)
            : JSON.stringify(after.body).includes("USHER-P30")
              ? "refused"
              : after.body;
        if (real === "refused") refused++;
        if (JSON.stringify(sorted(real)) !== JSON.stringify(sorted(withoutProvenance(before.body))))
          changed++;
        if (JSON.stringify(sorted(real)) !== JSON.stringify(sorted(expected)))
          differences.push({
            policy: SPECS[Number(next.name.split("-")[1])] ?? {},
            pod: next.spec,
            usher: at(expected, "spec") ?? expected,
            server: at(real, "spec") ?? real,
          });
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    expect(differences.slice(0, 3)).toEqual([]);
    // Most pods get something, or the comparison says nothing.
    expect(changed).toBeGreaterThan(PODS / 2);
    expect(refused).toBeGreaterThan(PODS / 20);
  }, 600_000);

  function sorted(value: Json): Json {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, one]) => [key, sorted(one ?? null)]),
    );
  }
});
