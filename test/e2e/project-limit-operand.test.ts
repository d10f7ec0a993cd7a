// The operand of ProjectRequestLimit on a real control plane: alone, and beside usher with node-guard in Enable. Its
// objects are those that the operator writes, applied by hand. ProjectRequest is a CRD here; a stand-in creates the
// Namespace of a ProjectRequest.

import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { OPERAND } from "../../src/modules/project-limit/operand-names.ts";
import { controlPlanePolicy } from "../builders/guard.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { TestAuthority } from "../support/operator/authority.ts";
import { configured, install } from "./fixtures/install.ts";
import { OperandStage, PODS, posted, resource, servedBy, WEBHOOK } from "./fixtures/operand.ts";
import { OperatorStage } from "./fixtures/operator.ts";
import { attempt, create, ledgerOf, projectsOf, SETUP, tenant } from "./fixtures/project-limits.ts";

const ROLE = "node-role.kubernetes.io/control-plane";
const LEASE = `/apis/coordination.k8s.io/v1/namespaces/${OPERAND.namespace}/leases/${OPERAND.name}`;
const HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/usher";
const PARALLEL = 200;

const SPEC: JsonObject = {
  limits: [0, 10].map((max) => ({ groups: [`limit-${max}`], maxProjects: max })),
  // The tests check which server answers, not how fast it is on a busy machine.
  timeoutSeconds: 30,
};

/** May create pods in any namespace, and is in no list of node-guard. */
const MALLORY: JsonObject = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRoleBinding",
  metadata: { name: "mallory" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
  subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "mallory" }],
};

