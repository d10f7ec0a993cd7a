// An API server with flags that no other test needs: compiled policies in files (`ManifestBasedAdmissionControlConfig`), and webhooks
// that are called by the addresses of their replicas (`--enable-aggregator-routing`).
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { startAdmission } from "../../src/admission/admission-server.ts";
import { allow } from "../../src/core/decision/decision.ts";
import { type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { SILENT } from "../../src/core/log.ts";
import { type StaticFile, staticFiles } from "../../src/core/registration/static-manifests.ts";
import { compile } from "../../src/modules/node-guard/compile.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { assemblyOf } from "../builders/evaluation.ts";
import { came, clusterPolicy } from "../builders/policy.ts";
import type { Reply } from "../cluster/access/client.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { get, testModule, testSource } from "../support/admission/example-cluster.ts";
import {
  guardAssembly,
  INSTALLATION,
  type Names,
  NOW,
  nodeObjects,
  policyOf,
} from "../support/node-guard/fallback.ts";

const NAMES: Names = {
  label: "guarded",
  listed: "listed",
  exact: "exact",
  tenant: "tenant",
  prefixed: "pre-1",
  prefix: "pre-",
  nodes: { guarded: ["cp-0", "cp-1"], free: "w-0" },
};
const NODES = nodeObjects(NAMES);
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const POLICIES = `${ADMISSION}/validatingadmissionpolicies`;
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`;
const ASSIGN = "usher-node-guard-guarded-assign.static.k8s.io";

/** A policy of another module, for pods with a label of their own. */
const placements = () => {
  const spec = { podSelector: { matchLabels: { by: "file" } }, nodeSelector: { pool: "a" }, targets: "Pods" };
  const assembly = assemblyOf([placement], [came(clusterPolicy("pool", { namespaceSelector: {}, ...spec }))]);
  const { view, installation, gates } = assembly;
  const policies = [...assembly.policies("placement")].flatMap(({ policy }) => policy ?? []);
  return placement.compile?.({ policies, view, installation, gates, now: NOW, files: true }) ?? [];
};

const filesFor = (folder: string, nodes: readonly JsonObject[]): readonly StaticFile[] => {
  const { view, gates } = guardAssembly([policyOf(NAMES, "Namespace"), ...nodes]);
  const context = { policies: [], view, installation: INSTALLATION, gates, now: NOW, files: true } as const;
  const { files, refused } = staticFiles(
    [...compile(context), ...placements()].flatMap(({ objects }) => objects),
    folder,
  );
  expect(refused).toEqual([]);
  return files;
};

/** As a control-plane node gets them: each file complete from one moment to the next. */
const write = (folder: string, files: readonly StaticFile[]): void => {
  for (const { path, documents } of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, documents.map((one) => stringify(one)).join("---\n"));
    renameSync(`${file}.new`, file);
  }
};

const folder = mkdtempSync(join(tmpdir(), "usher-static-"));

const options = async () => {
  write(folder, filesFor(folder, NODES));
  return {
    without: ["kube-controller-manager", "kube-scheduler", "kwok"],
    flags: {
      "kube-apiserver": [
        `--admission-control-config-file=${join(folder, "admission.yaml")}`,
        "--enable-aggregator-routing=true",
        // Beta, and off by default: pods have a schedulingGroup.
        "--feature-gates=GenericWorkload=true",
      ],
    },
  } as const;
};

describeOwnCluster(
  "an API server with files of policies and with routing to endpoints",
  options,
  (cluster) => {
    const pod = (nodeName: string): JsonObject => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "p" },
      spec: { nodeName, automountServiceAccountToken: false, containers: [{ name: "c", image: "app:1" }] },
    });
    /** By a member of system:masters. */
    const create = (nodeName: string): Promise<Reply> =>
      cluster().request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod(nodeName));
    const verdict = ({ status, body }: Reply): string =>
      `${status} ${/USHER-G\d+/.exec(stringAt(body, "message") ?? "")?.[0] ?? ""}`.trim();

    beforeAll(async () => {
      await eventually("the namespace default", async () => {
        const { status } = await cluster().request("GET", "/api/v1/namespaces/default");
        return status === 200;
      });
      await cluster().call("POST", "/api/v1/namespaces/default/serviceaccounts", {
        metadata: { name: "default" },
      });
      for (const node of NODES) await cluster().call("POST", "/api/v1/nodes", node);
    });

    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    test("policies in files refuse a pod on a protected node, and admit one on another", async () => {
      const refused = await create("cp-0");
      expect(verdict(refused)).toBe("403 USHER-G01");
      expect(stringAt(refused.body, "message")).toContain(ASSIGN);
      expect(verdict(await create("w-0"))).toBe("201");
    });

    test("policies in files place a pod", async () => {
      const placed = { ...pod(""), metadata: { name: "p", labels: { by: "file" } } };
      const path = "/api/v1/namespaces/default/pods?dryRun=All";
      expect(await cluster().call("POST", path, placed)).toMatchObject({
        spec: { nodeSelector: { pool: "a" } },
      });
      expect((await create("w-0")).body).not.toHaveProperty("spec.nodeSelector");
    });

    test("policies in files refuse a binding to a protected node", async () => {
      const binding = { metadata: { name: "p" }, target: { apiVersion: "v1", kind: "Node", name: "cp-1" } };
      const path = "/api/v1/namespaces/default/bindings?dryRun=All";
      expect(verdict(await cluster().request("POST", path, binding))).toBe("403 USHER-G02");
    });

    test("policies in files keep the labels of protected nodes, and protect a node by its name whatever its labels", async () => {
      const labels = { metadata: { labels: { guarded: null } } };
      expect(verdict(await cluster().request("PATCH", "/api/v1/nodes/cp-0", labels))).toBe("403 USHER-G09");
      await cluster().call("DELETE", "/api/v1/nodes/cp-0");
      await cluster().call("POST", "/api/v1/nodes", { metadata: { name: "cp-0" } });
      expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
    });

    test("policies in files can't be seen, deleted or replaced by an administrator through the API", async () => {
      for (const path of [POLICIES, BINDINGS]) {
        expect(
          listAt(await cluster().call("GET", path), "items").map((one) => nameOf(one as JsonObject)),
        ).toEqual([]);
        expect((await cluster().request("DELETE", `${path}/${ASSIGN}`)).status).toBe(404);
        expect((await cluster().request("DELETE", path)).status).toBe(200);
      }
      const { status, body } = await cluster().request("POST", POLICIES, {
        metadata: { name: ASSIGN },
        spec: { validations: [{ expression: "true" }] },
      });
      expect([status, stringAt(body, "message")]).toEqual([422, expect.stringContaining(".static.k8s.io")]);
      expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
    });

    test("policies in files hold from the first request that a restarted API server answers", async () => {
      const server = cluster().component("kube-apiserver");
      await server.stop("at once");
      const seen: string[] = [];
      let ready = false;
      const ask = async (): Promise<void> => {
        while (!ready) {
          seen.push(await create("cp-1").then(verdict, () => "no answer"));
          await sleep(5);
        }
      };
      const asking = ask();
      await server.start();
      await eventually("a verdict", async () => seen.includes("403 USHER-G01"));
      ready = true;
      await asking;
      // Before the authorizer and the informers are ready the API server refuses by itself.
      expect(seen.filter((one) => one.startsWith("2"))).toEqual([]);
      expect(seen).toContain("no answer");
    });

    test("policies in files follow changed files without a restart, and stay in force while a file is broken", async () => {
      write(
        folder,
        filesFor(
          folder,
          NODES.filter((node) => nameOf(node) !== "cp-1"),
        ),
      );
      await eventually("cp-1 to be free", async () => (await create("cp-1")).status === 201, 90_000);
      expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
      writeFileSync(join(folder, "validating-policies/broken.yaml"), "kind: ConfigMap\n");
      await sleep(3_000);
      expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
    });

    test("both replicas are asked by an API server that keeps its connections, and none about reviews of tokens and access", async () => {
      const asked = [0, 0];
      const replicas = await Promise.all(
        asked.map((_, i) =>
          startAdmission({
            source: testSource(
              {},
              testModule({
                count: {
                  phase: "validate",
                  judge: () => {
                    asked[i] = (asked[i] ?? 0) + 1;
                    return allow();
                  },
                },
              }),
            ),
            log: SILENT,
            port: 0,
            opsPort: 0,
            names: ["usher.default.svc"],
          }),
        ),
      );
      const addresses = replicas.map((_, i) => `10.244.77.${i + 1}`);
      const webhooks = `${ADMISSION}/validatingwebhookconfigurations`;
      try {
        await cluster().call("POST", "/api/v1/namespaces/default/services", {
          metadata: { name: "usher" },
          spec: { ports: [{ name: "webhook", port: 443, targetPort: 9443 }] },
        });
        await cluster().call("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
          metadata: { name: "usher", labels: { "kubernetes.io/service-name": "usher" } },
          addressType: "IPv4",
          ports: [{ name: "webhook", port: 9443 }],
          endpoints: addresses.map((one) => ({ addresses: [one], conditions: { ready: true } })),
        });
        for (const [i, { webhookAddress }] of replicas.entries())
          await cluster().route(addresses[i] ?? "", 9443, Number(new URL(webhookAddress.url).port));
        await cluster().call("POST", webhooks, {
          metadata: { name: "usher" },
          webhooks: [
            {
              name: "requests.usher.dev",
              admissionReviewVersions: ["v1"],
              sideEffects: "None",
              failurePolicy: "Fail",
              clientConfig: {
                service: { name: "usher", namespace: "default", path: "/validate/count" },
                caBundle: Buffer.from(replicas.map(({ ca }) => ca).join("\n")).toString("base64"),
              },
              rules: [
                {
                  apiGroups: ["", "authentication.k8s.io", "authorization.k8s.io"],
                  apiVersions: ["v1"],
                  resources: ["pods", "tokenreviews", "subjectaccessreviews", "selfsubjectreviews"],
                  operations: ["*"],
                },
              ],
            },
          ],
        });
        await eventually(
          "a call",
          async () => (await create("w-0")).status === 201 && Math.max(...asked) > 0,
        );
        // One after the other: a connection that is kept would always lead to the same replica.
        for (let i = 0; i < 40; i++) expect((await create("w-0")).status).toBe(201);
        expect(Math.min(...asked)).toBeGreaterThan(5);
        for (const [group, kind, spec] of [
          ["authentication.k8s.io", "TokenReview", { token: "x" }],
          [
            "authorization.k8s.io",
            "SubjectAccessReview",
            { user: "a", nonResourceAttributes: { path: "/" } },
          ],
          ["authentication.k8s.io", "SelfSubjectReview", {}],
        ] as const)
          await cluster().call("POST", `/apis/${group}/v1/${kind.toLowerCase()}s`, {
            apiVersion: `${group}/v1`,
            kind,
            spec,
          });
        const answered = await Promise.all(
          replicas.map(async ({ opsAddress }) => {
            const { body } = await get(`${opsAddress.url}/metrics`);
            return Number(/^usher_requests_total\{phase="validate",code="200"\} (\d+)$/m.exec(body)?.[1]);
          }),
        );
        expect(answered).toEqual(asked);
      } finally {
        await cluster().request("DELETE", `${webhooks}/usher`);
        await Promise.all(replicas.map((one) => one.close()));
      }
    });

    test("a pod of a PodGroup that a policy places by its labels is placed, and the user sees the warning", async () => {
      const labels = { role: "worker" };
      const policy = clusterPolicy("by-label", {
        namespaceSelector: {},
        podSelector: { matchLabels: labels },
        nodeSelector: { zone: "a" },
      });
      const namespace = {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "default", labels: { "kubernetes.io/metadata.name": "default" } },
      };
      const server = await startAdmission({
        source: testSource({ assembly: assemblyOf([placement], [namespace, policy].map(came)) }),
        log: SILENT,
        port: 0,
        opsPort: 0,
      });
      const webhooks = `${ADMISSION}/mutatingwebhookconfigurations`;
      try {
        await cluster().call("POST", webhooks, {
          metadata: { name: "placing" },
          webhooks: [
            {
              name: "placing.usher.dev",
              admissionReviewVersions: ["v1"],
              sideEffects: "None",
              clientConfig: {
                url: `${server.webhookAddress.url}/mutate/placement`,
                caBundle: Buffer.from(server.ca ?? "").toString("base64"),
              },
              rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
            },
          ],
        });
        const send = async (group: JsonObject) => {
          const { body, headers } = await cluster().request(
            "POST",
            "/api/v1/namespaces/default/pods?dryRun=All",
            {
              apiVersion: "v1",
              kind: "Pod",
              metadata: { name: "p", labels },
              spec: {
                automountServiceAccountToken: false,
                containers: [{ name: "c", image: "app:1" }],
                ...group,
              },
            },
          );
          return { body, warning: String(headers["warning"] ?? "") };
        };
        await eventually(
          "a placed pod",
          async () => stringAt((await send({})).body, "spec", "nodeSelector", "zone") === "a",
        );
        expect((await send({})).warning).toBe("");
        const placed = await send({ schedulingGroup: { podGroupName: "train" } });
        expect(placed.body).toMatchObject({
          spec: { nodeSelector: { zone: "a" }, schedulingGroup: { podGroupName: "train" } },
        });
        expect(placed.warning).toMatch(/PodGroup train .*USHER-P25/);
      } finally {
        await cluster().request("DELETE", `${webhooks}/placing`);
        await server.close();
      }
    });
  },
);
