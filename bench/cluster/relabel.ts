// 5,000 bare nodes relabelled by one change of a rule: the time, and the requests to the API server.
import type { Client } from "../../src/cluster/client/client.ts";
import { createKindPaths } from "../../src/cluster/client/discovery.ts";
import { Controller } from "../../src/cluster/controller/controller.ts";
import { createWrites } from "../../src/cluster/controller/planned-writes.ts";
import { openCluster } from "../../src/cluster/source/cluster-source.ts";
import { createNeeds } from "../../src/cluster/source/fetch-needs.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { listAt } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import { nodeLabels } from "../../src/modules/node-labels/index.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { clientOf, installKinds } from "../../test/e2e/live-source.ts";
import { ruleChange } from "../parts/node-labels.ts";
import { count } from "../report/number.ts";
import type { Result } from "../report/result.ts";
import type { ClusterServers } from "./cluster-servers.ts";
import { inParallel } from "./parallel.ts";

const CONNECTIONS = 16;
const RULES = "/apis/node-labels.openshift.io/v1beta1/namespaces/default/labels";
const KEY = "bench.example.com/pool";
/** Half of the nodes are another rule's, and must cost nothing. */
const nodeName = (i: number) => `${i % 2 === 0 ? "edge" : "core"}-${i}`;
const LONGEST_MS = 600_000;

export async function relabel(servers: ClusterServers): Promise<Result> {
  const total = servers.quick ? 1_000 : 10_000;
  servers.say(`starting a control plane with ${total} bare nodes …`);
  const cluster = await startCluster({ without: ["kube-controller-manager", "kube-scheduler", "kwok"] });
  try {
    return await measured(servers, cluster, total);
  } finally {
    await cluster.stop();
  }
}

async function measured(servers: ClusterServers, cluster: Cluster, total: number): Promise<Result> {
  await installKinds(cluster, [nodeLabels]);
  await cluster.call("POST", RULES, written("edge-.*", "1"));
  await inParallel(total, CONNECTIONS, async (i) => {
    const metadata = { name: nodeName(i), labels: { [KEY]: nodeName(i).startsWith("edge") ? "1" : "other" } };
    await cluster.call("POST", "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata });
  });
  const { client, calls } = counted(await clientOf(cluster, cluster.server));
  const assembly = new Assembly([nodeLabels], DEFAULT_INSTALLATION, new Gates([]));
  let controller: Controller | undefined;
  const source = openCluster({
    client,
    assembly,
    log: SILENT,
    changed: (changes) => controller?.changed(changes),
  });
  try {
    await source.cache.waitForSync();
    await source.cache.startLeading();
    controller = new Controller({
      modules: [nodeLabels],
      view: () => assembly.view,
      fetch: createNeeds(client, source.resources),
      write: createWrites(client, source.resources, createKindPaths(client)),
      leading: () => true,
      log: SILENT,
      assembly,
    });
    controller.start();
    await eventually("nothing to do", () => idle(controller), LONGEST_MS);
    calls.clear();
    servers.say("changing the rule …");
    const started = performance.now();
    await cluster.call("PATCH", `${RULES}/edge`, { spec: { labels: { [KEY]: "2" } } });
    const labelled = total / 2;
    await eventually(
      "all relabelled",
      () => (calls.get("PATCH nodes") ?? 0) >= labelled && idle(controller),
      LONGEST_MS,
    );
    const seconds = (performance.now() - started) / 1e3;
    const right = listAt(await cluster.call("GET", `/api/v1/nodes?labelSelector=${KEY}%3D2`), "items").length;
    if (right !== labelled) throw new Error(`${right} of ${labelled} nodes have the new label`);
    return {
      title: `One changed rule relabels ${count(labelled)} of ${count(total)} nodes`,
      rows: [
        {
          what: "until the last is written",
          figure: `${seconds.toFixed(1)} s`,
          detail: "50 a second are allowed",
        },
        ...[...calls].map(([what, times]) => ({ what: `calls: ${what}`, figure: count(times) })),
      ],
      figures: { total, labelled, seconds, calls: Object.fromEntries(calls) },
    };
  } finally {
    await controller?.stop();
    await source.stop();
    client.close();
  }
}

function written(pattern: string, value: string) {
  return { ...ruleChange("edge", pattern, value).object, metadata: { name: "edge" } };
}

function idle(controller: Controller | undefined): boolean {
  const { due, later, running } = controller?.stats.items ?? { due: 1, later: 0, running: 0 };
  return due + later + running === 0;
}

/** Counts requests to the API server, by verb and resource. */
function counted(plain: Client): { readonly client: Client; readonly calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const client: Client = {
    ...plain,
    server: plain.server,
    request: (method, path, options) => {
      const [, resource = path] = /\/(nodes|labels|ownedlabels)\b/.exec(path) ?? [];
      const what = `${method} ${resource}`;
      calls.set(what, (calls.get(what) ?? 0) + 1);
      return plain.request(method, path, options);
    },
  };
  return { client, calls };
}
