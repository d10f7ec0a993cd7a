import fc from "fast-check";
import { expect, test } from "vitest";
import { pod } from "../../../test/builders/pod.ts";
import { Draft } from "../decision/draft.ts";
import type { JsonObject } from "../json.ts";
import { digestOf, PROVENANCE } from "./annotation.ts";
import { beforeUsher } from "./before.ts";
import { writeProvenance } from "./provenance.ts";

const recorded = (annotation: object, spec: JsonObject): JsonObject =>
  pod({ annotations: { [PROVENANCE]: JSON.stringify(annotation) }, spec });

const TERMS = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
const term = (...keys: string[]): JsonObject => ({
  matchExpressions: keys.map((key) => ({ key, operator: "Exists" })),
});
const required = (...nodeSelectorTerms: JsonObject[]): JsonObject => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

const TOLERATION = { key: "pool", operator: "Exists" };

test.each<[string, JsonObject, JsonObject]>([
  [
    "a value that was set, with the object that it leaves empty",
    recorded(
      { placement: [{ policy: "P/a", set: ["/spec/nodeSelector/pool"] }] },
      { nodeSelector: { pool: "x" } },
    ),
    {},
  ],
  [
    "a value beside the author's own",
    recorded(
      { placement: [{ policy: "P/a", set: ["/spec/nodeSelector/pool"] }] },
      { nodeSelector: { pool: "x", zone: "a" } },
    ),
    { nodeSelector: { zone: "a" } },
  ],
  [
    "one element for each that was added",
    recorded(
      { placement: [{ policy: "P/a", added: { "/spec/tolerations": [TOLERATION] } }] },
      { tolerations: [TOLERATION, { key: "own" }, TOLERATION] },
    ),
    { tolerations: [{ key: "own" }, TOLERATION] },
  ],
  [
    "a term of node affinity from each term that it was combined with",
    recorded(
      { placement: [{ policy: "P/a", added: { [TERMS]: [term("pool")] } }] },
      required(term("zone", "pool"), term("rack", "pool"), term("own")),
    ),
    required(term("zone"), term("rack"), term("own")),
  ],
  [
    "a term of node affinity, but not the author's own term that equals it",
    recorded(
      { placement: [{ policy: "P/a", added: { [TERMS]: [term("pool")] } }] },
      required(term("zone", "pool"), term("pool")),
    ),
    required(term("zone"), term("pool")),
  ],
  [
    "terms of a pod that had none, with their parents",
    recorded(
      { placement: [{ policy: "P/a", added: { [TERMS]: [term("pool"), term("disk")] } }] },
      required(term("pool"), term("disk")),
    ),
    {},
  ],
  [
    "a list that policies wrote, with the value from before in its order",
    recorded(
      {
        placement: [{ policy: "P/a", added: { "/spec/tolerations": [TOLERATION] } }],
        was: {
          "/spec/tolerations": { value: [{ key: "own" }], now: digestOf([TOLERATION, { key: "own" }]) },
        },
      },
      { tolerations: [TOLERATION, { key: "own" }] },
    ),
    { tolerations: [{ key: "own" }] },
  ],
  [
    "the elements of a list that others have changed since",
    recorded(
      {
        placement: [{ policy: "P/a", added: { "/spec/tolerations": [TOLERATION] } }],
        was: { "/spec/tolerations": { now: digestOf([TOLERATION]) } },
      },
      { tolerations: [TOLERATION, { key: "later" }] },
    ),
    { tolerations: [{ key: "later" }] },
  ],
  [
    "nothing that no policy may set",
    recorded(
      { placement: [{ policy: "P/a", set: ["/spec", "/metadata", "/metadata/name", "/"] }] },
      { nodeSelector: { own: "a" } },
    ),
    { nodeSelector: { own: "a" } },
  ],
  [
    "nothing that is not there any more",
    recorded(
      { placement: [{ policy: "P/a", set: ["/spec/nodeSelector/gone", "/spec/affinity/x/y"] }] },
      { nodeSelector: { own: "a" } },
    ),
    { nodeSelector: { own: "a" } },
  ],
  [
    "nothing if the annotation can't be read",
    pod({ annotations: { [PROVENANCE]: "{" }, spec: { nodeSelector: { a: "b" } } }),
    { nodeSelector: { a: "b" } },
  ],
])("removes %s", (_, object, spec) => {
  const { object: before } = beforeUsher(object);
  const { nodeSelector, affinity, tolerations } = before["spec"] as JsonObject;
  expect({ nodeSelector, affinity, tolerations }).toEqual({
    nodeSelector: undefined,
    affinity: undefined,
    tolerations: undefined,
    ...spec,
  });
  expect(JSON.stringify(before)).not.toContain(PROVENANCE);
});

test("property: the given object is unchanged for any annotation", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const object = pod({ annotations: { [PROVENANCE]: text }, spec: { nodeSelector: { a: "b" } } });
      const copy = structuredClone(object);
      beforeUsher(object);
      expect(object).toEqual(copy);
    }),
  );
});

test("restores the values that policies replaced, also of a path inside another", () => {
  const draft = new Draft({ metadata: {}, spec: { required: { terms: [1] }, list: [1, 2] } });
  const finding = (name: string) =>
    ({ policy: { kind: "K", name }, rule: "r", outcome: "applied", message: "m" }) as const;
  draft.author = "m";
  draft.set(["spec", "required", "terms"], [1, 2], finding("a"), { adds: [2] });
  draft.set(["spec", "required"], { terms: [1, 2, 3] }, finding("b"));
  draft.set(["spec", "list"], [2], finding("b"));
  writeProvenance(draft, [], undefined);
  const written = draft.object;
  expect(beforeUsher(written).object["spec"]).toEqual({ required: { terms: [1] }, list: [1, 2] });
  // Another client has changed it since: the previous value is unknown.
  const changed = { ...written, spec: { ...(written["spec"] as JsonObject), list: [2, 3] } };
  expect(beforeUsher(changed).object["spec"]).toEqual({ required: { terms: [1] } });
});
