// The replicas of usher that run for real in a cluster, and their own metrics.
import { type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import type { ClusterAccess } from "../../test/cluster/access/access.ts";
import { seriesOf } from "../servers/scrape.ts";

const PODS = "/api/v1/namespaces/usher-system/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dadmission";
const OPS_PORT = 8080;
const WITHIN_MS = 10_000;

export interface Work {
  /** Processor time of all replicas together, in µs. */
  readonly processor: number;
  /** Reviews that all of them together have answered. */
  readonly reviews: number;
}

/** The metrics of one replica. */
export interface Page {
  readonly pod: string;
  readonly text: string;
}

export async function pagesOf(cluster: ClusterAccess): Promise<Page[]> {
  const pods = listAt(await cluster.call("GET", PODS), "items") as readonly JsonObject[];
  return Promise.all(
    pods.map(async (pod) => ({
      pod: stringAt(pod, "metadata", "name") ?? "",
      text: await pageOf(cluster, stringAt(pod, "status", "podIP") ?? ""),
    })),
  );
}

/** The work of all replicas since they began. */
export async function workOf(cluster: ClusterAccess): Promise<Work> {
  const pages = await pagesOf(cluster);
  const sum = (value: (page: string) => number) => pages.reduce((total, { text }) => total + value(text), 0);
  return {
    processor: sum((page) => seriesOf(page, "process_cpu_seconds_total") * 1e6),
    reviews: sum(requestsOn),
  };
}

async function pageOf(cluster: ClusterAccess, address: string): Promise<string> {
  const port = await cluster.localPort(address, OPS_PORT);
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
    signal: AbortSignal.timeout(WITHIN_MS),
  });
  return response.text();
}

/** With any result. */
function requestsOn(page: string): number {
  const lines = page.split("\n").filter((line) => line.startsWith("usher_requests_total{"));
  return lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
