// Disruptions that a cluster goes through over years, in a few minutes: installed in each way, with every hook
// fail-closed and clients that never pause. `npm run test:long` runs it.
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { type Json, listAt, stringAt } from "../../src/core/json.ts";
import { serviceNames } from "../../src/core/registration/certificates.ts";
import { nodeObject } from "../cluster/access/node.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { FaultProxy } from "../e2e/fault-proxy.ts";
import { USAGES } from "../e2e/fixtures/project-limits.ts";
import { CONFIGURATION, CONFIGURATIONS, FLAGS, Installation } from "./installation.ts";
import { type Failure, failuresNow, type Loaded, underLoad } from "./load.ts";
import { WAYS } from "./ways.ts";

const SECRET = "/api/v1/namespaces/usher-system/secrets/usher-certificates";
const NODES = "/api/v1/nodes";
const KILLED_WITHIN_MS = 5_000;
const GONE_WITHIN_MS = 60_000;
const DAY_MS = 86_400_000;
const LONG_MS = 15 * 60_000;

const texts = (failures: readonly Failure[]) => failures.map(({ what }) => what);

describe.each(WAYS)("by $name", (way) => {
  let proxy: FaultProxy | undefined;
  afterAll(() => proxy?.close());
  const between = async (server: string): Promise<string> => {
    proxy = new FaultProxy(server);
    await proxy.listen();
    return proxy.address;
  };

  describeOwnCluster("an installation under disruption", { flags: FLAGS, between }, (cluster) => {
    const usher = new Installation(cluster);
    const say = (what: string, { sent, failures }: Loaded) =>
      console.log(`${way.name}, ${what}: ${sent} requests, ${failures.length} failed`);
    const noneFails = async (what: string, work: () => Promise<unknown>) => {
      const loaded = await underLoad(cluster(), work);
      say(what, loaded);
      expect(texts(loaded.failures)).toEqual([]);
      expect(loaded.sent).toBeGreaterThan(20);
    };

    test.each(["once", "twice"])(
      "install, upgrade, rollback, uninstall, %s",
      async (time) => {
        if (time === "once") await usher.prepare();
        await way.install(cluster(), CONFIGURATION);
        await usher.applyPolicies();
        await noneFails("upgrade", async () => {
          await way.upgrade(cluster());
          await usher.rolledOut();
        });
        await noneFails("rollback", async () => {
          await way.rollback(cluster());
          await usher.rolledOut();
        });
        await way.uninstall(cluster());
        await eventually("no webhooks", async () => !(await usher.isRegistered()), GONE_WITHIN_MS);
        // Without usher every request passes, also those that usher would have refused.
        expect(await failuresNow(cluster())).toHaveLength(4);
        await eventually("no replicas", async () => (await usher.replicas()).length === 0, GONE_WITHIN_MS);
      },
      LONG_MS,
    );

    test(
      "a rolling restart fails no request",
      async () => {
        await way.install(cluster(), CONFIGURATION);
        await usher.inForce();
        expect((await usher.closed()).join()).toMatch(/node-guard/);
        await noneFails("rolling restart", async () => {
          const args = ["-n", "usher-system", "rollout", "restart", "deployment", "usher"];
          expect(await cluster().kubectl(args)).toMatchObject({ code: 0 });
          await usher.rolledOut();
          await pause(KILLED_WITHIN_MS);
        });
      },
      LONG_MS,
    );

    test(
      "a rotation of the certificate fails no request",
      async () => {
        const data = async (key: string) => stringAt(await cluster().call("GET", SECRET), "data", key);
        const base64 = (text: string) => Buffer.from(text).toString("base64");
        const names = serviceNames("usher", "usher-system");
        const ageing = await makeCertificate(names, Date.now() - 300 * DAY_MS);
        await cluster().call("PATCH", SECRET, {
          data: {
            "tls.crt": base64(ageing.cert),
            "tls.key": base64(ageing.key),
            "ca.crt": base64(ageing.ca),
          },
        });
        const next = await eventually("the next certificate", () => data("next-tls.crt"));
        await eventually("the expiring certificate trusted", async () => {
          const hooks = await cluster().call("GET", CONFIGURATIONS[0] ?? "");
          const bundle = stringAt(hooks, "webhooks", 0, "clientConfig", "caBundle") ?? "";
          return Buffer.from(bundle, "base64").toString().includes(ageing.ca.trim());
        });
        await usher.inForce();
        await noneFails("rotation", async () => {
          await eventually(
            "the next certificate served",
            async () => (await data("tls.crt")) === next,
            LONG_MS,
          );
          await pause(2 * KILLED_WITHIN_MS);
        });
      },
      LONG_MS,
    );

    test.each(["the leader", "the other replica"])(
      "no request fails for more than 5 s after SIGKILL of %s",
      async (which) => {
        const pods = await usher.leaderFirst();
        const pod = which === "the leader" ? pods[0] : pods[1];
        let killed = 0;
        const loaded = await underLoad(cluster(), async () => {
          await pause(1_000);
          killed = performance.now();
          cluster().crash(stringAt(pod, "metadata", "uid") ?? "");
          await pause(6 * KILLED_WITHIN_MS);
        });
        const after = loaded.failures.map((failure) => Math.round(failure.at - killed));
        say(`SIGKILL of ${which}, the last after ${after.at(-1) ?? 0} ms`, loaded);
        expect(
          texts(loaded.failures.filter(({ at }) => at < killed || at > killed + KILLED_WITHIN_MS)),
        ).toEqual([]);
        await usher.rolledOut();
      },
      LONG_MS,
    );

    /** Only requests to the API server itself may fail during the restart. Nothing sent after it is back may fail. */
    const restarted = async (what: string, restart: () => Promise<void>) => {
      const before = usher.restarts(await usher.replicas());
      let back = Number.POSITIVE_INFINITY;
      const loaded = await underLoad(cluster(), async () => {
        await restart();
        back = performance.now();
        await pause(4 * KILLED_WITHIN_MS);
      });
      const sent = loaded.failures.map(({ sentAt }) => Math.round(back - sentAt));
      say(`${what}, the last sent ${sent.at(-1) ?? 0} ms before it was back`, loaded);
      expect(texts(loaded.failures.filter(({ sentAt, away }) => !away || sentAt > back))).toEqual([]);
      expect(usher.restarts(await usher.replicas())).toBe(before);
    };

    test(
      "serves through a restart of the API server, and follows changes after it",
      async () => {
        const server = cluster().component("kube-apiserver");
        await restarted("API server restarted", async () => {
          await server.stop("at once");
          await pause(KILLED_WITHIN_MS);
          await server.start();
        });
        await usher.follows("after-the-server");
      },
      LONG_MS,
    );

    test(
      "serves through a restart of etcd, and follows changes after it",
      async () => {
        const etcd = cluster().component("etcd");
        await restarted("etcd restarted", async () => {
          await etcd.stop("at once");
          await pause(KILLED_WITHIN_MS);
          await etcd.start();
          // The API server reconnects to etcd kind by kind: these are the kinds that usher reads for a review, and one
          // write.
          const written = { metadata: { labels: { written: "again" } } };
          await eventually("the API server reads and writes again", async () => {
            const asked = await Promise.all([
              cluster().request("PATCH", "/api/v1/namespaces/team-a", written),
              cluster().request("GET", `${NODES}/cp-0`),
              cluster().request("GET", USAGES),
            ]);
            return asked.every(({ status }) => status === 200);
          });
        });
        await usher.follows("after-etcd");
      },
      LONG_MS,
    );

    test(
      "silently cut connections fail no request, and new connections follow changes",
      async () => {
        await noneFails("a watch cut silently", async () => {
          expect(proxy?.size).toBeGreaterThan(0);
          proxy?.silence();
          await usher.follows("after-silence");
        });
      },
      LONG_MS,
    );

    test(
      "starts everything from zero nodes with all hooks fail-closed",
      async () => {
        const labels = { app: "cni" };
        await cluster().call("POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", {
          metadata: { name: "cni" },
          spec: {
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: { containers: [{ name: "c", image: "cni:1" }], tolerations: [{ operator: "Exists" }] },
            },
          },
        });
        const closed = await usher.closed();
        expect(closed.join()).toMatch(/node-guard.*project-limit|project-limit.*node-guard/);
        const nodes = listAt(await cluster().call("GET", NODES), "items");
        await cluster().call("DELETE", NODES);
        const now = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
        for (const namespace of ["usher-system", "kube-system"])
          await cluster().call("DELETE", `/api/v1/namespaces/${namespace}/pods`, now);
        const isRunning = (pod: Json) => stringAt(pod, "status", "phase") === "Running";
        await eventually("nothing runs", async () => {
          const pods = listAt(await cluster().call("GET", "/api/v1/pods"), "items");
          return !pods.some(isRunning);
        });
        for (const name of ["kube-apiserver", "etcd"] as const)
          await cluster().component(name).stop("at once");
        for (const name of ["etcd", "kube-apiserver"] as const) await cluster().component(name).start();
        // Each request is refused: no replica can answer.
        await eventually("all hooks fail-closed", async () => (await failuresNow(cluster())).length === 4);
        expect(await usher.closed()).toEqual(closed);

        for (const node of nodes) {
          const name = stringAt(node, "metadata", "name") ?? "";
          // An administrator registers control-plane nodes: kubelets may not give themselves the control-plane role.
          if (name.startsWith("cp-")) {
            const role = "node-role.kubernetes.io/control-plane";
            const taints = [{ key: role, effect: "NoSchedule" }];
            await cluster().createNode(name, { labels: { [role]: "", tier: "cp" }, taints });
          } else {
            const kubelet = { user: `system:node:${name}`, groups: ["system:nodes"] };
            await cluster().call("POST", NODES, nodeObject(name), kubelet);
          }
        }
        await eventually(
          "a CNI on every node",
          async () => {
            const pods = "/api/v1/namespaces/kube-system/pods?labelSelector=app%3Dcni";
            const found = listAt(await cluster().call("GET", pods), "items").filter(isRunning);
            return found.length === nodes.length;
          },
          LONG_MS,
        );
        await usher.rolledOut();
        await usher.inForce();
        await usher.follows("after-the-cold-start");
        await noneFails("after a cold start", () => pause(KILLED_WITHIN_MS));
      },
      LONG_MS,
    );
  });
});
