// The contract of a module, used by a test module through the real shells: admission server, informer cache, event
// recorder, controller.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AdmissionServer, startAdmission } from "../../src/admission/admission-server.ts";
import type { Client } from "../../src/cluster/client/client.ts";
import { type ClusterSource, openCluster } from "../../src/cluster/source/cluster-source.ts";
import { parseGates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import { registeredWebhooks } from "../../src/core/registration/index.ts";
import { Replica } from "../../src/operator/controller/replica.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeOwnCluster } from "../cluster/describe.ts";
import { get } from "../support/admission/example-cluster.ts";
import { clientOf } from "./fixtures/client.ts";
import {
  CODE,
  type CriterionValue,
  contractModule,
  GATE,
  UPSTREAM_TEXT,
} from "./fixtures/contract-module.ts";

const WEBHOOK = "contract.usher.dev";

/** The shells of one usher process, with the test module alone. */
class Shells {
  namespace = "";
  client!: Client;
  source!: ClusterSource;
  replica!: Replica;
  server!: AdmissionServer;

  async start(cluster: ClusterAccess): Promise<void> {
    this.namespace = await createNamespace(cluster);
    const usher = { apiVersion: "v1", kind: "Namespace", metadata: { name: DEFAULT_INSTALLATION.namespace } };
    await cluster.apply(usher);
    this.client = await clientOf(cluster);
    const modules = [contractModule(this.namespace)];
    const { gates } = parseGates(
      `${GATE}=true`,
      modules.flatMap((module) => module.gates ?? []),
    );
    const assembly = new Assembly(modules, DEFAULT_INSTALLATION, gates);
    this.source = openCluster({ client: this.client, assembly, log: SILENT });
    await this.source.cache.waitForSync();
    this.replica = new Replica({
      client: this.client,
      source: this.source,
      certificates: undefined,
      log: SILENT,
      version: "0.0.0",
      identity: "contract-test",
      callersVerified: true,
    });
    this.server = await startAdmission({
      source: this.source,
      log: SILENT,
      port: 0,
      opsPort: 0,
      effects: this.replica.effects,
      controllerStats: this.replica.controllerStats,
    });
    this.replica.start(this.server.count);
    const { port } = this.server.webhookAddress;
    await cluster.route("127.0.0.1", port, port);
    await cluster.apply({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: "contract" },
      webhooks: [
        {
          name: WEBHOOK,
          clientConfig: {
            url: `https://127.0.0.1:${port}/validate/contract`,
            caBundle: Buffer.from(this.server.ca ?? "").toString("base64"),
          },
          rules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
          ],
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": this.namespace } },
          admissionReviewVersions: ["v1"],
          sideEffects: "NoneOnDryRun",
          timeoutSeconds: 10,
        },
      ],
    });
    await eventually("the hook to be called", async () => {
      const { status } = await this.create(cluster, "probe", "deny", "?dryRun=All");
      return status === 403;
    });
  }

  async stop(): Promise<void> {
    await this.replica.stop();
    await this.server.close();
    await this.source.stop();
    this.client.close();
  }

  create(cluster: ClusterAccess, name: string, want: CriterionValue, query = "") {
    return cluster.request("POST", `/api/v1/namespaces/${this.namespace}/configmaps${query}`, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name },
      data: { want },
    });
  }

  async metrics(): Promise<string> {
    return (await get(`${this.server.opsAddress.url}/metrics`)).body;
  }
}

function warningsIn(headers: NodeJS.Dict<string | string[]>): string[] {
  const texts = String(headers["warning"] ?? "").match(/299 - "(?:[^"\\]|\\.)*"/g) ?? [];
  return texts.map((text) => JSON.parse(text.slice("299 - ".length)) as string);
}

const OPTIONS = { without: ["kube-scheduler", "kwok"] } as const;

