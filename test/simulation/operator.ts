/**
 * The operator of project-limit in a world of its own: two operator processes with leader election, the controllers of
 * workloads, and OpenShift's service CA. Plans crash the operator after each write; transitions move each field of the
 * custom resource to another value and back. The end must always be that of the reference run.
 */
import type { OwnCertificate } from "../../src/admission/tls/certificate.ts";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { LeaderElection } from "../../src/cluster/leader-election/leader-election.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";

import { parseVersion } from "../../src/core/kubernetes/versions.ts";
import type { Log } from "../../src/core/log.ts";
import { serviceNames } from "../../src/core/registration/certificates.ts";
import { customResourceDefinition } from "../../src/core/registration/crd.ts";
import { projectLimit } from "../../src/modules/project-limit/index.ts";
import { OPERAND, OPERATOR } from "../../src/modules/project-limit/operand-names.ts";
import { OperandController } from "../../src/operator/operand/operand-controller.ts";
import { ApiServer } from "./api-server/api-server.ts";
import { Controllers } from "./api-server/controllers.ts";
import { Store } from "./api-server/store.ts";
import { Network } from "./network.ts";
import { activate, EPOCH, Runtime, SimulatedProcess } from "./runtime.ts";

const { namespace } = OPERAND;
const LIMITS = "projectrequestlimits.operator.project.openshift.io";
const LIMITS_PATH = "/apis/operator.project.openshift.io/v1/projectrequestlimits";
const HOOKS = "validatingwebhookconfigurations.admissionregistration.k8s.io";
const ADMIN = { username: "admin", groups: ["system:masters"] };
const ACCOUNT = { username: OPERATOR.name, groups: ["system:serviceaccounts"] };
const SPEC: JsonObject = { limits: [{ groups: ["tenants"], maxProjects: 2 }] };

/** Something that happens at a time: an edit of the custom resource, or of an object of the operand by someone else. */
interface Edit {
  readonly at: number;
  readonly spec?: JsonObject;
  readonly spoil?: { readonly path: string; readonly patch: JsonObject };
  readonly remove?: string;
}

