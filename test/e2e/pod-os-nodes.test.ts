// The OS of pods and of nodes, end to end: fields that are written, hardened, refused and repaired, without loops or
// evictions.
import { setTimeout as pause } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeOwnCluster, LONG } from "../cluster/describe.ts";
import { configured, install } from "./fixtures/install.ts";

/** No webhook of usher covers it, so bindings there work as without usher. */
const FREE = "free-of-usher";
const HARD = "hard";
const WINDOWS = { os: { name: "windows" } };
const LINUX_OS = { os: { name: "linux" } };
const OS_LABEL = "kubernetes.io/os";
const WINDOW_MS = LONG ? 90_000 : 30_000;

describeOwnCluster("pods and nodes of an OS", {}, (cluster) => {
  const call = (method: string, path: string, body?: JsonObject) => cluster().call(method, path, body);
  const containers = (cpu = "10m") => [
    { name: "main", image: "registry.example/app:1", resources: { requests: { cpu } } },
  ];
  const pod = (name: string, spec: JsonObject, namespace: string): JsonObject => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace },
    spec: { containers: containers(), ...spec },
  });
  const pods = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`;
  const create = (object: JsonObject) =>
    cluster().request("POST", pods(stringAt(object, "metadata", "namespace") ?? ""), object);
  const events = async (namespace: string): Promise<readonly Json[]> =>
    listAt(await call("GET", `/api/v1/namespaces/${namespace}/events`), "items");
  const reasons = async (namespace: string) =>
    (await events(namespace)).map((one) => stringAt(one, "reason") ?? "");

  /** As its kubelet would report it. */
  const reports = (name: string, operatingSystem: string, kubeletVersion = "v1.37.1") =>
    call("PATCH", `/api/v1/nodes/${name}/status`, {
      status: { nodeInfo: { operatingSystem, kubeletVersion } },
    });

  let loop = "";
  let bind = "";

  beforeAll(async () => {
    await Promise.all([
      cluster().createNode("base-0"),
      cluster().createNode("base-1"),
      cluster().createNode("win-0", {
        labels: { [OS_LABEL]: "windows" },
        taints: [{ key: "os", value: "windows", effect: "NoSchedule" }],
      }),
      cluster().createNode("drift-0", { taints: [{ key: "drift", effect: "NoSchedule" }] }),
    ]);
    await Promise.all([
      reports("base-0", "linux"),
      reports("base-1", "linux"),
      reports("win-0", "windows"),
      reports("drift-0", "linux", "v1.22.17"),
    ]);
    [loop, bind] = await Promise.all([createNamespace(cluster()), createNamespace(cluster())]);
    for (const [name, labels] of [
      [FREE, {}],
      [HARD, { "pod-security.kubernetes.io/enforce": "restricted" }],
    ] as const)
      await call("POST", "/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name, labels },
      });
  });

  beforeAll(() =>
    install(
      cluster(),
      ...configured({
        controlPlaneNamespaces: [FREE],
        modules: {
          "pod-os": { os: { write: true, nodeMismatch: "Deny", repairNodeLabels: true, harden: [HARD] } },
        },
      }),
    ),
  );

  let started = 0;
  let fillers: string[] = [];
  const uidsOf = async (label: string) =>
    listAt(await call("GET", `${pods(loop)}?labelSelector=app%3D${label}`), "items")
      .map((one) => stringAt(one, "metadata", "uid") ?? "")
      .sort();

  test("starts the observed period: a windows DaemonSet, and a windows pod that could run only if others were evicted", async () => {
    await call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: "urgent" },
      value: 1_000_000,
    });
    const daemonSet = (name: string, spec: JsonObject): JsonObject => ({
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name, namespace: loop },
      spec: {
        selector: { matchLabels: { app: name } },
        template: { metadata: { labels: { app: name } }, spec },
      },
    });
    const sets = `/apis/apps/v1/namespaces/${loop}/daemonsets`;
    await call("POST", sets, daemonSet("filler", { containers: containers("10") }));
    await eventually("the nodes filled", async () => {
      fillers = await uidsOf("filler");
      return fillers.length === 2;
    });
    const windows = await call("POST", sets, daemonSet("agent", { ...WINDOWS, containers: containers() }));
    expect(at(windows, "spec", "template", "spec", "nodeSelector")).toEqual({ [OS_LABEL]: "windows" });
    const urgent = await create(
      pod("urgent", { ...WINDOWS, priorityClassName: "urgent", containers: containers("60") }, loop),
    );
    expect(urgent.status).toBe(201);
    expect(at(urgent.body, "spec", "nodeSelector")).toEqual({ [OS_LABEL]: "windows" });
    started = performance.now();
  });

  describe("bindings", () => {
    const binding = (name: string, node: string, namespace: string): JsonObject => ({
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name, namespace },
      target: { apiVersion: "v1", kind: "Node", name: node },
    });
    const waiting = async (name: string, spec: JsonObject, namespace = bind) =>
      expect((await create(pod(name, { schedulerName: "none", ...spec }, namespace))).status).toBe(201);
    const bound = (name: string, node: string, url: "pods" | "bindings", namespace = bind) =>
      cluster().request(
        "POST",
        url === "pods" ? `${pods(namespace)}/${name}/binding` : `/api/v1/namespaces/${namespace}/bindings`,
        binding(name, node, namespace),
      );

    test("a windows pod is neither bound to a Linux node, on either URL, nor created there", async () => {
      await waiting("w", WINDOWS);
      for (const url of ["pods", "bindings"] as const) {
        const { status, body } = await bound("w", "base-0", url);
        expect(status).toBe(403);
        expect(stringAt(body, "message")).toContain(
          `pod ${bind}/w is for windows, node base-0 runs linux: add nodeSelector ${OS_LABEL}: windows`,
        );
      }
      const direct = await create(pod("direct", { ...WINDOWS, nodeName: "base-0" }, bind));
      expect(direct.status).toBe(403);
      await eventually("the event", async () => (await reasons(bind)).includes("PodOSNotSupported"));
      expect((await bound("w", "win-0", "pods")).status).toBe(201);
    });

    test("a pod without an OS can be bound to any node, and an unknown node passes with an event", async () => {
      await Promise.all([waiting("any", {}), waiting("lost", WINDOWS)]);
      expect((await bound("any", "win-0", "bindings")).status).toBe(201);
      expect((await bound("lost", "no-such-node", "pods")).status).toBe(201);
      await eventually("the event", async () => (await reasons(bind)).includes("NodeOSUnknown"));
    });

    test("a pod whose label alone names another OS than its node's is bound, with an event that names the label", async () => {
      await waiting("labelled", {});
      const object = binding("labelled", "win-0", bind);
      const metadata = { name: "labelled", namespace: bind, labels: { [OS_LABEL]: "linux" } };
      const url = `${pods(bind)}/labelled/binding`;
      expect((await cluster().request("POST", url, { ...object, metadata })).status).toBe(201);
      const wanted = `pod ${bind}/labelled has the label ${OS_LABEL}: linux, node win-0 runs windows`;
      await eventually("the event", async () =>
        (await events(bind)).some((one) => stringAt(one, "message")?.includes(wanted) === true),
      );
    });

    const pace = async () => {
      // Enough to exceed the scheduler's client-side rate limit; it runs with its defaults, as in most clusters.
      const [rounds, each] = [3, 120];
      const account = `/api/v1/namespaces/${FREE}/serviceaccounts/default`;
      await eventually("the account", async () => (await cluster().request("GET", account)).status === 200);
      const spent: Record<string, number> = {};
      for (let round = 0; round < rounds; round++)
        for (const namespace of round % 2 === 0 ? [bind, FREE] : [FREE, bind]) {
          const bench = `${namespace}-${round}`;
          const waits = { ...LINUX_OS, nodeSelector: { [OS_LABEL]: "linux", bench } };
          const names = Array.from({ length: each }, (_, i) => `bench-${round}-${i}`);
          await Promise.all(names.map((name) => create(pod(name, waits, namespace))));
          // By then each pod has been unschedulable once, and its backoff is over.
          await pause(1_500);
          await call("PATCH", "/api/v1/nodes/base-1", { metadata: { labels: { bench } } });
          const begin = performance.now();
          const unbound = `${pods(namespace)}?fieldSelector=spec.nodeName%3D`;
          const waiting = async () =>
            listAt(await call("GET", unbound), "items").filter(
              (one) => stringAt(one, "spec", "nodeSelector", "bench") === bench,
            ).length;
          while ((await waiting()) > 0) await pause(20);
          // The first round warms up connections and code.
          if (round > 0) spent[namespace] = (spent[namespace] ?? 0) + performance.now() - begin;
        }
      const perSecond = (namespace: string) => ((rounds - 1) * each * 1_000) / (spent[namespace] ?? 1);
      const [withHook, without] = [perSecond(bind), perSecond(FREE)];
      console.info(
        `pods bound per second: ${withHook.toFixed(0)} with the hook, ${without.toFixed(0)} without (${(withHook / without).toFixed(2)})`,
      );
    };
    if (LONG) test("the bind hook does not slow the scheduler", pace, 120_000);
  });

  test("hardened pods of each OS pass the API server and restricted; nothing is guessed for an unknown OS", async () => {
    const account = `/api/v1/namespaces/${HARD}/serviceaccounts/default`;
    await eventually(
      "the service account",
      async () => (await cluster().request("GET", account)).status === 200,
    );
    for (const [name, spec] of [
      ["linux", LINUX_OS],
      ["windows", WINDOWS],
      ["by-selector", { nodeSelector: { [OS_LABEL]: "windows" } }],
    ] as const) {
      const { status, body } = await create(pod(name, spec, HARD));
      expect(status, JSON.stringify(body)).toBe(201);
      expect(stringAt(body, "spec", "os", "name")).toBe(name === "linux" ? "linux" : "windows");
    }
    const { status, body } = await create(pod("unknown", {}, HARD));
    expect(status).toBe(403);
    expect(stringAt(body, "message")).toContain('violates PodSecurity "restricted:latest"');
  });

  test("a drifted OS label is repaired from the kubelet's report within 10 s, and reported; so are old kubelets", async () => {
    const node = "/api/v1/nodes/drift-0";
    await call("PATCH", node, { metadata: { labels: { [OS_LABEL]: "windows" } } });
    await eventually(
      "the label repaired",
      async () => stringAt(await call("GET", node), "metadata", "labels", OS_LABEL) === "linux",
      10_000,
    );
    await eventually("the events", async () => {
      const seen = await reasons("default");
      return seen.includes("NodeOSLabelDrift") && seen.includes("KubeletIgnoresPodOS");
    });
  });

  test("a scan of the live cluster finds workloads with and without an owner", async () => {
    const kubeconfig = await cluster().kubeconfig();
    const { code, out, err } = await program([
      ...["pod-security", "scan", "--cluster", "--kubeconfig", kubeconfig, "-n", loop],
      ...["--policy", "restricted:latest", "-o", "json"],
    ]);
    expect(code, err).toBe(1);
    const { workloads, unread } = JSON.parse(out);
    expect(unread).toEqual([]);
    expect(workloads).toMatchObject([
      {
        kind: "DaemonSet",
        name: "agent",
        os: "windows",
        replicas: 0,
        violations: [{ check: "runAsNonRoot" }],
      },
      { kind: "DaemonSet", name: "filler", replicas: 2 },
      { kind: "Pod", name: "urgent", os: "windows", replicas: 1 },
    ]);
  });

  test("a scan with few permissions names the resources that it could not read", async () => {
    const api = "/apis/rbac.authorization.k8s.io/v1";
    const rules = [{ apiGroups: ["apps"], resources: ["daemonsets"], verbs: ["list"] }];
    const metadata = { name: "scanner", namespace: loop };
    await call("POST", `${api}/namespaces/${loop}/roles`, { metadata, rules });
    const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "scanner" }];
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "scanner" };
    await call("POST", `${api}/namespaces/${loop}/rolebindings`, { metadata, subjects, roleRef });
    const kubeconfig = await cluster().kubeconfig("scanner");
    const scan = ["pod-security", "scan", "--kubeconfig", kubeconfig, "-n", loop, "-o", "json"];
    const forbidden = await program(scan);
    expect(forbidden).toMatchObject({ code: 3, err: expect.stringContaining("--config") });
    const { code, out, err } = await program([...scan, ...configured({})]);
    expect(code, err).toBe(3);
    const { workloads, unread } = JSON.parse(out);
    expect(workloads).toMatchObject([{ name: "agent" }, { name: "filler" }]);
    expect(unread).toHaveLength(8);
    expect(unread.join()).toContain('User "scanner" cannot list resource "pods"');
  });

  test(
    "the observed period ends without loops or evictions",
    async () => {
      await pause(Math.max(0, WINDOW_MS - (performance.now() - started)));
      expect(await uidsOf("filler")).toEqual(fillers);
      expect(await uidsOf("agent")).toEqual([]);
      const seen = await reasons(loop);
      for (const reason of ["FailedDaemonPod", "Preempted", "PodOSNotSupported"])
        expect(seen).not.toContain(reason);
      const urgent = await call("GET", `${pods(loop)}/urgent`);
      expect(stringAt(urgent, "status", "phase")).toBe("Pending");
      expect(at(urgent, "status", "nominatedNodeName")).toBeUndefined();
      const agent = await call("GET", `/apis/apps/v1/namespaces/${loop}/daemonsets/agent`);
      expect(at(agent, "status", "desiredNumberScheduled")).toBe(0);
    },
    WINDOW_MS + 30_000,
  );
});