describeOwnCluster("the contract of a module", OPTIONS, (cluster) => {
  const usher = new Shells();
  beforeAll(() => usher.start(cluster()));
  afterAll(() => usher.stop());

  test("a warning with upstream's text arrives complete, and so does its audit value under upstream's key", async () => {
    const { status, headers } = await usher.create(cluster(), "warned", "warn");
    expect(status).toBe(201);
    expect(warningsIn(headers)).toEqual([UPSTREAM_TEXT]);
    const entry = await eventually("the audit entry", () =>
      cluster()
        .auditLog()
        .find(({ verb, objectRef }) => verb === "create" && objectRef?.name === "warned"),
    );
    expect(entry?.annotations).toMatchObject({ [`${WEBHOOK}/audit-violations`]: UPSTREAM_TEXT.repeat(4) });
  });

  test("warnings beyond the API server's limit are dropped whole, the least important first", async () => {
    const { headers } = await usher.create(cluster(), "many", "many-warnings");
    const whole = [5, 4, 3, 2].map((rank) => String(rank).repeat(1_000));
    expect(warningsIn(headers)).toEqual([...whole, "and 1 more warning"]);
  });

  test("a denial names the object and the reason, like Kubernetes' own errors", async () => {
    const { status, body } = await usher.create(cluster(), "denied", "deny");
    expect(status).toBe(403);
    expect(body).toMatchObject({
      reason: "Forbidden",
      message: `admission webhook "${WEBHOOK}" denied the request: not allowed (${CODE})`,
      details: {
        name: "denied",
        kind: "configmaps",
        causes: [{ reason: CODE, message: "not allowed", field: "data.want" }],
      },
    });
  });

  test("so does core's own denial, when a module throws behind a fail-closed hook", async () => {
    const { status, body } = await usher.create(cluster(), "broken", "throw");
    expect(status).toBe(500);
    expect(body).toMatchObject({
      details: {
        name: "broken",
        kind: "configmaps",
        causes: [{ reason: "USHER-E01", message: "internal error in module contract" }],
      },
    });
    expect(JSON.stringify(body)).not.toContain("internals");
  });

  test("kubectl describe shows the event about an object", async () => {
    await usher.create(cluster(), "described", "warn");
    const described = await eventually("the event", async () => {
      const args = ["describe", "configmap", "described", "-n", usher.namespace];
      const { stdout } = await cluster().kubectl(args);
      return stdout.includes("ContractViolation") ? stdout : undefined;
    });
    expect(described).toMatch(/Warning\s+ContractViolation\s/);
    const path = `/apis/events.k8s.io/v1/namespaces/${usher.namespace}/events`;
    const events = listAt(await cluster().call("GET", path), "items");
    const uid = stringAt(
      await cluster().call("GET", `/api/v1/namespaces/${usher.namespace}/configmaps/described`),
      "metadata",
      "uid",
    );
    const regarding = { apiVersion: "v1", kind: "ConfigMap", name: "described", uid };
    expect(events).toContainEqual(expect.objectContaining({ regarding: expect.objectContaining(regarding) }));
  });

  test("declared counters follow decisions, declared gauges follow the reconciler, and a dry run counts nothing", async () => {
    const before = await countOf(usher, 'contract_evaluations_total{decision="deny"}');
    await usher.create(cluster(), "counted", "deny", "?dryRun=All");
    await usher.create(cluster(), "counted", "deny");
    await eventually("the count", async () => {
      const count = await countOf(usher, 'contract_evaluations_total{decision="deny"}');
      return count === before + 1;
    });
    await usher.create(cluster(), "bounded", "warn");
    await eventually("a value that was not declared", async () => {
      return (await countOf(usher, 'contract_evaluations_total{decision="other"}')) > 0;
    });
    await eventually("the reconciler's", async () => {
      const free = await countOf(usher, 'contract_seats{state="free"}');
      return free === 7 && (await countOf(usher, 'contract_reconciles_total{key="seats"}')) === 2;
    });
  });

  test("evaluation and reconciler know the API server's version", async () => {
    const minor = stringAt(await cluster().call("GET", "/version"), "minor");
    const { headers } = await usher.create(cluster(), "version", "version");
    expect(warningsIn(headers)).toEqual([`${minor} on ${minor}`]);
  });
});

async function countOf(usher: Shells, series: string): Promise<number> {
  const line = (await usher.metrics()).split("\n").find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length) ?? 0);
}

const EMULATING = {
  without: ["kube-controller-manager", "kube-scheduler", "kwok"],
  flags: { "kube-apiserver": ["--emulated-version=1.36"] },
} as const;

describeOwnCluster("an API server that emulates an older release", EMULATING, (cluster) => {
  test("both versions are known", async () => {
    const client = await clientOf(cluster());
    const modules = [contractModule("default")];
    const assembly = new Assembly(modules, DEFAULT_INSTALLATION, parseGates("", []).gates);
    const source = openCluster({ client, assembly, log: SILENT });
    await source.cache.waitForSync();
    const version = (await cluster().call("GET", "/version")) as JsonObject;
    expect(assembly.view.serverVersion).toMatchObject({
      effective: { major: 1, minor: 36 },
      binary: { major: 1, minor: Number(version["minor"]) },
    });
    await source.stop();
    client.close();
  });
});

describe("a module whose gate is off", () => {
  test("registers nothing", () => {
    const modules = [contractModule("shop")];
    const declared = modules.flatMap((module) => module.gates ?? []);
    const hooksWith = (text: string) =>
      new Assembly(modules, DEFAULT_INSTALLATION, parseGates(text, declared).gates).hooks;
    expect(hooksWith("")).toEqual([]);
    expect(hooksWith(`${GATE}=true`)).toHaveLength(1);
    expect(registeredWebhooks).toBeTypeOf("function");
  });
});
