// Rows of the attack list that take more than one request, and the output of commands on the same cluster.
import { expect, onTestFinished, test } from "vitest";
import { type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { Identity } from "../../cluster/access/identity.ts";
import { eventually } from "../../cluster/access/wait.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { ON_CP, ROLE } from "./rows.ts";
import { apps, EVERYTHING, type GuardStage, MALLORY, SCHEDULER, SPEC, SRE, workload } from "./stage.ts";

export function attemptTests(stage: GuardStage, cluster: () => Cluster): void {
  test("row 50: a service account's token counts as the service account", async () => {
    const path = "/api/v1/namespaces/kube-system/pods";
    const body = { metadata: { name: stage.name() }, spec: ON_CP };
    const refused = await stage.withToken("kube-system/robot", path, body);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("USHER-G")]);
  });

  test("row 2: server-side apply is refused like any other creation", async () => {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "applied", namespace: "team-a" },
      spec: ON_CP,
    };
    const applied = await cluster().kubectl(["apply", "--server-side", "-f", "-"], {
      as: MALLORY,
      input: JSON.stringify(pod),
    });
    expect(applied.code).not.toBe(0);
    expect(applied.stderr).toMatch(/ControlPlane.*USHER-G/s);
  });

  test("row 3: a Deployment's template gets a warning, its pods are refused, and describe shows the reason", async () => {
    const body = JSON.stringify({
      apiVersion: "apps/v1",
      kind: "Deployment",
      ...workload("pinned", { nodeName: "cp-0" }),
    });
    const made = await cluster().kubectl(["-n", "team-a", "create", "-f", "-"], { as: MALLORY, input: body });
    expect(made.stderr).toMatch(/Warning: .*USHER-G/);
    await eventually("an event on the ReplicaSet", async () => {
      const { stdout } = await cluster().kubectl([
        "-n",
        "team-a",
        "describe",
        "replicaset",
        "-l",
        "app=pinned",
      ]);
      return /usher/.test(stdout) && /protected|ControlPlane/.test(stdout);
    });
    expect(await stage.pods("team-a", "app=pinned")).toEqual([]);
    await cluster().call("DELETE", `${apps("team-a", "deployments")}/pinned`);
  });

  test("rows 32 and 33: kubectl debug is refused for a user, and runs for an emergency user", async () => {
    const debug = (as: Identity) =>
      cluster().kubectl(
        ["-n", "team-a", "debug", "node/cp-0", "--image=app:1", "--attach=false", "--", "true"],
        { as },
      );
    const refused = await debug(MALLORY);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/ControlPlane.*USHER-G/s)]);
    const allowed = await debug(SRE);
    expect(allowed, allowed.stderr).toMatchObject({ code: 0 });
    const vouched = await eventually("an audit entry", () =>
      cluster()
        .auditLog()
        .find((entry) =>
          Object.entries(entry.annotations ?? {}).some(
            ([key, value]) => key.endsWith("/node-guard.rule") && value.includes("vouched"),
          ),
        ),
    );
    expect(vouched.user.username).toBe(SRE.user);
  });

  test("rows 23 and 27: a gated pod gets no selector, and an existing pod can still be labelled and deleted", async () => {
    const gated = {
      metadata: { name: stage.name() },
      spec: { ...SPEC, schedulingGates: [{ name: "example.com/a" }] },
    };
    expect((await stage.pod(gated.spec, { metadata: gated.metadata })).status).toBe(201);
    const path = `/api/v1/namespaces/team-a/pods/${gated.metadata.name}`;
    const selected = await cluster().request(
      "PATCH",
      path,
      { spec: { nodeSelector: { [ROLE]: "" } } },
      MALLORY,
    );
    expect(selected.status).toBe(403);
    const there = stage.name();
    expect(
      (await stage.pod(ON_CP, { as: SRE, metadata: { name: there, finalizers: ["example.com/f"] } })).status,
    ).toBe(201);
    const open = `/api/v1/namespaces/team-a/pods/${there}`;
    const labels = { metadata: { labels: { a: "b" }, finalizers: null } };
    expect((await cluster().request("PATCH", open, labels, MALLORY)).status).toBe(200);
    expect((await cluster().request("DELETE", open, undefined, MALLORY)).status).toBe(200);
  });

  test("row 13: the real scheduler places a pod that tolerates everything on a worker", async () => {
    const name = stage.name();
    expect((await stage.pod({ ...SPEC, ...EVERYTHING }, { metadata: { name } })).status).toBe(201);
    expect(await eventually("a node", () => stage.nodeOf("team-a", name))).toMatch(/^w-/);
  });

  test("rows 28 and 29: a pod status can't name a node that counts", async () => {
    const pod = await stage.waiting();
    const path = `/api/v1/namespaces/team-a/pods/${pod}/status`;
    const nominated = await cluster().request(
      "PATCH",
      path,
      { status: { nominatedNodeName: "cp-0" } },
      MALLORY,
    );
    expect(nominated.status).toBe(200);
    await cluster().request("PATCH", path, { spec: { nodeName: "cp-0" } }, MALLORY);
    expect(await stage.nodeOf("team-a", pod)).toBeUndefined();
    expect((await stage.bind(pod, SCHEDULER)).status).toBe(403);
  });

  test("rows 61 and 65: a node label takes effect immediately, a namespace label has no effect", async () => {
    // Without room for pods: before the label, the scheduler may bind a pod of steering.ts there, and the guard would refuse it after.
    await cluster().createNode("cp-late", { capacity: { cpu: "4", memory: "8Gi", pods: "0" } });
    await cluster().call("PATCH", "/api/v1/nodes/cp-late", { metadata: { labels: { [ROLE]: "" } } });
    expect((await stage.pod({ ...SPEC, nodeName: "cp-late" })).status).toBe(403);
    await cluster().call("DELETE", "/api/v1/nodes/cp-late");
    const labels = { "kubernetes.io/metadata.name": "kube-system", "usher.dev/ignore": "true" };
    await cluster().request("PATCH", "/api/v1/namespaces/team-a", { metadata: { labels } });
    expect((await stage.pod(ON_CP)).status).toBe(403);
  });

  test("a node with the maximum number of labels keeps the protecting one", async () => {
    // Keys of four characters; with its managedFields the node has nearly a megabyte, and its review 300,000 values.
    const many = Array.from({ length: 48_000 }, (_, i) => [(i + 50_000).toString(36), ""] as const);
    const labels = { ...Object.fromEntries(many), [ROLE]: "" };
    await cluster().createNode("cp-fat", { labels, capacity: { cpu: "4", memory: "8Gi", pods: "10" } });
    onTestFinished(async () => void (await cluster().call("DELETE", "/api/v1/nodes/cp-fat")));
    const path = "/api/v1/nodes/cp-fat";
    const patch = (changed: JsonObject) =>
      cluster().request("PATCH", path, { metadata: { labels: changed } }, MALLORY);
    const unlabelled = await patch({ [ROLE]: null });
    // A webhook timeout would show here.
    const failedOpen = cluster()
      .auditLog()
      .flatMap((entry) => Object.entries(entry.annotations ?? {}))
      .filter(([key]) => key.startsWith("failed-open"));
    expect([unlabelled.status, stringAt(unlabelled.body, "message")], failedOpen.join("\n")).toEqual([
      403,
      expect.stringContaining("USHER-G"),
    ]);
    expect((await stage.pod({ ...SPEC, nodeName: "cp-fat" })).status).toBe(403);
    // A kubelet keeps working: its heartbeats are not sent to usher, and its own label is evaluated.
    const kubelet = { user: "system:node:cp-fat", groups: ["system:nodes"] };
    const status = { status: { conditions: [{ type: "Ready", status: "True" }] } };
    expect((await cluster().request("PATCH", `${path}/status`, status, kubelet)).status).toBe(200);
  });

  test("row 26: a longer toleration does not keep a pod on a protected node", async () => {
    await cluster().createNode("cp-2", {
      labels: { [ROLE]: "" },
      taints: [{ key: "drain", effect: "NoExecute" }],
    });
    onTestFinished(async () => void (await cluster().call("DELETE", "/api/v1/nodes/cp-2")));
    const name = stage.name();
    const drain = { key: "drain", operator: "Exists", effect: "NoExecute" };
    const spec = { ...SPEC, nodeName: "cp-2", tolerations: [{ ...drain, tolerationSeconds: 600 }] };
    const created = await stage.pod(spec, { as: SRE, metadata: { name } });
    expect(created.status, JSON.stringify(created.body)).toBe(201);
    const path = `/api/v1/namespaces/team-a/pods/${name}`;
    const longer = listAt(await cluster().call("GET", path), "spec", "tolerations").map((one) =>
      stringAt(one, "key") === "drain" ? { ...drain, tolerationSeconds: 6_000 } : one,
    );
    const kept = await cluster().request("PATCH", path, { spec: { tolerations: longer } }, MALLORY);
    expect([kept.status, stringAt(kept.body, "message")]).toEqual([
      403,
      expect.stringContaining("USHER-G08"),
    ]);
  });

  test("row 68: an edited webhook configuration is restored", async () => {
    const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/usher";
    await cluster().call("DELETE", path);
    await eventually(
      "the hooks to be restored",
      async () => (await stage.pod(ON_CP, { query: "?dryRun=All" })).status === 403,
    );
  });
}

