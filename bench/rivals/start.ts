// Starts the contenders that are processes, each on loopback, as close to its usual installation as that allows.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { makeCertificate, namesFor } from "../../src/admission/tls/certificate.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { equal, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { findGo } from "../../test/cluster/binaries/places.ts";
import type { Cluster } from "../../test/cluster/cluster.ts";
import { installReplicas } from "../cluster/install.ts";
import { pagesOf } from "../cluster/replicas.ts";
import { output, startProgram, startServer } from "../servers/child-process.ts";
import { type GoProgram, goProgram } from "../servers/go-program.ts";
import { processorTime } from "../servers/processor-time.ts";
import { seriesOf } from "../servers/scrape.ts";
import {
  BARE_PATCH,
  CONTESTS,
  type ContenderName,
  type Contest,
  NOT_FOR_USHER,
  namespaceObject,
  namespaceOf,
} from "./contenders.ts";

/** What a contender's own process has used since it began; a contender without a process: zeros. */
export interface Used {
  /** µs */
  readonly processor: number;
  readonly memoryBytes: number;
}

export interface Contender {
  readonly name: ContenderName;
  readonly used: () => Promise<Used>;
  readonly stop: () => Promise<void>;
}

const WITHOUT_PROCESS = { used: async () => ({ processor: 0, memoryBytes: 0 }), stop: async () => undefined };

const API = "admissionregistration.k8s.io/v1";
const PODS = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }];

const PROGRAMS = {
  kyverno: {
    name: "kyverno",
    folder: join(import.meta.dirname, "kyverno"),
    source: "github.com/kyverno/kyverno/cmd/kyverno",
  },
  gatekeeper: {
    name: "gatekeeper",
    folder: join(import.meta.dirname, "gatekeeper"),
    source: "github.com/open-policy-agent/gatekeeper/v3",
  },
} as const satisfies Readonly<Record<string, GoProgram>>;

/** Starts one, or throws with the reason why it can't run here. */
export const STARTS: Readonly<
  Record<ContenderName, (cluster: Cluster, scratch: string, contest: Contest) => Promise<Contender>>
> = {
  nothing: async () => ({ name: "nothing", ...WITHOUT_PROCESS }),
  "in-tree": async () => ({ name: "in-tree", ...WITHOUT_PROCESS }),
  bare: startBare,
  usher: startUsher,
  kyverno: startKyverno,
  gatekeeper: startGatekeeper,
};

/** The processor time and memory of one process. */
function usedBy(pid: number): Used {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kibibytes = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
  return { processor: (processorTime(pid) ?? Number.NaN) / 1e3, memoryBytes: kibibytes * 1_024 };
}

export function usedByApiServer(cluster: Cluster): Used {
  return usedBy(cluster.component("kube-apiserver").pid ?? 0);
}

/** A webhook of this address that is only asked about pods of the contender's namespace. */
function configuration(name: ContenderName, url: string, ca: string): JsonObject {
  return {
    apiVersion: API,
    kind: "MutatingWebhookConfiguration",
    metadata: { name: namespaceOf(name) },
    webhooks: [
      {
        name: `${namespaceOf(name)}.bench.usher.dev`,
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Fail",
        timeoutSeconds: 10,
        clientConfig: { url, caBundle: Buffer.from(ca).toString("base64") },
        rules: PODS,
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespaceOf(name) } },
      },
    ],
  };
}

async function startBare(cluster: Cluster): Promise<Contender> {
  const server = join(import.meta.dirname, "..", "servers", "bare-server.ts");
  const child = await startServer(process.execPath, [server, JSON.stringify(BARE_PATCH)]);
  await cluster.apply(configuration("bare", child.ready.webhook, child.ready.ca));
  return { name: "bare", used: async () => usedBy(child.pid), stop: child.stop };
}