const WORKLOAD = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${OPERAND.name}`;
const WEBHOOK = `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${OPERAND.webhook}`;

const EDITS: readonly Edit[] = [
  { at: 18_000, spec: { ...SPEC, limits: [{ groups: ["tenants"], maxProjects: 3 }] } },
  {
    at: 26_000,
    spoil: { path: WORKLOAD, patch: { spec: { template: { spec: { serviceAccountName: "other" } } } } },
  },
  { at: 36_000, remove: WEBHOOK },
];
const END_MS = 70_000;

let servingPair: OwnCertificate | undefined;

interface Crash {
  readonly process: string;
  readonly write: number;
}

class OperatorWorld {
  readonly runtime = new Runtime("operator");
  readonly store = new Store();
  readonly writes: { readonly process: string; readonly what: string }[] = [];
  readonly #server: ApiServer;
  readonly #network: Network;
  readonly #trace: (line: string) => void;

  constructor(edits: readonly Edit[], crash: Crash | undefined, trace: (line: string) => void) {
    const { runtime } = this;
    this.#trace = (line) => trace(`${(runtime.now / 1_000).toFixed(4).padStart(9)} ${line}`);
    const schedule = (ms: number, run: () => void) => runtime.schedule(ms, run);
    this.#server = new ApiServer(this.store, {
      now: () => EPOCH + runtime.now,
      random: runtime.randomFor("API server"),
      schedule,
    });
    new Controllers(this.store, this.#server, { schedule, delay: () => 100 });
    this.#network = new Network(runtime, [this.#server], this.#trace);
    let left = crash?.write ?? 0;
    this.#network.onProcessed = ({ process, method, path }) => {
      if (method === "GET" || path.includes("/leases")) return;
      this.writes.push({ process: process.name, what: `${method} ${path.replace(/\?.*/, "")}` });
      if (process.name !== crash?.process || --left !== 0) return;
      process.crash();
      this.#network.reset(process.name);
      this.#trace(`${process.name} crashed`);
      runtime.schedule(1_500, () => this.#start(process.name));
    };
    for (const edit of edits) runtime.schedule(edit.at, () => void this.#edit(edit));
  }

  async run(): Promise<void> {
    activate(this.runtime);
    const resource = projectLimit.kinds[0];
    if (resource === undefined) throw new Error("project-limit has no kind");
    await this.#send("POST", "/api/v1/namespaces", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: namespace },
    });
    await this.#send(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      customResourceDefinition(resource),
    );
    await this.runtime.run(2_000);
    const owner = {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      metadata: { name: "cluster" },
      spec: SPEC,
    };
    await this.#send("POST", LIMITS_PATH, owner);
    for (const name of ["operator-a", "operator-b"]) this.#start(name);
    this.runtime.schedule(0, () => void this.#others());
    await this.runtime.run(END_MS);
  }

  async #send(method: string, path: string, body?: Json, contentType = "application/json") {
    return this.#server.handle({
      method,
      path,
      user: ADMIN,
      ...(body === undefined ? {} : { body, contentType }),
    });
  }

  async #edit({ spec, spoil, remove }: Edit): Promise<void> {
    if (spoil !== undefined)
      await this.#send("PATCH", spoil.path, spoil.patch, "application/merge-patch+json");
    if (remove !== undefined) await this.#send("DELETE", remove);
    if (spec === undefined) return;
    const live = this.store.get(LIMITS, "cluster") ?? {};
    await this.#send("PUT", `${LIMITS_PATH}/cluster`, { ...live, spec });
  }

  /** As `usher operator` does. */
  #start(name: string): void {
    const process = new SimulatedProcess(this.runtime, name, { rate: 1, wallOffset: 0 });
    const version = parseVersion("v1.37.0");
    const { operator } = projectLimit;
    if (version === undefined || operator === undefined) throw new Error("project-limit has no operator");
    const line = (facts: object, message: string) =>
      this.#trace(`${name} ${message} ${JSON.stringify(facts)}`);
    const log: Log = { debug: () => undefined, info: line, warn: line, error: line };
    process.run(() => {
      const client = this.#network.clientOf(process, ACCOUNT, 10_000);
      let ended = new AbortController();
      let running: Promise<void> = Promise.resolve();
      const lease = new LeaderElection({
        client,
        namespace,
        name: operator.name,
        identity: name,
        onStartedLeading: () => {
          ended = new AbortController();
          running = new OperandController({
            client,
            operator,
            image: "usher@sha256:1",
            log,
            publish: () => undefined,
            serverVersion: () => ({ effective: version, binary: version }),
            leading: () => lease.leading,
          }).run(ended.signal);
        },
        onStoppedLeading: async () => {
          ended.abort();
          await running;
        },
      });
      lease.start();
    });
  }

  /** Pods become ready a second after their workload is written; the service CA writes its Secret and its bundles. */
  async #others(): Promise<void> {
    const root = `/api/v1/namespaces/${namespace}`;
    for (const resource of ["daemonsets", "deployments"]) {
      const live = this.store.get(`${resource}.apps`, `${namespace}/${OPERAND.name}`);
      const generation = at(live, "metadata", "generation");
      if (live === undefined || at(live, "status", "observedGeneration") === generation) continue;
      const counts = {
        desiredNumberScheduled: 2,
        updatedNumberScheduled: 2,
        numberReady: 2,
        numberAvailable: 2,
        replicas: 2,
        updatedReplicas: 2,
        readyReplicas: 2,
        availableReplicas: 2,
      };
      const status = { status: { observedGeneration: generation ?? 0, ...counts } };
      await this.#send(
        "PATCH",
        `/apis/apps/v1/namespaces/${namespace}/${resource}/${OPERAND.name}/status`,
        status,
        "application/merge-patch+json",
      );
    }
    const runs = ["daemonsets", "deployments"].some(
      (one) => this.store.get(`${one}.apps`, `${namespace}/${OPERAND.name}`) !== undefined,
    );
    if (runs)
      await this.#send("POST", `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`, {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        addressType: "IPv4",
        metadata: { name: "operand-1", namespace, labels: { "kubernetes.io/service-name": OPERAND.service } },
        endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true } }],
      });
    const service = this.store.get("services", `${namespace}/${OPERAND.service}`);
    const wanted = Object.keys((at(service, "metadata", "annotations") ?? {}) as JsonObject).some((key) =>
      key.includes("serving-cert"),
    );
    const data = { "tls.crt": base64(servingPair?.cert), "tls.key": base64(servingPair?.key) };
    if (wanted && this.store.get("secrets", `${namespace}/${OPERAND.servingSecret}`) === undefined)
      await this.#send("POST", `${root}/secrets`, {
        apiVersion: "v1",
        kind: "Secret",
        type: "kubernetes.io/tls",
        metadata: { name: OPERAND.servingSecret, namespace },
        data,
      });
    const webhook = this.store.get(HOOKS, OPERAND.webhook);
    const caBundle = base64(servingPair?.ca);
    const isInjected = listAt(webhook, "webhooks").every(
      (one) => stringAt(one, "clientConfig", "caBundle") === caBundle,
    );
    if (
      webhook !== undefined &&
      !isInjected &&
      stringAt(webhook, "metadata", "annotations", "service.beta.openshift.io/inject-cabundle") === "true"
    ) {
      const webhooks = listAt(webhook, "webhooks").map((one) => ({
        ...(one as JsonObject),
        clientConfig: { ...(at(one, "clientConfig") as JsonObject), caBundle },
      }));
      await this.#send("PUT", WEBHOOK, { ...webhook, webhooks });
    }
    this.runtime.schedule(1_000, () => void this.#others());
  }

  /** All objects that the operator keeps, without versions, times and random tokens. */
  end(): Json {
    const kept = this.store
      .resources()
      .filter((one) => !/^(leases|events|endpointslices|namespaces|customresource)/.test(one));
    return kept.flatMap((resource) =>
      this.store
        .list(resource)
        .map(({ key, object }) => [resource, key, essence(object, resource === "secrets")]),
    );
  }
}

function base64(text: string | undefined): string {
  return Buffer.from(text ?? "").toString("base64");
}

const VOLATILE = new Set([
  "uid",
  "resourceVersion",
  "managedFields",
  "creationTimestamp",
  "generation",
  "observedGeneration",
  "lastTransitionTime",
]);

/** A path of the webhook has a random token. */
function essence(value: Json | undefined, secret: boolean): Json {
  if (typeof value === "string") return value.replace(/\/[0-9a-f]{40}\//, "/TOKEN/");
  if (Array.isArray(value)) return value.map((one: Json) => essence(one, secret));
  if (!isObject(value)) return value ?? null;
  const kept = Object.entries(value).filter(([key]) => !VOLATILE.has(key) && !(secret && key === "data"));
  return Object.fromEntries(kept.map(([key, one]) => [key, essence(one, secret)]));
}

/** Each field at another value; not `certificates`, because signing takes real time. */
const TRANSITIONS: readonly (readonly [string, JsonObject])[] = [
  ["topology Deployment", { topology: "Deployment" }],
  ["podLabels", { podLabels: { team: "a" } }],
  ["nodeSelector", { nodeSelector: { pool: "infra" } }],
  ["count BestEffort", { count: "BestEffort" }],
  ["failurePolicy Ignore", { failurePolicy: "Ignore" }],
  ["timeoutSeconds 30", { timeoutSeconds: 30 }],
  ["exempt", { exempt: { users: ["root"] } }],
  [
    "extensions Disabled",
    { extensions: "Disabled", limits: [{ selector: { level: "gold" }, maxProjects: 2 }] },
  ],
  ["no limits", { limits: [] }],
  ["an invalid spec", { limits: [{ groups: ["tenants"], maxProjects: 2 }], trustedAnnotators: [""] }],
];

/** Runs every plan and every transition; the failures, one line each. */
export async function checkOperator(
  every = 1,
  trace: (line: string) => void = () => undefined,
): Promise<{ readonly runs: number; readonly failures: readonly string[] }> {
  // Signing takes real time.
  servingPair ??= await makeCertificate(serviceNames(OPERAND.service, namespace), EPOCH);
  const failures: string[] = [];
  let runs = 0;
  const run = async (edits: readonly Edit[], crash?: Crash): Promise<OperatorWorld> => {
    runs += 1;
    const world = new OperatorWorld(edits, crash, trace);
    await world.run();
    activate(undefined);
    return world;
  };
  const compare = (what: string, world: OperatorWorld, reference: Json): void => {
    const why =
      world.runtime.failure ??
      (equal(world.end(), reference) ? undefined : differing(world.end(), reference));
    if (why !== undefined) failures.push(`${what}: ${why}`);
  };
  const reference = await run(EDITS);
  if (reference.runtime.failure !== undefined) throw new Error(reference.runtime.failure);
  // What others have spoiled and deleted is repaired.
  compare("edits by others", reference, (await run(EDITS.slice(0, 1))).end());
  const crashes = ["operator-a", "operator-b"].flatMap((process) =>
    reference.writes
      .filter((one) => one.process === process)
      .map(({ what }, i) => ({
        what: `${process} crashes after ${what} (${i + 1})`,
        crash: { process, write: i + 1 },
      })),
  );
  for (const { what, crash } of crashes.filter((_, i) => i % every === 0))
    compare(what, await run(EDITS, crash), reference.end());
  const start = await run([]);
  for (const [what, fields] of TRANSITIONS.filter((_, i) => i % every === 0)) {
    const edits = [
      { at: 20_000, spec: { ...SPEC, ...fields } },
      { at: 36_000, spec: SPEC },
    ];
    compare(`${what} and back`, await run(edits), start.end());
  }
  return { runs, failures };
}

function differing(one: Json, other: Json): string {
  const texts = (value: Json) => new Set(listAt(value).map((part) => JSON.stringify(part)));
  const [is, should] = [texts(one), texts(other)];
  const cut = (all: ReadonlySet<string>) => [...all].map((text) => text.slice(0, 300)).join(" ");
  return `has ${cut(is.difference(should))} instead of ${cut(should.difference(is))}`;
}