export function commandTests(stage: GuardStage): void {
  test("commands: list, inventory, reach and learn read the same cluster", async () => {
    const list = await stage.command("list", "--cluster");
    expect(listAt(list.json, "groups"), list.err).toMatchObject([
      { name: "ControlPlane", mode: "Enable", effectiveMode: "Enable", nodes: ["cp-0", "cp-1"] },
    ]);
    const inventory = await stage.command("inventory", "--cluster");
    const pods = listAt(inventory.json, "pods");
    expect(pods.filter((pod) => stringAt(pod, "name")?.startsWith("victim")).length, inventory.err).toBe(2);
    expect(pods).toContainEqual(
      expect.objectContaining({ namespace: "team-a", authorized: false, by: null }),
    );
    const reach = await stage.command("reach", "--cluster");
    expect(listAt(reach.json, "subjects"), reach.err).toContainEqual(
      expect.objectContaining({
        subject: { kind: "User", name: "mallory" },
        may: expect.arrayContaining(["create pods"]),
      }),
    );
    const learnt = await eventually("the refusals to be recorded", async () => {
      const { json } = await stage.command("learn", "--cluster");
      const entries = listAt(json, "entries");
      return entries.some((one) => stringAt(one, "entry") === "mallory") && entries;
    });
    expect(learnt).toContainEqual(
      expect.objectContaining({ group: "ControlPlane", list: "workloads", entry: "team-a/default" }),
    );
    expect(learnt.every((one) => !String(stringAt(one, "entry")).includes("*"))).toBe(true);
  });

  test("reapply names the pods of an older DaemonSet that would be deleted, and steers it only with --apply", async () => {
    // Nodes of other tests are created and deleted.
    const nodes = async () =>
      (await stage.pods("older"))
        .map((pod) => stringAt(pod, "spec", "nodeName") ?? "")
        .filter((node) => ["cp-0", "cp-1", "w-0", "w-1"].includes(node))
        .sort();
    expect(await nodes()).toEqual(["cp-0", "cp-1", "w-0", "w-1"]);
    const planned = await stage.command("reapply", "-n", "older");
    const changes = JSON.stringify(listAt(listAt(planned.json, "results")[0], "changes"));
    expect(planned.code, planned.err).toBe(0);
    for (const node of ["cp-0", "cp-1"])
      expect(changes).toMatch(new RegExp(`older/agent-\\w+ on node ${node} goes`));
    expect(changes).not.toContain("on node w-");
    expect(await nodes()).toHaveLength(4);
    const applied = await stage.command("reapply", "-n", "older", "--apply");
    expect(applied.json, applied.err).toMatchObject({ summary: { steered: 1, failed: 0 } });
    await eventually("agents only on workers", async () => String(await nodes()) === "w-0,w-1");
  });
}

