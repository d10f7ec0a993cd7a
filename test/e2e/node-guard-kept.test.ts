// The objects that the leader maintains for node-guard in a real cluster: the fallback, statuses, the granter of an
// override, the taint.

import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { controlPlanePolicy } from "../builders/guard.ts";
import { program } from "../cli/usher.ts";
import type { Reply } from "../cluster/access/client.ts";
import { ADMIN } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { GuardStage, MALLORY, SCHEDULER, SPEC, SRE } from "./guarding/stage.ts";

const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const POLICIES = "/apis/scheduling.openshift.io/v1alpha1/nodeschedulingpolicies";
const OVERRIDES = "/apis/usher.dev/v1alpha1/nodeguardoverrides";
const SCHEDULERS = "/apis/config.openshift.io/v1/schedulers";
const NAMES = ["assign", "bind", "labels"].map((rule) => `usher-node-guard-controlplane-${rule}`);

const schedulerOf = (mastersSchedulable: boolean): JsonObject => ({
  apiVersion: "config.openshift.io/v1",
  kind: "Scheduler",
  metadata: { name: "cluster" },
  spec: { mastersSchedulable },
});

describeOwnCluster("the leader's objects for node-guard", {}, (cluster) => {
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

  const status = async (sent: Promise<Reply>) => {
    const { status: code, body } = await sent;
    return `${code} ${/USHER-G\d+/.exec(stringAt(body, "message") ?? "")?.[0] ?? ""}`;
  };
  /** Removes a label that guards a node. */
  const free = (query = "") =>
    status(
      cluster().request(
        "PATCH",
        `/api/v1/nodes/cp-0${query}`,
        { metadata: { labels: { "node-role.kubernetes.io/control-plane": null } } },
        MALLORY,
      ),
    );

  /** With permissions in RBAC and every replica gone, only a user with the permission can remove labels. */
  async function withRightsInRbac(): Promise<void> {
    await cluster().apply(controlPlanePolicy({ rbac: true }));
    await eventually("labels alone", async () => (await fallback()).policies.join() === NAMES[2]);
    await stage.scaleUsher(0);
    expect(await free()).toBe("403 USHER-G09");
    const rbac = "/apis/rbac.authorization.k8s.io/v1";
    await cluster().call("POST", `${rbac}/clusterroles`, {
      metadata: { name: "assigns" },
      rules: [
        {
          apiGroups: ["scheduling.usher.dev"],
          resources: ["nodegroups"],
          resourceNames: ["ControlPlane"],
          verbs: ["assign"],
        },
      ],
    });
    await cluster().call("POST", `${rbac}/clusterrolebindings`, {
      metadata: { name: "assigns" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "assigns" },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: MALLORY.user }],
    });
    await eventually("the permission to take effect", async () => (await free("?dryRun=All")) === "200 ");
    await cluster().call("DELETE", `${rbac}/clusterrolebindings/assigns`);
    await stage.scaleUsher(1);
    await stage.mode("Enable");
    await eventually("the fallback", async () => (await fallback()).policies.length === NAMES.length);
  }

  /**
   * With every replica gone nodes join, pods run on other nodes, the control plane's pods start, and protected nodes
   * stay protected.
   */
  async function withoutReplicas(): Promise<void> {
    const guards = async () =>
      listAt(await cluster().call("GET", `${ADMISSION}/validatingwebhookconfigurations/usher`), "webhooks")
        .filter((hook) => stringAt(hook, "name")?.includes("node-guard"))
        .map((hook) => stringAt(hook, "failurePolicy"));
    await eventually("open hooks", async () => (await guards()).every((one) => one === "Ignore"));
    const pods = [await stage.waiting(), await stage.waiting()] as const;
    await stage.scaleUsher(0);
    expect(await status(stage.pod({ ...SPEC, nodeName: "cp-0" }))).toBe("403 USHER-G01");
    expect(await status(stage.bind(pods[0], MALLORY))).toBe("403 USHER-G02");
    expect(await free()).toBe("403 USHER-G09");
    const other = { metadata: { labels: { any: "label" } } };
    expect(await status(cluster().request("PATCH", "/api/v1/nodes/cp-0", other, MALLORY))).toBe("200 ");
    expect(await status(stage.bind(pods[1], SCHEDULER, { target: { kind: "Node", name: "w-0" } }))).toBe(
      "201 ",
    );
    expect(await status(stage.pod({ ...SPEC, nodeName: "w-0" }))).toBe("201 ");
    expect(
      await status(stage.pod({ ...SPEC, nodeName: "cp-0" }, { namespace: "kube-system", as: SRE })),
    ).toBe("201 ");
    await cluster().createNode("w-new");
    const scheduled = stage.name();
    await stage.pod(
      { ...SPEC, nodeSelector: { "kubernetes.io/hostname": "w-new" } },
      { metadata: { name: scheduled } },
    );
    await eventually(
      "the new node to run a pod",
      async () => (await stage.nodeOf("team-a", scheduled)) === "w-new",
    );
    await stage.scaleUsher(1);
  }

  test("maintains the fallback, overrides and mastersSchedulable, and nothing after an uninstall", async () => {
    await stage.prepare();
    await stage.namespaces("team-a");
    await stage.install({ manageTaint: true, schedulerCRD: true });

    // Without the fallback in force, the webhook may not be fail-open.
    const early = await eventually("the validation of policies", async () => {
      const { status, body } = await cluster().request(
        "POST",
        `${POLICIES}?dryRun=All`,
        controlPlanePolicy({ failurePolicy: "Ignore" }),
      );
      return status === 422 ? (stringAt(body, "message") ?? "") : undefined;
    });
    expect(early).toContain("Ignore is accepted only while the fallback is in force");

    await stage.mode("Enable");
    await eventually("the fallback", async () => {
      const { policies, actions } = await fallback();
      return policies.join() === NAMES.join() && actions.join() === "Deny,Deny,Deny";
    });
    await eventually("the mode, as kubectl shows it", async () => {
      const { stdout } = await cluster().kubectl(["get", "nodeschedulingpolicies"]);
      return /^NAME +CONTROL PLANE MODE +VALID .*\ncluster +Enable +True /.test(stdout);
    });
    await cluster().call("DELETE", `${ADMISSION}/validatingadmissionpolicies/${NAMES[0]}`);
    await eventually(
      "the fallback to be restored",
      async () => (await fallback()).policies.length === NAMES.length,
    );
    // With the compiled lists: others would not be in force yet.
    const open = controlPlanePolicy({ failurePolicy: "Ignore", emergencyUsers: [SRE.user] });
    await eventually("Ignore to be accepted", async () => {
      return (await cluster().request("PATCH", `${POLICIES}/cluster?dryRun=All`, open)).status === 200;
    });

    // A forged record is replaced.
    const from = new Date(Date.now() - 60_000).toISOString();
    const until = new Date(Date.now() + 600_000).toISOString();
    const granted = await cluster().call("POST", OVERRIDES, {
      apiVersion: "usher.dev/v1alpha1",
      kind: "NodeGuardOverride",
      metadata: { name: "o", annotations: { "usher.dev/granted-by": "somebody" } },
      spec: { group: "ControlPlane", mode: "Inform", from, until, reason: "test" },
    });
    expect(at(granted, "metadata", "annotations", "usher.dev/granted-by")).toBe(ADMIN.user);
    await eventually(
      "bindings that only audit",
      async () => (await fallback()).actions.join() === "Audit,Audit,Audit",
    );
    await eventually("Active", async () => (await condition(`${OVERRIDES}/o`, "Active")) === "True");
    await cluster().call("DELETE", `${OVERRIDES}/o`);
    await eventually(
      "bindings that refuse again",
      async () => (await fallback()).actions.join() === "Deny,Deny,Deny",
    );

    // Masters that accept users' pods: no taint, no refusals.
    await cluster().call("POST", SCHEDULERS, schedulerOf(true));
    const taints = async () =>
      listAt(await cluster().call("GET", "/api/v1/nodes/cp-0"), "spec", "taints").map((one) =>
        stringAt(one, "key"),
      );
    const key = "node-role.kubernetes.io/control-plane";
    await eventually("the taint to be removed", async () => !(await taints()).includes(key));
    await eventually("the fallback to be removed", async () => (await fallback()).policies.length === 0);
    await eventually(
      "Consistent",
      async () => (await condition(`${POLICIES}/cluster`, "Consistent")) === "False",
    );
    await cluster().call("PATCH", `${SCHEDULERS}/cluster`, { spec: { mastersSchedulable: false } });
    await eventually("the taint to be set", async () => (await taints()).includes(key));
    await eventually("the fallback", async () => (await fallback()).policies.length === NAMES.length);
    expect(await condition(`${POLICIES}/cluster`, "TaintManaged")).toBe("True");

    await withRightsInRbac();
    await withoutReplicas();

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
