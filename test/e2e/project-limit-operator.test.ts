// The operator of project-limit on a real control plane, with the real controllers of DaemonSets and Deployments and
// the real garbage collector. The operand's pods run for real. service-ca is a stand-in, and so is OpenShift's API
// server.
import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { OPERAND, OPERATOR } from "../../src/modules/project-limit/operand-names.ts";
import { operandRoles } from "../../src/modules/project-limit/operator/operand-rights.ts";
import { operator } from "../../src/modules/project-limit/operator/operator.ts";
import { declaredRights, rightsOf } from "../cluster/access/rules.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { startCertManager } from "./certifying/makers.ts";
import { OperatorStage, PATHS, ServiceCaStandIn } from "./fixtures/operator.ts";
import { tenant } from "./fixtures/project-limits.ts";

const SPEC = { limits: [3, 100].map((max) => ({ groups: [`limit-${max}`], maxProjects: max })) };
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1";
const { namespace, name } = OPERAND;

const SIGNED = "service.beta.openshift.io/serving-cert-secret-name";
const OPERAND_PODS = `${PATHS.pods}?labelSelector=${Object.entries(OPERAND.podLabels)
  .map(([key, value]) => `${key}%3D${value}`)
  .join(",")}`;
const INJECTED = "service.beta.openshift.io/inject-cabundle";
const OPENED = [{ op: "replace", path: "/webhooks/0/failurePolicy", value: "Ignore" }];

/** Each kind that the operator maintains, with an edit of another client and its path. */
const EDITS: readonly (readonly [
  path: string,
  edit: JsonObject | readonly JsonObject[] | "delete",
  where: readonly (string | number)[],
])[] = [
  [
    PATHS.daemonSet,
    { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } },
    ["spec", "updateStrategy"],
  ],
  [
    PATHS.daemonSet,
    {
      spec: { template: { metadata: { annotations: { [OPERAND.configurationHash]: "another" } } } },
    },
    ["spec", "template"],
  ],
  [`/api/v1/namespaces/${namespace}/serviceaccounts/${name}`, "delete", ["metadata", "name"]],
  [`${RBAC}/clusterroles/${name}`, { rules: [] }, ["rules"]],
  [`${RBAC}/clusterrolebindings/${name}`, { subjects: [] }, ["subjects"]],
  [`${RBAC}/namespaces/${namespace}/roles/${name}`, "delete", ["rules"]],
  [`${RBAC}/namespaces/${namespace}/rolebindings/${name}`, "delete", ["subjects"]],
  [PATHS.configMap, { data: { [OPERAND.configurationKey]: "{}" } }, ["data"]],
  [PATHS.service, { spec: { selector: { more: "x" } } }, ["spec", "selector"]],
  [PATHS.service, { metadata: { annotations: { [SIGNED]: null } } }, ["metadata", "annotations", SIGNED]],
  [
    `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`,
    { metadata: { ownerReferences: [] } },
    ["metadata", "ownerReferences"],
  ],
  [`${FLOW}/prioritylevelconfigurations/${name}`, { spec: { limited: { lendablePercent: 90 } } }, ["spec"]],
  [`${FLOW}/flowschemas/${name}`, { spec: { matchingPrecedence: 9_999 } }, ["spec"]],
  [PATHS.webhook, OPENED, ["webhooks"]],
  [PATHS.webhook, { metadata: { annotations: { [INJECTED]: null } } }, ["metadata", "annotations", INJECTED]],
];

