// A process: usher's webhook over a live cluster, with nodes in its view or without. `usher serve` can't leave a module
// out, so its parts are assembled here.
import { startAdmission } from "../../src/admission/admission-server.ts";
import { at } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import type { ClusterAccess } from "../../test/cluster/access/access.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type OpenLive, openLive } from "../../test/e2e/live-source.ts";
import type { Ready } from "../servers/child-process.ts";
import { nodeName } from "./large-cluster.ts";
import { modulesThat } from "./node-view.ts";
import { serveWorker } from "./worker-process.ts";

export type Following =
  | { readonly do: "serve"; readonly watchNodes: boolean }
  /** The number of node changes in the view since it began to serve, after all earlier writes were processed. */
  | { readonly do: "count changes" };

export interface Followed {
  readonly ready: Ready;
  readonly nodes: number;
  readonly changes: number;
}

let live: OpenLive | undefined;
let ready: Ready | undefined;
let marks = 0;

serveWorker(async (cluster, asked: Following): Promise<Followed> => {
  if (asked.do === "serve") ready = await serve(cluster, asked.watchNodes);
  else await takeInAll(cluster);
  if (live === undefined || ready === undefined) throw new Error("it does not serve yet");
  const changes = live.changes.filter(({ resource }) => resource === "nodes").length;
  return { ready, nodes: live.source.assembly.view.count("nodes"), changes: changes - marks };
});

async function serve(cluster: ClusterAccess, watchNodes: boolean): Promise<Ready> {
  live = await openLive(cluster, modulesThat(watchNodes));
  await live.source.cache.waitForSync();
  // From here on they are counted.
  live.changes.length = 0;
  const server = await startAdmission({ source: live.source, log: SILENT, port: 0, opsPort: 0 });
  return { webhook: server.webhookAddress.url, ops: server.opsAddress.url, ca: server.ca ?? "" };
}

/** Nodes arrive in the order in which they were written: when this one label has, so has all before it. */
async function takeInAll(cluster: ClusterAccess): Promise<void> {
  marks += 1;
  const mark = `mark-${process.pid}-${marks}`;
  await cluster.call("PATCH", `/api/v1/nodes/${nodeName(0)}`, { metadata: { labels: { mark } } });
  await eventually("the marked node in the view", () => {
    const node = live?.source.assembly.view.get("nodes", "", nodeName(0));
    return at(node, "metadata", "labels", "mark") === mark;
  });
}
