import { join } from "node:path";
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import type { ReviewResult } from "../../src/core/review/result.ts";
import { recordOf } from "./recorded.ts";
import { post, readyOf, serving } from "./serving.ts";
import { folder, reviewed } from "./usher.ts";

const SOURCE = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {environment: prod}}
---
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: {name: by-namespace}
spec: {namespaceSelector: {matchLabels: {environment: prod}}, podSelector: {}, nodeSelector: {zone: a}}
---
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: {name: strict}
spec: {failurePolicy: Fail, namespaceSelector: {matchLabels: {a: b}}, podSelector: {matchLabels: {strict: "true"}}}
---
apiVersion: kupid.gardener.cloud/v1alpha1
kind: PodSchedulingPolicy
metadata: {name: pool, namespace: shop}
spec: {priority: 3, podSelector: {matchLabels: {app: web}}, nodeSelector: {pool: web, zone: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: stored
  namespace: shop
  annotations: {usher.dev/provenance: '{"placement":[{"policy":"PodSchedulingPolicy/shop/pool","set":["/spec/template/spec/nodeSelector/pool"]}]}'}
spec: {template: {spec: {nodeSelector: {pool: web}}}}
`;

/** `[resource, object]`; the webhook is asked to mutate and then to validate, as the API server does. */
const CASES: readonly (readonly [resource: string, object: JsonObject])[] = [
  ["pods", { apiVersion: "v1", kind: "Pod", metadata: { name: "plain", namespace: "shop" }, spec: {} }],
  [
    "pods",
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web", namespace: "shop", labels: { app: "web" } },
      spec: { nodeSelector: { zone: "c" } },
    },
  ],
  ["pods", { apiVersion: "v1", kind: "Pod", metadata: { name: "unknown", namespace: "nowhere" }, spec: {} }],
  [
    "pods",
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "refused", namespace: "nowhere", labels: { strict: "true" } },
      spec: {},
    },
  ],
  [
    "pods",
    { apiVersion: "v1", kind: "Pod", metadata: { name: "quiet", namespace: "kube-system" }, spec: {} },
  ],
  [
    "deployments",
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "shop" },
      spec: { template: { metadata: { labels: { app: "web" } }, spec: {} } },
    },
  ],
  [
    "cronjobs",
    {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "night", namespace: "shop" },
      spec: { jobTemplate: { spec: { template: { spec: {} } } } },
    },
  ],
  ["configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "shop" } }],
  [
    "podschedulingpolicies",
    {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "PodSchedulingPolicy",
      metadata: { name: "bad", namespace: "shop" },
      spec: { priority: "ten" },
    },
  ],
  [
    "podschedulingpolicies",
    {
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "PodSchedulingPolicy",
      metadata: { name: "inert", namespace: "shop" },
      spec: {},
    },
  ],
];

interface Response {
  readonly allowed: boolean;
  readonly patch?: string;
  readonly warnings?: readonly string[];
  readonly status?: { readonly details?: { readonly causes?: readonly { readonly message: string }[] } };
}

/** The part of both responses that a caller sees. */
function seen(result: ReviewResult | undefined) {
  return { allowed: result?.verdict !== "deny", patch: result?.patch, warnings: result?.warnings };
}

test("an offline review and the webhook return the same response and patch", async () => {
  const source = folder({ "all.yaml": SOURCE });
  const served = await serving(["--source", source, "-o", "json"]);
  const { webhook, ca = "" } = readyOf(served);
  const ask = async (
    review: object,
  ): Promise<{ allowed: boolean; patch: unknown; warnings: readonly string[] }> => {
    const answers: Response[] = [];
    for (const phase of ["mutate", "validate"]) {
      const { status, body } = await post(`${webhook}/${phase}?timeout=10s`, ca, review);
      expect(status).toBe(200);
      answers.push(JSON.parse(body).response);
      if (answers.at(-1)?.allowed === false) break;
    }
    const patch = answers[0]?.patch;
    const allowed = answers.every((answer) => answer.allowed);
    return {
      allowed,
      patch: !allowed || patch === undefined ? [] : JSON.parse(Buffer.from(patch, "base64").toString()),
      warnings: answers.flatMap((answer) => answer.warnings ?? []),
    };
  };

  const online = [];
  for (const [resource, object] of CASES) online.push(await ask(recordOf(resource, object)));
  expect(online.map(({ allowed }) => allowed)).toEqual([
    true,
    true,
    true,
    false,
    true,
    true,
    true,
    true,
    false,
    true,
  ]);

  const manifests = CASES.map(([, object]) => JSON.stringify(object)).join("\n");
  const recorded = CASES.map(([resource, object]) => JSON.stringify(recordOf(resource, object))).join("\n");
  const directory = folder({ "manifests.json": manifests, "recorded.json": recorded });
  for (const file of ["manifests.json", "recorded.json"]) {
    for (const more of [[], ["--trace"]]) {
      const { results } = await reviewed([join(directory, file), "--source", source, ...more]);
      expect(results.map(seen)).toEqual(online);
    }
  }

  const stored = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "stored", namespace: "shop" },
    spec: { template: { spec: {} } },
  };
  const oldObject = {
    ...stored,
    metadata: {
      ...stored.metadata,
      annotations: {
        "usher.dev/provenance":
          '{"placement":[{"policy":"PodSchedulingPolicy/shop/pool","set":["/spec/template/spec/nodeSelector/pool"]}]}',
      },
    },
    spec: { template: { spec: { nodeSelector: { pool: "web" } } } },
  };
  const update = await ask(recordOf("deployments", stored, { operation: "UPDATE", oldObject }));
  const offline = await reviewed(["-", "--source", source, "--operation", "UPDATE"], JSON.stringify(stored));
  expect(update.patch).not.toEqual([]);
  expect(seen(offline.results[0])).toEqual(update);
  served.child.kill("SIGINT");
  expect((await served.end).code).toBe(0);
});
