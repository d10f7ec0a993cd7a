import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deployment } from "../../../test/builders/pod.ts";
import type { Json, JsonObject } from "../json.ts";
import { PROVENANCE } from "../provenance/annotation.ts";
import { compareInjections, type Injection } from "./compare-injections.ts";

const SPEC = ["spec", "template", "spec"];
const POOL = "/spec/template/spec/nodeSelector/pool";
const TOLERATIONS = "/spec/template/spec/tolerations";

/** A Deployment whose template has this spec, with a provenance annotation that has these origins of policy `a`. */
function recorded(spec: JsonObject, ...origins: readonly JsonObject[]): JsonObject {
  const text = JSON.stringify({ placement: origins.map((origin) => ({ policy: "P/a", ...origin })) });
  return deployment({ spec, ...(origins.length === 0 ? {} : { annotations: { [PROVENANCE]: text } }) });
}

const carried = (stored: JsonObject, reapplied: JsonObject): Injection[] =>
  compareInjections("placement", stored, reapplied, SPEC);

const toleration = (key: string): JsonObject => ({ key, operator: "Exists" });
const etcd = recorded({ nodeSelector: { pool: "etcd" } }, { generation: 3, set: [POOL] });
const nvme = recorded({ nodeSelector: { pool: "nvme" } }, { generation: 4, set: [POOL] });
const bare = recorded({});

describe("the drift state of an object", () => {
  test.each<[string, JsonObject, JsonObject, Injection["state"], Json]>([
    [
      "current if it has the policy's value",
      etcd,
      etcd,
      "current",
      [{ field: "nodeSelector.pool", has: "etcd", wants: "etcd" }],
    ],
    [
      "stale if the policy has another value now",
      etcd,
      nvme,
      "stale",
      [{ field: "nodeSelector.pool", has: "etcd", wants: "nvme" }],
    ],
    [
      "orphaned if no policy requires its value",
      etcd,
      bare,
      "orphaned",
      [{ field: "nodeSelector.pool", has: "etcd" }],
    ],
    [
      "missing if the value was never written",
      bare,
      etcd,
      "missing",
      [{ field: "nodeSelector.pool", wants: "etcd" }],
    ],
    [
      "missing if the value is in the provenance and was removed from the object",
      recorded({}, { set: [POOL] }),
      etcd,
      "missing",
      [{ field: "nodeSelector.pool", wants: "etcd" }],
    ],
    [
      "stale if a part was removed from the object",
      recorded(
        { nodeSelector: { pool: "etcd" } },
        { set: [POOL], added: { [TOLERATIONS]: [toleration("a")] } },
      ),
      recorded(
        { nodeSelector: { pool: "etcd" }, tolerations: [toleration("a")] },
        { set: [POOL], added: { [TOLERATIONS]: [toleration("a")] } },
      ),
      "stale",
      [
        { field: "nodeSelector.pool", has: "etcd", wants: "etcd" },
        { field: "tolerations", wants: [toleration("a")] },
      ],
    ],
    [
      "stale if the policy adds another element now",
      recorded({ tolerations: [toleration("a")] }, { added: { [TOLERATIONS]: [toleration("a")] } }),
      recorded(
        { tolerations: [toleration("a"), toleration("b")] },
        { added: { [TOLERATIONS]: [toleration("a"), toleration("b")] } },
      ),
      "stale",
      [{ field: "tolerations", has: [toleration("a")], wants: [toleration("a"), toleration("b")] }],
    ],
  ])("is %s", (_, stored, reapplied, state, parts) => {
    expect(carried(stored, reapplied)).toMatchObject([{ policy: "P/a", state, parts }]);
  });

  test("the generation is that of the injection; missing injections have none", () => {
    expect(carried(etcd, nvme)[0]?.generation).toBe(3);
    expect(carried(bare, nvme)[0]).not.toHaveProperty("generation");
  });

  test("a different generation alone is not drift", () => {
    const later = recorded({ nodeSelector: { pool: "etcd" } }, { generation: 9, set: [POOL] });
    expect(carried(etcd, later)).toMatchObject([{ state: "current", generation: 3 }]);
  });

  test("ignores provenance of other modules, and invalid provenance", () => {
    expect(compareInjections("other", etcd, etcd, SPEC)).toEqual([]);
    const broken = deployment({ annotations: { [PROVENANCE]: "{nonsense" } });
    expect(carried(broken, broken)).toEqual([]);
    // Provenance of a value that is neither present nor required.
    expect(carried(recorded({}, { set: [POOL] }), bare)).toEqual([]);
  });

  test("several policies are sorted", () => {
    const two = recorded(
      { nodeSelector: { pool: "etcd", disk: "nvme" } },
      { policy: "P/b", set: [POOL] },
      { policy: "P/a", set: ["/spec/template/spec/nodeSelector/disk"] },
    );
    expect(carried(two, two).map(({ policy }) => policy)).toEqual(["P/a", "P/b"]);
  });
});

test("an object compared with itself has no drift, with any provenance", () => {
  const place = fc.constantFrom(
    POOL,
    TOLERATIONS,
    "/spec",
    "/metadata/name",
    "/spec/template/spec/~1odd",
    "/",
  );
  const origin = fc.record({
    set: fc.array(place),
    added: fc.dictionary(place, fc.array(fc.constantFrom<Json>(toleration("a"), 1, null, "x"))),
  });
  fc.assert(
    fc.property(fc.array(origin, { maxLength: 3 }), (origins) => {
      const object = recorded(
        { nodeSelector: { pool: "etcd" }, tolerations: [toleration("a")] },
        ...(origins as unknown as JsonObject[]),
      );
      for (const { state } of carried(object, object)) expect(state).toBe("current");
    }),
  );
});
