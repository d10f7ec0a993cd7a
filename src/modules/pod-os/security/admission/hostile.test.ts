import fc from "fast-check";
import { expect, test } from "vitest";
import { asked, exception, podSecurityWith } from "../../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../../test/builders/request.ts";
import type { Json, JsonObject } from "../../../../core/json.ts";

const SETTINGS = {
  podSecurity: { mode: "Replace", templates: "Deny", ephemeralContainers: "Added", windowsChecks: true },
  os: { contradictions: "Deny", write: true, harden: ["shop"], nodeMismatch: "Deny" },
};
const exceptions = [
  exception("a", { checks: ["privileged", "runAsNonRoot"], containers: ["c"] }),
  exception("b", { checks: ["hostPorts"], images: ["i*"] }),
];
const on = podSecurityWith({
  settings: SETTINGS,
  labels: { enforce: "restricted", audit: "baseline" },
  exceptions,
});
const off = podSecurityWith({ gate: false });

/** A value in place of the API server's type for the field. */
const junk: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, "x", "", 0, -1, true, false, [], {}, [null], ["x"], [[]], { name: "c" }),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>,
  fc.constant(JSON.parse('{"__proto__":{"name":"windows"},"constructor":1}') as Json),
);
const maybe = (value: fc.Arbitrary<Json>) =>
  fc.oneof({ weight: 3, arbitrary: value }, { weight: 1, arbitrary: junk });
const container = maybe(
  fc.record(
    {
      name: maybe(fc.constantFrom("c", "d")),
      image: maybe(fc.constant("i")),
      securityContext: maybe(fc.record({ privileged: junk, capabilities: junk }, { requiredKeys: [] })),
      ports: junk,
      lifecycle: junk,
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Json>,
);
const spec = maybe(
  fc.record(
    {
      os: maybe(fc.record({ name: maybe(fc.constantFrom("windows", "linux", "plan9")) })),
      containers: maybe(fc.array(container, { maxLength: 3 })),
      initContainers: maybe(fc.array(container, { maxLength: 2 })),
      ephemeralContainers: maybe(fc.array(container, { maxLength: 2 })),
      securityContext: junk,
      nodeSelector: junk,
      affinity: junk,
      volumes: junk,
      runtimeClassName: junk,
      serviceAccountName: junk,
      nodeName: junk,
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<Json>,
);
const metadata = fc.record({ labels: junk, annotations: junk, ownerReferences: junk }, { requiredKeys: [] });

const object = fc.record({ spec, metadata }).map(({ spec: it, metadata: more }): JsonObject[] => {
  const named = { ...more, name: "p", namespace: "shop" };
  return [
    { apiVersion: "v1", kind: "Pod", metadata: named, spec: it },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: named,
      spec: { template: { metadata: more, spec: it } },
    },
    { apiVersion: "batch/v1", kind: "CronJob", metadata: named, spec: it },
    { apiVersion: "argoproj.io/v1alpha1", kind: "Rollout", metadata: named, spec: { template: it } },
    { apiVersion: "v1", kind: "Namespace", metadata: { ...named, name: "shop" } },
  ];
});

test("no hook breaks on an object of any shape, on CREATE and on UPDATE", async () => {
  await fc.assert(
    fc.asyncProperty(object, object, async (objects, olds) => {
      for (const [i, one] of objects.entries()) {
        const old = olds[i] ?? {};
        for (const change of [
          {},
          { operation: "UPDATE", oldObject: old } as const,
          { operation: "UPDATE", oldObject: old, subResource: "ephemeralcontainers" } as const,
          { operation: "UPDATE", oldObject: old, subResource: "resize" } as const,
        ]) {
          for (const assembly of [on, off]) {
            for (const phase of ["mutate", "validate"] as const) {
              const request = requestFor(structuredClone(one), change);
              const { findings } = await asked(assembly, request, { phase });
              expect(findings.filter(({ code }) => code === "USHER-E01")).toEqual([]);
            }
          }
        }
      }
    }),
    { numRuns: 60 },
  );
});
