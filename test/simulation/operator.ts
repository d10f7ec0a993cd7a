/**
 * The operator of project-limit in a world of its own: two operator processes with leader election, the controllers of
 * workloads, OpenShift's service CA and cert-manager. Plans interrupt the operator after each write; transitions move each field of the
 * custom resource to each of its values and back. After each move the end must be that of a new custom resource with the
 * same spec.
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
import { projectRequestLimit } from "../../src/modules/project-limit/kinds.ts";
import { OPERAND, OPERATOR } from "../../src/modules/project-limit/operand-names.ts";
import { limitSpec } from "../../src/modules/project-limit/policy/spec-schema.ts";
import { trusts } from "../../src/operator/certificates/certificate-record.ts";
import { OperandController } from "../../src/operator/operand/operand-controller.ts";
import { ApiServer } from "./api-server/api-server.ts";
import { Controllers } from "./api-server/controllers.ts";
import { Store, type StoreEvent } from "./api-server/store.ts";
import { Network } from "./network.ts";
import { difference, type Plan } from "./plans.ts";
import { activate, EPOCH, Runtime, SimulatedProcess } from "./runtime.ts";
import {
  type Field,
  fieldsOf,
  jsonSchema,
  type Move,
  movesOf,
  nameOfMove,
  type Samples,
  stepsOf,
  withField,
} from "./schema-fields.ts";
import { ADMIN } from "./tenants.ts";
import { LIMITS } from "./world.ts";

const { namespace } = OPERAND;
const LIMITS_PATH = "/apis/operator.project.openshift.io/v1/projectrequestlimits";
const HOOKS = "validatingwebhookconfigurations.admissionregistration.k8s.io";
const API_SERVICES = "apiservices.apiregistration.k8s.io";
const ACCOUNT = { username: OPERATOR.name, groups: ["system:serviceaccounts"] };
const SPEC: JsonObject = { limits: [{ groups: ["tenants"], maxProjects: 2 }] };

/** Something that happens at a time: an edit of the custom resource, or of an object of the operand by someone else. */
interface Edit {
  readonly at: number;
  readonly spec?: JsonObject;
  readonly spoil?: { readonly path: string; readonly patch: JsonObject };
  readonly remove?: string;
  /** A custom resource with this spec. */
  readonly create?: JsonObject;
}

/** A pod of the operand. */
interface OperandPod {
  readonly workload: string;
  readonly readyAt: number;
  /** When the garbage collector ends it, if its workload is gone. */
  readonly endsAt: number | undefined;
}

/** The garbage collector finds the pods of a deleted workload this much later. */
const COLLECTED_MS = 5_000;
/** A pod becomes ready this long after its workload was written. */
const READY_MS = 4_000;
/** Of a workload. */
const PODS = 2;

const WORKLOAD = `/apis/apps/v1/namespaces/${namespace}/daemonsets/${OPERAND.name}`;
const SERVICE = `/api/v1/namespaces/${namespace}/services/${OPERAND.service}`;
const WEBHOOK = `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${OPERAND.webhook}`;

/** The same keys with other values. */
function others(labels: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(Object.keys(labels).map((key) => [key, "other"]));
}

const EDITS: readonly Edit[] = [
  { at: 18_000, spec: { ...SPEC, limits: [{ groups: ["tenants"], maxProjects: 3 }] } },
  {
    at: 26_000,
    spoil: { path: WORKLOAD, patch: { spec: { template: { spec: { serviceAccountName: "other" } } } } },
  },
  { at: 36_000, remove: WEBHOOK },
  // Nothing else in the plan changes by it: only a look at each object finds it.
  {
    at: 66_000,
    spoil: { path: SERVICE, patch: { spec: { selector: others(OPERAND.podLabels) } } },
  },
];
/** Another operator leads after the last edit, and has looked at each object. */
const END_MS = 105_000;
/** A certificate is used two minutes after its CA was published. */
const STABLE_MS = 150_000;

/** Who issues the operand's certificate. */
type Issuer = "ServiceCA" | "CertManager" | "Own";

/** Signing takes real time, so each issuer has one pair. */
const pairs = new Map<Issuer, OwnCertificate>();

function pairOf(issuer: Issuer): OwnCertificate {
  const pair = pairs.get(issuer);
  if (pair === undefined) throw new Error(`${issuer} has no pair`);
  return pair;
}

