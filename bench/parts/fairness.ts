// The effect of a tenant's expensive dry runs on others: the time of small reviews of one namespace, with and without a
// storm of large ones of another.
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { writeSource } from "../fixtures/policies.ts";
import { reviews } from "../fixtures/reviews.ts";
import { ratio, time } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import { quantile } from "../report/statistics.ts";
import { startServer } from "../servers/child-process.ts";
import { type Served, type Servers, servedAs, USHER } from "../servers/servers.ts";

/** The p99 of the innocent under the storm, for the usual. */
const MOST_TIMES = 2;
/** Requests per second of the innocent tenant, each in both phases. */
const RATE = 50;
/** Dry runs per second of the other tenant, each in both phases: as many as were seen to delay others for seconds. */
const STORM = 2;
/** Some 600 KB, and every container breaks four checks. */
const CONTAINERS = 20_000;
const PHASES = ["mutate", "validate"] as const;

const CONFIGURATION = {
  apiVersion: "usher.dev/v1alpha1",
  kind: "UsherConfiguration",
  metadata: { name: "bench" },
  spec: { modules: { "pod-os": { podSecurity: { mode: "Replace" } } } },
};

const STORM_NAMESPACE = {
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name: "storm", labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
};

export async function fairness(servers: Servers): Promise<Result> {
  const usher = await start(servers);
  const seconds = servers.quick ? 5 : 30;
  try {
    servers.say("asking about one tenant's pods, and then beside a storm of another's …");
    await innocent(usher, 3);
    const usual = await innocent(usher, seconds);
    const storm = new AbortController();
    const storming = stormOf(usher, storm.signal);
    const under = await innocent(usher, seconds);
    storm.abort();
    const expensive = await storming;
    const [before, after] = [quantile(usual, 0.99), quantile(under, 0.99)];
    const title = `Fairness: p99 of ${RATE} pods per second beside ${STORM} dry runs per second of pods with ${CONTAINERS} containers`;
    return {
      title,
      rows: [
        {
          what: "p99 of an innocent tenant under the storm, for the usual",
          figure: ratio(after / before),
          detail: `${time(1_000 * after)} for ${time(1_000 * before)}; the longest ${time(1_000 * (under.at(-1) ?? 0))}`,
          target: atMost(MOST_TIMES, after / before),
        },
        {
          what: "an expensive review, from the request to the response",
          figure: time(1_000 * quantile(expensive, 0.5)),
        },
      ],
      figures: { usual, under, expensive },
    };
  } finally {
    await usher.stop();
  }
}

async function start(servers: Servers): Promise<Served> {
  const config = join(servers.scratch, "fairness.yaml");
  writeFileSync(config, stringify(CONFIGURATION));
  const source = writeSource(servers.scratch, 10);
  writeFileSync(join(source, "storm.yaml"), stringify(STORM_NAMESPACE));
  const flags = ["--port", "0", "--ops-port", "0", "--drain-seconds", "0", "-o", "json", "--config", config];
  const child = await startServer(USHER, ["serve", "--source", source, ...flags]);
  return servedAs(servers.scratch, "fairness", child);
}

/** Milliseconds of each review, sorted. */
export async function innocent(server: Served, seconds: number): Promise<number[]> {
  const send = sender(server);
  const bodies = reviews("wanted", 10);
  const sent: Promise<number>[] = [];
  const started = performance.now();
  for (let i = 0; i < RATE * seconds; i++) {
    await sleep(Math.max(0, started + (1_000 / RATE) * i - performance.now()));
    for (const phase of PHASES) sent.push(send(phase, bodies[i % bodies.length] ?? ""));
  }
  return (await Promise.all(sent)).sort((a, b) => a - b);
}

async function stormOf(server: Served, signal: AbortSignal): Promise<number[]> {
  const send = sender(server);
  const [one = ""] = reviews("wanted", 10);
  const review = JSON.parse(one) as {
    request: { namespace: string; object: { spec: object; metadata: object } };
  };
  const { request: asked } = review;
  asked.namespace = "storm";
  asked.object.metadata = { name: "fat", namespace: "storm" };
  asked.object.spec = {
    containers: Array.from({ length: CONTAINERS }, (_, i) => ({ name: `c${i}`, image: "a" })),
  };
  const body = JSON.stringify(review);
  const sent: Promise<number>[] = [];
  while (!signal.aborted) {
    for (const phase of PHASES) sent.push(send(phase, body));
    await sleep(1_000 / STORM);
  }
  return (await Promise.all(sent)).sort((a, b) => a - b);
}

/** Milliseconds until the whole response is there. */
export function sender(server: Served): (phase: string, body: string) => Promise<number> {
  const agent = new Agent({ keepAlive: true, ca: readFileSync(server.ca) });
  return (phase, body) =>
    new Promise((resolve, reject) => {
      const started = performance.now();
      const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
      const call = request(
        `${server.ready.webhook}/${phase}?timeout=10s`,
        { method: "POST", agent, headers },
        (response) => response.resume().once("end", () => resolve(performance.now() - started)),
      );
      call.once("error", reject);
      call.end(body);
    });
}
