// The rows of the attack list that only an API server can show: real identities, the real scheduler, the DaemonSet controller. While
// they are tried, what steering must keep quiet runs for 90 s beside them.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import type { Identity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { guardRows, ON_CP, ROLE } from "./fixtures/guard-rows.ts";
import { EVERYTHING, GuardStage, MALLORY, SPEC, SRE } from "./fixtures/guard-stage.ts";

/** As long as the measurement that found 92 evictions without steering. */
const WINDOW_MS = 90_000;

const prefersControlPlane: JsonObject = {
  affinity: {
    nodeAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, preference: { matchExpressions: [{ key: ROLE, operator: "Exists" }] } },
      ],
    },
  },
};
const workload = (name: string, spec: JsonObject, more: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { ...SPEC, ...spec } },
    ...more,
  },
});
const cpu = (amount: string): JsonObject => ({
  containers: [{ name: "c", image: "app:1", resources: { requests: { cpu: amount } } }],
});

describeOwnCluster("node-guard in Enable", {}, (cluster) => {
  const stage = new GuardStage(cluster);
  let began = 0;
  let victims: readonly string[] = [];
  const uids = async () =>
    (await stage.pods("kube-system", "app=victim"))
      .map((pod) => stringAt(pod, "metadata", "uid") ?? "")
      .sort();
  const apps = (namespace: string, resource: string) => `/apis/apps/v1/namespaces/${namespace}/${resource}`;
  const daemonSet = () => cluster().call("GET", `${apps("m5", "daemonsets")}/agent`);

  test("is switched on, and what steering must keep quiet begins", async () => {
    await stage.prepare();
    await stage.install();
    await stage.namespaces("team-a", "m2", "m3", "m5");
    await cluster().call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
      metadata: { name: "high" },
      value: 1_000_000,
    });
    // M3: the control plane's nodes are full of an authorised Deployment of no priority, the workers of pods as important as the next.
    const onControlPlane = { nodeSelector: { [ROLE]: "" }, ...EVERYTHING, ...cpu("60") };
    await cluster().call(
      "POST",
      apps("kube-system", "deployments"),
      workload("victim", onControlPlane, { replicas: 2 }),
    );
    await stage.mode("Enable");
    const important = { ...EVERYTHING, ...cpu("60"), priorityClassName: "high" };
    await cluster().call("POST", apps("m3", "deployments"), workload("full", important, { replicas: 2 }));
    victims = await eventually("full nodes", async () => {
      const all = [...(await stage.pods("kube-system", "app=victim")), ...(await stage.pods("m3"))];
      return all.length === 4 && all.every((pod) => at(pod, "spec", "nodeName") !== undefined) && uids();
    });
    began = Date.now();
    await cluster().call("POST", apps("m3", "deployments"), workload("attacker", important));
    // M2: neutral pods, and those that prefer the control plane.
    await cluster().call("POST", apps("m2", "deployments"), workload("neutral", EVERYTHING, { replicas: 6 }));
    const preferring = { ...EVERYTHING, ...prefersControlPlane };
    await cluster().call(
      "POST",
      apps("m2", "deployments"),
      workload("preferring", preferring, { replicas: 2 }),
    );
    // M5: a DaemonSet that tolerates everything.
    await cluster().call("POST", apps("m5", "daemonsets"), workload("agent", EVERYTHING));
  }, 120_000);

  test.each(guardRows(stage, cluster))("row %s: %s: %i", async (_row, title, expected, attempt) => {
    const { status, body } = await attempt();
    expect(status, JSON.stringify(body)).toBe(expected);
    // A refusal for want of a right would prove nothing.
    if (status === 403)
      expect(stringAt(body, "message")).toMatch(title.endsWith("NodeRestriction") ? /node/ : /USHER-G/);
  });

  test("row 50: a token of a service account counts as its owner", async () => {
    const path = "/api/v1/namespaces/kube-system/pods";
    const body = { metadata: { name: stage.name() }, spec: ON_CP };
    const refused = await stage.withToken("kube-system/robot", path, body);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("USHER-G")]);
  });

  test("row 2: server-side apply, as any other creation", async () => {
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

  test("row 3: a Deployment's template warns, its pods are refused, and describe says why", async () => {
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

  test("rows 32 and 33: kubectl debug of a user is refused, of an emergency user runs", async () => {
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

  test("rows 23 and 27: a gated pod gets no selector, and a pod that is there can still be labelled and deleted", async () => {
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

  test("row 13: a pod that tolerates everything lands on a worker, by the real scheduler", async () => {
    const name = stage.name();
    expect((await stage.pod({ ...SPEC, ...EVERYTHING }, { metadata: { name } })).status).toBe(201);
    expect(await eventually("a node", () => stage.nodeOf("team-a", name))).toMatch(/^w-/);
  });

  test("row 68: a webhook configuration that was edited is restored", async () => {
    const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/usher";
    await cluster().call("DELETE", path);
    await eventually(
      "the hooks again",
      async () => (await stage.pod(ON_CP, { query: "?dryRun=All" })).status === 403,
    );
  });

  test("M5: the workers' rollout of a DaemonSet ends", async () => {
    const wait = (image: string) =>
      eventually(`a rollout of ${image}`, async () => {
        const object = await daemonSet();
        const { desiredNumberScheduled, updatedNumberScheduled, numberAvailable } = (at(object, "status") ??
          {}) as JsonObject;
        return desiredNumberScheduled === 2 && updatedNumberScheduled === 2 && numberAvailable === 2;
      });
    await wait("app:1");
    const template = { spec: { containers: [{ name: "c", image: "app:2" }] } };
    await cluster().call("PATCH", `${apps("m5", "daemonsets")}/agent`, { spec: { template } });
    await eventually(
      "the new generation is seen",
      async () =>
        at(await daemonSet(), "status", "observedGeneration") ===
        at(await daemonSet(), "metadata", "generation"),
    );
    await wait("app:2");
    const pods = await stage.pods("m5");
    expect(pods.map((pod) => stringAt(pod, "spec", "nodeName")).sort()).toEqual(["w-0", "w-1"]);
  });

  test("placement and steering on one DaemonSet: ten applies, one generation", async () => {
    await cluster().apply({
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: "both" },
      spec: {
        namespaceSelector: {},
        podSelector: { matchLabels: { app: "both" } },
        nodeSelector: { "kubernetes.io/os": "linux" },
      },
    });
    await eventually("the policy is known", async () => {
      const tried = await stage.pod(SPEC, {
        metadata: { name: "probe", labels: { app: "both" } },
        query: "?dryRun=All",
      });
      return at(tried.body, "spec", "nodeSelector", "kubernetes.io/os") === "linux";
    });
    const input = JSON.stringify({
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      ...workload("both", EVERYTHING),
    });
    for (let i = 0; i < 10; i++) {
      const applied = await cluster().kubectl(["-n", "team-a", "apply", "--server-side", "-f", "-"], {
        input,
      });
      expect(applied, applied.stderr).toMatchObject({ code: 0 });
    }
    const stored = await cluster().call("GET", `${apps("team-a", "daemonsets")}/both`);
    expect(at(stored, "metadata", "generation")).toBe(1);
    expect(at(stored, "spec", "template", "spec", "nodeSelector")).toEqual({ "kubernetes.io/os": "linux" });
    expect(JSON.stringify(at(stored, "spec", "template", "spec", "affinity"))).toContain(ROLE);
  });

  test("commands: list, inventory, reach and learn see the same cluster", async () => {
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
    const learnt = await eventually("what was refused is remembered", async () => {
      const { json } = await stage.command("learn", "--cluster");
      const entries = listAt(json, "entries");
      return entries.some((one) => stringAt(one, "entry") === "mallory") && entries;
    });
    expect(learnt).toContainEqual(
      expect.objectContaining({ group: "ControlPlane", list: "workloads", entry: "team-a/default" }),
    );
    expect(learnt.every((one) => !String(stringAt(one, "entry")).includes("*"))).toBe(true);
  });

  test("an override admits until it is revoked, and says so", async () => {
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
    const revoked = await stage.command("override", "revoke", override);
    expect(revoked.code, revoked.err).toBe(0);
    await eventually("the guard again", async () => (await stage.pod(ON_CP)).status === 403);
  });

  test(
    "M2, M3: in 90 s no bind was refused and nobody was evicted",
    async () => {
      await sleep(Math.max(0, began + WINDOW_MS - Date.now()));
      expect(await uids()).toEqual(victims);
      const refused = cluster()
        .auditLog()
        .filter(
          ({ objectRef, responseStatus }) =>
            objectRef?.subresource === "binding" && (responseStatus?.code ?? 0) >= 400,
        )
        .filter(({ objectRef }) => ["m2", "m3", "m5"].includes(objectRef?.namespace ?? ""));
      expect(refused).toEqual([]);
      const neutral = await stage.pods("m2");
      expect(neutral.map((pod) => stringAt(pod, "spec", "nodeName")?.slice(0, 2))).toEqual(
        Array(8).fill("w-"),
      );
      const [attacker] = await stage.pods("m3", "app=attacker");
      expect(stringAt(attacker, "spec", "nodeName")).toBeUndefined();
    },
    WINDOW_MS + 30_000,
  );
});
