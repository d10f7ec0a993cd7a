import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/core/json.ts";
import { ROOT_CA, simulated, simulatedSide, thingDefinition } from "./conformance.ts";
import { histories, RECORDED } from "./histories.ts";

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, "histories.json"), "utf8")) as Record<
  string,
  Json[]
>;

describe("the simulated API server answers as a real one was recorded", () => {
  const { namespace, group } = RECORDED;
  const all = histories(RECORDED);

  it("has a recording of each history", () => {
    expect(Object.keys(recorded)).toEqual(Object.keys(all));
  });

  it.each(Object.entries(all))("%s", async (title, calls) => {
    const made = simulated();
    const server = simulatedSide(made);
    for (const name of ["default", namespace])
      await server.call({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } });
    const maps = `/api/v1/namespaces/${namespace}/configmaps`;
    await server.call({ method: "POST", path: maps, body: { metadata: { name: ROOT_CA } } });
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await server.call({ method: "POST", path: crds, body: thingDefinition(group) });
    const things = `/apis/${group}/v1/namespaces/${namespace}/things`;
    await server.call({ method: "GET", path: things, until: 200 });
    // Its watch cache began after the first revision.
    made.server.forget();
    const side = server.fresh();
    for (const [i, call] of calls.entries()) {
      const answer = await side.call(call);
      expect({ call, answer }).toEqual({ call, answer: recorded[title]?.[i] });
    }
  });
});
