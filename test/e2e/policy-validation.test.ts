// Policies as a real API server accepts them: with the CRD alone while usher is down, and with the webhook. Also the
// fields of Kubernetes' own kinds, compared with `review --strict`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KINDS, type OpenApi, typesOf } from "../../deploy/generate/kubernetes-api.ts";
import { type AdmissionServer, startAdmission } from "../../src/admission/admission-server.ts";
import type { ApiData } from "../../src/cli/input/api-types.ts";
import api from "../../src/cli/input/kubernetes-api.json" with { type: "json" };
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import { registeredKinds, registeredWebhooks } from "../../src/core/registration/index.ts";
import { readManifests } from "../../src/files/reader/read-documents.ts";
import { allModules } from "../../src/modules/all.ts";
import { clusterPolicy, namespacedPolicy } from "../builders/policy.ts";
import { BAD_SPECS, GOOD_SPECS } from "../builders/policy-table.ts";
import { BAD_FIELDS, GOOD_FIELDS } from "../builders/strict-table.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";

const SERVICE_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts";
const GROUP = "/apis/kupid.gardener.cloud/v1alpha1";
const CLUSTER_WIDE = `${GROUP}/clusterpodschedulingpolicies`;
const NAMESPACED = `${GROUP}/namespaces/default/podschedulingpolicies`;
const SAMPLES = join(import.meta.dirname, "..", "fixtures", "kupid");