/** One replica with the one module of the contest: the others do no more. */
async function startUsher(
  cluster: Cluster,
  scratch: string,
  { usher: spec, judged }: Contest,
): Promise<Contender> {
  const file = join(scratch, "usher.yaml");
  writeFileSync(file, JSON.stringify({ apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration", spec }));
  await cluster.createNode("bench-0");
  await installReplicas(cluster, 1, "--config", file);
  if (judged !== undefined) await keepToItsNamespace(cluster);
  const used = async (): Promise<Used> => {
    const [page] = await pagesOf(cluster);
    return {
      processor: seriesOf(page?.text ?? "", "process_cpu_seconds_total") * 1e6,
      memoryBytes: seriesOf(page?.text ?? "", "process_resident_memory_bytes"),
    };
  };
  return { name: "usher", used, stop: async () => undefined };
}

/** Without a policy of its own that selects pods, usher judges those of all namespaces. */
async function keepToItsNamespace(cluster: Cluster): Promise<void> {
  const path = `/apis/${API}/validatingwebhookconfigurations/usher`;
  const excluded = { key: NOT_FOR_USHER, operator: "NotIn", values: ["aks"] };
  await eventually("usher's webhooks to leave out the other namespaces", async () => {
    const configuration = (await cluster.call("GET", path)) as JsonObject;
    const webhooks = listAt(configuration, "webhooks") as JsonObject[];
    const selectors = webhooks.map((one) => listAt(one, "namespaceSelector", "matchExpressions"));
    if (webhooks.length > 0 && selectors.every((list) => list.some((one) => equal(one, excluded))))
      return true;
    const narrowed = webhooks.map((one, i) => ({
      ...one,
      namespaceSelector: { matchExpressions: [...(selectors[i] ?? []), excluded] },
    }));
    await cluster.request("PUT", path, { ...configuration, webhooks: narrowed });
    return false;
  });
}

async function build(
  program: GoProgram,
): Promise<{ binary: string; source: (module: string) => Promise<string> }> {
  const go = findGo(process.env);
  if (go === undefined) throw new Error("Go is not installed, and it is built with it");
  const source = async (module: string) =>
    (await output(go, ["-C", program.folder, "list", "-m", "-f", "{{.Dir}}", module], 60_000)).trim();
  return { binary: await goProgram(go, program), source };
}

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Some are too large for `kubectl apply`, which keeps a copy in an annotation. */
async function createCrds(cluster: Cluster, files: readonly string[]): Promise<void> {
  for (const file of files)
    for (const document of parseAllDocuments(readFileSync(file, "utf8"))) {
      const object = document.toJS() as JsonObject | null;
      if (object?.["kind"] !== "CustomResourceDefinition") continue;
      const path = `${CRDS}/${nameOf(object)}`;
      await cluster.call("POST", CRDS, object);
      await eventually(`${nameOf(object)} to be served`, async () =>
        listAt(await cluster.call("GET", path), "status", "conditions").some(
          (one) => stringAt(one, "type") === "Established" && stringAt(one, "status") === "True",
        ),
      );
    }
}

const filesIn = (folder: string) =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => join(folder, file));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function startKyverno(cluster: Cluster): Promise<Contender> {
  const { binary, source } = await build(PROGRAMS.kyverno);
  const folder = await source("github.com/kyverno/kyverno");
  for (const part of ["kyverno", "policies.kyverno.io", "policyreport", "reports"])
    await createCrds(cluster, filesIn(join(folder, "config", "crds", part)));
  await cluster.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "kyverno" } },
    ...["kyverno", "kyverno-metrics"].map((name) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: "kyverno" },
      data: {},
    })),
  );
  const port = await freePort();
  const program = startProgram(
    binary,
    [
      `--kubeconfig=${await cluster.kubeconfig()}`,
      `--serverIP=127.0.0.1:${port}`,
      "--webhookServerHost=127.0.0.1",
      `--webhookServerPort=${port}`,
      "--caSecretName=kyverno-ca",
      "--tlsSecretName=kyverno-tls",
      "--disableMetrics=true",
      "--controllerRuntimeMetricsAddress=0",
      // Reports are for its other controllers, which do not run here.
      "--admissionReports=false",
      "--omitEvents=PolicyApplied,PolicySkipped,PolicyViolation,PolicyError",
      // At its usual limits a thousand policies would take minutes.
      "--clientRateLimitQPS=500",
      "--clientRateLimitBurst=1000",
    ],
    {
      KYVERNO_NAMESPACE: "kyverno",
      KYVERNO_SERVICEACCOUNT_NAME: "kyverno",
      KYVERNO_DEPLOYMENT: "kyverno",
      KYVERNO_POD_NAME: "kyverno",
      KYVERNO_SVC: "kyverno-svc",
      INIT_CONFIG: "kyverno",
      METRICS_CONFIG: "kyverno-metrics",
    },
  );
  const [policy] = CONTESTS.placing.policies.kyverno?.(0, "a") ?? [];
  let last = "";
  try {
    await eventually(
      "kyverno's own webhooks",
      async () => {
        program.check();
        const list = await cluster.call("GET", `/apis/${API}/validatingwebhookconfigurations`);
        const registered = listAt(list, "items").some((one) =>
          nameOf(one as JsonObject).startsWith("kyverno-policy"),
        );
        if (!registered) return false;
        const reply = await cluster.request("POST", `${policy?.path}?dryRun=All`, policy?.object);
        last = JSON.stringify(reply.body);
        return reply.status === 201;
      },
      120_000,
    );
  } catch (error) {
    throw new Error(`kyverno does not answer: ${last}; ${program.said()}`, { cause: error });
  }
  return { name: "kyverno", used: async () => usedBy(program.pid), stop: program.stop };
}