/**
 * Not while evictions are watched: an override admits pods to protected nodes, such as those that a CronJob creates in
 * the meantime.
 */
export function overrideTests(stage: GuardStage, cluster: () => Cluster): void {
  test("an override admits until it is revoked, and is audited", async () => {
    const granted = await stage.command(
      "override",
      "grant",
      "--group",
      "ControlPlane",
      "--mode",
      "Disable",
      "--for",
      "10m",
      "--reason",
      "disk is full",
    );
    expect(granted.code, granted.err).toBe(0);
    const open = await eventually("the override", async () => {
      const tried = await stage.pod(ON_CP);
      return tried.status === 201 && tried;
    });
    const name = stringAt(open.body, "metadata", "name");
    await eventually("its audit entry", () =>
      cluster()
        .auditLog()
        .some(
          (entry) =>
            entry.objectRef?.name === name && JSON.stringify(entry.annotations ?? {}).includes("override"),
        ),
    );
    const listed = await stage.command("override", "list");
    const override = stringAt(listAt(listed.json, "overrides")[0], "name") ?? "";
    expect(JSON.stringify(listed.json), listed.err).toContain("disk is full");
    const dry = await stage.command("override", "revoke", override, "--dry-run");
    expect(listAt(dry.json, "results"), dry.err).toMatchObject([{ result: "would change" }]);
    expect(listAt((await stage.command("override", "list")).json, "overrides")).toHaveLength(1);
    const revoked = await stage.command("override", "revoke", override);
    expect(revoked.code, revoked.err).toBe(0);
    expect(listAt(revoked.json, "results")).toMatchObject([
      { object: { name: override }, result: "revoked", changes: ["- deleted"] },
    ]);
    await eventually("the guard to be in force again", async () => (await stage.pod(ON_CP)).status === 403);
  });
}