describeOwnCluster("the operator of project limits", {}, (cluster) => {
  const stage = new OperatorStage(cluster);
  let serviceCa: ServiceCaStandIn | undefined;

  test("creates certificate, configuration, workload, and the webhook once a pod is ready; never without a node", async () => {
    await stage.prepare();
    await stage.install();
    await stage.create(SPEC);
    await stage.create({}, "other");
    await stage.until("CertificatePending", "True NoCertificate");
    expect(await stage.read(PATHS.configMap)).toBeDefined();
    expect(await stage.read(PATHS.daemonSet)).toBeUndefined();
    serviceCa = await ServiceCaStandIn.start(stage);
    await stage.until("NoNodes", "True NoMatchingNode");
    expect(await stage.read(PATHS.webhook)).toBeUndefined();
    await stage.controlPlane("c1", "c2");
    await stage.until("Available", "True Ready");
    const webhook = await stage.read(PATHS.webhook);
    const ready = listAt(await stage.read(PATHS.pods), "items").flatMap((pod) =>
      listAt(pod, "status", "conditions").flatMap((one) =>
        at(one, "type") === "Ready" && at(one, "status") === "True"
          ? [stringAt(one, "lastTransitionTime") ?? ""]
          : [],
      ),
    );
    expect(ready.sort()[0]).toBeDefined();
    expect((ready[0] ?? "") <= (stringAt(webhook, "metadata", "creationTimestamp") ?? "")).toBe(true);
    await stage.until("Progressing", "False AsDesired");
    await eventually("a closed webhook", async () =>
      listAt(await stage.read(PATHS.webhook), "webhooks").every((one) => at(one, "failurePolicy") === "Fail"),
    );
    expect(await stage.read(PATHS.limits)).toMatchObject({ status: { desired: 2, ready: 2 } });
    expect(await stage.condition("Ignored", "other")).toBe("True NotNamedCluster");
    expect(await stage.requests(tenant("ann", 3), 5)).toEqual({ "201": 3, "403 USHER-Q01": 2 });
  });

  test("both accounts have exactly the declared permissions", async () => {
    expect(await rightsOf(cluster(), { ...OPERATOR, namespace })).toEqual(declaredRights(operator.roles));
    const operand = await rightsOf(cluster(), OPERAND);
    expect(operand).toEqual(declaredRights(operandRoles(false)));
    expect(operand.filter((right) => /secrets|clusterroles|webhook|daemonsets/.test(right))).toEqual([
      `get secrets ${OPERAND.pathsSecret}`,
      `get validatingwebhookconfigurations.admissionregistration.k8s.io ${OPERAND.webhook}`,
    ]);
    const granted = new Set(declaredRights(operator.roles));
    expect(declaredRights(operandRoles(true)).filter((right) => !granted.has(right))).toEqual([]);
  });

  test("an equivalent edit replaces no pod", async () => {
    const before = await stage.template();
    const generation = await stage.change({ count: "Exact", timeoutSeconds: 6 });
    await stage.rolledOut(generation);
    expect(await stage.template()).toEqual(before);
    expect(at(await stage.read(PATHS.webhook), "webhooks", 0, "timeoutSeconds")).toBe(6);
  });

  test("edited or deleted objects are restored, kind by kind, and an injector's bundle stays", async () => {
    const before = await Promise.all(EDITS.map(([path]) => stage.read(path)));
    const since = performance.now();
    // Edits of one object run in sequence.
    for (const [path, edit] of EDITS)
      await (edit === "delete" ? cluster().call("DELETE", path) : cluster().call("PATCH", path, edit));
    await Promise.all(
      EDITS.map(([path, , where], i) =>
        eventually(path, async () => {
          const same =
            JSON.stringify(at(await stage.read(path), ...where)) === JSON.stringify(at(before[i], ...where));
          if (same)
            console.log(
              `${path.split("/").at(-2)} ${where.join(".")} as it was after ${Math.round(performance.now() - since)} ms`,
            );
          return same;
        }),
      ),
    );
    expect(at(await stage.read(PATHS.webhook), "webhooks", 0, "clientConfig", "caBundle")).toBe(
      serviceCa?.caBundle,
    );
  });

  test("200 requests while changed limits and a certificate of another CA are rolled out: exactly the limit succeed, none fails", async () => {
    const before = await stage.read(PATHS.daemonSet);
    await stage.exactlyWhile("bob", async () => {
      await serviceCa?.rotate();
      const generation = await stage.change({ maxProjectsForSystemUsers: 7 });
      const since = performance.now();
      await eventually("both hashes", async () => {
        const now = await stage.read(PATHS.daemonSet);
        return [OPERAND.configurationHash, OPERAND.certificateHash].every(
          (one) => stage.hash(now, one) !== stage.hash(before, one),
        );
      });
      console.log(`on the template after ${Math.round(performance.now() - since)} ms`);
      await stage.rolledOut(generation);
      console.log(`rolled out after ${Math.round(performance.now() - since)} ms`);
    });
  });

  test("without the operator the operand keeps running, and another version adopts it unchanged", async () => {
    const before = await stage.template();
    await stage.scale(0);
    expect(await stage.request(tenant("ann", 3), "ann-more")).toBe("403 USHER-Q01");
    await stage.install("usher:2");
    const [path] = [PATHS.configMap];
    await cluster().call("DELETE", path);
    await eventually("the operator to be back", async () => (await stage.read(path)) !== undefined);
    expect(await stage.template()).toEqual(before);
  });

  test("deleted without the operator, everything goes with the custom resource, the webhook first", async () => {
    await stage.scale(0);
    await cluster().call("DELETE", PATHS.limits);
    await eventually("the webhook to be gone", async () => {
      const webhook = await stage.read(PATHS.webhook);
      const others = await Promise.all([PATHS.service, PATHS.daemonSet].map((path) => stage.read(path)));
      if (webhook !== undefined) expect(others).not.toContain(undefined);
      return webhook === undefined;
    });
    await gone();
    await serviceCa?.stop();
    // The next operand would begin with the Secret of this issuer.
    await eventually("the Secret to be gone", async () => (await stage.read(PATHS.secret)) === undefined);
  });

  test("with cert-manager's own certificate, as a Deployment; deleted with the operator, everything goes too", async () => {
    using _maker = await startCertManager(cluster());
    await stage.create({
      ...SPEC,
      certificates: "CertManager",
      topology: "Deployment",
      nodeSelector: { "kubernetes.io/os": "linux" },
    });
    await stage.scale(1);
    await stage.until("Available", "True Ready");
    expect(await stage.read(PATHS.deployment)).toBeDefined();
    await eventually("a fail-closed webhook with the CA", async () => {
      const [entry] = listAt(await stage.read(PATHS.webhook), "webhooks");
      const authority = stringAt(await stage.read(PATHS.secret), "data", "ca.crt");
      return (
        at(entry, "failurePolicy") === "Fail" && stringAt(entry, "clientConfig", "caBundle") === authority
      );
    });
    expect(await stage.requests(tenant("cas", 3), 4)).toEqual({ "201": 3, "403 USHER-Q01": 1 });
    await cluster().call("DELETE", PATHS.limits);
    await gone();
    expect(await stage.read(`/api/v1/namespaces/${namespace}`)).toMatchObject({
      status: { phase: "Active" },
    });
  });

  const gone = () =>
    eventually("everything to be gone", async () => {
      const paths = [...EDITS.map(([path]) => path), PATHS.deployment, PATHS.certificate];
      const left = await Promise.all(paths.map((path) => stage.read(path)));
      // A pod that is still ending would answer the next operand's calls, with its own certificate.
      const pods = listAt(await stage.read(OPERAND_PODS), "items");
      return left.every((one) => one === undefined) && pods.length === 0;
    });
});
