import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { prometheusRule } from "../../deploy/generate/observability/files.ts";
import { startAdmission } from "../../src/admission/admission-server.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { at, isObject, type JsonObject, stringAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { monitors } from "../../src/core/registration/monitoring/monitors.ts";
import { readManifests } from "../../src/files/reader/read-documents.ts";
import { eventually } from "../cluster/access/wait.ts";
import { moduleFolder } from "../cluster/binaries/module-folder.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { startCollector } from "../support/admission/collector.ts";
import { testSource } from "../support/admission/example-cluster.ts";
import { startGrpcCollector } from "../support/admission/grpc-collector.ts";

const OPERATOR = "github.com/prometheus-operator/prometheus-operator";
const KINDS = ["servicemonitors", "podmonitors", "prometheusrules"];
const ROOT = join(import.meta.dirname, "..", "..");

const folder = mkdtempSync(join(tmpdir(), "usher-observability-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const ofApiServer = await startGrpcCollector();
afterAll(() => ofApiServer.close());
const tracingFile = join(folder, "tracing.yaml");
writeFileSync(
  tracingFile,
  JSON.stringify({
    apiVersion: "apiserver.config.k8s.io/v1beta1",
    kind: "TracingConfiguration",
    endpoint: ofApiServer.endpoint,
    samplingRatePerMillion: 1_000_000,
  }),
);

function parsed(path: string): JsonObject[] {
  return readManifests(readFileSync(path, "utf8")).manifests.flatMap(({ value }) =>
    isObject(value) ? [value] : [],
  );
}

/** Objects of the Prometheus operator that the chart renders with these values; without the values it renders none. */
async function rendered(...values: string[]): Promise<JsonObject[]> {
  const helm = await ensureTool("helm");
  const template = (...args: string[]) => {
    const text = execFileSync(helm, ["template", "u", join(ROOT, "deploy", "chart"), ...args], {
      encoding: "utf8",
    });
    const file = join(folder, "rendered.yaml");
    writeFileSync(file, text);
    return parsed(file).filter(({ apiVersion }) => String(apiVersion).startsWith("monitoring."));
  };
  expect(template()).toEqual([]);
  return template(...values.flatMap((value) => ["--set", value]));
}

const ALONE = {
  without: ["kube-controller-manager", "kube-scheduler", "kwok"],
  // Without controllers pods have no service account.
  flags: {
    "kube-apiserver": [`--tracing-config-file=${tracingFile}`, "--disable-admission-plugins=ServiceAccount"],
  },
} as const;

describeOwnCluster(
  "an API server with tracing, and the CRDs of the Prometheus operator",
  ALONE,
  (cluster) => {
    const resource = ({ kind }: JsonObject) => `${String(kind).toLowerCase()}s`;
    const create = (object: JsonObject) =>
      cluster().request(
        "POST",
        `/apis/monitoring.coreos.com/v1/namespaces/default/${resource(object)}?fieldValidation=Strict&dryRun=All`,
        { ...object, metadata: { ...(object["metadata"] as JsonObject), namespace: "default" } },
      );

    test("monitors and alerts are accepted, with strict validation of their fields", async () => {
      const definitions = join(
        moduleFolder("prometheus-operator", OPERATOR),
        "example",
        "prometheus-operator-crd",
      );
      for (const kind of KINDS) {
        const crd = parsed(join(definitions, `monitoring.coreos.com_${kind}.yaml`))[0] ?? {};
        await cluster().call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
      }
      const asked = { labels: { release: "prometheus" }, interval: "30s" };
      const chart = await rendered(
        ...["serviceMonitor", "podMonitor", "prometheusRule"].map(
          (name) => `monitoring.${name}.enabled=true`,
        ),
        "monitoring.serviceMonitor.interval=30s",
        "monitoring.serviceMonitor.labels.release=prometheus",
        "monitoring.prometheusRule.runbookUrl=https://runbooks.example/usher.md",
      );
      expect(chart.map(({ kind }) => String(kind)).sort()).toEqual([
        "PodMonitor",
        "PrometheusRule",
        "ServiceMonitor",
      ]);
      const serviceMonitor = chart.find(({ kind }) => kind === "ServiceMonitor");
      expect(at(serviceMonitor, "spec", "endpoints", 0, "interval")).toBe("30s");
      expect(at(serviceMonitor, "metadata", "labels", "release")).toBe("prometheus");
      // Prometheus' own templates are left alone.
      const rules = chart.find(({ kind }) => kind === "PrometheusRule");
      expect(at(rules, "spec")).toEqual(at(prometheusRule("https://runbooks.example/usher.md"), "spec"));
      const objects = [
        ...chart,
        ...monitors(DEFAULT_INSTALLATION, { serviceMonitor: asked, podMonitor: asked }),
        prometheusRule("https://runbooks.example/usher.md"),
        ...["service-monitor", "pod-monitor", "prometheus-rule"].flatMap((name) =>
          parsed(join(ROOT, "deploy", "monitoring", `${name}.yaml`)),
        ),
      ];
      expect(objects).toHaveLength(9);
      for (const kind of KINDS)
        await eventually(
          `${kind} to be served`,
          async () =>
            (await cluster().request("GET", `/apis/monitoring.coreos.com/v1/namespaces/default/${kind}`))
              .status === 200,
        );
      for (const object of objects) {
        const { status, body } = await create(object);
        expect(status, JSON.stringify(body)).toBe(201);
        // The validation is strict: a field that the CRD does not know is refused.
        const wrong = await create({
          ...object,
          spec: { ...(object["spec"] as JsonObject), intervall: "30s" },
        });
        expect(wrong.status, JSON.stringify(wrong.body)).toBe(400);
      }
    });

    test("a review is a span under the API server's own span", async () => {
      const collector = await startCollector();
      // None is sampled by chance: the API server requested every exported span.
      const tracing = { endpoint: collector.endpoint, sampling: 0 };
      const server = await startAdmission({
        source: testSource(),
        log: SILENT,
        port: 0,
        opsPort: 0,
        tracing,
      });
      try {
        await cluster().apply({
          apiVersion: "admissionregistration.k8s.io/v1",
          kind: "MutatingWebhookConfiguration",
          metadata: { name: "traced" },
          webhooks: [
            {
              name: "traced.usher.dev",
              admissionReviewVersions: ["v1"],
              sideEffects: "None",
              clientConfig: {
                url: `${server.webhookAddress.url}/mutate/label`,
                caBundle: Buffer.from(server.ca ?? "").toString("base64"),
              },
              rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
            },
          ],
        });
        const pod = {
          metadata: { generateName: "p-" },
          spec: { containers: [{ name: "web", image: "web:1" }] },
        };
        await eventually("the webhook to be called", async () => {
          const path = "/api/v1/namespaces/default/pods?dryRun=All";
          return stringAt(await cluster().call("POST", path, pod), "metadata", "labels", "seen") === "yes";
        });
        await server.close();
        const root = collector.spans.find(({ name }) => name === "mutate pods");
        const child = collector.spans.find(({ name }) => name === "tiny");
        expect(root?.attributes).toMatchObject({ "usher.operation": "CREATE", "usher.verdict": "patch" });
        expect(child).toMatchObject({ traceId: root?.traceId, parentSpanId: root?.spanId });
        // The API server exports every five seconds.
        await eventually("the API server's own spans", () =>
          Promise.resolve(
            ofApiServer.has(root?.traceId ?? "none") && ofApiServer.has(root?.parentSpanId ?? "none"),
          ),
        );
      } finally {
        await server.close();
        await collector.close();
      }
    });
  },
);
