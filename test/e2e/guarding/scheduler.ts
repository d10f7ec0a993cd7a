// OpenShift's Scheduler: another owner's CRD is left alone, usher's own accepts the enhancement's YAML, and Inform mode
// with it.
import { expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { CRDS } from "../fixtures/installed-objects.ts";
import { ON_CP } from "./rows.ts";
import { apps, EVERYTHING, type GuardStage, SCHEDULER, workload } from "./stage.ts";

const SCHEDULERS = `${CRDS}/schedulers.config.openshift.io`;

/** A reduced form of OpenShift's CRD. */
const OPENSHIFT_CRD: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "schedulers.config.openshift.io", annotations: { owner: "cluster-version-operator" } },
  spec: {
    group: "config.openshift.io",
    names: { kind: "Scheduler", listKind: "SchedulerList", plural: "schedulers", singular: "scheduler" },
    scope: "Cluster",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: { spec: { type: "object", properties: { mastersSchedulable: { type: "boolean" } } } },
          },
        },
      },
    ],
  },
};

/** The enhancement's own YAML. */
const SEED: JsonObject = {
  apiVersion: "config.openshift.io/v1",
  kind: "Scheduler",
  metadata: { name: "cluster" },
  spec: {
    mastersSchedulable: false,
    schedulingGroups: [
      {
        name: "ControlPlane",
        mode: "Inform",
        authorizedUsers: ["system:vendor:xxx-serviceaccount", "system:vendor:yyy-serviceaccount"],
      },
    ],
  },
};

/** Installs usher beside a CRD of another owner. */
export function installTests(stage: GuardStage, cluster: () => Cluster): void {
  test("an existing Scheduler CRD is left unchanged, also where usher would ship one", async () => {
    await stage.prepare();
    await cluster().call("POST", CRDS, OPENSHIFT_CRD);
    const version = async () =>
      stringAt(await cluster().call("GET", SCHEDULERS), "metadata", "resourceVersion");
    const established = async () =>
      listAt(await cluster().call("GET", SCHEDULERS), "status", "conditions").some(
        (one) => stringAt(one, "type") === "Established" && stringAt(one, "status") === "True",
      );
    await eventually("the CRD to be established", established);
    const before = await version();
    await stage.install({ schedulerCRD: true, fallback: false });
    await stage.namespaces("team-a", "cni", "m2", "m3", "m5", "older");
    // Older than the guard: its pods are on every node.
    await cluster().call("POST", apps("older", "daemonsets"), workload("agent", EVERYTHING));
    await eventually("an agent on every node", async () => (await stage.pods("older")).length === 4);
    await stage.mode("Enable");
    expect(await version()).toBe(before);
    const managers = listAt(await cluster().call("GET", SCHEDULERS), "metadata", "managedFields");
    expect(managers.map((one) => stringAt(one, "manager"))).not.toContain("usher");
  }, 120_000);
}

export function informTests(stage: GuardStage, cluster: () => Cluster): void {
  test("without another owner usher ships the Scheduler CRD, and the enhancement's YAML applies unchanged", async () => {
    await cluster().call("DELETE", SCHEDULERS);
    await eventually(
      "usher's own CRD",
      async () => {
        const found = await cluster().request("GET", SCHEDULERS);
        const spec = at(
          found.body as Json,
          "spec",
          "versions",
          0,
          "schema",
          "openAPIV3Schema",
          "properties",
          "spec",
        );
        return found.status === 200 && at(spec, "properties", "schedulingGroups") !== undefined;
      },
      60_000,
    );
    await eventually("the manifest to apply", async () => {
      await cluster().apply(SEED);
      return true;
    });
    const stored = await cluster().call("GET", "/apis/config.openshift.io/v1/schedulers/cluster");
    expect(at(stored, "spec", "schedulingGroups", 0, "authorizedUsers", 0)).toBe(
      "system:vendor:xxx-serviceaccount",
    );
    await eventually("its entries to take effect", async () => {
      const { json } = await stage.command("list", "--cluster");
      const entries = listAt(listAt(json, "groups")[0], "entries");
      return entries.some(
        (one) =>
          stringAt(one, "origin") === "Scheduler" && stringAt(one, "entry")?.startsWith("system:vendor:"),
      );
    });
  }, 120_000);
  test("Inform admits and records an event on the pod; row 63, down in Inform: all pass, and the audit log has it", async () => {
    await stage.inForce("Inform");
    const name = stage.name();
    expect((await stage.pod(ON_CP, { metadata: { name } })).status).toBe(201);
    const bound = await stage.waiting();
    expect((await stage.bind(bound, SCHEDULER)).status).toBe(201);
    for (const pod of [name, bound])
      await eventually(`an event of pod ${pod}`, async () => {
        const { stdout } = await cluster().kubectl(["-n", "team-a", "describe", "pod", pod]);
        return /Warning .*usher/.test(stdout) && stdout.includes("ControlPlane");
      });
    await stage.scaleUsher(0);
    const away = stage.name();
    expect((await stage.pod(ON_CP, { metadata: { name: away } })).status).toBe(201);
    await eventually("failed-open in the audit log", () =>
      cluster()
        .auditLog()
        .some(
          ({ objectRef, annotations = {} }) =>
            objectRef?.name === away &&
            Object.keys(annotations).some((key) => key.startsWith("failed-open.validating")),
        ),
    );
  }, 120_000);
}