async function startGatekeeper(cluster: Cluster, scratch: string): Promise<Contender> {
  const { binary, source } = await build(PROGRAMS.gatekeeper);
  const folder = await source("github.com/open-policy-agent/gatekeeper/v3");
  await createCrds(cluster, filesIn(join(folder, "charts", "gatekeeper", "crds")));
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "gatekeeper-system" } });
  const { cert, key, ca } = await makeCertificate(namesFor("127.0.0.1"));
  writeFileSync(join(scratch, "tls.crt"), cert);
  writeFileSync(join(scratch, "tls.key"), key);
  const [port, health] = [await freePort(), await freePort()];
  const program = startProgram(
    binary,
    [
      "--operation=mutation-webhook",
      "--operation=mutation-status",
      "--disable-cert-rotation",
      `--cert-dir=${scratch}`,
      "--host=127.0.0.1",
      `--port=${port}`,
      `--health-addr=127.0.0.1:${health}`,
      "--metrics-addr=0",
      "--log-level=ERROR",
      "--shutdown-delay=0",
    ],
    { KUBECONFIG: await cluster.kubeconfig(), POD_NAME: "gatekeeper", POD_NAMESPACE: "gatekeeper-system" },
  );
  await eventually(
    "gatekeeper's readiness",
    async () => {
      program.check();
      return fetch(`http://127.0.0.1:${health}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    },
    120_000,
  );
  await cluster.apply(configuration("gatekeeper", `https://127.0.0.1:${port}/v1/mutate`, ca));
  return { name: "gatekeeper", used: async () => usedBy(program.pid), stop: program.stop };
}

/** Before all others: namespaces, which policies select by label, a guarded node, and the creator's rights. */
export async function prepare(
  cluster: Cluster,
  names: readonly ContenderName[],
  contest: Contest,
): Promise<void> {
  await cluster.apply(...names.map((name) => namespaceObject(name, contest)), {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "rivals-creator" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: contest.as.user }],
  });
  await cluster.createNode("cp-0", { labels: { "node-role.kubernetes.io/control-plane": "" } });
}