describeOwnCluster("the operand of ProjectRequestLimit", {}, (cluster) => {
  const stage = new OperandStage(cluster);
  /** The message for a user whose limit is zero. */
  const refusal = async () => {
    const { body } = await create(cluster(), "ProjectRequest", tenant("nobody", 0), "probe", {
      query: "?dryRun=All",
    });
    return stringAt(body, "message") ?? "";
  };
  const refusedBy = (webhook: string) =>
    eventually(`a refusal by ${webhook}`, async () => {
      const message = await refusal();
      return message.includes("USHER-Q01") && message.includes(`admission webhook "${webhook}" denied`);
    });
  const ownHook = async () =>
    listAt((await cluster().request("GET", HOOKS)).body, "webhooks").some(
      (hook) => stringAt(hook, "name") === "project-limit.usher.dev",
    );
  /** All concurrently, and exactly ten succeed. */
  const burst = async (user: string, meanwhile?: () => Promise<unknown>) => {
    const by = tenant(user, 10);
    const [results] = await Promise.all([
      Promise.all(
        Array.from({ length: PARALLEL }, (_, i) => attempt(cluster(), "ProjectRequest", by, `${user}-${i}`)),
      ),
      meanwhile?.(),
    ]);
    const made = results.filter(({ status }) => status === 201);
    const others = results.filter(({ status, message }) => status !== 201 && !message.includes("USHER-Q01"));
    expect(others).toEqual([]);
    expect(made).toHaveLength(10);
    expect(await projectsOf(cluster(), user)).toHaveLength(10);
    const times = results.map(({ ms }) => ms).sort((a, b) => a - b);
    console.log(
      `${user}: p50 ${Math.round(times[100] ?? 0)} ms, slowest ${Math.round(times.at(-1) ?? 0)} ms`,
    );
  };

  test("runs alone on every control-plane node, from its file, and elects a leader that settles", async () => {
    const taints = [{ key: ROLE, effect: "NoSchedule" }];
    for (const name of ["cp-0", "cp-1"]) await cluster().createNode(name, { labels: { [ROLE]: "" }, taints });
    await cluster().createNode("w-0");
    await cluster().apply(...SETUP);
    await stage.apply(SPEC);
    const pods = await stage.ready(2);
    await stage.register(SPEC);
    await refusedBy(OPERAND.webhook);
    await eventually("a leader", async () =>
      pods.includes(stringAt(await cluster().call("GET", LEASE), "spec", "holderIdentity") ?? ""),
    );
  }, 240_000);

  test("of 200 concurrent ProjectRequests exactly the limit succeed", () => burst("alone"), 60_000);

  test("only an API server makes it write, and Namespaces are not sent to it", async () => {
    const [pod = ""] = await stage.ready(2);
    const port = await stage.port(pod);
    const forged = (user: string, path: string) =>
      posted(port, path, {
        uid: "forged",
        userInfo: { username: user, groups: ["limit-10"] },
        name: "stolen",
      });
    expect(at(await forged("victim", stage.path(false)), "response", "allowed")).toBe(false);
    expect(at(await forged("victim", "/validate/project-limit"), "response", "allowed")).toBe(false);
    expect(await ledgerOf(cluster(), "victim")).toEqual([]);
    expect(at(await forged("asked", stage.path()), "response", "allowed")).toBe(true);
    expect(await ledgerOf(cluster(), "asked")).toEqual(["stolen"]);
    expect((await create(cluster(), "Namespace", tenant("nobody", 0), "plain")).status).toBe(201);
  });

  test("serves a new certificate without a restart, and one of another CA once that is trusted", async () => {
    const [pod = ""] = await stage.ready(2);
    const port = await stage.port(pod);
    const before = await servedBy(port);
    await stage.certify();
    await eventually("the new certificate", async () => (await servedBy(port)) !== before);
    const trusted = await servedBy(port);
    await stage.certify(await TestAuthority.create("another"));
    // Longer than a mount and a check of the webhook take.
    await pause(5_000);
    expect(await servedBy(port)).toBe(trusted);
    await stage.register(SPEC);
    await eventually("the certificate of another CA", async () => (await servedBy(port)) !== trusted);
    const status = listAt(await cluster().call("GET", `${PODS}/${pod}`), "status", "containerStatuses")[0];
    expect(at(status, "restartCount")).toBe(0);
    await refusedBy(OPERAND.webhook);
  });

  test("beside usher with node-guard in Enable its pods come back, and usher leaves ProjectRequests to it", async () => {
    await install(
      cluster(),
      "--replicas",
      "1",
      "--take-over",
      ...configured({
        featureGates: { OpenShiftNodeSchedulingPolicy: true },
        modules: { "node-guard": { builtIn: "OpenShift" } },
      }),
    );
    await cluster().apply(
      MALLORY,
      resource({ ...SPEC, namespaces: {} }),
      controlPlanePolicy({ emergencyUsers: ["sre"] }),
    );
    await eventually("node-guard", async () => {
      const spec = { nodeName: "cp-0", containers: [{ name: "c", image: "app:1" }] };
      const tried = await cluster().request(
        "POST",
        "/api/v1/namespaces/default/pods?dryRun=All",
        { apiVersion: "v1", kind: "Pod", metadata: { name: "intruder" }, spec },
        { user: "mallory" },
      );
      return stringAt(tried.body, "message")?.includes("USHER-G") === true;
    });
    await eventually("usher judges Namespaces", async () => {
      const { body } = await create(cluster(), "Namespace", tenant("nobody", 0), "none", {
        query: "?dryRun=All",
      });
      return stringAt(body, "message")?.includes("USHER-Q01") === true;
    });
    expect(await ownHook()).toBe(false);
    const [pod = ""] = await stage.ready(2);
    await cluster().call("DELETE", `${PODS}/${pod}?gracePeriodSeconds=0`);
    await eventually("another pod in its place", async () => !(await stage.ready(2)).includes(pod), 60_000);
  }, 180_000);

  test("when usher or the operand goes the other takes over, and while both are called a request counts once", async () => {
    await cluster().call("DELETE", WEBHOOK);
    const gone = performance.now();
    await eventually("usher's own hook", ownHook);
    console.log(`usher's hook was back after ${Math.round(performance.now() - gone)} ms`);
    await refusedBy("project-limit.usher.dev");
    await burst("both", () => stage.register(SPEC));
    await eventually("usher's hook to be withdrawn", async () => !(await ownHook()));
    await refusedBy(OPERAND.webhook);
    await burst("operand");
  }, 180_000);

  test("when the operator withdraws the operand's webhook, every request is still checked", async () => {
    const operator = new OperatorStage(cluster);
    await operator.install();
    await operator.until("Available", "True Ready");
    await refusedBy(OPERAND.webhook);
    const results: Record<string, number> = {};
    let isOver = false;
    const client = async (nth: number) => {
      for (let i = 0; !isOver; i++) {
        const { status, body } = await create(
          cluster(),
          "ProjectRequest",
          tenant("nobody", 0),
          `late-${nth}-${i}`,
        );
        const by = /admission webhook "([^"]*)" denied/.exec(stringAt(body, "message") ?? "")?.[1];
        const result = `${status} ${by ?? ""}`;
        results[result] = (results[result] ?? 0) + 1;
      }
    };
    const clients = Promise.all([1, 2, 3, 4].map(client));
    await operator.change({ nodeSelector: { pool: "none" } });
    await eventually("no webhook", async () => (await operator.read(WEBHOOK)) === undefined);
    await refusedBy("project-limit.usher.dev");
    isOver = true;
    await clients;
    console.log(results);
    expect(Object.keys(results).filter((one) => one.startsWith("2"))).toEqual([]);
    expect(results).toHaveProperty([`403 ${OPERAND.webhook}`]);
    expect(results).toHaveProperty(["403 project-limit.usher.dev"]);
    await operator.until("NoNodes", "True NoMatchingNode");
  }, 120_000);
});
