// For tests: the controller of an operand with an API server in memory, which sets uid and generation like a real one.
import { at, equal, isObject, type Json, type JsonObject, stringAt } from "../../../src/core/json.ts";
import { parseVersion } from "../../../src/core/kubernetes/versions.ts";
import { SILENT } from "../../../src/core/log.ts";
import { OPERAND } from "../../../src/modules/project-limit/operand-names.ts";
import { operator } from "../../../src/modules/project-limit/operator/operator.ts";
import { OperandController } from "../../../src/operator/operand/operand-controller.ts";
import { limits } from "../../builders/project-limit.ts";
import { answerOf, TestApiServer } from "../cluster/api-server.ts";

const NAMESPACED = [
  "ServiceAccount",
  "Role",
  "RoleBinding",
  "Lease",
  "Service",
  "ConfigMap",
  "Secret",
].concat(["DaemonSet", "Deployment", "Issuer", "Certificate"]);
const KINDS = [
  ...NAMESPACED,
  ...["ClusterRole", "ClusterRoleBinding", "PriorityLevelConfiguration", "FlowSchema", "APIService"],
  ...["ValidatingWebhookConfiguration", "ProjectRequestLimit"],
];
const CORE = `/api/v1/namespaces/${OPERAND.namespace}`;
const APPS = `/apis/apps/v1/namespaces/${OPERAND.namespace}`;
const HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

export const AT = {
  limits: "/apis/operator.project.openshift.io/v1/projectrequestlimits/cluster",
  daemonSet: `${APPS}/daemonsets/${OPERAND.name}`,
  service: `${CORE}/services/${OPERAND.service}`,
  secret: `${CORE}/secrets/${OPERAND.servingSecret}`,
  configMap: `${CORE}/configmaps/${OPERAND.configMap}`,
  kubeCa: `${CORE}/configmaps/kube-root-ca.crt`,
  slice: `/apis/discovery.k8s.io/v1/namespaces/${OPERAND.namespace}/endpointslices/admission-server-1`,
  apiService: `/apis/apiregistration.k8s.io/v1/apiservices/${OPERAND.apiService}`,
  webhook: `${HOOKS}/${OPERAND.webhook}`,
  usher: `${HOOKS}/usher`,
} as const;

export class OperandCluster {
  readonly server = new TestApiServer();
  readonly started = Date.parse("2026-01-01T00:00:00Z");
  /** Milliseconds since `started`. */
  ms = 0;
  leading = true;
  /** Every write and deletion: `apply DaemonSet`. */
  readonly writes: string[] = [];
  #uid = 0;
  #controller: OperandController;

  constructor(spec: JsonObject) {
    this.server.fault = (method, url, { body }) => this.#serve(method, url, body);
    this.server.put(AT.limits, limits(spec));
    this.#controller = this.#operator();
  }

  /** A new operator process takes over without state. */
  restart(): void {
    this.#controller = this.#operator();
  }

  #operator(): OperandController {
    const version = parseVersion("v1.37.1");
    if (version === undefined) throw new Error("not a version");
    return new OperandController({
      client: this.server.client,
      operator,
      image: "registry/usher@sha256:1",
      log: SILENT,
      publish: () => undefined,
      serverVersion: () => ({ effective: version, binary: version }),
      leading: () => this.leading,
      clock: () => this.ms,
      now: () => this.started + this.ms,
    });
  }

  /** Reconciles once after some time; returns the writes. */
  async after(ms: number): Promise<string[]> {
    this.ms += ms;
    this.writes.length = 0;
    await this.#controller.step();
    return [...this.writes];
  }

  read(path: string): JsonObject | undefined {
    return this.server.objects.get(path);
  }

  /** Writes a part of an object as another client does. */
  edit(path: string, part: JsonObject): void {
    const { metadata, ...rest } = this.read(path) ?? {};
    const more = part["metadata"];
    const merged = { ...(metadata as JsonObject), ...(isObject(more) ? more : {}) };
    this.server.put(path, { ...rest, ...part, metadata: merged });
  }

  change(spec: JsonObject): void {
    const generation = Number(at(this.read(AT.limits), "metadata", "generation")) + 1;
    this.edit(AT.limits, { spec, metadata: { generation } });
  }

  /** Replaces the DaemonSet controller. */
  schedule(desired: number, ready = desired): void {
    const generation = at(this.read(AT.daemonSet), "metadata", "generation") ?? 0;
    const counts = { desiredNumberScheduled: desired, updatedNumberScheduled: desired, numberReady: ready };
    this.edit(AT.daemonSet, { status: { observedGeneration: generation, ...counts } });
    this.server.put(AT.slice, { endpoints: ready > 0 ? [{ conditions: { ready: true } }] : [] });
  }

  /** `True Ready` */
  condition(type: string): string {
    const all = (at(this.read(AT.limits), "status", "conditions") ?? []) as JsonObject[];
    const found = all.find((one) => one["type"] === type);
    return `${found?.["status"]} ${found?.["reason"]}`;
  }

  #serve(method: string, url: string, body: Json | undefined) {
    const [path = ""] = url.split("?");
    if (method === "GET" && /^\/(api|apis\/[^/]+)\/v1$/.test(path))
      return answerOf(200, {
        resources: KINDS.map((kind) => ({
          name: `${kind.toLowerCase()}s`,
          kind,
          namespaced: NAMESPACED.includes(kind),
        })),
      });
    const kind = stringAt(this.read(path), "kind") ?? stringAt(body, "kind") ?? "";
    if (method === "DELETE" && this.server.objects.has(path)) this.writes.push(`remove ${kind}`);
    if (method !== "PATCH" || !isObject(body)) return undefined;
    const isStatus = path.endsWith("/status");
    if (isStatus) {
      this.edit(path.slice(0, -"/status".length), { status: body["status"] ?? {} });
      return answerOf(200, body);
    }
    this.writes.push(`apply ${kind}`);
    const stored = this.read(path);
    const { resourceVersion: _seen, ...given } = body["metadata"] as JsonObject;
    const generation = Number(at(stored, "metadata", "generation") ?? 0);
    const isSame = equal(stored?.["spec"] ?? null, body["spec"] ?? null);
    const metadata = {
      ...given,
      uid: at(stored, "metadata", "uid") ?? `uid-${++this.#uid}`,
      generation: isSame && stored !== undefined ? generation : generation + 1,
    };
    const status = stored?.["status"];
    return answerOf(
      200,
      this.server.put(path, { ...body, metadata, ...(status === undefined ? {} : { status }) }),
    );
  }
}