describeOwnCluster(
  "policies on a real API server",
  { without: ["kube-scheduler", "kwok", "kube-controller-manager"] },
  (cluster) => {
    let server: AdmissionServer | undefined;

    beforeAll(async () => {
      const kinds = registeredKinds({
        modules: allModules,
        installation: DEFAULT_INSTALLATION,
        gates: new Gates([]),
      });
      // If a rule may cost too much, or a schema is not structural, the API server refuses the CRD here.
      await cluster().apply(...kinds);
      await eventually("the kinds", async () => {
        const replies = await Promise.all(
          [CLUSTER_WIDE, NAMESPACED].map((path) => cluster().request("GET", path)),
        );
        return replies.every(({ status }) => status === 200);
      });
    });
    afterAll(() => server?.close());

    const bare = (object: JsonObject): JsonObject => {
      const { metadata, ...rest } = object;
      return { ...rest, metadata: { name: at(metadata, "name"), namespace: at(metadata, "namespace") } };
    };
    const create = (object: JsonObject, path = CLUSTER_WIDE) =>
      cluster().request("POST", `${path}?dryRun=All&fieldValidation=Strict`, bare(object));
    const withoutNamespaces = ({ namespaceSelector: _none, ...spec }: JsonObject) => spec;
    const fieldsOf = (body: unknown) =>
      listAt(isObject(body) ? body : {}, "details", "causes").map((cause) => stringAt(cause, "field") ?? "");

    describe("fields of Kubernetes' own kinds, compared with review --strict", () => {
      const fields = (path: string, object: JsonObject) =>
        cluster().request("POST", `${path}?dryRun=All&fieldValidation=Strict`, object);

      // Without it no pod is admitted, and no controller creates it here.
      beforeAll(() => cluster().request("POST", SERVICE_ACCOUNTS, { metadata: { name: "default" } }));

      test.each(BAD_FIELDS)("%s is refused", async (_what, path, object) => {
        const { status, body } = await fields(path, object);
        expect(`${status} ${stringAt(body, "message") ?? ""}`).toMatch(/^400 /);
      });

      test.each(GOOD_FIELDS)("%s is accepted", async (_what, path, object) => {
        const { status, body } = await fields(path, object);
        expect(`${status} ${stringAt(body, "message") ?? ""}`).toMatch(/^201 /);
      });

      test("kubernetes-api.json has the fields that the API server publishes", async () => {
        const documents = new Map<string, OpenApi>();
        for (const apiVersion of Object.keys(KINDS)) {
          const path = `/openapi/v3/${apiVersion.includes("/") ? "apis" : "api"}/${apiVersion}`;
          documents.set(apiVersion, (await cluster().call("GET", path)) as unknown as OpenApi);
        }
        const served = typesOf((apiVersion) => {
          const found = documents.get(apiVersion);
          if (found === undefined) throw new Error(`no document of ${apiVersion}`);
          return found;
        });
        const minor = Number(stringAt(await cluster().call("GET", "/version"), "minor"));
        const data: ApiData = api;
        expect(served.size).toBeGreaterThan(150);
        for (const [type, found] of served) {
          const known = Object.entries(data.types[type] ?? {}).flatMap(([field, written]) => {
            const [inner = "", range = "0-99"] = written.split(" ");
            const [first = 0, last = 0] = range.split("-").map(Number);
            return first <= minor && minor <= last ? [[field, inner]] : [];
          });
          expect(Object.fromEntries(found), type).toEqual(Object.fromEntries(known));
        }
      });
    });

    describe("with the CRD alone", () => {
      test.each(BAD_SPECS)("%s is refused", async (_what, spec, field, by) => {
        const { status, body } = await create(clusterPolicy("bad", spec));
        expect(`${status} ${stringAt(body, "message") ?? ""}`).toMatch(by === "crd" ? /^4(22|00) / : /^201 /);
        // The API server names the field, or for the keys of a map the map's owner.
        if (status === 422)
          expect(fieldsOf(body).some((named) => field.startsWith(named) && named !== "")).toBe(true);
        if (spec["namespaceSelector"] !== undefined && field.startsWith("spec.namespaceSelector")) return;
        const own = await create(namespacedPolicy("default", "bad", withoutNamespaces(spec)), NAMESPACED);
        expect(own.status).toBe(status);
      });

      test.each(GOOD_SPECS)("%s is accepted", async (_what, spec) => {
        const { status, body } = await create(clusterPolicy("good", spec));
        expect(`${status} ${stringAt(body, "message") ?? ""}`).toMatch(/^201 /);
      });

      test("a policy that became invalid can still lose its finalizer", async () => {
        const path = `${CLUSTER_WIDE}/old`;
        const crd =
          "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpodschedulingpolicies.kupid.gardener.cloud";
        const wanted = await cluster().call("GET", crd);
        const loose = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
        const schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        await cluster().call("PATCH", crd, [{ op: "replace", path: schema, value: loose }]);
        const bad = clusterPolicy("old", {
          podSelector: {},
          tolerations: [{ key: "a b", operator: "Exists" }],
        });
        const metadata = { name: "old", finalizers: ["example.com/hold"] };
        await eventually("the invalid policy stored", async () => {
          const { status } = await cluster().request("POST", CLUSTER_WIDE, { ...bad, metadata });
          return status === 201 || status === 409;
        });
        const value =
          at(wanted, "spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec") ?? null;
        await cluster().call("PATCH", crd, [{ op: "replace", path: schema, value }]);
        await eventually("the rules restored", async () => {
          const again = await create(
            clusterPolicy("new", { tolerations: [{ key: "a b", operator: "Exists" }] }),
          );
          return again.status === 422;
        });
        await cluster().call("PATCH", path, { metadata: { labels: { touched: "yes" }, finalizers: [] } });
        await cluster().call("DELETE", path);
      });
    });

    describe("with the webhook", () => {
      beforeAll(async () => {
        const assembly = new Assembly(allModules, DEFAULT_INSTALLATION, new Gates([]));
        server = await startAdmission({
          source: {
            assembly,
            ready: true,
            fetch: async (needs) => needs.map(() => ({ absent: "NotFound" as const })),
            commit: async () => ({ failed: "nothing is written here" }),
            stop: async () => undefined,
          },
          log: SILENT,
          port: 0,
          opsPort: 0,
        });
        const { port } = server.webhookAddress;
        await cluster().route("127.0.0.1", port, port);
        const { objects } = registeredWebhooks(assembly, {
          endpoint: { url: `https://127.0.0.1:${port}` },
          caBundle: Buffer.from(server.ca ?? "").toString("base64"),
        });
        await cluster().apply(...objects.filter(({ kind }) => kind === "ValidatingWebhookConfiguration"));
        await eventually("the webhook in force", async () => {
          const { headers } = await create(clusterPolicy("inert", {}));
          return String(headers["warning"] ?? "").includes("selects nothing");
        });
      });

      test.each(BAD_SPECS.filter(([, , , by]) => by === "webhook"))(
        "%s is refused",
        async (_what, spec, field) => {
          const { status, body } = await create(clusterPolicy("bad", spec));
          expect(`${status} ${stringAt(body, "message") ?? ""}`).toMatch(/^422 .*USHER-E04/s);
          expect(fieldsOf(body)).toContain(field);
        },
      );

      test.each(GOOD_SPECS)("%s is accepted, without a warning", async (_what, spec) => {
        const { status, headers } = await create(clusterPolicy("good", spec));
        expect(status).toBe(201);
        expect(headers["warning"]).toBeUndefined();
      });

      test.each(readdirSync(SAMPLES).sort())("kupid's %s is accepted", async (file) => {
        for (const { value } of readManifests(readFileSync(join(SAMPLES, file), "utf8")).manifests) {
          const object = value as JsonObject;
          const namespaced = object["kind"] === "PodSchedulingPolicy";
          const path = namespaced ? NAMESPACED : CLUSTER_WIDE;
          const metadata = { name: at(object, "metadata", "name") };
          const { status } = await cluster().request("POST", `${path}?dryRun=All`, { ...object, metadata });
          expect(status).toBe(201);
        }
      });
    });
  },
);
