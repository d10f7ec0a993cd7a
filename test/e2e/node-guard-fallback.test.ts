// The API server with node-guard's objects: kinds, the enhancement's manifests, and the fallback, whose verdicts are
// compared with the webhook's.
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { customResourceDefinition } from "../../src/core/registration/crd.ts";
import { compileAll } from "../../src/modules/node-guard/fallback/compile.ts";
import { override, policy, scheduler } from "../../src/modules/node-guard/kinds.ts";
import type { Reply } from "../cluster/access/client.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster } from "../cluster/describe.ts";
import {
  fallbackRefuses,
  guardAssembly,
  INSTALLATION,
  isDocumented,
  type Names,
  NOW,
  nodeObjects,
  numbers,
  policyOf,
  randomRequest,
  webhookRefuses,
} from "../support/node-guard/fallback.ts";

const ID = randomBytes(4).toString("hex");
const NAMES: Names = {
  label: `fallback-${ID}`,
  listed: `listed-${ID}`,
  exact: `exact-${ID}`,
  tenant: `tenant-${ID}`,
  prefixed: `pre-${ID}-1`,
  prefix: `pre-${ID}-`,
  nodes: { guarded: [`cp-0-${ID}`, `cp-1-${ID}`], free: `w-0-${ID}` },
};
const NAMESPACES = [NAMES.listed, NAMES.exact, NAMES.tenant, NAMES.prefixed];
const NODES = nodeObjects(NAMES);
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** As many as can be sent in a few seconds; the unit test compares the expressions for the rest of 10,000. */
const REQUESTS = 2_000;
const AT_ONCE = 25;

