// What the leader keeps for node-guard in a real cluster: the fallback, statuses, the record of who granted an override, the taint.
import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { program } from "../cli/usher.ts";
import { ADMIN } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { GuardStage, SRE } from "./guarding/stage.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const POLICIES = "/apis/scheduling.openshift.io/v1alpha1/nodeschedulingpolicies";
const OVERRIDES = "/apis/usher.dev/v1alpha1/nodeguardoverrides";
const SCHEDULERS = "/apis/config.openshift.io/v1/schedulers";
const NAMES = ["usher-node-guard-controlplane-assign", "usher-node-guard-controlplane-bind"];

const policyOf = (group: JsonObject): JsonObject => ({
  apiVersion: "scheduling.openshift.io/v1alpha1",
  kind: "NodeSchedulingPolicy",
  metadata: { name: "cluster" },
  spec: { groups: [{ name: "ControlPlane", mode: "Enable", ...group }] },
});
const schedulerOf = (mastersSchedulable: boolean): JsonObject => ({
  apiVersion: "config.openshift.io/v1",
  kind: "Scheduler",
  metadata: { name: "cluster" },
  spec: { mastersSchedulable },
});

describeOwnCluster("what the leader keeps for node-guard", {}, (cluster) => {
  const stage = new GuardStage(cluster);
  const list = async (resource: string) =>
    listAt(await cluster().call("GET", `${ADMISSION}/${resource}`), "items") as JsonObject[];
  const fallback = async () => ({
    policies: (await list("validatingadmissionpolicies")).map(nameOf).sort(),
    actions: (await list("validatingadmissionpolicybindings")).map(
      (one) => listAt(one, "spec", "validationActions")[0],
    ),
  });
  const condition = async (path: string, type: string) =>
    stringAt(
      listAt(await cluster().call("GET", path), "status", "conditions").find(
        (one) => at(one, "type") === type,
      ),
      "status",
    );

  test("the fallback, overrides, mastersSchedulable, and none of it after an uninstall", async () => {
    await stage.prepare();
    await stage.namespaces("team-a");
    await stage.install({ fallback: true, manageTaint: true, schedulerCRD: true });

    // Without the fallback in force, the webhook may not be open.
    const early = await eventually("the check of policies", async () => {
      const { status, body } = await cluster().request(
        "POST",
        `${POLICIES}?dryRun=All`,
        policyOf({ failurePolicy: "Ignore" }),
      );
      return status === 422 ? (stringAt(body, "message") ?? "") : undefined;
    });
    expect(early).toContain("Ignore is accepted only while the fallback is in force");

    await stage.mode("Enable");
    await eventually("the fallback", async () => {
      const { policies, actions } = await fallback();
      return policies.join() === NAMES.join() && actions.join() === "Deny,Deny";
    });
    await cluster().call("DELETE", `${ADMISSION}/validatingadmissionpolicies/${NAMES[0]}`);
    await eventually("the fallback is restored", async () => (await fallback()).policies.length === 2);
    // With the lists as they are compiled: others would not be in force yet.
    const open = policyOf({ failurePolicy: "Ignore", emergencyUsers: [SRE.user] });
    await eventually("Ignore is accepted", async () => {
      return (await cluster().request("PATCH", `${POLICIES}/cluster?dryRun=All`, open)).status === 200;
    });

    // A forged record does not stay.
    const from = new Date(Date.now() - 60_000).toISOString();
    const until = new Date(Date.now() + 600_000).toISOString();
    const granted = await cluster().call("POST", OVERRIDES, {
      apiVersion: "usher.dev/v1alpha1",
      kind: "NodeGuardOverride",
      metadata: { name: "o", annotations: { "usher.dev/granted-by": "somebody" } },
      spec: { group: "ControlPlane", mode: "Inform", from, until, reason: "test" },
    });
    expect(at(granted, "metadata", "annotations", "usher.dev/granted-by")).toBe(ADMIN.user);
    await eventually("bindings only audit", async () => (await fallback()).actions.join() === "Audit,Audit");
    await eventually("Active", async () => (await condition(`${OVERRIDES}/o`, "Active")) === "True");
    await cluster().call("DELETE", `${OVERRIDES}/o`);
    await eventually("bindings refuse again", async () => (await fallback()).actions.join() === "Deny,Deny");

    // Masters that take pods of users: no taint, no refusals.
    await cluster().call("POST", SCHEDULERS, schedulerOf(true));
    const taints = async () =>
      listAt(await cluster().call("GET", "/api/v1/nodes/cp-0"), "spec", "taints").map((one) =>
        stringAt(one, "key"),
      );
    const key = "node-role.kubernetes.io/control-plane";
    await eventually("the taint is removed", async () => !(await taints()).includes(key));
    await eventually("the fallback is removed", async () => (await fallback()).policies.length === 0);
    await eventually(
      "Consistent",
      async () => (await condition(`${POLICIES}/cluster`, "Consistent")) === "False",
    );
    await cluster().call("PATCH", `${SCHEDULERS}/cluster`, { spec: { mastersSchedulable: false } });
    await eventually("the taint is set", async () => (await taints()).includes(key));
    await eventually("the fallback", async () => (await fallback()).policies.length === 2);
    expect(await condition(`${POLICIES}/cluster`, "TaintManaged")).toBe("True");

    const kubeconfig = await cluster().kubeconfig();
    const { out } = await program(["uninstall", "--dry-run", "--kubeconfig", kubeconfig]);
    expect(out.indexOf("usher-node-guard-controlplane-bind")).toBeGreaterThan(-1);
    expect(out.indexOf("usher-node-guard-controlplane-bind")).toBeLessThan(
      out.indexOf("WebhookConfiguration"),
    );
    await program(["uninstall", "--kubeconfig", kubeconfig]);
    expect(await fallback()).toEqual({ policies: [], actions: [] });
  }, 180_000);
});
