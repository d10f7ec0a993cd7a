import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { eventually } from "./access/wait.ts";
import { describeCluster, testNamespace } from "./describe.ts";
import { fixture } from "./fixtures/manifests.ts";
import { isRunning } from "./processes/owner.ts";
import { RUN_LABEL } from "./runner/label.ts";

const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    }).once("error", reject);
  });
}

function pod(
  name: string,
  command: readonly string[],
  more: JsonObject = {},
  spec: JsonObject = {},
): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { [RUN_LABEL]: "true", team: "blue" } },
    spec: {
      terminationGracePeriodSeconds: 3,
      containers: [{ name: "main", image: "any", command, ...more }],
      ...spec,
    },
  };
}

describeCluster("pods that run for real", (cluster) => {
  const namespace = testNamespace(cluster);
  const path = (resource: string, name = ""): string =>
    `/api/v1/namespaces/${namespace()}/${resource}/${name}`.replace(/\/$/, "");
  const status = async (name: string) => at(await cluster().call("GET", path("pods", name)), "status");

  beforeAll(async () => {
    await cluster().createNode("runner-node");
    await cluster().call("POST", path("configmaps"), {
      metadata: { name: "settings" },
      data: { greeting: "hello", "app.conf": "v1" },
    });
    await cluster().call("POST", path("secrets"), {
      metadata: { name: "key" },
      stringData: { word: "open" },
    });
    await cluster().call("POST", path("serviceaccounts"), { metadata: { name: "worker" } });
  });

  test("have files, environment and a token of their service account, and keep up with changes", async () => {
    const account = [
      { name: "conf", configMap: { name: "settings" } },
      { name: "key", secret: { secretName: "key" } },
    ];
    const command = ["node", fixture("container.mjs"), "8080", "/etc/app/app.conf", "/etc/key/word", ACCOUNT];
    const container = {
      ports: [{ name: "http", containerPort: 8080 }],
      readinessProbe: { httpGet: { path: "/readyz", port: "http" }, periodSeconds: 1 },
      env: [
        { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "TEAM", valueFrom: { fieldRef: { fieldPath: "metadata.labels['team']" } } },
        { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
        { name: "GREETING", valueFrom: { configMapKeyRef: { name: "settings", key: "greeting" } } },
        { name: "BOTH", value: "$(GREETING) from $(POD)" },
        { name: "FILE", value: "/etc/app/app.conf" },
      ],
      volumeMounts: [
        { name: "conf", mountPath: "/etc/app/app.conf", subPath: "app.conf" },
        { name: "key", mountPath: "/etc/key" },
      ],
    };
    const made = pod("seer", command, container, { serviceAccountName: "worker", volumes: account });
    await cluster().call("POST", path("pods"), made);
    await eventually("the pod Ready", async () =>
      listAt(await status("seer"), "conditions").some(
        (c) => stringAt(c, "type") === "Ready" && stringAt(c, "status") === "True",
      ),
    );
    const port = await cluster().localPort(stringAt(await status("seer"), "podIP") ?? "", 8080);
    const seen = JSON.parse(await fetchText(`http://127.0.0.1:${port}/`));
    expect(seen).toMatchObject({
      config: "v1",
      secret: "open",
      namespace: namespace(),
      user: `system:serviceaccount:${namespace()}:worker`,
      environment: { POD: "seer", TEAM: "blue", GREETING: "hello", BOTH: "hello from seer" },
    });
    expect(seen.environment.NODE).toBe(
      stringAt(await cluster().call("GET", path("pods", "seer")), "spec", "nodeName"),
    );
    expect(seen.environment.FILE).toMatch(/\/etc\/app\/app\.conf$/);

    await cluster().call("PATCH", path("configmaps", "settings"), { data: { "app.conf": "v2" } });
    await cluster().call("PATCH", path("secrets", "key"), { stringData: { word: "changed" } });
    const after = await eventually("the new secret in the file", async () => {
      const now = JSON.parse(await fetchText(`http://127.0.0.1:${port}/`));
      return now.secret === "changed" && now;
    });
    // Mounted by subPath: all volumes are refreshed in order, and this one stays.
    expect(after.config).toBe("v1");

    await fetchText(`http://127.0.0.1:${port}/exit/3`);
    const restarted = await eventually("the restart", async () => {
      const container = listAt(await status("seer"), "containerStatuses")[0];
      return at(container, "restartCount") === 1 && at(container, "ready") === true && container;
    });
    expect(at(restarted, "lastState", "terminated", "exitCode")).toBe(3);
    expect(JSON.parse(await fetchText(`http://127.0.0.1:${port}/`)).config).toBe("v2");
  });

  test("succeed or fail permanently when they are not restarted", async () => {
    const once = { restartPolicy: "Never" };
    await cluster().call("POST", path("pods"), pod("good", ["node", "-e", "console.log('done')"], {}, once));
    await cluster().call("POST", path("pods"), pod("bad", ["node", "-e", "process.exit(7)"], {}, once));
    const ended = (name: string) => async () => {
      const now = await status(name);
      return ["Succeeded", "Failed"].includes(stringAt(now, "phase") ?? "") && now;
    };
    const good = await eventually("its end", ended("good"));
    const bad = await eventually("its end", ended("bad"));
    expect([stringAt(good, "phase"), stringAt(bad, "phase")]).toEqual(["Succeeded", "Failed"]);
    expect(at(bad, "containerStatuses", 0, "state", "terminated", "exitCode")).toBe(7);
    expect(cluster().podLog(namespace(), "good")).toContain("done");
  });

  test("wait for a ConfigMap that does not exist yet", async () => {
    const spec = { volumes: [{ name: "late", configMap: { name: "late" } }], restartPolicy: "Never" };
    const command = ["node", "-e", "console.log(require('fs').readFileSync('/late/word', 'utf8'))"];
    await cluster().call(
      "POST",
      path("pods"),
      pod("patient", command, { volumeMounts: [{ name: "late", mountPath: "/late" }] }, spec),
    );
    await eventually("the pod to be seen by its node", async () =>
      stringAt(await status("patient"), "podIP"),
    );
    expect(stringAt(await status("patient"), "phase")).toBe("Pending");
    await cluster().call("POST", path("configmaps"), { metadata: { name: "late" }, data: { word: "there" } });
    await eventually("its end", async () => stringAt(await status("patient"), "phase") === "Succeeded");
    expect(cluster().podLog(namespace(), "patient")).toContain("there");
  });

  test("run init containers first, in sequence", async () => {
    const write = (text: string) => ["node", "-e", `require('fs').appendFileSync('/shared/log', '${text};')`];
    const mount = { image: "any", volumeMounts: [{ name: "shared", mountPath: "/shared" }] };
    const spec = {
      restartPolicy: "Never",
      volumes: [{ name: "shared", emptyDir: {} }],
      initContainers: [
        { name: "one", command: write("one"), ...mount },
        { name: "two", command: write("two"), ...mount },
      ],
    };
    const command = ["node", "-e", "console.log(require('fs').readFileSync('/shared/log', 'utf8'))"];
    await cluster().call("POST", path("pods"), pod("ordered", command, mount, spec));
    await eventually("its end", async () => stringAt(await status("ordered"), "phase") === "Succeeded");
    expect(cluster().podLog(namespace(), "ordered")).toContain("one;two;");
  });

  test("are probed with every kind of probe, and restarted when unhealthy", async () => {
    const spec = { volumes: [{ name: "state", emptyDir: {} }] };
    const container = {
      volumeMounts: [{ name: "state", mountPath: "/state" }],
      readinessProbe: { exec: { command: ["test", "-e", "/state/ready"] }, periodSeconds: 1 },
      livenessProbe: {
        exec: { command: ["test", "!", "-e", "/state/ill"] },
        periodSeconds: 1,
        failureThreshold: 1,
      },
    };
    const script = "setInterval(() => {}, 1000); require('fs').writeFileSync('/state/pid', '')";
    await cluster().call("POST", path("pods"), pod("asked", ["node", "-e", script], container, spec));
    const state = await eventually("its folder", () => {
      const pods = join(cluster().info.folder, "pods");
      const folder = readdirSync(pods).find((name) => name.startsWith(`${namespace()}_asked_`));
      const found = folder === undefined ? "" : join(pods, folder, "volumes", "state");
      return existsSync(join(found, "pid")) && found;
    });
    const first = async () => listAt(await status("asked"), "containerStatuses")[0];
    await eventually("it not ready", async () => at(await first(), "ready") === false);
    writeFileSync(join(state, "ready"), "");
    await eventually("it ready", async () => at(await first(), "ready") === true);
    writeFileSync(join(state, "ill"), "");
    await eventually("it restarted", async () => Number(at(await first(), "restartCount")) > 0);
    rmSync(join(state, "ill"));
    await eventually("ready again", async () => at(await first(), "ready") === true);
  });

  test("get SIGKILL when their grace period is over", async () => {
    const deaf = [
      "node",
      "-e",
      "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('pid', process.pid)",
    ];
    await cluster().call("POST", path("pods"), pod("deaf", deaf, {}, { terminationGracePeriodSeconds: 1 }));
    const pid = await eventually(
      "the first output",
      () => /pid (\d+)/.exec(cluster().podLog(namespace(), "deaf"))?.[1],
    );
    await cluster().call("DELETE", path("pods", "deaf"));
    await eventually(
      "the pod gone",
      async () => (await cluster().request("GET", path("pods", "deaf"))).status === 404,
    );
    expect(isRunning(Number(pid))).toBe(false);
  });
});