describeCluster("node-guard on an API server", (cluster) => {
  const assembly = guardAssembly([policyOf(NAMES, "Namespace"), ...NODES]);
  const compiled = compileAll(assembly.view, INSTALLATION, NOW);
  const kinds = [policy, override, scheduler].map(customResourceDefinition);
  const paths = compiled.map((one) => {
    const resource =
      one["kind"] === "ValidatingAdmissionPolicy"
        ? "validatingadmissionpolicies"
        : "validatingadmissionpolicybindings";
    return { one, path: `${ADMISSION}/${resource}` };
  });

  const send = ({ userInfo, object, namespace, resource, subResource }: AdmissionRequest): Promise<Reply> => {
    const base = `/api/v1/namespaces/${namespace}`;
    const path = subResource === "binding" ? "pods/bound/binding" : resource.resource;
    const identity = {
      user: userInfo.username ?? "",
      groups: (userInfo.groups ?? []).filter((group) => group !== "system:authenticated"),
    };
    return cluster().request("POST", `${base}/${path}?dryRun=All`, object, identity);
  };
  const refusedByFallback = ({ status, body }: Reply): boolean =>
    status === 403 && (stringAt(body, "message") ?? "").includes("usher-node-guard-");

  beforeAll(async () => {
    await Promise.all(kinds.map((crd) => cluster().call("POST", CRDS, crd)));
    await Promise.all(NODES.map((node) => cluster().call("POST", "/api/v1/nodes", node)));
    await Promise.all(
      NAMESPACES.map(async (name) => {
        await cluster().call("POST", "/api/v1/namespaces", { metadata: { name } });
        const accounts = `/api/v1/namespaces/${name}/serviceaccounts`;
        await cluster().call("POST", accounts, { metadata: { name: "assigner" } });
        const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}`;
        const rules = [
          { apiGroups: [""], resources: ["pods", "pods/binding", "bindings"], verbs: ["create"] },
        ];
        await cluster().call("POST", `${rbac}/roles`, { metadata: { name: "place" }, rules });
        await cluster().call("POST", `${rbac}/rolebindings`, {
          metadata: { name: "place" },
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "place" },
          subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "system:authenticated" }],
        });
        await eventually(`the service account of ${name}`, async () => {
          const { status } = await cluster().request(
            "GET",
            `/api/v1/namespaces/${name}/serviceaccounts/default`,
          );
          return status === 200;
        });
      }),
    );
    for (const { one, path } of paths) await cluster().call("POST", path, one);
  });

  afterAll(async () => {
    const gone = [
      ...paths.map(({ one, path }) => `${path}/${nameOf(one)}`),
      ...kinds.map((crd) => `${CRDS}/${nameOf(crd)}`),
      ...NODES.map((node) => `/api/v1/nodes/${nameOf(node)}`),
      ...NAMESPACES.map((name) => `/api/v1/namespaces/${name}`),
    ];
    await Promise.all(gone.map((path) => cluster().request("DELETE", path)));
  });

  test("accepts the enhancement's Scheduler unchanged", async () => {
    const seed: JsonObject = parse(`
   apiVersion: config.openshift.io/v1
   kind: Scheduler
   metadata:
      name: cluster
   spec:
      mastersSchedulable: false
      schedulingGroups:
      - name: ControlPlane
        mode: Inform
        authorizedUsers:
        - "system:vendor:xxx-serviceaccount"
        - "system:vendor:yyy-serviceaccount"  `);
    const schedulers = "/apis/config.openshift.io/v1/schedulers";
    const created = await eventually("the kind to be served", async () => {
      const { status, body } = await cluster().request("POST", schedulers, seed);
      return status === 404 ? undefined : body;
    });
    expect(created).toMatchObject({ spec: seed["spec"] as JsonObject });
    await cluster().call("DELETE", `${schedulers}/cluster`);
  });

  test("refuses a changed override, and one longer than a day", async () => {
    const overrides = "/apis/usher.dev/v1alpha1/nodeguardoverrides";
    const spec = {
      group: "ControlPlane",
      mode: "Inform",
      from: "2026-11-16T12:00:00Z",
      until: "2026-11-17T12:00:00Z",
      reason: "x",
    };
    const object = (more: JsonObject = {}): JsonObject => ({
      apiVersion: "usher.dev/v1alpha1",
      kind: "NodeGuardOverride",
      metadata: { generateName: "o-" },
      spec: { ...spec, ...more },
    });
    const post = (more: JsonObject) => cluster().request("POST", overrides, object(more));
    await eventually("the kind to be served", async () => (await post({ until: "x" })).status !== 404);
    const long = await post({ until: "2026-11-17T12:00:01Z" });
    expect([long.status, stringAt(long.body, "message")]).toEqual([
      422,
      expect.stringContaining("at most 24 hours"),
    ]);
    expect((await post({ until: "2026-11-16T12:00:00Z" })).status).toBe(422);
    const { body } = await post({});
    const path = `${overrides}/${stringAt(body, "metadata", "name")}`;
    const changed = await cluster().request("PATCH", path, { spec: { until: "2026-11-16T13:00:00Z" } });
    expect([changed.status, stringAt(changed.body, "message")]).toEqual([
      422,
      expect.stringContaining("can't be changed"),
    ]);
    await cluster().call("DELETE", path);
  });

  test(`fallback and webhook agree on ${REQUESTS} requests, except documented differences`, async () => {
    const random = numbers(3);
    const requests = Array.from({ length: REQUESTS }, (_, i) => randomRequest(random, NAMES, i));
    const known = requests.find((one) => fallbackRefuses(one, compiled, NODES));
    await eventually(
      "the fallback to be in force",
      async () => known !== undefined && refusedByFallback(await send(known)),
    );
    const counts = { both: 0, neither: 0, webhook: 0, before: 0 };
    for (let i = 0; i < requests.length; i += AT_ONCE)
      await Promise.all(
        requests.slice(i, i + AT_ONCE).map(async (request) => {
          const reply = await send(request);
          const refused = refusedByFallback(reply);
          const shown = `${JSON.stringify({ ...request, uid: undefined })} ${reply.status} ${stringAt(reply.body, "message")}`;
          const webhook = await webhookRefuses(request, assembly);
          if (refused) expect(webhook, `stricter than the webhook: ${shown}`).toBe(true);
          // NodeRestriction comes first for kubelets.
          const before = reply.status === 403 && !refused;
          if (before) counts.before++;
          else {
            expect(refused, shown).toBe(fallbackRefuses(request, compiled, NODES));
            if (webhook && !refused) expect(isDocumented(request, NODES, false), shown).toBe(true);
            counts[refused ? "both" : webhook ? "webhook" : "neither"]++;
          }
        }),
      );
    expect(Math.min(counts.both, counts.neither, counts.webhook)).toBeGreaterThan(50);
    expect(counts.before).toBeLessThan(REQUESTS / 3);
  }, 120_000);
});