/** What becomes of an operator when its write of this number was processed, before the answer. */
interface Interruption {
  readonly process: string;
  readonly write: number;
  readonly how: "crashes" | "is suspended" | "gets no answer";
}

/** Another operator leads by then. */
const SUSPENDED_MS = 25_000;

/** The kinds of cert-manager. */
const CERT_MANAGER: readonly JsonObject[] = ["Certificate", "Issuer"].map((kind) => {
  const plural = `${kind.toLowerCase()}s`;
  const schema = {
    openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.cert-manager.io` },
    spec: {
      group: "cert-manager.io",
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      scope: "Namespaced",
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
});

class OperatorWorld {
  readonly runtime = new Runtime("operator");
  readonly store = new Store();
  readonly writes: { readonly process: string; readonly what: string }[] = [];
  readonly #server: ApiServer;
  readonly #network: Network;
  readonly #trace: (line: string) => void;
  readonly #leases = new Map<SimulatedProcess, LeaderElection>();
  #pods: readonly OperandPod[] = [];

  constructor(edits: readonly Edit[], interruption: Interruption | undefined, trace: (line: string) => void) {
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
    let left = interruption?.write ?? 0;
    this.#network.onProcessed = ({ process, method, path }) => {
      if (method === "GET" || path.includes("/leases")) return;
      const what = `${method} ${path.replace(/\?.*/, "")}`;
      this.writes.push({ process: process.name, what });
      for (const [other, lease] of this.#leases)
        if (other !== process && other.alive && other.run(() => lease.leading))
          runtime.fail(`${process.name} sends ${what} while ${other.name} leads`);
      if (process.name === interruption?.process && --left === 0) this.#interrupt(process, interruption.how);
    };
    this.store.subscribe((event) => {
      const why = this.#unanswered(event);
      if (why !== undefined) runtime.fail(why);
    });
    for (const edit of edits) runtime.schedule(edit.at, () => void this.#edit(edit));
  }

  /** With a custom resource that is created at the start. */
  async start(spec: JsonObject): Promise<void> {
    activate(this.runtime);
    for (const name of ["kube-system", namespace])
      await this.#send("POST", "/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name },
      });
    for (const crd of [customResourceDefinition(projectRequestLimit), ...CERT_MANAGER])
      await this.#send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd);
    await this.#send("POST", `/api/v1/namespaces/${namespace}/configmaps`, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "kube-root-ca.crt", namespace },
      data: { "ca.crt": pairOf("ServiceCA").ca },
    });
    await this.runtime.run(2_000);
    await this.#edit({ at: this.runtime.now, create: spec });
    for (const name of ["operator-a", "operator-b"]) this.#start(name);
    this.runtime.schedule(0, () => void this.#others());
  }

  async run(endMs: number): Promise<void> {
    await this.start(SPEC);
    await this.runtime.run(endMs);
  }

  /** Changes the spec, and runs until everything has followed. */
  async move(spec: JsonObject): Promise<Json> {
    await this.#edit({ at: this.runtime.now, spec });
    return this.stable();
  }

  async stable(): Promise<Json> {
    await this.runtime.run(this.runtime.now + STABLE_MS);
    return this.end();
  }

  #interrupt(process: SimulatedProcess, how: Interruption["how"]): void {
    const { runtime } = this;
    const { name } = process;
    this.#trace(`${name} ${how}`);
    if (how === "crashes") {
      process.crash();
      this.#network.reset(name);
      runtime.schedule(1_500, () => this.#start(name));
    } else if (how === "is suspended") {
      process.freeze();
      runtime.schedule(SUSPENDED_MS, () => process.thaw(false));
    } else {
      const link = this.#network.link(name);
      link.losesAnswers = true;
      runtime.schedule(1, () => {
        link.losesAnswers = false;
      });
    }
  }

  async #send(method: string, path: string, body?: Json, contentType = "application/json") {
    return this.#server.handle({
      method,
      path,
      user: ADMIN,
      ...(body === undefined ? {} : { body, contentType }),
    });
  }

  async #edit({ spec, spoil, remove, create }: Edit): Promise<void> {
    if (spoil !== undefined)
      await this.#send("PATCH", spoil.path, spoil.patch, "application/merge-patch+json");
    if (remove !== undefined) await this.#send("DELETE", remove);
    if (create !== undefined)
      await this.#send("POST", LIMITS_PATH, {
        apiVersion: "operator.project.openshift.io/v1",
        kind: "ProjectRequestLimit",
        metadata: { name: "cluster" },
        spec: create,
      });
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
            issue: async () => pairOf("Own"),
            leading: () => lease.leading,
          }).run(ended.signal);
        },
        onStoppedLeading: async () => {
          ended.abort();
          await running;
        },
      });
      this.#leases.set(process, lease);
      lease.start();
    });
  }

  /** Pods start within a second after their workload is written. */
  async #others(): Promise<void> {
    const { now } = this.runtime;
    const workloads = ["daemonsets", "deployments"].map((resource) => ({
      resource,
      live: this.store.get(`${resource}.apps`, `${namespace}/${OPERAND.name}`),
    }));
    const uids = workloads.map(({ live }) => stringAt(live, "metadata", "uid"));
    this.#pods = this.#pods
      .map((pod) =>
        uids.includes(pod.workload) ? pod : { ...pod, endsAt: pod.endsAt ?? now + COLLECTED_MS },
      )
      .filter(({ endsAt }) => endsAt === undefined || now < endsAt);
    for (const { resource, live } of workloads) {
      if (live === undefined) continue;
      const generation = at(live, "metadata", "generation");
      const workload = stringAt(live, "metadata", "uid") ?? "";
      const isSeen = at(live, "status", "observedGeneration") === generation;
      if (!isSeen)
        this.#pods = [
          ...this.#pods.filter((pod) => pod.workload !== workload),
          ...Array.from({ length: PODS }, () => ({ workload, readyAt: now + READY_MS, endsAt: undefined })),
        ];
      const ready = this.#pods.filter((pod) => pod.workload === workload && pod.readyAt <= now).length;
      const isKnown = at(live, "status", "numberReady") === ready;
      if (isSeen && isKnown) continue;
      const counts = {
        desiredNumberScheduled: PODS,
        updatedNumberScheduled: PODS,
        numberReady: ready,
        numberAvailable: ready,
        replicas: PODS,
        updatedReplicas: PODS,
        readyReplicas: ready,
        availableReplicas: ready,
      };
      const status = { status: { observedGeneration: generation ?? 0, ...counts } };
      await this.#send(
        "PATCH",
        `/apis/apps/v1/namespaces/${namespace}/${resource}/${OPERAND.name}/status`,
        status,
        "application/merge-patch+json",
      );
    }
    await this.#writeEndpoints();
    await this.#issueCertificates();
    for (const [resource, name] of [
      [HOOKS, OPERAND.webhook],
      [API_SERVICES, OPERAND.apiService],
    ] as const)
      await this.#injectBundle(resource, name);
    await this.#aggregate(this.#isReady());
    this.runtime.schedule(1_000, () => void this.#others());
  }

  /** Whether a pod is ready, not counting those of one workload. */
  #isReady(except?: string): boolean {
    return this.#pods.some(({ readyAt, workload }) => readyAt <= this.runtime.now && workload !== except);
  }

  /** Without a ready pod no project is created: so no webhook is registered, and no pod ends before the next one is ready. */
  #unanswered({ type, resource, key, object, by }: StoreEvent): string | undefined {
    if (by !== ACCOUNT.username) return undefined;
    if (resource === HOOKS && type === "ADDED" && !this.#isReady())
      return `${key} is registered, and no pod is ready`;
    const isWorkload = resource === "daemonsets.apps" || resource === "deployments.apps";
    return isWorkload && type === "DELETED" && !this.#isReady(stringAt(object, "metadata", "uid"))
      ? `${resource} ${key} is deleted, and no other pod is ready`
      : undefined;
  }

  async #writeEndpoints(): Promise<void> {
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const stored = this.store.get("endpointslices.discovery.k8s.io", `${namespace}/operand-1`);
    const { now } = this.runtime;
    const endpoints = this.#pods.map(({ readyAt }, i) => ({
      addresses: [`10.0.0.${i + 1}`],
      conditions: { ready: readyAt <= now },
    }));
    if (equal(endpoints, listAt(stored, "endpoints"))) return;
    if (stored !== undefined) await this.#send("PUT", `${path}/operand-1`, { ...stored, endpoints });
    else
      await this.#send("POST", path, {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        addressType: "IPv4",
        metadata: { name: "operand-1", namespace, labels: { "kubernetes.io/service-name": OPERAND.service } },
        endpoints,
      });
  }

  /** The certificate in the Secret of the operand. */
  #secret(): string | undefined {
    return stringAt(this.store.get("secrets", `${namespace}/${OPERAND.servingSecret}`), "data", "tls.crt");
  }

  /** Whether API servers that call the operand accept this certificate. */
  #isTrusted(certificate: string): boolean {
    const pair = [...pairs.values()].find(({ cert }) => base64(cert) === certificate);
    const entries = listAt(this.store.get(HOOKS, OPERAND.webhook), "webhooks");
    const isDirect = entries.every(
      (one) => stringAt(one, "clientConfig", "service", "name") !== "kubernetes",
    );
    const asked = isDirect
      ? entries.map((one) => at(one, "clientConfig"))
      : [at(this.store.get(API_SERVICES, OPERAND.apiService), "spec")];
    return (
      pair !== undefined &&
      asked.length > 0 &&
      asked.every((one) => trusts(stringAt(one, "caBundle"), pair.ca))
    );
  }

  /** The service CA writes a Secret that is missing; cert-manager also writes over that of others. */
  async #issueCertificates(): Promise<void> {
    const secrets = `/api/v1/namespaces/${namespace}/secrets`;
    const live = this.store.get("secrets", `${namespace}/${OPERAND.servingSecret}`);
    const secret = (by: "ServiceCA" | "CertManager", annotation: string): JsonObject => ({
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name: OPERAND.servingSecret, namespace, annotations: { [annotation]: OPERAND.service } },
      data: {
        "tls.crt": base64(pairOf(by).cert),
        "tls.key": base64(pairOf(by).key),
        ...(by === "CertManager" ? { "ca.crt": base64(pairOf(by).ca) } : {}),
      },
    });
    const service = this.store.get("services", `${namespace}/${OPERAND.service}`);
    const asksServiceCa = Object.keys((at(service, "metadata", "annotations") ?? {}) as JsonObject).some(
      (key) => key.includes("serving-cert"),
    );
    if (asksServiceCa && live === undefined)
      await this.#send(
        "POST",
        secrets,
        secret("ServiceCA", "service.beta.openshift.io/originating-service-name"),
      );
    const certificate = this.store.get("certificates.cert-manager.io", `${namespace}/${OPERAND.service}`);
    const issued = secret("CertManager", "cert-manager.io/certificate-name");
    if (certificate === undefined || equal(live?.["data"], issued["data"])) return;
    if (live === undefined) await this.#send("POST", secrets, issued);
    else
      await this.#send("PUT", `${secrets}/${OPERAND.servingSecret}`, {
        ...live,
        metadata: { ...(live["metadata"] as JsonObject), ...(issued["metadata"] as JsonObject) },
        data: issued["data"],
      });
  }

  /** Injectors write the bundle of an object that asks for it. */
  async #injectBundle(resource: string, name: string): Promise<void> {
    const live = this.store.get(resource, name);
    const annotations = (at(live, "metadata", "annotations") ?? {}) as JsonObject;
    const by =
      annotations["service.beta.openshift.io/inject-cabundle"] === "true"
        ? "ServiceCA"
        : annotations["cert-manager.io/inject-ca-from"] !== undefined
          ? "CertManager"
          : undefined;
    if (live === undefined || by === undefined) return;
    const caBundle = base64(pairOf(by).ca);
    const isHook = resource === HOOKS;
    const holders = isHook
      ? listAt(live, "webhooks").map((one) => at(one, "clientConfig") as JsonObject)
      : [at(live, "spec") as JsonObject];
    if (holders.every((one) => one["caBundle"] === caBundle)) return;
    const path = isHook ? WEBHOOK : `/apis/apiregistration.k8s.io/v1/apiservices/${name}`;
    const injected = isHook
      ? {
          webhooks: listAt(live, "webhooks").map((one, i) => ({
            ...(one as JsonObject),
            clientConfig: { ...holders[i], caBundle },
          })),
        }
      : { spec: { ...holders[0], caBundle } };
    await this.#send("PUT", path, { ...live, ...injected });
  }

  /** An aggregated API is available once a pod is ready. */
  async #aggregate(isReady: boolean): Promise<void> {
    const live = this.store.get(API_SERVICES, OPERAND.apiService);
    const status = isReady ? "True" : "False";
    if (live === undefined || at(live, "status", "conditions", 0, "status") === status) return;
    const path = `/apis/apiregistration.k8s.io/v1/apiservices/${OPERAND.apiService}/status`;
    const conditions = [{ type: "Available", status, message: "" }];
    await this.#send("PATCH", path, { status: { conditions } }, "application/merge-patch+json");
  }

  /** All objects that the operator keeps, without versions, times and random tokens. */
  end(): Json {
    const kept = this.store
      .resources()
      .filter((one) => !/^(leases|events|endpointslices|namespaces|customresource)/.test(one));
    return kept.flatMap((resource) =>
      this.store
        .list(resource)
        .map(({ key, object }) => [resource, key, essence(object, resource === "secrets" ? ["data"] : [])]),
    );
  }

  /** Why API servers would not accept the certificate that the operand serves. */
  untrusted(): string | undefined {
    const served = this.#secret();
    if (served === undefined) return "the operand has no certificate";
    return this.#isTrusted(served) ? undefined : "API servers do not trust the operand's certificate";
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
function essence(value: Json | undefined, without: readonly string[]): Json {
  if (typeof value === "string") return value.replace(/\/[0-9a-f]{40}\//, "/TOKEN/");
  if (Array.isArray(value)) return value.map((one: Json) => essence(one, without));
  if (!isObject(value)) return value ?? null;
  const kept = Object.entries(value).filter(([key]) => !VOLATILE.has(key) && !without.includes(key));
  return Object.fromEntries(kept.map(([key, one]) => [key, essence(one, without)]));
}

/** Values of fields whose schema does not name any. */
const SAMPLES: Samples = {
  limits: [
    [],
    [{ users: ["ann"], maxProjects: 0 }, { groups: ["tenants"] }],
    // Labels of Users are not served here.
    [{ selector: { level: "gold" }, maxProjects: 1 }],
  ],
  namespaces: [{}],
  "exempt.users": [["root"]],
  "exempt.groups": [[]],
  // An empty name is not valid: the operand stays as it was.
  trustedAnnotators: [["robot"], [""]],
  nodeSelector: [{ pool: "infra" }, {}],
  podLabels: [{ team: "a" }],
  // From each issuer to each other one; the base has the service CA.
  certificates: ["CertManager", "ServiceCA", "Own", "CertManager", "Own"],
};

export function operatorFields(): readonly Field[] {
  return [...fieldsOf(jsonSchema(limitSpec), SAMPLES)];
}

/** Every field of a ProjectRequestLimit moves. */
export function operatorMoves(): readonly Move[] {
  return movesOf(operatorFields(), SPEC, {});
}

/** With `extensions: Disabled` a rule has no groups. */
function baseFor(path: string): JsonObject {
  return path === "extensions" ? { limits: [{ selector: { level: "gold" }, maxProjects: 2 }] } : SPEC;
}

/** All values of a field, one after the other, and back. */
function transition(path: string, moves: readonly Move[]): Plan {
  return {
    name: `operator: ${moves.map(nameOfMove).join(", ")} and back`,
    check: async (trace = () => undefined) => {
      const world = new OperatorWorld([], undefined, trace);
      await world.start(SPEC);
      const first = await world.stable();
      let before = first;
      for (const move of moves) {
        const spec = withField(baseFor(path), stepsOf(path), move.value);
        const is = await world.move(spec);
        if (world.runtime.failure !== undefined) return `${nameOfMove(move)}: ${world.runtime.failure}`;
        const why = isRefused(move)
          ? differsFrom(withoutLimits(before), withoutLimits(is))
          : await differsFromNew(is, spec, WITHOUT[path]);
        if (why !== undefined) return `${nameOfMove(move)}: ${why}`;
        const untrusted = world.untrusted();
        if (untrusted !== undefined) return `${nameOfMove(move)}: ${untrusted}`;
        before = is;
        activate(world.runtime);
      }
      const back = await world.move(SPEC);
      activate(undefined);
      if (world.runtime.failure !== undefined) return world.runtime.failure;
      return equal(back, first) ? undefined : `back: ${differing(back, first)}`;
    },
  };
}

/** The operator goes on with the valid certificate of another issuer: then its hash, bundle and marks are those of that issuer. */
const WITHOUT: Readonly<Record<string, readonly string[]>> = {
  certificates: ["certHash", OPERAND.certificateHash, "caBundle", "annotations"],
};

/** Nothing is rolled out for a new custom resource that is not valid, and nothing changes for an existing one. */
function isRefused({ value }: Move): boolean {
  return equal(value as Json, [""]);
}

async function differsFromNew(
  is: Json,
  spec: JsonObject,
  without: readonly string[] = [],
): Promise<string | undefined> {
  const other = new OperatorWorld([], undefined, () => undefined);
  await other.start(spec);
  return differsFrom(await other.stable(), is, without);
}

function withoutLimits(end: Json): Json {
  return listAt(end).filter((part) => at(part, 0) !== LIMITS);
}

function differsFrom(expected: Json, is: Json, without: readonly string[] = []): string | undefined {
  const [one, should] = [is, expected].map((end) => essence(end, without)) as [Json, Json];
  return equal(one, should) ? undefined : differing(one, should);
}

/** An interruption after each write, and the transitions of each field. */
export async function operatorPlans(): Promise<readonly Plan[]> {
  for (const issuer of ["ServiceCA", "CertManager", "Own"] as const)
    pairs.set(
      issuer,
      pairs.get(issuer) ?? (await makeCertificate(serviceNames(OPERAND.service, namespace), EPOCH)),
    );
  const reference = await reached(EDITS);
  const plan = (what: string, edits: readonly Edit[], end: Json, interruption?: Interruption): Plan => ({
    name: `operator: ${what}`,
    check: async (trace) => {
      const world = await ended(edits, interruption, trace);
      return world.runtime.failure ?? (equal(world.end(), end) ? undefined : differing(world.end(), end));
    },
  });
  const interruptions = (["crashes", "is suspended", "gets no answer"] as const).flatMap((how) =>
    ["operator-a", "operator-b"].flatMap((process) =>
      reference.writes
        .filter((one) => one.process === process)
        .map(({ what }, i) =>
          plan(`${process} ${how} after ${what} (${i + 1})`, EDITS, reference.end(), {
            process,
            write: i + 1,
            how,
          }),
        ),
    ),
  );
  const transitions = Map.groupBy(operatorMoves(), ({ path }) => path);
  // What others have spoiled and deleted is repaired.
  const unspoiled = await reached(EDITS.slice(0, 1));
  return [
    plan("edits by others", EDITS, unspoiled.end()),
    recreated(),
    ...interruptions,
    ...[...transitions].map(([path, moves]) => transition(path, moves)),
  ];
}

/** The pods of the old one are still ready when those of the new one are. */
function recreated(): Plan {
  const issuers: readonly Issuer[] = ["Own", "CertManager", "Own", "ServiceCA", "CertManager"];
  return {
    name: "operator: the custom resource is deleted and created again with another issuer",
    check: async (trace = () => undefined) => {
      const edits = issuers.map(
        (certificates, i): Edit => ({
          at: 20_000 * (i + 1),
          remove: `${LIMITS_PATH}/cluster`,
          create: { ...SPEC, certificates },
        }),
      );
      const world = await ended(edits, undefined, trace, 20_000 * (issuers.length + 1));
      return world.runtime.failure ?? world.untrusted();
    },
  };
}

async function ended(
  edits: readonly Edit[],
  interruption?: Interruption,
  trace: (line: string) => void = () => undefined,
  endMs = END_MS,
): Promise<OperatorWorld> {
  const world = new OperatorWorld(edits, interruption, trace);
  await world.run(endMs);
  activate(undefined);
  return world;
}

/** A run that others are compared with. */
async function reached(edits: readonly Edit[]): Promise<OperatorWorld> {
  const world = await ended(edits);
  if (world.runtime.failure !== undefined) throw new Error(`operator: ${world.runtime.failure}`);
  return world;
}

/** The first object that differs, around the first difference. */
function differing(is: Json, should: Json): string {
  const texts = (value: Json) =>
    new Map(listAt(value).map((part) => [`${at(part, 0)} ${at(part, 1)}`, JSON.stringify(at(part, 2))]));
  const [has, wants] = [texts(is), texts(should)];
  for (const name of new Set([...wants.keys(), ...has.keys()])) {
    const [one = "nothing", other = "nothing"] = [has.get(name), wants.get(name)];
    if (one !== other) return `${name} is ${difference(one, other)}`;
  }
  return "the order differs";
}
